"""Withdrawals from coins on bitcoin's and litecoin's real nodes: HTTP, schedules, queues, and KMS as the signer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from urllib3.util import parse_url

from chalicelib import wiring
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.workers import deadlines
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Bcoin, Litecoin, UtxoNode
from tests.nodes.utxo_shops import COIN, CONFIRMATIONS, Shop
from tests.support.node_proxy import NodeProxy
from tests.support.stack import first_stack

pytestmark = pytest.mark.nodes


@pytest.fixture
def shop(aws: LocalAws, utxo_node: UtxoNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("LIVE_CHAINS", "bitcoin=regtest,litecoin=regtest")
    wiring.forget()
    made = Shop(first_stack(aws, {utxo_node.slug: NodeInfo(utxo_node.url)}), utxo_node)
    made.fund()
    assert made.held() == [COIN, COIN // 2, COIN // 4]
    yield made
    assert audit(services().store) == []
    wiring.forget()


@pytest.mark.parametrize("utxo_node", ["litecoin", pytest.param("bitcoin", marks=pytest.mark.sweep)], indirect=True)
def test_several_are_paid_by_one_transaction_through_reorganisation_and_replacement(shop: Shop) -> None:
    to = [shop.node.new_address() for _ in range(3)]
    ids = [shop.withdraw(amount, address) for amount, address in zip(("0.1", "0.2", "0.05"), to, strict=True)]
    shop.run()
    assert {shop.status(i) for i in ids} == {"confirming"}
    (bundle,) = shop.bundles()
    (txid,) = bundle.txids
    assert shop.node.mempool() == [txid]
    assert bundle.newest is not None and bundle.newest.change is not None
    paid = shop.paid(txid)
    assert [paid[address] for address in to] == [COIN // 10, COIN // 5, COIN // 20]
    assert paid[shop.hot] == bundle.newest.change_amount
    shop.confirm()
    assert {shop.status(i) for i in ids} == {"confirmed"}
    assert sum(w.fee for w in services().store.every(Withdrawal)) == bundle.newest.fee
    before = shop.held()
    shop.node.reorg(CONFIRMATIONS)
    shop.run()
    assert {shop.status(i) for i in ids} == {"confirming"} and shop.bundles()[0].state == "signed"
    shop.confirm()
    assert {shop.status(i) for i in ids} == {"confirmed"} and shop.held() == before
    if shop.slug == "litecoin":  # bcoin replaces nothing
        _stuck_and_replaced(shop)
    else:
        _sent_again_when_forgotten(shop)
    _kept_when_its_coin_is_spent_twice(shop)


def _stuck_and_replaced(shop: Shop) -> None:
    withdrawal = shop.withdraw("0.1", shop.node.new_address())
    shop.run()
    known = shop.bundles()[-1].txids
    shop.minutes += 200
    shop.run()
    newest, earlier = shop.bundles()[-1].txids
    assert (earlier,) == known and shop.node.mempool() == [newest]
    shop.confirm()
    assert shop.status(withdrawal) == "confirmed" and shop.bundles()[-1].mined == newest


def _sent_again_when_forgotten(shop: Shop) -> None:
    """bcoin alone is told to forget: litecoind keeps what it took."""
    withdrawal = shop.withdraw("0.1", shop.node.new_address())
    shop.run()
    (txid,) = shop.bundles()[-1].txids
    assert isinstance(shop.node, Bcoin)
    shop.node.evict(txid)
    assert shop.node.mempool() == []
    shop.run()
    assert shop.node.mempool() == [txid]
    shop.confirm()
    assert (shop.status(withdrawal), shop.bundles()[-1].mined) == ("confirmed", txid)


def _kept_when_its_coin_is_spent_twice(shop: Shop) -> None:
    """Who funded the hot wallet last spends that payment again in a reorganisation, after we have spent it. Nothing spends our coin
    itself, so that nothing proves that it never comes back: the operator decides (money rule 13)."""
    funding = shop.node.send(shop.hot, 20 * COIN)
    rival = shop.node.conflict(funding)
    shop.confirm()
    withdrawal = shop.withdraw("1.5", shop.node.new_address())
    shop.run()
    (coin,) = shop.bundles()[-1].coins
    assert shop.status(withdrawal) == "confirming" and coin.startswith(funding)
    shop.node.reorg(CONFIRMATIONS, instead=[rival])
    shop.run()
    assert shop.status(withdrawal) == "confirming" and shop.bundles()[-1].doubtful_since is not None
    reserved = shop.available()
    for _ in range(2):
        shop.node.mine(64)
        shop.run()
    assert (shop.status(withdrawal), shop.available()) == ("confirming", reserved)


TOGETHER = 10
"""Payments of one transaction: what a node is asked does not depend on how many."""


@pytest.mark.sweep
def test_a_transaction_is_asked_for_once_however_many_payments_it_has(
    aws: LocalAws, litecoin: Litecoin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the poll's clock the node takes 50 ms for each answer. Once the payments are deep enough, each of their transactions is
    asked for once."""
    monkeypatch.setenv("LIVE_CHAINS", "litecoin=regtest")
    wiring.forget()
    with NodeProxy(litecoin.url) as proxy:
        login = parse_url(litecoin.url).auth
        shop = Shop(first_stack(aws, {"litecoin": NodeInfo(proxy.url.replace("//", f"//{login}@"))}), litecoin)
        shop.fund()
        for _ in range(2):
            outputs = [{"to_address": shop.node.new_address(), "amount": "0.001"} for _ in range(TOGETHER)]
            shop.post("/v1/withdrawals", batch_withdrawal={"network": "litecoin", "coin": "ltc", "outputs": outputs})
            shop.run()
        assert [(len(bundle.payouts), bundle.state) for bundle in shop.bundles()] == [(TOGETHER, "signed")] * 2
        invoice = shop.post("/v1/invoices", currency="ltc", amount="1", network="litecoin")
        paid = shop.node.send(invoice["address"], COIN)
        shop.node.mine_block([shop.node.raw(paid)])
        for _ in range(CONFIRMATIONS - 3):
            shop.node.mine_block()
        shop.node.mine(2)  # the payments are in a block, and not deep enough

        def poll() -> Counter[str]:
            before = len(proxy.asked)
            shop.minutes += 1
            services().clock.shift_ms = shop.minutes * 60_000
            shop.stack.drain(only=("poll_litecoin",), rounds=1)
            return Counter(proxy.asked[before:])

        monkeypatch.setattr(deadlines, "time", SimpleNamespace(monotonic=lambda: 0.05 * len(proxy.asked)))
        asked = poll()
        assert shop.stack.call("GET", "/v1/invoices", shop.key, query={"id": invoice["id"]}).json["status"] == "completed"
        assert asked["getrawtransaction"] <= 1, "the deposit's alone"
        shop.node.mine(CONFIRMATIONS - 2)
        asked = poll()
        assert (asked["getrawtransaction"], asked["getblockheader"]) == (2, 2), asked
        assert asked["getblockhash"] <= 12
    assert {w.status for w in services().store.every(Withdrawal)} == {"confirmed"}
    assert {bundle.state for bundle in shop.bundles()} == {"settled"}
    assert audit(services().store) == []
    wiring.forget()
