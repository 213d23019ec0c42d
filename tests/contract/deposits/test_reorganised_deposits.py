"""A reorganisation that brings a payment back as another one: run again, a contract call may log something else under the same
transaction and position. What the chain says now is what counts, and nothing of what it said before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.usecases.deposits.deposits import Scanned
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.wiring import services
from tests.contract.deposits.mined_twice import NOTHING, PAYER, THOUSAND, Path, Twice
from tests.support.cuts import Died
from tests.support.shop import Shop, bent_node, open_shop
from tests.support.stack import Stack

PATHS: tuple[Path, ...] = ("seen", "credited", "unnoticed")
OTHER_PAYER = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened
        # Nothing of the old payment is left waiting anywhere.
        assert [b for b in services().store.every(Balance) if b.pending] == []
        assert [b for b in services().store.every(WalletBalance) if b.pending] == []
        assert [w for w in services().store.every_work() if w.kind == "deposit"] == []


@pytest.fixture(params=PATHS)
def twice(request: pytest.FixtureRequest, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Twice:
    return Twice(shop, bent_node(shop, monkeypatch), request.param)


def test_another_amount(twice: Twice, shop: Shop) -> None:
    invoice = shop.invoice("1000", "usdt")
    twice.first(twice.log(invoice["address"]))
    assert shop.balance("usdt") == {**NOTHING, twice.purse: "1000"}
    twice.again(twice.log(invoice["address"], 1))
    assert shop.balance("usdt") == {**NOTHING, twice.purse: "0.000001"}
    twice.confirm()
    assert (shop.balance("usdt"), shop.status(invoice)) == ({**NOTHING, "available": "0.000001"}, "partial")
    assert twice.shown(invoice) == [(twice.id, 1, True)]
    assert twice.told(shop) == [*twice.before(), "transaction.orphaned", "transaction.detected", "transaction.confirmed"]


def test_another_recipient(twice: Twice, shop: Shop) -> None:
    other = Shop(shop.stack, "other_merchant_test")
    mine, theirs = shop.invoice("1000", "usdt"), other.invoice("1000", "usdt")
    twice.first(twice.log(mine["address"]))
    twice.again(twice.log(theirs["address"]))
    assert (shop.balance("usdt"), shop.status(mine)) == (NOTHING, "pending")
    assert other.balance("usdt") == {**NOTHING, twice.purse: "1000"}
    twice.confirm()
    assert (shop.balance("usdt"), shop.status(mine), twice.shown(mine)) == (NOTHING, "pending", [])
    assert (other.balance("usdt"), other.status(theirs)) == ({**NOTHING, "available": "1000"}, "completed")
    # It is in the lists of its new owner, and in those of the old one no more.
    assert [t["id"] for t in other.get("/v1/transactions")["data"]] == [twice.id]
    assert shop.get("/v1/transactions")["data"] == []
    assert twice.told(shop) == [*twice.before(), "transaction.orphaned"]
    assert twice.told(other) == ["transaction.detected", "transaction.confirmed"]


def test_another_coin(twice: Twice, shop: Shop) -> None:
    invoice = shop.invoice("1000", "usdt")
    twice.first(twice.log(invoice["address"]))
    twice.again(twice.log(invoice["address"], coin="usdc"))
    assert (shop.balance("usdt"), shop.status(invoice)) == (NOTHING, "pending")
    twice.confirm()
    assert (shop.balance("usdt"), shop.balance("usdc")) == (NOTHING, {**NOTHING, "available": "1000"})
    assert shop.status(invoice) == "pending"


def test_the_same_in_another_block(twice: Twice, shop: Shop) -> None:
    invoice = shop.invoice("1000", "usdt")
    twice.first(twice.log(invoice["address"]))
    first = twice.record()
    twice.again(twice.log(invoice["address"]))
    again = twice.record()
    assert again.block_hash != first.block_hash
    assert (again.created_at, again.round) == (first.created_at, 0 if twice.path == "unnoticed" else 1)
    twice.confirm()
    assert (shop.balance("usdt"), shop.status(invoice)) == ({**NOTHING, "available": "1000"}, "completed")
    back = [] if twice.path == "unnoticed" else ["transaction.orphaned", "transaction.detected"]
    assert twice.told(shop) == [*twice.before(), *back, "transaction.confirmed"]


def test_there_and_back_again(twice: Twice, shop: Shop) -> None:
    """The chain changes its mind twice, and each time what it says then counts."""
    other = Shop(shop.stack, "other_merchant_test")
    mine, theirs = shop.invoice("1000", "usdt"), other.invoice("1000", "usdt")
    twice.first(twice.log(mine["address"]))
    twice.again(twice.log(theirs["address"], 7))
    twice.again(twice.log(mine["address"]))
    twice.confirm()
    assert (shop.status(mine), shop.available("usdt"), other.status(theirs)) == ("completed", "1000", "pending")
    assert other.balance("usdt") == NOTHING
    assert twice.told(other) == [*twice.before(), "transaction.orphaned"]


@pytest.mark.parametrize("written", [1, 2, 3])
def test_a_scan_that_dies_half_way_is_finished_by_the_next(shop: Shop, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """Between the list of the block, the end of the old payment, the beginning of the new one, and the cursor."""
    twice = Twice(shop, bent_node(shop, monkeypatch), "unnoticed")
    other = Shop(shop.stack, "other_merchant_test")
    mine, theirs = shop.invoice("1000", "usdt"), other.invoice("1000", "usdt")
    twice.first(twice.log(mine["address"]))
    shop.reorg(1)
    twice.hold(twice.log(theirs["address"]))
    store = services().store
    commit, done = store.commit, 0

    def dies(changes: Any) -> None:
        nonlocal done
        if done == written:
            raise Died
        done += 1
        commit(changes)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", dies)
        with pytest.raises(Died):
            services().scanner(shop.realm_network()).poll(lambda: True)
    assert (twice.record().status, twice.record().round) == [("pending", 0), ("orphaned", 1), ("pending", 1)][written - 1]
    shop.turn()
    assert (shop.balance("usdt"), other.balance("usdt")) == (NOTHING, {**NOTHING, "pending": "1000"})
    twice.confirm()
    assert (shop.status(mine), other.status(theirs)) == ("pending", "completed")
    assert (twice.told(shop), twice.told(other)) == (
        ["transaction.detected", "transaction.orphaned"],
        ["transaction.detected", "transaction.confirmed"],
    )


def test_a_release_was_for_what_was_released(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Money of the grey list that an operator let go of: another amount of the same sender is held again, even when the sender
    is no longer listed; what somebody else pays is not."""
    twice = Twice(shop, bent_node(shop, monkeypatch), "credited")
    operate = shop.stack.keys["admin_test"]
    listed = {"network": "ethereum", "address": PAYER}
    assert shop.stack.call("POST", "/v1/addresses/grey-list", operate, json=listed).status == 201
    invoice = shop.invoice("1000", "usdt")
    twice.first(twice.log(invoice["address"]))
    assert shop.stack.call("POST", f"/v1/transactions/{twice.id}/release", operate).status == 200
    assert shop.available("usdt") == "1000"
    assert shop.stack.call("DELETE", "/v1/addresses/grey-list", operate, json=listed).status == 200
    twice.again(twice.log(invoice["address"], 2 * THOUSAND))
    assert (twice.record().released_at, twice.record().flags, shop.balance("usdt")) == (None, ("grey_listed", "held"), NOTHING)
    twice.again(twice.log(invoice["address"], 2 * THOUSAND, sender=OTHER_PAYER))
    assert (twice.record().flags, shop.available("usdt")) == ((), "2000")


