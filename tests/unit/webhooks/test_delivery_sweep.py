"""The minute's schedule: one merchant's backlog, overdue or put aside, takes nothing from another; what goes on is seen through."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.webhooks.deliveries import (
    ANSWER_BYTES,
    RETRY_SECONDS,
    Attempt,
    Delivery,
    beginning,
    delivery_for,
    delivery_work,
    unheld_work,
)
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import EARLY_MS, TURN_MS, SweepCursor
from chalicelib.domain.work import Work, held_order, lane_of, time_order
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import EVERYWHERE, Page, Span
from chalicelib.usecases.webhooks.delivery_attempts import Answer
from chalicelib.usecases.webhooks.due_search_time import KNOWN_MS
from chalicelib.usecases.webhooks.due_sweep import PAGE, DueSweep
from chalicelib.usecases.webhooks.endpoints import Webhooks
from chalicelib.usecases.webhooks.notices import Notices
from chalicelib.usecases.webhooks.redelivery import Redelivery
from chalicelib.usecases.webhooks.views import delivery_view
from tests.support.memory_store import HandClock, MemoryQueues, MemoryStore
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, OTHER, SHOP, an_endpoint, an_event_record
from tests.unit.webhooks.line import BAD, HOOK, OK, Line

MINUTE = 60_000
DAY = 86_400_000


class Slow(MemoryStore):
    """A page of a thousand takes 60 ms. Before what lies in it, each lane has so many pages that are an hour overdue."""

    def __init__(self, clock: HandClock, pages: int) -> None:
        super().__init__()
        self.clock, self.pages, self.queries = clock, pages, 0

    def work_by_time(self, kind: str, lane: str, /, *, limit: int, span: Span = EVERYWHERE, after: str | None = None) -> Page[Work]:
        self.clock.pass_ms(60)
        self.queries += 1
        old = time_order(NOW - 60 * MINUTE)
        page = 0 if after is None else int(after.partition("page")[2] or self.pages)
        if (span.low or "") <= old and page < self.pages:
            rows = [Work("delivery", f"{SHOP}|wh_{n % 20}", old, f"dlv_{n}|evt_{n}|0|message") for n in range(PAGE)]
            return Page(rows, f"{old}#page{page + 1}")
        return super().work_by_time(kind, lane, limit=limit, span=span, after=None if "page" in (after or "") else after)


class Backlog:
    def __init__(self, pages: int) -> None:
        self.clock, self.queues = HandClock(NOW), MemoryQueues()
        self.store = Slow(self.clock, pages)
        self.sweep = DueSweep(self.store, self.queues, self.clock)

    def owe(self, name: str, due: int) -> None:
        """Another merchant's endpoint, and one delivery whose retry is due then and left to the schedule."""
        endpoint = an_endpoint(name, tenant=OTHER)
        delivery = delivery_for(an_event_record(f"evt_{name}"), endpoint, due - 30 * MINUTE)
        attempt = Attempt(due - 30 * MINUTE, 500, 1, next_at=due)
        work = delivery_work(replace(delivery, tenant=OTHER, attempts=(attempt,), due_at=due))
        self.store.commit([Save(endpoint), Open(work)])

    def minute(self) -> set[str]:
        """Run once; which endpoints got a message."""
        began = self.clock.now
        self.queues.wakes.clear()
        self.sweep.run()
        assert self.clock.now - began < 40_000
        self.clock.now = began + MINUTE
        return {id for id, _ in self.queues.wakes}


def test_what_comes_up_is_brought_whatever_backlog_another_has() -> None:
    world = Backlog(pages=300)  # 2.4 million rows
    for n in range(40):
        world.owe(f"soon{n}", NOW + 30_000)
    assert {f"soon{n}" for n in range(40)} <= world.minute()
    assert {delay for id, delay in world.queues.wakes if id.startswith("soon")} <= {28, 29, 30}


def test_what_is_overdue_behind_the_backlog_of_another_is_found_in_as_many_minutes_as_it_takes_to_read_it() -> None:
    world = Backlog(pages=50)  # 400,000 rows
    for n in range(40):
        world.owe(f"late{n}", NOW - 30 * MINUTE)
    found: set[str] = set()
    for _ in range(5):
        found |= world.minute()
    assert {f"late{n}" for n in range(40)} <= found
    assert {f"wh_{n}" for n in range(20)} <= found


