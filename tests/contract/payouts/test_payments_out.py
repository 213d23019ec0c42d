"""Many payments that are out, and nodes that take their time: crediting does not wait for them, and all of them have their turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.transactions.rounds import FIRST_MS, ROUND_MS
from chalicelib.domain.transactions.sightings import Sighting, nonce_subject
from chalicelib.usecases.ports.changes import Change, Open, Save
from chalicelib.usecases.withdrawals.steps import order_of, sent_work
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, Shop
from tests.support.slow_nodes import Slowness, slowed
from tests.support.stack import Stack

ANSWER = 0.1
"""Seconds that a node takes for one answer."""
SETTLED_IN = 100
"""Seconds after which what was signed is no longer asked about in every poll, and did not wait too long for a block yet."""
assert FIRST_MS < SETTLED_IN * 1000 < 180_000


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    opened = Shop(stack)
    opened.open(("2", "eth"))
    opened.wait(30)  # what is signed from now on is younger than the first block with notes, whatever the clocks
    yield opened


def out(shop: Shop, count: int) -> tuple[str, list[str]]:
    """So many payments that were signed and sent, and are in no block: the first's id, and the transactions of all, which are
    copies of the first's."""
    first = shop.withdraw("0.01")
    services().sandbox.outcome(shop.record(first).tenant, first, "stick")
    shop.turn()
    order, withdrawal, store = shop.order(first), shop.record(first), services().store
    assert withdrawal.status == "confirming" and order.txid is not None
    made, changes = [order.txid], list[Change]()
    for n in range(1, count):
        name, txid = f"{withdrawal.id}{n:04d}", f"0x{n:064x}"
        copy = replace(withdrawal, id=name, txid=txid, created_at=withdrawal.created_at + n, version=1)
        theirs = order_of(withdrawal.tenant, name)
        copied = replace(order, id=theirs, withdrawal_id=name, txid=txid, nonce=order.nonce + n, version=1)
        changes += [Save(replace(copy, order_id=theirs)), Save(copied), Open(sent_work(copy))]
        made.append(txid)
    for start in range(0, len(changes), 9):
        store.commit(changes[start : start + 9])
    return first, made


def poll(shop: Shop) -> None:
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)


def asked(shop: Shop, slowness: Slowness, later: int = 60) -> list[str]:
    """Whose receipts the next poll, so many seconds later, asks for."""
    shop.wait(later)
    slowness.receipts.clear()
    poll(shop)
    return list(slowness.receipts)


# The sweep: with nothing out, a deposit is credited as every other one.
@pytest.mark.parametrize("count", [pytest.param(0, marks=pytest.mark.sweep), 500])
@pytest.mark.parametrize("since", [SETTLED_IN, 600])
def test_deposits_are_credited_in_the_same_poll_however_much_is_out(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, count: int, since: int
) -> None:
    """After ten minutes each of them has waited too long for a block."""
    if count:
        out(shop, count)
        shop.wait(since)
    invoice = shop.invoice("1")
    slowness = slowed(shop, monkeypatch, ANSWER)
    shop.pay(invoice["address"], "1")
    poll(shop)
    assert shop.status(invoice) == "confirming"
    shop.mine(CONFIRMATIONS)
    begun = slowness.now
    poll(shop)
    assert shop.status(invoice) == "completed"
    assert slowness.now - begun < 31


def test_what_was_not_noted_is_asked_about_once_in_a_round(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    _, txids = out(shop, 20)
    shop.wait(SETTLED_IN - 60)
    slowness = slowed(shop, monkeypatch, ANSWER)
    assert sorted(asked(shop, slowness)) == sorted(txids)
    assert asked(shop, slowness) == [], "nothing was noted, and nothing is due"
    assert slowness.asked["broadcast"] == 20
    later = [asked(shop, slowness) for _ in range(ROUND_MS // 60_000 - 1)]
    assert all(each in ([], txids[:1]) for each in later[:-1]), "the first has waited too long: it is looked at in every poll"
    assert sorted(later[-1]) == sorted(txids), "in the next round all again"


def test_what_was_noted_is_asked_about_at_once_and_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal, (first, *_) = out(shop, 20)
    shop.wait(SETTLED_IN - 60)
    slowness = slowed(shop, monkeypatch, ANSWER)
    asked(shop, slowness)
    assert asked(shop, slowness) == []
    shop.chain().settle(first, "confirm")
    assert asked(shop, slowness) == [first]
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"


def test_what_was_noted_and_is_not_deep_enough_is_counted_without_a_question(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("0.01")
    shop.turn()
    shop.wait(SETTLED_IN)
    slowness = slowed(shop, monkeypatch, ANSWER)
    for depth in range(2, CONFIRMATIONS):
        shop.mine(1)
        assert asked(shop, slowness) == []
        shown = shop.withdrawal(withdrawal)
        assert (shown["status"], shown["confirmations"]) == ("confirming", depth)
    shop.mine(1)
    assert len(asked(shop, slowness)) == 1
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"


def test_all_have_their_turn_however_little_time_there_is(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place is stored: each poll is a process of its own."""
    _, txids = out(shop, 100)
    shop.wait(SETTLED_IN)
    slowness = slowed(shop, monkeypatch, 3 * ANSWER)
    polls: list[list[str]] = []
    while len(set().union(*polls)) < len(txids):
        polls.append(asked(shop, slowness, later=1))
        assert len(polls) < 10, "they starve"
    assert len(polls) > 2
    assert sorted(txid for poll in polls for txid in poll) == sorted(txids), "each once"


def test_no_note_ends_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mined and was not noted is found by the round, by its receipt (money rule 13)."""
    withdrawal, (first,) = out(shop, 1)
    shop.wait(SETTLED_IN - 60)
    slowness = slowed(shop, monkeypatch, ANSWER)
    asked(shop, slowness)
    shop.chain().settle(first, "confirm")
    shop.wait(60)
    network, order = shop.realm_network(), shop.order(withdrawal)
    monkeypatch.setattr("chalicelib.usecases.scanning.sightings.SightingNotes.note", lambda *_: None)
    begun = services().clock.now_ms()
    while shop.withdrawal(withdrawal)["status"] != "confirmed":
        asked(shop, slowness)
        assert services().clock.now_ms() - begun < ROUND_MS + 61_000
    subject = nonce_subject(services().rules.storage_form(network.slug, order.wallet), order.nonce)
    assert services().store.get(Sighting, network=network.id, subject=subject) is None


def test_where_blocks_may_have_it_that_are_not_noted_it_is_asked_about_in_every_poll(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (first,) = out(shop, 1)
    shop.wait(SETTLED_IN - 60)
    slowness = slowed(shop, monkeypatch, ANSWER)
    asked(shop, slowness)
    assert asked(shop, slowness) == []
    at = services().store.get(Cursor, network=shop.realm_network().id)
    assert at is not None
    services().store.commit([Save(replace(at, noted_from=None, noted_at=None, version=at.version + 1))])
    assert asked(shop, slowness) == [first], "as after an upgrade"
    shop.mine(1)
    assert asked(shop, slowness) == [first], "notes of later blocks say nothing of those before"
