"""Somebody else uses the hot wallet's key on anvil: what can never be mined fails and is given back, what still can is paid."""

from __future__ import annotations

import pytest

from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder, Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.nodes import mine
from tests.nodes.renewing import REORG_DEPTH, STUCK_MS, known, order_of, shown, withdraw
from tests.nodes.sending import send_native
from tests.nodes.shops import ETHER, OUT, Shop, hot_wallet

pytestmark = pytest.mark.nodes

ELSEWHERE = "0x" + "5e" * 20


def next_nonce() -> int:
    (counter,) = (c for c in services().store.every(NonceCounter) if c.wallet == hot_wallet())
    return counter.next


def steal(shop: Shop, nonce: int, gwei: int = 200) -> str:
    """The hot wallet's key is used elsewhere."""
    rpc, hot = shop.node.rpc, hot_wallet()
    rpc.call("anvil_impersonateAccount", [hot])
    sent = {"from": hot, "to": ELSEWHERE, "value": "0x1", "nonce": hex(nonce), "gas": hex(21_000), "gasPrice": hex(gwei * 10**9)}
    txid = str(rpc.call("eth_sendTransaction", [sent]))
    rpc.call("anvil_stopImpersonatingAccount", [hot])
    return txid


def drop(shop: Shop, order: PaymentOrder) -> None:
    shop.node.rpc.call("anvil_dropTransaction", [order.txid])
    assert not known(shop, order.txid)


def test_what_can_never_be_mined_fails_and_later_nonces_are_paid(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    rpc = shop.node.rpc
    made = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
    send_native(rpc, made["address"], ETHER)
    shop.confirm()
    rpc.call("evm_setAutomine", [False])
    before = shop.on_chain(OUT)[0]
    first, second = withdraw(shop), withdraw(shop)
    lost = order_of(first)
    drop(shop, lost)
    # One nonce that was allotted, and two that were not: the payment between them keeps its own.
    for nonce in (lost.nonce, lost.nonce + 2, lost.nonce + 3):
        steal(shop, nonce)
    for _ in range(2):  # anvil dropped the second one with the first: it is sent again
        mine(rpc)
        shop.run()
    assert (shown(shop, first)[0], shown(shop, second)[0]) == ("confirming", "confirming")
    assert shop.on_chain(OUT)[0] == before + ETHER // 4
    services().clock.shift_ms += STUCK_MS
    shop.run()
    seen = order_of(first).usurped
    assert seen is not None and (seen.used, next_nonce()) == (lost.nonce + 4, lost.nonce + 2)
    assert f"a transaction that is not ours used the nonce {lost.nonce}" in caplog.text
    mine(rpc, REORG_DEPTH - 1)
    shop.run()
    assert (shown(shop, first)[0], shown(shop, second)[0]) == ("confirming", "confirmed")
    assert shop.available()["eth"] == "0.5"
    mine(rpc)
    shop.run()
    assert (shown(shop, first)[0], shop.available()["eth"]) == ("failed", "0.75")
    (failed,) = (w for w in services().store.every(Withdrawal) if w.id == first)
    assert "another transaction used the nonce" in str(failed.failure)
    assert "ALARM live:arbitrum" in caplog.text and "somebody has the key of" in caplog.text
    # Nothing is left out: the next one has the first nonce that nobody used.
    third = withdraw(shop)
    assert order_of(third).nonce == lost.nonce + 4
    mine(rpc, 12)
    shop.run()
    assert shown(shop, third)[0] == "confirmed"
    assert (shop.on_chain(OUT)[0], shop.available()["eth"]) == (before + ETHER // 2, "0.5")
    assert audit(services().store) == []


def test_ours_in_a_new_branch_has_paid(shop: Shop) -> None:
    """What somebody else put in its place falls out again before anything is given back."""
    rpc = shop.node.rpc
    made = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
    send_native(rpc, made["address"], ETHER)
    shop.confirm()
    rpc.call("evm_setAutomine", [False])
    withdrawal = withdraw(shop)
    order = order_of(withdrawal)
    drop(shop, order)
    steal(shop, order.nonce)
    mine(rpc, REORG_DEPTH // 2)
    services().clock.shift_ms += STUCK_MS
    shop.run()
    assert order_of(withdrawal).usurped is not None
    rpc.call("anvil_reorg", [REORG_DEPTH // 2 + 2, [[order.raw, 0]]])
    mine(rpc, REORG_DEPTH)
    shop.run()
    assert (shown(shop, withdrawal)[0], shop.available()["eth"]) == ("confirmed", "0.75")
    assert audit(services().store) == []
