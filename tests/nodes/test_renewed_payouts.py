"""Payments that anvil does not mine: outbid, forgotten, mined late, swapped by a reorganisation. Paid once, whatever it was."""

from __future__ import annotations

import pytest

from chalicelib.domain.ledger import BURNT, Book, JournalEntry, totals
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.nodes import mine
from tests.nodes.renewing import QUARTER, STUCK_MS, block_at, known, order_of, replaced, shown, withdraw
from tests.nodes.shops import CONFIRMATIONS, ETHER, OUT, Shop, hot_wallet
from tests.support.shop import Kms

pytestmark = pytest.mark.nodes

REVERTS, LOOPS = "0x60006000fd", "0x5b600056"
"""Contracts that give up at once, and never."""


def test_outbid_replaced_and_paid_once(slow: Shop) -> None:
    before = slow.on_chain(OUT)[0]
    first, second = withdraw(slow), withdraw(slow)
    assert shown(slow, first) == ("confirming", order_of(first).txid)
    block_at(slow, 60)
    slow.run()
    assert slow.on_chain(OUT)[0] == before
    order = replaced(slow, first)
    assert order_of(second).earlier == ()
    assert known(slow, order.txid)
    assert not known(slow, order.earlier[0].txid)
    block_at(slow, 60)
    slow.run()
    assert slow.on_chain(OUT)[0] == before + QUARTER
    # The second one's nonce is the next now: its turn.
    block_at(slow, 60)
    services().clock.shift_ms += STUCK_MS
    slow.run()
    assert len(order_of(second).earlier) == 1
    slow.confirm()
    slow.run()
    assert [shown(slow, w)[0] for w in (first, second)] == ["confirmed", "confirmed"]
    assert shown(slow, first)[1] == order.txid
    assert (slow.on_chain(OUT)[0], slow.available()["eth"]) == (before + 2 * QUARTER, "0.5")


def test_forgotten_then_an_earlier_attempt_mined_then_swapped(slow: Shop) -> None:
    rpc, before = slow.node.rpc, slow.on_chain(OUT)[0]
    withdrawal = withdraw(slow)
    first = order_of(withdrawal)
    rpc.call("anvil_dropTransaction", [first.txid])
    assert not known(slow, first.txid)
    slow.run()
    assert known(slow, first.txid)
    block_at(slow, 60)
    order = replaced(slow, withdrawal)
    # Another node still has the first one, and blocks become cheap.
    rpc.call("anvil_dropTransaction", [order.txid])
    block_at(slow, 5)
    rpc.call("eth_sendRawTransaction", [first.raw])
    mine(rpc)
    slow.run()
    assert shown(slow, withdrawal) == ("confirming", first.txid)
    slow.confirm()
    assert shown(slow, withdrawal) == ("confirmed", first.txid)
    assert (slow.on_chain(OUT)[0], slow.available()["eth"]) == (before + QUARTER, "0.75")
    receipt = rpc.call("eth_getTransactionReceipt", [first.txid])
    fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    (record,) = (w for w in slow.get("/v1/withdrawals")["data"] if w["id"] == withdrawal)
    assert round(float(record["fee"]) * ETHER) == pytest.approx(fee)
    assert audit(services().store) == []
    # The new branch has the newest one in place of the first.
    rpc.call("anvil_reorg", [CONFIRMATIONS + 3, [[order.raw, 0]]])
    slow.run()
    assert shown(slow, withdrawal) == ("confirmed", order.txid)
    assert (slow.on_chain(OUT)[0], slow.available()["eth"]) == (before + QUARTER, "0.75")
    told = [event["event"] for event in slow.get("/v1/events", limit="100")["data"]]
    assert told.count("withdrawal.completed") == 2


def test_replaced_and_reverted_has_failed(slow: Shop) -> None:
    withdrawal = withdraw(slow, "usdt", "12.5")
    code = slow.node.rpc.call("eth_getCode", [slow.usdt, "latest"])
    slow.node.rpc.call("anvil_setCode", [slow.usdt, "0xfe"])
    block_at(slow, 60)
    order = replaced(slow, withdrawal)
    slow.confirm()
    assert shown(slow, withdrawal) == ("failed", order.txid)
    slow.node.rpc.call("anvil_setCode", [slow.usdt, code])
    assert slow.available() == {"eth": "1", "usdt": "30"}


def test_failed_on_the_chain_gives_back_and_burns_the_fee(slow: Shop) -> None:
    """Reverted by the contract, and out of gas: by the receipt alone."""
    rpc, native = slow.node.rpc, services().catalogue("live").native("arbitrum").asset
    code = rpc.call("eth_getCode", [slow.usdt, "latest"])
    for now in (REVERTS, LOOPS):
        block_at(slow, 10)  # its fees are those of this block
        withdrawal = withdraw(slow, "usdt", "12.5")
        rpc.call("anvil_setCode", [slow.usdt, now])
        block_at(slow, 10)
        slow.confirm()
        status, txid = shown(slow, withdrawal)
        receipt = rpc.call("eth_getTransactionReceipt", [txid])
        limit = int(rpc.call("eth_getTransactionByHash", [txid])["gas"], 16)
        assert (status, receipt["status"], int(receipt["gasUsed"], 16) == limit) == ("failed", "0x0", now == LOOPS)
        fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        (entry,) = (
            e for e in services().store.every(JournalEntry) if e.ref.get("withdrawal") == withdrawal and "bounced" in e.kind
        )
        assert totals([entry])[Book.WHERE, BURNT, native] == fee
        rpc.call("anvil_setCode", [slow.usdt, code])
    assert slow.available() == {"eth": "1", "usdt": "30"}


def test_refused_by_the_node_until_it_can_be_paid(slow: Shop) -> None:
    """Signed bytes that no node takes wait for one that does: never others, and never twice."""
    rpc, before, hot = slow.node.rpc, slow.on_chain(OUT)[0], hot_wallet()
    kms = pytest.MonkeyPatch()
    with kms.context() as patch:
        Kms(patch).away = True
        withdrawal = withdraw(slow)
    funds = int(rpc.call("eth_getBalance", [hot, "latest"]), 16)
    rpc.call("anvil_setBalance", [hot, "0x1"])
    with in_realm("live"):
        assert services().payouts.pay(order_of(withdrawal).tenant, withdrawal) == "waiting"
    order = order_of(withdrawal)
    assert (shown(slow, withdrawal)[0], order.state, known(slow, order.txid)) == ("broadcasting", "signed", False)
    slow.run()
    assert shown(slow, withdrawal)[0] == "broadcasting"
    rpc.call("anvil_setBalance", [hot, hex(funds)])
    slow.run()
    block_at(slow, 10)
    slow.confirm()
    assert (shown(slow, withdrawal), slow.on_chain(OUT)[0]) == (("confirmed", order.txid), before + QUARTER)