def test_a_scan_that_slept_changes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes with what a block said that a reorganisation, which another scan has followed, has dropped since."""
    twice = Twice(shop, bent_node(shop, monkeypatch), "seen")
    invoice = shop.invoice("1000", "usdt")
    wired, network, coin = services(), shop.realm_network(), shop.coin("usdt")
    twice.first(twice.log(invoice["address"], 1))
    (old,) = twice.node.blocks(twice.height, twice.height, {})
    epoch = twice.epoch()
    twice.again(twice.log(invoice["address"]))
    before = twice.record()
    watched = wired.store.get(Watched, realm="test", family="evm", address=wired.rules.storage_form("ethereum", invoice["address"]))
    assert watched is not None
    wired.deposits("test").detect(network, coin, Scanned(old, epoch), twice.log(invoice["address"], 1), watched)
    assert twice.record() == before
    # And who has looked at the old block can not have the new one's payment credited.
    wired.deposits("test").confirm(network, twice.id, old.hash, twice.tip(), twice.epoch())
    assert twice.record() == before
    twice.confirm()
    assert shop.available("usdt") == "1000"


@pytest.mark.parametrize("units", [1, THOUSAND], ids=["another", "the-same"])
def test_an_epoch_that_is_over_changes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch, units: int) -> None:
    twice = Twice(shop, bent_node(shop, monkeypatch), "unnoticed")
    invoice = shop.invoice("1000", "usdt")
    twice.first(twice.log(invoice["address"]))
    before, wired = twice.record(), services()
    (block,) = twice.node._real.blocks(twice.height, twice.height, {})
    moved = replace(block, hash="0x" + "ee" * 32)
    watched = wired.store.get(Watched, realm="test", family="evm", address=wired.rules.storage_form("ethereum", invoice["address"]))
    assert watched is not None
    late = twice.log(invoice["address"], units)
    with pytest.raises(Conflict):
        wired.deposits("test").detect(shop.realm_network(), shop.coin("usdt"), Scanned(moved, twice.epoch() - 1), late, watched)
    assert twice.record() == before
    twice.confirm()
    assert shop.available("usdt") == "1000"


@pytest.mark.parametrize("units", [1, THOUSAND], ids=["another", "the-same"])
def test_a_scan_that_comes_with_a_block_that_another_has_replaced(shop: Shop, monkeypatch: pytest.MonkeyPatch, units: int) -> None:
    """Nobody had passed that block, so no reorganisation was followed: what the scan has passed since counts all the same."""
    twice = Twice(shop, bent_node(shop, monkeypatch), "unnoticed")
    invoice = shop.invoice("1000", "usdt")
    shop.mine(1)
    twice.height = twice.tip()
    (old,) = twice.node._real.blocks(twice.height, twice.height, {})
    epoch = twice.epoch()
    twice.again(twice.log(invoice["address"]))
    before = twice.record()
    assert twice.epoch() == epoch
    wired, place = services(), services().rules.storage_form("ethereum", invoice["address"])
    watched = wired.store.get(Watched, realm="test", family="evm", address=place)
    assert watched is not None
    late = twice.log(invoice["address"], units)
    wired.deposits("test").detect(shop.realm_network(), shop.coin("usdt"), Scanned(old, epoch), late, watched)
    assert twice.record() == before
    twice.confirm()
    assert (shop.available("usdt"), shop.status(invoice)) == ("1000", "completed")


def test_deeper_than_is_followed_is_the_operators(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Credited, and a block that the cursor no longer remembers says something else: nothing is taken on one node's word."""
    twice = Twice(shop, bent_node(shop, monkeypatch), "credited")
    invoice = shop.invoice("1000", "usdt")
    twice.first(twice.log(invoice["address"]))
    (block,) = twice.node._real.blocks(twice.height, twice.height, {})
    changed = replace(block, hash="0x" + "ee" * 32, transfers=[twice.log(invoice["address"], 1)])
    twice.node.bend(proven=lambda real, _, asked: [*real, *asked])
    services().scanner(shop.realm_network()).recorder.record([changed], twice.epoch())
    assert (shop.available("usdt"), twice.record().amount) == ("1000", THOUSAND)
    assert [r.levelno for r in caplog.records if "ALARM" in r.message and "was credited" in r.message] == [logging.ERROR]
