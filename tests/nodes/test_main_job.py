"""The main job on a real chain: pay an invoice in ether and in a token from any wallet, be told, withdraw both, survive a
reorganisation. Everything goes through the HTTP interface, the schedules and the queues; KMS signs.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local import nodes
from infra.local.nodes import mine
from infra.local.tokens import call_data
from tests.nodes.sending import send, send_native, send_token
from tests.nodes.shops import CONFIRMATIONS, ETHER, OUT, Shop, hot_wallet
from tests.support.receiver import Receiver

pytestmark = pytest.mark.nodes


def test_paid_in_two_coins_told_and_paid_out(shop: Shop) -> None:
    with Receiver() as receiver:
        shop.post("/v1/webhooks", url=receiver.url(), events=["*"])
        ether = shop.post("/v1/invoices", currency="eth", amount="0.75", network="arbitrum")
        token = shop.post("/v1/invoices", currency="usdt", amount=120.5, network="arbitrum")
        send_native(shop.node.rpc, ether["address"], 3 * ETHER // 4)
        send_token(shop.node.rpc, shop.usdt, token["address"], 120_500_000)
        shop.run()
        assert shop.invoice(ether)["status"] == shop.invoice(token)["status"] == "confirming"
        assert shop.available() == {"eth": "0", "usdt": "0"}
        shop.confirm()
        assert shop.invoice(ether)["status"] == shop.invoice(token)["status"] == "completed"
        assert shop.available() == {"eth": "0.75", "usdt": "120.5"}

        before = shop.on_chain(OUT)
        first = shop.post("/v1/withdraws", network="arbitrum", coin="eth", address=OUT, amount="0.25")
        second = shop.post("/v1/withdraws", network="arbitrum", coin="usdt", address=OUT, amount="20.5")
        shop.run()
        shop.confirm()
        for made in (first, second):
            shown = shop.get(f"/v1/withdrawals/{made['id']}")["data"]
            assert shown["status"] == "confirmed"
            receipt = shop.node.rpc.call("eth_getTransactionReceipt", [shown["transaction_hash"]])
            assert receipt["from"] == hot_wallet().lower()
            assert receipt["status"] == "0x1"
        assert shop.on_chain(OUT) == (before[0] + ETHER // 4, before[1] + 20_500_000)
        assert shop.available() == {"eth": "0.5", "usdt": "100"}
        assert audit(services().store) == []
        told = [json.loads(request.body)["event"] for request in receiver.received]
        assert told.count("invoice.completed") == 2
        assert told.count("withdrawal.completed") == 2
        assert told.count("transaction.detected") == told.count("transaction.confirmed") == 2


# The sweep: test_eight_networks.py takes out a credited payment on Ethereum as deep, and stays.
@pytest.mark.sweep
def test_a_credited_payment_falls_out_and_comes_back(shop: Shop) -> None:
    made = shop.post("/v1/invoices", currency="eth", amount="2", network="arbitrum")
    send_native(shop.node.rpc, made["address"], 2 * ETHER)
    shop.confirm()
    assert shop.invoice(made)["status"] == "completed"
    # Empty blocks mined again are the same blocks: another payment makes the new branch a different one.
    elsewhere = {"from": nodes.dev_account(shop.node.rpc), "to": OUT, "value": "0x1"}
    shop.node.rpc.call("anvil_reorg", [CONFIRMATIONS + 3, [[elsewhere, 0]]])
    shop.run()
    assert shop.invoice(made)["status"] == "pending"
    assert shop.available()["eth"] == "0"
    send_native(shop.node.rpc, made["address"], 2 * ETHER)
    shop.confirm()
    assert shop.invoice(made)["status"] == "completed"
    assert shop.available()["eth"] == "2"
    assert audit(services().store) == []


def test_a_pause_is_caught_up_in_bounded_batches(shop: Shop) -> None:
    """Nothing polls while 180 blocks and three payments pass, as on a chain with several blocks a second."""
    made = shop.post("/v1/invoices", currency="eth", amount="3", network="arbitrum")
    for _ in range(3):
        send_native(shop.node.rpc, made["address"], ETHER)
        mine(shop.node.rpc, 60)
    asked = count_batches(shop)
    shop.run()
    assert shop.invoice(made)["status"] == "completed"
    assert max(asked) <= 50
    assert audit(services().store) == []


def count_batches(shop: Shop) -> list[int]:
    """How many blocks each question to the node was for, from now on."""
    reader: Any = services().reader(services().catalogue("live").networks["arbitrum"])
    asked: list[int] = []
    plain = reader.blocks

    def counting(first: int, last: int, contracts: Any) -> Any:
        asked.append(last - first + 1)
        return plain(first, last, contracts)

    reader.blocks = counting
    return asked


def test_a_payment_that_would_fail_gives_the_money_back(shop: Shop) -> None:
    made = shop.post("/v1/invoices", currency="usdt", amount="50", network="arbitrum")
    send_token(shop.node.rpc, shop.usdt, made["address"], 50_000_000)
    shop.confirm()
    send(shop.node.rpc, shop.usdt, call_data("addBlackList(address)", hot_wallet()))
    sent = shop.post("/v1/withdraws", network="arbitrum", coin="usdt", address=OUT, amount="50")
    shop.run()
    assert shop.get(f"/v1/withdrawals/{sent['id']}")["data"]["status"] == "failed"
    assert shop.available()["usdt"] == "50"
    assert audit(services().store) == []
