"""What thieves and bad luck have tried on an endpoint's turn: torn reads, owners who change their mind in the middle, notices that
feed on each other, senders that raise, answers of AWS that are lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import BATCH, FAILING_TOLD_MS, LEASE_MS
from chalicelib.domain.work import Work
from chalicelib.usecases.ports.changes import Delete, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_attempts import Answer
from tests.support.webhooks import NOW, SHOP
from tests.unit.webhooks.line import BAD, HOOK, OK, Line


def tear(line: Line, *hidden: type, instead: Mapping[type, Any] | None = None, times: int = 1) -> None:
    """The next reads of many see records of these kinds as they were before the transaction that is being applied.

    Query and BatchGetItem are read-committed only: docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
    """
    real = line.store.get_many
    left = times

    def get_many(wanted: Sequence[Any]) -> list[Any]:
        nonlocal left
        found = real(wanted)
        if left == 0:
            return found
        left -= 1
        return [(instead or {}).get(type(one)) if type(one) in hidden else one for one in found]

    line.store.get_many = get_many  # type: ignore[method-assign]


@pytest.mark.parametrize("hidden", [(Delivery, EventRecord), (Delivery,), (EventRecord,)])
def test_work_that_is_seen_before_what_it_is_about_stays(hidden: tuple[type, ...]) -> None:
    line = Line(1)
    tear(line, *hidden)
    while line.take() != "done" or not line.sender.sent:
        line.clock.pass_ms(1_000)
        assert line.store.work and line.clock.now - NOW < 5_000
    assert [d.status for d in line.deliveries()] == ["delivered"] and line.consistent()


def test_an_event_that_is_not_seen_yet_is_asked_for_a_second_later() -> None:
    line = Line(1)
    tear(line, EventRecord)
    assert line.take() == "idle"
    assert line.queues.wakes == [(HOOK, 1)]


def test_the_work_of_a_retry_that_is_seen_before_the_delivery_stays() -> None:
    line = Line(1, BAD, OK)
    line.take()
    [waiting] = line.deliveries()
    line.clock.pass_ms(5_000)
    before = replace(waiting, version=waiting.version - 1, attempts=(), due_at=NOW)
    tear(line, Delivery, instead={Delivery: before})
    line.take()
    line.take()
    assert [len(d.attempts) for d in line.deliveries("delivered")] == [2] and line.consistent()


@pytest.mark.parametrize("change", [{"paused": True}, {"enabled": False}])
def test_what_is_in_flight_is_settled_by_nobody_else(change: Mapping[str, Any]) -> None:
    line = Line(1, OK)
    seen: list[str] = []

    def meanwhile() -> None:
        line.change(**change)
        seen.append(line.take())

    line.sender.meanwhile = meanwhile
    line.take()
    [delivery] = line.deliveries()
    assert seen == ["taken"]
    assert (delivery.status, len(delivery.attempts)) == ("delivered", 1)


def test_what_is_in_flight_to_a_deleted_endpoint_is_logged() -> None:
    line = Line(1, OK)

    def meanwhile() -> None:
        line.store.commit([Delete(WebhookEndpoint, {"tenant": SHOP, "id": HOOK})])
        line.take()

    line.sender.meanwhile = meanwhile
    line.take()
    assert [(d.status, len(d.attempts)) for d in line.deliveries()] == [("delivered", 1)]


def test_an_owner_who_turns_it_on_again_meanwhile_loses_nothing() -> None:
    line = Line(3)
    line.change(enabled=False)
    real, done = line.store.commit, False

    def commit(changes: Sequence[Any]) -> None:
        nonlocal done
        cancels = isinstance(changes[0], Save) and isinstance(changes[0].record, Delivery)
        if cancels and not done:
            done = True
            line.change(enabled=True)
        real(changes)

    line.store.commit = commit  # type: ignore[method-assign]
    line.take()
    assert [d.status for d in line.deliveries()] == ["delivered"] * 3


def test_410_of_the_url_of_before_says_nothing_about_the_new_one() -> None:
    line = Line(1, Answer(410, b"", 1), OK)
    line.sender.meanwhile = lambda: line.change(url="https://new.example/hook", fresh_at=line.clock.now + 1)
    line.take()
    assert line.endpoint.status == "active" and line.notices() == []
    line.clock.pass_ms(5_000)
    line.take()
    assert [[a.status for a in d.attempts] for d in line.deliveries("delivered")] == [[410, 200]]


def test_an_endpoint_that_fails_by_turns_is_said_to_fail_once_a_day() -> None:
    line = Line(0)
    for number in range(40):
        line.sender.answers = [BAD] * 5 + [OK]
        for each in range(6):
            line.add(f"evt_{number}_{each}")
            line.take()
    assert line.notices() == ["webhook.failing"]
    line.clock.pass_ms(FAILING_TOLD_MS)
    line.sender.answers = [BAD]
    for each in range(5):
        line.add(f"evt_next_{each}")
        line.take()
    assert line.notices() == ["webhook.failing"] * 2


def test_a_sender_that_raises_for_one_leaves_the_others_judged_and_asked_for() -> None:
    line = Line(3, BAD)
    real, raised = line.sender.send, False

    def send(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        nonlocal raised
        if not raised:
            raised = True
            raise RecursionError
        return real(url, headers, body)

    line.sender.send = send  # type: ignore[method-assign]
    with pytest.raises(RecursionError):
        line.take()
    assert line.queues.wakes == [(HOOK, 5)]
    assert sum(len(d.attempts) for d in line.deliveries()) == 2
    line.clock.pass_ms(LEASE_MS)
    line.take()
    assert all(d.attempts for d in line.deliveries()) and line.consistent()


def test_nothing_but_interrupted_attempts_is_a_failing_endpoint() -> None:
    line = Line(1)

    def die() -> None:
        raise KeyboardInterrupt

    for _ in range(6):
        line.sender.meanwhile = die
        with pytest.raises(KeyboardInterrupt):
            line.take()
        line.clock.pass_ms(LEASE_MS)
        line.take()
        line.clock.pass_ms(40_000_000)
    assert line.turn.failures >= 5
    assert line.notices() == ["webhook.failing"]


def test_two_deaths_in_a_row_do_not_move_the_time_of_the_attempt() -> None:
    line = Line(1)

    def die() -> None:
        raise KeyboardInterrupt

    line.sender.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        line.take()
    line.clock.pass_ms(LEASE_MS)
    real = line.store.get_many

    def dies_too(wanted: Sequence[Any]) -> list[Any]:
        if wanted[0][0] is Delivery:
            raise KeyboardInterrupt
        return real(wanted)

    line.store.get_many = dies_too  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        line.take()
    line.store.get_many = real  # type: ignore[method-assign]
    line.clock.pass_ms(LEASE_MS)
    line.take()
    assert line.deliveries()[0].attempts[0].at == NOW


def test_a_turn_that_is_stored_although_the_store_said_nothing_is_ours() -> None:
    line = Line(2)
    real, done = line.store.commit, False

    def commit(changes: Sequence[Any]) -> None:
        nonlocal done
        real(changes)
        if not done:
            done = True
            raise Unavailable("no answer")

    line.store.commit = commit  # type: ignore[method-assign]
    assert line.take() == "done"
    assert [len(d.attempts) for d in line.deliveries("delivered")] == [1, 1]


def test_what_was_put_aside_is_looked_at_also_where_its_message_found_the_turn_taken() -> None:
    line = Line(BATCH + 3)
    line.change(paused=True)
    line.take()
    line.change(paused=False)
    line.add("evt_new")
    line.sender.meanwhile = lambda: line.take(held=True)
    assert line.take() == "done"
    assert len(line.deliveries("delivered")) == BATCH + 4


def test_many_messages_settle_a_disabled_endpoints_backlog_once() -> None:
    line = Line(3 * BATCH)
    line.change(enabled=False)
    real, seen = line.store.commit, []

    def commit(changes: Sequence[Any]) -> None:
        real(changes)
        if isinstance(changes[0], Save) and isinstance(changes[0].record, Delivery) and not seen:
            seen.append(line.take())

    line.store.commit = commit  # type: ignore[method-assign]
    assert line.take() == "done" and seen == ["taken"]
    assert len(line.deliveries("cancelled")) == 3 * BATCH


def test_a_row_that_nobody_wrote_and_a_message_that_is_refused_hold_up_no_other_endpoint(caplog: pytest.LogCaptureFixture) -> None:
    line = Line(1)
    line.store.work.add(Work("delivery", f"{SHOP}|wh_broken", "nonsense", "what|is|this|here"))
    line.store.work.add(Work("delivery", f"{SHOP}|wh_broken", f"{NOW:015d}", "nonsense"))
    line.clock.pass_ms(61_000)
    assert line.sweep.run() == 1
    assert line.queues.wakes == [(HOOK, 0)]
    assert "none that was ever written here" in caplog.text
