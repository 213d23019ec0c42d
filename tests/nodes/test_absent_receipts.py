"""Nodes that do not tell of transactions in their own blocks: nothing is given back and nothing paid again (money rule 13).

An index by id that is empty, null receipts: what the scanner met in the blocks counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import forget, services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Anvil, deploy_token, mine
from infra.local.tron.process import TronNode
from tests.nodes.sending import send_native
from tests.nodes.shops import ETHER, OUT, hot_wallet
from tests.nodes.shops import Shop as EvmShop
from tests.nodes.tron_shops import EXPIRED_SECONDS
from tests.nodes.tron_shops import Shop as TronShop
from tests.support.node_proxy import Fault, NodeProxy
from tests.support.stack import first_stack
from tests.support.tron_chain import SOLID, TRX, stranger

pytestmark = pytest.mark.nodes

DEPTH = 64


def no_index(method: str, params: Any, result: Any) -> Any:
    """Blocks as they are, and no transaction by its id."""
    return {} if "transaction" in method and method.endswith("byid") else result


def no_receipts(method: str, params: Any, result: Any) -> Any:
    return None if method in ("eth_getTransactionReceipt", "eth_getTransactionByHash") else result


@pytest.fixture
def tron(aws: LocalAws) -> Iterator[tuple[TronShop, NodeProxy]]:
    with TronNode() as node, NodeProxy(node.url) as proxy:
        shop = TronShop(first_stack(aws, {"tron": NodeInfo(proxy.url)}), node)
        shop.run()
        node.faucet(shop.hot(), 1_000)
        shop.confirm()
        invoice = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "75", "network": "tron"})
        node.faucet(invoice["address"], 75)
        shop.confirm()
        yield shop, proxy
        assert audit(services().store) == []
        forget()


def order_of(withdrawal: str) -> PaymentOrder:
    (found,) = (order for order in services().store.every(PaymentOrder) if order.withdrawal_id == withdrawal)
    return found


def much_later(shop: TronShop) -> None:
    shop.node.call("dev/time", shift_seconds=EXPIRED_SECONDS)
    services().clock.shift_ms += EXPIRED_SECONDS * 1000
    for blocks in (SOLID, DEPTH, SOLID):
        shop.node.mine(blocks)
        shop.run("housekeeping")
    shop.confirm()


def test_tron_with_an_empty_index_pays_once(tron: tuple[TronShop, NodeProxy], caplog: pytest.LogCaptureFixture) -> None:
    shop, proxy = tron
    to = stranger()
    proxy.fault = Fault(no_index)
    sent = shop.call("POST", "/v1/withdraws", json={"network": "tron", "coin": "trx", "address": to, "amount": "25"})
    shop.run()
    much_later(shop)
    assert (len(order_of(sent["id"]).txids), shop.on_chain(to)) == (1, 25 * TRX)
    assert "no node tells its receipt" in caplog.text
    proxy.heal()
    shop.run()
    assert shop.call("GET", f"/v1/withdrawals/{sent['id']}")["data"]["status"] == "confirmed"


def test_tron_is_replaced_only_when_the_blocks_prove_it(tron: tuple[TronShop, NodeProxy]) -> None:
    """Every node says that no block has it; the blocks that could have it are not as deep yet."""
    shop, _ = tron
    to = stranger()
    shop.node.call("dev/drop", count=1)
    sent = shop.call("POST", "/v1/withdraws", json={"network": "tron", "coin": "trx", "address": to, "amount": "25"})
    assert shop.stack.drain(only=("relay", "payout")).settled
    shop.node.call("dev/time", shift_seconds=EXPIRED_SECONDS)
    services().clock.shift_ms += EXPIRED_SECONDS * 1000
    shop.node.mine(DEPTH)
    shop.run("housekeeping")
    assert len(order_of(sent["id"]).txids) == 1
    shop.node.mine()
    shop.run("housekeeping")
    assert len(order_of(sent["id"]).txids) == 2
    shop.confirm()
    assert shop.on_chain(to) == 25 * TRX


@pytest.fixture
def evm(aws: LocalAws) -> Iterator[tuple[EvmShop, NodeProxy]]:
    with Anvil(42161) as node, NodeProxy(node.url) as proxy:
        usdt = deploy_token(node.rpc, "USDT", "Tether USD", 6, returns_nothing=True)
        shop = EvmShop(first_stack(aws, {"arbitrum": NodeInfo(proxy.url, {"usdt": usdt})}), node, usdt)
        send_native(node.rpc, hot_wallet(), 100 * ETHER)
        made = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
        send_native(node.rpc, made["address"], ETHER)
        shop.confirm()
        yield shop, proxy
        assert audit(services().store) == []


def test_evm_with_null_receipts_gives_nothing_back(evm: tuple[EvmShop, NodeProxy], caplog: pytest.LogCaptureFixture) -> None:
    shop, proxy = evm
    before = shop.on_chain(OUT)[0]
    proxy.fault = Fault(no_receipts)
    made = shop.post("/v1/withdraws", network="arbitrum", coin="eth", address=OUT, amount="0.25")
    shop.run()
    for blocks in (1, DEPTH, DEPTH):
        mine(shop.node.rpc, blocks)
        services().clock.shift_ms += 185_000
        shop.run()
    assert (shop.on_chain(OUT)[0] - before, shop.available()["eth"]) == (ETHER // 4, "0.75")
    shown = shop.get(f"/v1/withdrawals/{made['id']}")["data"]
    assert (shown["status"], len(order_of(made["id"]).txids)) == ("confirming", 1)
    assert "no node tells its receipt" in caplog.text
    proxy.heal()
    shop.run()
    assert shop.get(f"/v1/withdrawals/{made['id']}")["data"]["status"] == "confirmed"
    assert shop.available()["eth"] == "0.75"
