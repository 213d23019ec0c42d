"""Collection on a real chain: a token whose transfer returns nothing is topped up, swept by the address' own key and shared out;
what its issuer has frozen is parked."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.nodes import mine
from tests.nodes.sending import send_token
from tests.nodes.shops import CONFIRMATIONS, HANDLERS, OUT, Shop, hot_wallet

pytestmark = pytest.mark.nodes


def operator(shop: Shop, method: str, path: str, status: int, body: Any = None) -> Any:
    answer = shop.stack.call(method, path, shop.stack.keys["admin_live"], json=body)
    assert answer.status == status, answer.body
    return answer.json


def step(shop: Shop, rounds: int = 2) -> None:
    mine(shop.node.rpc, CONFIRMATIONS)
    shop.stack.drain(only=(*HANDLERS, "collect"), hurry=True, rounds=rounds)


def states(shop: Shop) -> list[tuple[str, str | None]]:
    return [(c["status"], c["reason"]) for c in operator(shop, "GET", "/v1/collections", 200)["data"]]


def test_a_token_is_collected_and_shared_out(shop: Shop) -> None:
    wallets = {"network": "arbitrum", "type": "collector"}
    collector = operator(shop, "POST", "/v1/addresses/service-wallets", 201, wallets)["address"]
    cold = {"network": "arbitrum", "type": "cold", "address": OUT}
    operator(shop, "POST", "/v1/addresses/service-wallets", 201, cold)
    settings = {"coin": "usdt", "network": "arbitrum", "collectThreshold": 10, "collectPercentageHot": 25}
    operator(shop, "PUT", "/v1/coins", 200, settings)
    address = shop.post("/v1/invoices", currency="usdt", amount="30", network="arbitrum")["address"]
    send_token(shop.node.rpc, shop.usdt, address, 30_000_000)
    hot = shop.on_chain(hot_wallet())
    step(shop, 3)
    assert states(shop) == [("topup_sent", None)]
    step(shop), step(shop)
    assert states(shop) == [("swept", None)]
    assert shop.on_chain(address)[1] == 0
    for _ in range(2):
        step(shop)
    found = sorted(services().store.every(Move), key=lambda move: move.created_at)
    assert sorted((m.kind, m.state) for m in found) == [
        ("cold", "settled"), ("distribution", "settled"), ("sweep", "settled"), ("topup", "settled"), ("topup", "settled"),
    ]  # fmt: skip
    assert shop.on_chain(OUT)[1] == 22_500_000
    assert shop.on_chain(collector)[1] == 0
    assert shop.on_chain(hot_wallet())[1] == hot[1] + 7_500_000
    assert shop.available() == {"usdt": "30"}
    # Nobody but the merchant was credited for anything, and all coins are where the ledger says.
    assert [d.amount for d in services().store.every(Deposit) if d.tenant is not None] == [30_000_000]
    assert audit(services().store) == []
    frozen_by_the_issuer(shop, address)


def frozen_by_the_issuer(shop: Shop, address: str) -> None:
    """From the second deposit on the token takes no transfer any more; then it does again."""
    send_token(shop.node.rpc, shop.usdt, address, 20_000_000)
    step(shop, 1)
    code = shop.node.rpc.call("eth_getCode", [shop.usdt, "latest"])
    shop.node.rpc.call("anvil_setCode", [shop.usdt, "0x60006000fd"])  # PUSH1 0, PUSH1 0, REVERT
    step(shop, 1)
    assert states(shop)[0] == ("parked", "refused")
    shop.node.rpc.call("anvil_setCode", [shop.usdt, code])
    (parked,) = operator(shop, "GET", "/v1/collections?status=parked", 200)["data"]
    assert operator(shop, "PUT", f"/v1/collections/{parked['id']}", 200, {"action": "retry"})["status"] == "planned"
    for _ in range(3):
        step(shop)
    assert states(shop) == [("swept", None)] * 2
    assert audit(services().store) == []
