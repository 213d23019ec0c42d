"""An endpoint's turn, under a clock that tests move: one worker at a time, batches, marks, crashes, rests, pauses, notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.webhooks.deliveries import unheld_work
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint, event_record
from chalicelib.domain.webhooks.leases import BATCH, FAILING_AFTER, LEASE_MS, TURN_MS, Turn
from chalicelib.domain.work import is_held
from chalicelib.usecases.base.message_chains import MOST, before, brought_by
from chalicelib.usecases.ports.changes import Delete, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_attempts import Answer, Deliveries
from chalicelib.usecases.webhooks.leases import Leases, in_threads
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, SHOP, an_endpoint, an_event
from tests.unit.webhooks.line import BAD, HOOK, OK, Line

DAY = 86_400_000


def test_what_is_due_first_is_sent_first() -> None:
    line = Line(0)
    names = [f"evt_{n}" for n in range(2 * BATCH)]
    for name in names:
        line.clock.pass_ms(1)
        line.add(name)
    assert line.take() == "done"
    assert set(line.sender.sent[:BATCH]) == set(names[:BATCH])


def test_a_backlog_is_sent_in_batches_and_the_turn_is_given_back() -> None:
    line = Line(2 * BATCH + 3)
    assert line.take() == "done"
    assert sorted(line.sender.sent) == [f"evt_{n:03d}" for n in range(2 * BATCH + 3)]
    assert len(line.deliveries("delivered")) == 2 * BATCH + 3
    assert not line.turn.taken(line.clock.now) and line.turn.hand == ()
    assert line.consistent()


def test_nothing_due_writes_nothing() -> None:
    line = Line(0)
    before = line.store.commits
    assert line.take() == "idle"
    assert line.store.commits == before


def test_a_batch_has_ten_at_most_and_they_are_sent_at_the_same_time() -> None:
    line = Line(15)
    batches: list[int] = []

    def together(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        batches.append(len(jobs))
        return [job() for job in jobs]

    deliveries = Deliveries(line.store, line.clock, line.sender, line.queues)
    turns = Leases(line.store, line.queues, line.clock, deliveries, PlainSeals(), together)
    assert turns.take(SHOP, HOOK) == "done"
    assert batches == [10, 5]  # as published


def test_a_second_worker_leaves_a_mark_and_sends_nothing() -> None:
    line = Line(1)
    seen: list[str] = []

    def another() -> None:
        line.add("evt_late")  # comes while the first is being sent, and so does its message
        seen.append(line.take())
        seen.append(line.take())

    line.sender.meanwhile = another
    assert line.take() == "done"
    assert seen == ["taken", "taken"]
    assert line.sender.sent == ["evt_000", "evt_late"]  # the mark brought the holder back
    assert line.consistent()


def test_a_message_between_the_last_look_and_giving_back_is_not_lost() -> None:
    line = Line(1)
    real, done = line.store.commit, False

    def commit(changes: Sequence[Any]) -> None:
        nonlocal done
        saved = [change.record for change in changes if isinstance(change, Save)]
        if any(isinstance(record, Turn) and record.until == 0 for record in saved) and not done:
            done = True
            line.add("evt_between")
            assert line.take() == "taken"
        real(changes)

    line.store.commit = commit  # type: ignore[method-assign]
    assert line.take() == "done"
    assert line.sender.sent == ["evt_000", "evt_between"]


def test_a_mark_that_comes_in_the_middle_of_the_last_look_is_not_lost() -> None:
    line = Line(BATCH)
    real, looks = line.store.get_many, 0

    def get_many(wanted: Sequence[Any]) -> list[Any]:
        nonlocal looks
        if wanted[0][0] is Turn:
            looks += 1
            if looks == 2:  # nothing was due a moment ago; now something is, and its message finds the turn taken
                line.add("evt_between")
                assert line.take() == "taken"
        return real(wanted)

    line.store.get_many = get_many  # type: ignore[method-assign]
    assert line.take() == "done"
    assert line.sender.sent[-1] == "evt_between"
    assert line.consistent() and not line.turn.wanted


def test_time_is_up_and_the_endpoint_goes_to_the_end_of_the_queue() -> None:
    line = Line(5 * BATCH)
    line.sender.ms = TURN_MS // (2 * BATCH)
    assert line.take() == "more"
    assert len(line.sender.sent) == 2 * BATCH
    assert line.queues.wakes == [(HOOK, 0)]
    line.sender.ms = 0
    assert line.take() == "done"
    assert len(line.deliveries("delivered")) == 5 * BATCH


def test_a_worker_that_dies_leaves_its_batch_to_the_next_one() -> None:
    line = Line(3)

    def die() -> None:
        raise KeyboardInterrupt

    line.sender.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        line.take()
    assert line.take() == "taken"  # nobody knows yet
    line.clock.pass_ms(LEASE_MS)
    assert line.take() == "done"
    attempts = [d.attempts for d in line.deliveries()]
    assert [[a.error for a in of_one] for of_one in attempts] == [["the attempt was interrupted"]] * 3
    assert all(of_one[0].at == NOW for of_one in attempts)
    assert line.queues.wakes == [(HOOK, 5)]
    line.clock.pass_ms(5_000)
    assert line.take() == "done"
    assert len(line.deliveries("delivered")) == 3 and line.consistent()


def test_what_was_recorded_before_the_worker_died_is_not_counted_again() -> None:
    line = Line(2, BAD, BAD, OK)
    line.take()
    line.clock.pass_ms(6_000)  # first attempts that are accepted wait for their batch; later ones are recorded at once

    def die_at_the_second() -> None:
        def die() -> None:
            raise KeyboardInterrupt

        line.sender.meanwhile = die

    line.sender.meanwhile = die_at_the_second
    with pytest.raises(KeyboardInterrupt):
        line.take()
    line.clock.pass_ms(LEASE_MS)
    line.take()
    assert [len(d.attempts) for d in line.deliveries("delivered")] == [2]
    assert [d.attempts[1].error for d in line.deliveries("pending")] == ["the attempt was interrupted"]


def test_what_failed_before_the_worker_died_has_had_one_attempt_and_not_two() -> None:
    line = Line(2, BAD, OK)

    def die_at_the_second() -> None:
        def die() -> None:
            raise KeyboardInterrupt

        line.sender.meanwhile = die

    line.sender.meanwhile = die_at_the_second
    with pytest.raises(KeyboardInterrupt):
        line.take()
    [failed] = [d for d in line.deliveries("pending") if d.attempts]
    line.clock.pass_ms(LEASE_MS)
    assert line.take() == "done"  # the retry of the first was due since
    by_id = {d.id: [(a.status, a.error) for a in d.attempts] for d in line.deliveries()}
    assert by_id.pop(failed.id) == [(500, None), (200, None)]
    assert list(by_id.values()) == [[(None, "the attempt was interrupted")]]
    assert line.consistent()


def test_a_worker_that_outlives_its_lease_undoes_nothing() -> None:
    line = Line(1)

    def meanwhile() -> None:
        line.clock.pass_ms(LEASE_MS)
        line.take()  # takes over: the attempt counts as interrupted
        line.clock.pass_ms(5_000)
        assert line.take() == "done"  # and the retry succeeds

    line.sender.answers = [BAD, OK]
    line.sender.meanwhile = meanwhile
    assert line.take() == "lost"
    [delivery] = line.deliveries()
    assert len(line.sender.sent) == 2
    assert delivery.attempts[0].error == "the attempt was interrupted"
    assert line.consistent()


def test_429_with_retry_after_rests_the_whole_endpoint() -> None:
    line = Line(BATCH + 2, Answer(429, b"", 1, retry_after="120"), OK)
    line.sender.answers = [Answer(429, b"", 1, retry_after="120")] * BATCH + [OK]
    assert line.take() == "resting"
    assert len(line.sender.sent) == BATCH
    assert all(d.due_at == NOW + 120_000 for d in line.deliveries() if d.attempts)
    assert line.queues.wakes == [(HOOK, 120)]  # for the retries and for the rest
    assert line.take() == "resting"  # a message meanwhile changes nothing
    line.clock.pass_ms(120_000)
    assert line.take() == "done"
    assert len(line.deliveries("delivered")) == BATCH + 2


def test_what_comes_up_during_a_rest_has_a_message_for_its_end_even_where_the_retry_waits_longer() -> None:
    line = Line(1, Answer(503, b"", 1, retry_after="3600"), OK)
    assert line.take() == "done"
    assert line.queues.wakes == [(HOOK, 900)]
    line.add("evt_new")
    assert line.take() == "resting"
    assert line.queues.wakes == [(HOOK, 900)]
    line.clock.pass_ms(900_000)
    assert line.take() == "done"
    assert line.sender.sent[-1] == "evt_new"


def test_a_rest_is_not_cut_short_and_its_message_may_come_early() -> None:
    line = Line(1, Answer(429, b"", 1, retry_after="30"), OK)
    line.take()
    line.clock.pass_ms(29_800)
    assert line.take() == "resting"
    assert line.queues.wakes == [(HOOK, 30), (HOOK, 1)]
    line.clock.pass_ms(200)
    assert line.take() == "done"
    assert len(line.sender.sent) == 2


def test_retry_after_of_another_failure_is_for_that_delivery_alone() -> None:
    line = Line(1, Answer(500, b"", 1, retry_after="3600"), OK)
    assert line.take() == "done"
    [waiting] = line.deliveries()
    assert waiting.due_at == NOW + 3_600_000 == waiting.attempts[0].next_at
    assert waiting.scheduled and line.queues.wakes == []  # the schedule brings it
    line.add("evt_new")
    assert line.take() == "done"
    assert line.sender.sent[-1] == "evt_new"


def test_a_long_wait_is_brought_by_the_schedule_at_its_very_second() -> None:
    line = Line(1, Answer(500, b"", 1, retry_after="3600"), OK)
    line.take()
    line.clock.now = NOW + 3_600_000 - 100_000
    assert line.sweep.run() == 0
    line.clock.pass_ms(60_000)
    assert line.sweep.run() == 1
    assert line.queues.wakes == [(HOOK, 40)]


def test_lost_messages_are_found_after_a_minute_one_for_each_endpoint() -> None:
    line = Line(30)
    line.clock.pass_ms(59_000)
    assert line.sweep.run() == 0
    line.clock.pass_ms(1_000)
    assert line.sweep.run() == 1
    assert line.queues.wakes == [(HOOK, 0)]


def test_a_paused_endpoint_gets_nothing_and_everything_when_it_goes_on() -> None:
    line = Line(BATCH + 4)
    line.change(paused=True)
    assert line.take() == "done"
    assert line.sender.sent == []
    assert all(d.held for d in line.deliveries("pending")) and line.consistent()
    line.clock.pass_ms(86_400_000)
    assert line.sweep.run() == 0  # nobody looks in vain
    line.change(paused=False)
    assert line.sweep.run() == 1 and line.queues.held == [True]  # also where the message of the change was lost
    assert line.take(held=True) == "done"
    assert len(line.deliveries("delivered")) == BATCH + 4 and line.consistent()


def test_what_would_be_put_aside_is_sent_where_its_owner_goes_on_in_the_same_moment() -> None:
    line = Line(3)
    line.change(paused=True)
    real = line.store.commit

    def commit(changes: Sequence[Any]) -> None:
        if any(isinstance(change, Open) and is_held(change.work) for change in changes) and line.endpoint.paused:
            line.webhooks.update(SHOP, HOOK, status="active")
            line.queues.wakes.clear()  # its message was faster, or is lost
        real(changes)

    line.store.commit = commit  # type: ignore[method-assign]
    line.take()
    assert [d.status for d in line.deliveries()] == ["delivered"] * 3
    assert line.sweep.run() == 0 and line.store.work == set()
    assert len(line.sender.sent) == 3


@pytest.mark.parametrize("fresh", [0, 3 * BATCH])
def test_a_long_backlog_that_was_put_aside_is_sent_to_its_end_by_messages_alone(fresh: int) -> None:
    line = Line(5 * BATCH + 2)
    line.change(paused=True)
    line.take()
    assert all(d.held for d in line.deliveries())
    for number in range(fresh):
        line.add(f"evt_fresh_{number}")  # due at once: before what was put aside
    line.sender.ms = TURN_MS // BATCH  # a turn is one batch, and each begins with what is due
    line.webhooks.update(SHOP, HOOK, status="active")
    line.follow()
    assert len(line.deliveries("delivered")) == 5 * BATCH + 2 + fresh and line.consistent()


def test_what_is_open_is_cancelled_at_once_by_the_message_of_the_deletion() -> None:
    line = Line(BATCH + 2)
    line.change(paused=True)
    line.take()
    line.add("evt_later")
    line.webhooks.delete(SHOP, HOOK)
    line.follow()
    assert {d.reason for d in line.deliveries("cancelled")} == {"the endpoint was deleted"}
    assert len(line.deliveries("cancelled")) == BATCH + 3
    assert line.sweep.run() == 0 and line.store.work == set()


def test_what_was_put_aside_is_cancelled_with_a_deleted_endpoint() -> None:
    line = Line(2)
    line.change(paused=True)
    line.take()
    gone = line.endpoint.unheld(line.clock.now)
    line.store.commit([Delete(WebhookEndpoint, {"tenant": SHOP, "id": HOOK}), Open(unheld_work(gone))])
    assert line.sweep.run() == 1
    assert line.take(held=True) == "done"
    assert {d.reason for d in line.deliveries("cancelled")} == {"the endpoint was deleted"}
    assert line.sweep.run() == 0
    assert line.store.work == set()


def test_a_failing_endpoint_is_said_to_fail_once_and_goes_to_its_own_queue() -> None:
    line = Line(4, BAD)
    line.take()
    assert line.notices() == [] and line.endpoint.failing_since is None
    line.add("evt_fifth")
    line.take()
    assert line.notices() == ["webhook.failing"]
    assert line.endpoint.failing_since == NOW
    assert line.queues.failing[-1]
    line.add("evt_sixth")
    line.take()
    assert line.notices() == ["webhook.failing"]
    line.sender.answers = [OK]
    line.add("evt_good")
    line.take()
    assert line.endpoint.failing_since is None and line.turn.failures == 0


def test_five_days_of_nothing_but_failure_turn_it_off_with_a_notice() -> None:
    line = Line(1, BAD)
    line.take()
    line.clock.pass_ms(5 * 86_400_000 - 1)
    line.add("evt_2")
    line.take()
    assert line.endpoint.enabled
    line.clock.pass_ms(1)
    line.add("evt_3")
    line.take()
    assert line.endpoint.status == "disabled"
    assert line.endpoint.disabled_reason == "nothing it was sent has succeeded for five days"
    assert "webhook.disabled" in line.notices()


def test_a_success_in_between_begins_the_five_days_anew() -> None:
    line = Line(1, BAD, OK, BAD)
    line.take()
    line.clock.pass_ms(3 * 86_400_000)
    line.add("evt_2")
    line.take()
    line.clock.pass_ms(3 * 86_400_000)
    line.add("evt_3")
    line.take()
    assert line.endpoint.enabled


def test_what_an_endpoint_did_before_its_owner_turned_it_on_is_not_held_against_it() -> None:
    line = Line(6, BAD)
    line.take()
    line.clock.pass_ms(6 * 86_400_000)
    line.change(fresh_at=line.clock.now, failing_since=None)
    line.add("evt_new")
    line.take()
    assert line.endpoint.enabled and line.turn.failing_since == line.clock.now


@pytest.mark.parametrize("how", ["a new url", "paused and on again", "on again"])
def test_failures_of_before_its_owner_changed_it_neither_turn_it_off_nor_count(how: str) -> None:
    line = Line(FAILING_AFTER, BAD)
    line.take()
    line.queues.wakes.clear()
    assert line.endpoint.failing_since == NOW
    line.clock.pass_ms(5 * DAY)
    if how == "a new url":
        line.webhooks.update(SHOP, HOOK, url="https://shop.example/mended")
    else:
        line.webhooks.update(SHOP, HOOK, status="paused" if how.startswith("paused") else "disabled")
        line.webhooks.update(SHOP, HOOK, status="active")
    assert line.endpoint.failing_since is None
    anew = line.clock.now
    line.take()  # what failed before is due again, and fails again
    assert line.endpoint.enabled and line.endpoint.failing_since == anew
    for ms, status in ((5 * DAY - 1, "active"), (1, "disabled")):
        line.clock.pass_ms(ms)
        line.add(f"evt_{ms}")
        line.take()
        assert line.endpoint.status == status


@pytest.mark.parametrize("change", [{"url": "https://shop.example/mended"}, {"status": "active"}])
def test_an_attempt_that_was_under_way_when_its_owner_changed_it_says_nothing_of_it(change: dict[str, Any]) -> None:
    line = Line(1, BAD)
    line.take()
    line.clock.pass_ms(5 * DAY)

    def meanwhile() -> None:
        if "status" in change:
            line.webhooks.update(SHOP, HOOK, status="disabled")
        line.webhooks.update(SHOP, HOOK, **change)

    line.sender.meanwhile = meanwhile
    line.take()
    assert len(line.sender.sent) == 2
    assert line.endpoint.status == "active" and line.endpoint.failing_since is None and line.notices() == []


def test_where_kms_does_not_answer_nothing_is_sent_counted_or_taken() -> None:
    class Down(PlainSeals):
        def open(self, *_: Any) -> str:
            raise Unavailable("KMS did not answer")

    line = Line(1, endpoint=replace(an_endpoint(HOOK), sealed=True))
    deliveries = Deliveries(line.store, line.clock, line.sender, line.queues)
    with pytest.raises(Unavailable):
        Leases(line.store, line.queues, line.clock, deliveries, Down()).take(SHOP, HOOK)
    assert line.sender.sent == [] and line.store.get(Turn, tenant=SHOP, endpoint_id=HOOK) is None
    assert line.deliveries("pending")[0].attempts == ()


def test_an_event_of_the_endpoint_itself_is_told_to_the_others_alone() -> None:
    notice = an_event("evt_n", "webhook.failing")
    about = replace(notice, object_id=HOOK)
    assert not an_endpoint(HOOK).told_of(about) and an_endpoint("wh_2").told_of(about)
    record: EventRecord = event_record(about, "2026-01-02T03:04:05.006Z", NOW)
    assert not an_endpoint(HOOK).told_of(record)


def test_what_comes_between_a_look_and_its_batch_is_sent_although_it_found_a_mark_already() -> None:
    """Who finds a mark leaves none of its own: the holder that has seen the mark has to look again behind its batch."""
    line = Line(BATCH + 1)
    seals = PlainSeals()
    line.change(secret=seals.seal(SHOP, HOOK, line.endpoint.secret), sealed=True)

    class Opening(PlainSeals):
        def open(self, tenant: Any, endpoint_id: str, sealed: str) -> str:
            if len(self.asked) == 1:  # the second batch: looked at, not begun
                line.add("evt_late")
                assert line.take() == "taken"
            return super().open(tenant, endpoint_id, sealed)

    deliveries = Deliveries(line.store, line.clock, line.sender, line.queues, lambda: 0.0)
    turns = Leases(line.store, line.queues, line.clock, deliveries, Opening(), lambda jobs: [job() for job in jobs])
    line.sender.meanwhile = lambda: line.take() == "taken"  # leaves the mark
    assert turns.take(SHOP, HOOK) == "done"
    assert "evt_late" in line.sender.sent and len(line.deliveries("delivered")) == BATCH + 2


def test_threads_of_a_batch_know_how_long_their_chain_is() -> None:
    with brought_by(7):
        assert in_threads([before, before]) == [7, 7] and in_threads([before]) == [7]


def test_where_the_chain_of_messages_ends_the_schedule_brings_the_retry() -> None:
    """Within a minute of its time where that is nearer, else at its very second."""
    line = Line(1, Answer(500, b"", 1))
    with brought_by(MOST):
        assert line.take() == "done"
    [waiting] = line.deliveries()
    assert waiting.scheduled and waiting.due_at == NOW + 5_000
    line.queues.wakes.clear()
    assert line.sweep.run() == 1
    assert line.queues.wakes == [(HOOK, 5)]
    line.clock.pass_ms(40_000)  # the schedule came later than the retry
    assert line.sweep.run() == 1
    assert line.queues.wakes == [(HOOK, 5), (HOOK, 0)]
    assert line.take() == "done"  # by the schedule's message: a new chain
    [again] = line.deliveries()
    assert len(again.attempts) == 2 and not again.scheduled