def test_an_endpoint_whose_message_is_refused_each_time_does_not_hold_up_the_search() -> None:
    world = Backlog(pages=50)
    for n in range(40):
        world.owe(f"late{n}", NOW - 30 * MINUTE)
    real, found = world.queues.wake, set[str]()

    def wake(tenant: str, id: str, *args: Any, **how: Any) -> None:
        if id == "wh_3":
            raise Unavailable("refused")
        real(tenant, id, *args, **how)

    world.queues.wake = wake  # type: ignore[method-assign]
    for _ in range(5):
        with pytest.raises(Failures):
            world.minute()
        found |= {id for id, _ in world.queues.wakes}
    assert {f"late{n}" for n in range(40)} <= found


def test_it_begins_again_at_the_end() -> None:
    world = Backlog(pages=0)
    world.owe("late", NOW - KNOWN_MS - 1)
    world.store.commit([Save(SweepCursor("deliveries", (f"{time_order(NOW - KNOWN_MS)}#x",) * 8))])
    assert world.minute() == set()
    assert world.store.get(SweepCursor, id="deliveries").places == ("",) * 8
    assert world.minute() == {"late"}


def test_when_nothing_waits_nothing_is_written_and_little_is_read() -> None:
    world = Backlog(pages=0)
    assert world.minute() == set()
    assert (world.store.queries, world.store.commits) == (16, 0)


def test_where_time_does_not_suffice_nobodys_many_messages_stand_before_anybodys_few() -> None:
    world = Backlog(pages=0)
    for n in range(40):
        world.owe(f"many{n}", NOW + n * 1_000)
    for n in range(5):
        store = world.store
        endpoint = an_endpoint(f"few{n}")
        endpoint = replace(endpoint, tenant=type(SHOP)(f"mch_{n}:live"))
        delivery = delivery_for(an_event_record(), endpoint, NOW - 30 * MINUTE)
        attempt = Attempt(NOW - 30 * MINUTE, 500, 1)
        work = delivery_work(replace(delivery, tenant=endpoint.tenant, attempts=(attempt,), due_at=NOW + 80_000))
        store.commit([Save(endpoint), Open(work)])
    real = world.queues.wake

    def wake(*args: Any, **kwargs: Any) -> None:
        world.clock.pass_ms(600)
        real(*args, **kwargs)

    world.queues.wake = wake  # type: ignore[method-assign]
    assert {f"few{n}" for n in range(5)} <= world.minute()
    assert len(world.queues.wakes) < 20


