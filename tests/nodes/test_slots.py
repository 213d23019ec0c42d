"""Two hot wallets on anvil: both pay, and one payout larger than each is paid once coins have moved between them."""

from __future__ import annotations

import pytest

from chalicelib import wiring
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.nodes.sending import send_native, send_token
from tests.nodes.shops import ETHER, HANDLERS, OUT, Shop, hot_wallet
from tests.support.shop import THIRST
from tests.support.slots import asked_of_both

pytestmark = [pytest.mark.nodes, pytest.mark.sweep]

USDT = 10**6


def second_wallet(shop: Shop) -> str:
    """With 1 ETH and 300 USDT."""
    network = services().catalogue("live").networks["arbitrum"]
    with in_realm("live"):
        address = services().wallets.registering(None, network, "hot", by="a test", slot=1).run().wallet.address
    services().store.catalogue("live", fresh=True)
    send_native(shop.node.rpc, address, ETHER)
    send_token(shop.node.rpc, shop.usdt, address, 300 * USDT)
    return address


def ask(shop: Shop, amount: str) -> str:
    return str(shop.post("/v1/withdraws", network="arbitrum", coin="usdt", address=OUT, amount=amount)["id"])


def test_both_pay_and_what_is_larger_than_each_is_paid_by_both(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RISK_THRESHOLD", "100")  # nobody is asked about the large one
    wiring.forget()
    first, second = hot_wallet(), second_wallet(shop)
    made = shop.post("/v1/addresses", network="arbitrum", coin="usdt", type="user")
    send_token(shop.node.rpc, shop.usdt, made.get("data", made)["address"], 2_000 * USDT)
    shop.confirm()
    paid_before = shop.on_chain(OUT)[1]
    small = asked_of_both(lambda: ask(shop, "10"), 6)
    shop.run()
    shop.confirm()
    orders = [order for order in services().store.every(PaymentOrder) if order.withdrawal_id in small]
    assert {order.wallet for order in orders} == {first, second}
    assert [shop.get(f"/v1/withdrawals/{id}")["data"]["status"] for id in small] == ["confirmed"] * len(small)
    there = sum(shop.on_chain(wallet)[1] for wallet in (first, second))
    large = ask(shop, str(there // USDT - 1))
    shop.run()
    assert shop.get(f"/v1/withdrawals/{large}")["data"]["status"] == "pending"
    for _ in range(3):
        shop.confirm()
        services().clock.shift_ms += THIRST * 1000
        assert shop.stack.drain(only=("housekeeping",), rounds=1)
        shop.stack.drain(only=HANDLERS)
    shop.confirm()
    assert shop.get(f"/v1/withdrawals/{large}")["data"]["status"] == "confirmed"
    assert [(move.kind, move.source, move.recipient, move.state) for move in services().store.every(Move)] == [
        ("distribution", second, first, "settled")
    ]
    assert shop.on_chain(OUT)[1] - paid_before == len(small) * 10 * USDT + (there // USDT - 1) * USDT
    assert sum(shop.on_chain(wallet)[1] for wallet in (first, second)) == there % USDT + USDT
    assert NetworkId("live:arbitrum") in {move.network for move in services().store.every(Move)}
    assert audit(services().store) == []
