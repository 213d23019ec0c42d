"""The main job on a real chain: pay an invoice in ether and in a token from any wallet, be told, withdraw both, survive a
reorganisation. Everything goes through the HTTP interface, the schedules and the queues; KMS signs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local import nodes
from infra.local.aws import LocalAws
from infra.local.nodes import Anvil, deploy_token, mine
from infra.local.tokens import call_data
from tests.nodes.conftest import send, send_native, send_token
from tests.support.receiver import Receiver
from tests.support.stack import Stack, first_stack

pytestmark = pytest.mark.nodes

ETHER = 10**18
OUT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
HANDLERS = ("poll_arbitrum", "relay", "deliver", "payout")
CONFIRMATIONS = 10


class Shop:
    """A live merchant on arbitrum, whose node is anvil."""

    def __init__(self, stack: Stack, node: Anvil, usdt: str) -> None:
        self.stack, self.node, self.usdt = stack, node, usdt
        self.key = stack.keys["client_live"]

    def run(self) -> None:
        done = self.stack.drain(only=HANDLERS)
        assert done.settled, done

    def confirm(self) -> None:
        mine(self.node.rpc, CONFIRMATIONS)
        self.run()

    def post(self, path: str, **body: Any) -> Any:
        answer = self.stack.call("POST", path, self.key, json=body)
        assert answer.status == 201, answer.body
        return answer.json

    def get(self, path: str, **query: str) -> Any:
        answer = self.stack.call("GET", path, self.key, query=query)
        assert answer.status == 200, answer.body
        return answer.json

    def invoice(self, made: Any) -> Any:
        return self.get("/v1/invoices", id=made["id"])

    def available(self) -> dict[str, str]:
        return {entry["coin"]: entry["available"] for entry in self.get("/v1/balances")["data"]}

    def on_chain(self, address: str) -> tuple[int, int]:
        reader = services().reader(services().catalogue("live").networks["arbitrum"])
        return reader.balance(address), reader.balance(address, self.usdt)


@pytest.fixture
def shop(aws: LocalAws) -> Iterator[Shop]:
    with Anvil(42161) as node:
        usdt = deploy_token(node.rpc, "USDT", "Tether USD", 6, returns_nothing=True)
        stack = first_stack(aws, {"arbitrum": NodeInfo(node.url, {"usdt": usdt})})
        made = Shop(stack, node, usdt)
        hot = hot_wallet()
        send_native(node.rpc, hot, 100 * ETHER)
        send_token(node.rpc, usdt, hot, 1_000_000_000)
        made.confirm()
        yield made


def hot_wallet() -> str:
    from chalicelib.domain.addresses.addresses import Wallet

    wallet = services().store.get(Wallet, network=NetworkId("live:arbitrum"), role="hot")
    assert wallet is not None and wallet.custody == "kms"
    return wallet.address


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