class Paused(Line):
    """An endpoint that is paused, with so many deliveries put aside, and its owner."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.owner = Webhooks(self.store, self.queues, self.clock, PlainSeals())
        self.owner.register(SHOP, "https://shop.example/another", ["*"])  # so that there is a count
        self.owner.update(SHOP, HOOK, status="paused")
        while self.take() != "idle" or any(not d.held for d in self.deliveries("pending")):
            pass
        self.queues.wakes.clear()

    def wakes(self) -> int:
        """Messages of one run."""
        self.queues.wakes.clear()
        return self.sweep.run()

    def open(self) -> int:
        return sum(work.kind == "unheld" for work in self.store.work)


def turn_on(line: Paused) -> None:
    line.owner.update(SHOP, HOOK, status="active")


def turn_off(line: Paused) -> None:
    line.owner.update(SHOP, HOOK, status="disabled")


def delete(line: Paused) -> None:
    line.owner.delete(SHOP, HOOK)


@pytest.mark.parametrize(("act", "ends"), [(turn_on, "delivered"), (turn_off, "cancelled"), (delete, "cancelled")])
def test_what_was_put_aside_is_seen_through_though_no_message_comes(act: Callable[[Paused], None], ends: str) -> None:
    line = Paused(25)
    assert line.wakes() == 0
    line.queues.down = True
    act(line)
    line.queues.down = False
    assert line.wakes() == 1 and line.queues.held[-1] and line.open() == 1
    line.take(held=True)
    assert len(line.deliveries(ends)) == 25
    assert line.wakes() == 0 and line.store.work == set()


def test_what_is_turned_off_while_it_is_paused_is_seen_through() -> None:
    line = Paused(3)
    line.store.commit(Notices(lambda _: line.clock).turned_off(line.endpoint, "for a test", line.clock.now))
    assert line.wakes() == 1
    line.take(held=True)
    assert len(line.deliveries("cancelled")) == 3 and line.wakes() == 0 == line.open()


def test_however_often_it_goes_on_there_is_one_obligation() -> None:
    line = Paused(3)
    for _ in range(3):
        turn_on(line)
        line.owner.update(SHOP, HOOK, status="paused")  # in the same millisecond
    assert line.open() == 1
    assert line.wakes() == 0 and line.open() == 0  # it is paused
    turn_on(line)
    assert line.open() == 1 and line.wakes() == 1


class Resumed:
    """Endpoints in one lane that are paused no more, each with a parked delivery. A read of open work takes `ms`."""

    def __init__(self, count: int, ms: int) -> None:
        self.clock, self.queues, self.store = HandClock(NOW), MemoryQueues(), MemoryStore()
        self.sweep = DueSweep(self.store, self.queues, self.clock)
        self.ids = [id for n in range(16 * count) if lane_of(id := f"wh_{n:04d}") == "2"][:count]
        for id in self.ids:
            endpoint = an_endpoint(id).unheld(NOW)
            parked = replace(delivery_for(an_event_record(f"evt_{id}"), endpoint, NOW), held=True)
            self.store.commit([Save(endpoint), Open(delivery_work(parked)), Open(unheld_work(endpoint))])
        real = self.store.open_work

        def open_work(*args: Any, **how: Any) -> list[Work]:
            self.clock.pass_ms(ms)
            return real(*args, **how)

        self.store.open_work = open_work  # type: ignore[method-assign]

    def minute(self) -> list[str]:
        """Run once; which endpoints got a message."""
        self.queues.wakes.clear()
        self.sweep.run()
        self.clock.pass_ms(MINUTE)
        return [id for id, _ in self.queues.wakes]


def test_each_endpoint_that_goes_on_has_its_turn_where_time_does_not_suffice_for_all() -> None:
    world = Resumed(40, ms=200)
    woken = world.minute()
    assert 0 < len(woken) < 40
    while len(woken) < 40:
        woken += world.minute()
    assert woken[:40] == world.ids


def test_where_time_suffices_the_next_run_begins_at_the_front_and_writes_nothing() -> None:
    world = Resumed(3, ms=10)
    written = world.store.commits
    assert sorted(world.minute()) == sorted(world.minute()) == world.ids
    assert world.store.commits == written


def test_an_endpoint_whose_message_is_refused_leaves_the_others_woken() -> None:
    world = Resumed(5, ms=10)
    real = world.queues.wake

    def wake(tenant: str, id: str, *args: Any, **how: Any) -> None:
        if id == world.ids[2]:
            raise Unavailable("refused")
        real(tenant, id, *args, **how)

    world.queues.wake = wake  # type: ignore[method-assign]
    with pytest.raises(Failures):
        world.sweep.run()
    assert sorted(id for id, _ in world.queues.wakes) == world.ids[:2] + world.ids[3:]


def test_an_obligation_is_not_closed_by_who_saw_the_endpoint_before_it_went_on() -> None:
    line = Paused(3)
    turn_on(line)
    line.owner.update(SHOP, HOOK, status="paused")
    real = line.store.get_many

    def get_many(wanted: Sequence[Any]) -> list[Any]:
        found = real(wanted)
        line.store.get_many = real  # type: ignore[method-assign]
        turn_on(line)
        return found

    line.store.get_many = get_many  # type: ignore[method-assign]
    line.sweep.run()
    assert line.open() == 1
    assert line.wakes() == 1


def test_none_is_put_aside_for_what_goes_on_meanwhile() -> None:
    line = Paused(1)
    event = line.store.all(EventRecord)[0]
    [delivery] = line.deliveries()
    redelivery = Redelivery(line.store, line.queues, line.clock, line.clock)
    line.store.commit([Save(replace(delivery, status="dead", held=False, version=delivery.version + 1))])
    real = line.store.commit

    def commit(changes: Sequence[Any]) -> None:
        line.store.commit = real  # type: ignore[method-assign]
        turn_on(line)
        real(changes)

    line.store.commit = commit  # type: ignore[method-assign]
    again = redelivery.redeliver(SHOP, delivery.id)
    assert (again.event_id, again.held) == (event.id, False)


def test_a_worker_that_comes_late_does_not_cancel_what_was_turned_on_again() -> None:
    for gone in (False, True):
        line = Line(3)
        before = line.endpoint
        if gone:
            line.store.records.pop((WebhookEndpoint, SHOP, HOOK))
        else:
            line.change(enabled=False)
        real = line.store.get_many

        def get_many(
            wanted: Sequence[Any], line: Line = line, real: Any = real, before: Any = before, gone: bool = gone
        ) -> list[Any]:
            found: list[Any] = real(wanted)
            line.store.get_many = real  # type: ignore[method-assign]
            if gone:
                line.store.commit([Save(before)])
            else:
                line.change(enabled=True)
            return found

        line.store.get_many = get_many  # type: ignore[method-assign]
        assert line.take() == "done"
        assert len(line.deliveries("delivered")) == 3 and line.consistent()


def test_what_is_cancelled_goes_on_in_another_message_where_it_is_much() -> None:
    line = Paused(100)
    delete(line)
    line.queues.wakes.clear()
    real = line.store.commit

    def commit(changes: Sequence[Any]) -> None:
        line.clock.pass_ms(TURN_MS // 40)
        real(changes)

    line.store.commit = commit  # type: ignore[method-assign]
    while line.take(held=True) == "more":
        assert line.queues.held[-1]
    assert len(line.queues.wakes) == 2
    assert len(line.deliveries("cancelled")) == 100


def test_a_rest_in_the_middle_of_what_was_put_aside_ends_with_all_of_it() -> None:
    line = Paused(25)
    turn_on(line)
    line.sender.answers = [Answer(429, b"", 1, retry_after="60")] * 10 + [OK]
    assert line.take(held=True) == "resting"
    assert (line.queues.wakes[-1], line.queues.held[-1]) == ((HOOK, 60), True)


@pytest.mark.parametrize("forgotten", [True, False], ids=["its delivery is gone", "its delivery is still there"])
def test_what_is_put_aside_ends_after_thirty_days_quietly(caplog: pytest.LogCaptureFixture, forgotten: bool) -> None:
    line = Paused(25)
    line.clock.pass_ms(KEEP_SECONDS * 1000 + 1)
    if forgotten:
        for delivery in line.deliveries():
            line.store.records.pop((Delivery, SHOP, delivery.id))
    for n in range(3):
        line.add(f"evt_new{n}")
        line.take()
    assert len(line.deliveries("cancelled")) == (0 if forgotten else 25)
    assert {d.event_id for d in line.deliveries("pending")} == {f"evt_new{n}" for n in range(3)}
    assert line.consistent() and "metric=" not in caplog.text
    turn_on(line)
    line.take(held=True)
    assert len(line.deliveries("delivered")) == 3


def test_what_was_put_aside_is_sent_in_the_order_in_which_it_was_made() -> None:
    line = Paused(0)
    for n in range(30):
        line.clock.pass_ms(1)
        line.add(f"evt_{n:03d}")
    line.take()
    assert sorted(w.order for w in line.store.work)[0] == held_order(NOW + 1)
    turn_on(line)
    line.take(held=True)
    batches = [line.sender.sent[n : n + 10] for n in (0, 10, 20)]
    assert [sorted(batch) for batch in batches] == [[f"evt_{n:03d}" for n in range(at, at + 10)] for at in (0, 10, 20)]


def test_an_attempt_that_began_a_little_early_is_not_overtaken_by_whoever_wants_it_at_once() -> None:
    line = Line(1, BAD)
    line.take()
    [delivery] = line.deliveries()
    line.clock.now = delivery.due_at - EARLY_MS
    line.sender.meanwhile = lambda: Redelivery(line.store, line.queues, line.clock, line.clock).redeliver(SHOP, delivery.id)
    line.sender.answers = [OK]
    line.take()
    [delivery] = line.deliveries()
    assert (len(line.sender.sent), len(delivery.attempts), delivery.status) == (2, 2, "delivered")


def test_what_is_kept_of_an_answer_is_text_of_a_kibibyte() -> None:
    assert beginning(b'{"error":\t"no"}\r\n') == '{"error":\t"no"}\r\n'
    assert beginning(b"\x00\x1b[1m\x7f\xff") == "\ufffd\ufffd[1m\ufffd\ufffd"
    assert beginning(b"x" * 1_023 + "é".encode()) == "x" * 1_023
    for byte in range(256):
        assert len(beginning(bytes([byte]) * 5_000).encode()) <= ANSWER_BYTES


@pytest.mark.parametrize("filler", ['"', "\\", "\n", "\0", "\x7f", "\x85", "é", "\u2028", "\ufffd", "😀", "</p>"], ids=ascii)
def test_the_largest_page_of_deliveries_is_no_larger_than_a_function_may_answer(filler: str) -> None:
    """6 MB, of the document in which the runtime wraps the body, all of it ASCII.

    docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """
    answer = beginning(filler.encode() * 2_000)
    attempt = Attempt(NOW, 500, 10_000, answer, "no answer within 10 s" * 5, NOW)
    delivery = delivery_for(an_event_record("evt_" + "x" * 26), an_endpoint("wh_" + "x" * 26), NOW)
    delivery = replace(delivery, attempts=(attempt,) * (len(RETRY_SECONDS) + 1), status="dead", reason="9 attempts failed")
    body = json.dumps({"data": [delivery_view(delivery)] * 100})
    assert len(json.dumps({"statusCode": 200, "body": body})) < 5_000_000
