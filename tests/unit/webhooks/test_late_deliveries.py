"""Lookouts of endpoints that are always late stay few, take nothing from others, and lose nothing, whenever the schedule dies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, islice
from typing import Any

import pytest

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import line_of
from chalicelib.domain.work import Work, lane_of, time_order
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_attempts import Answer
from chalicelib.usecases.webhooks.due_search_time import GRACE_MS, KNOWN_MS
from chalicelib.usecases.webhooks.due_sweep import DueSweep
from chalicelib.usecases.webhooks.late_deliveries import LOOKOUTS_MS, LateLines
from chalicelib.usecases.webhooks.leases import in_threads
from chalicelib.usecases.webhooks.lookouts import LATE_MS, PERIOD_MS, lookout_work
from tests.support.memory_store import Cuts
from tests.support.webhooks import SHOP
from tests.unit.webhooks.line import HOOK, OK
from tests.unit.webhooks.told import MINUTE, Told

FOUND_MS = 150_000
"""How late a delivery may be found whose message was lost, with a schedule each minute."""
DAY = 86_400_000
REST = Answer(429, b"later", 12, retry_after="900")
MANY = TenantId("mch_many:live")


class Died(BaseException):
    """The function's process is gone."""


class Deaths(Cuts):
    """The process dies at the n-th call, instead of it or when it took effect."""

    def _call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._call(method, *args, **kwargs)
        except Unavailable as cut:
            raise Died from cut


def slow(world: Told, ms: int) -> list[int]:
    """From now on each read of a lane of open work takes so long. How long each run took is noted."""
    real, took = world.store.open_work, list[int]()
    run = world.sweep.run

    def open_work(*args: Any, **how: Any) -> Any:
        world.clock.pass_ms(ms)
        return real(*args, **how)

    def timed() -> int:
        began = world.clock.now
        try:
            return run()
        finally:
            took.append(world.clock.now - began)
            world.clock.now = began

    world.store.open_work = open_work  # type: ignore[method-assign]
    world.sweep.run = timed  # type: ignore[method-assign]
    return took


def late(world: Told, line: str) -> None:
    """Something that has been due for days, as of an endpoint that says when it wants more."""
    world.store.work.add(Work("delivery", line, time_order(world.clock.now - 2 * DAY), "dlv_0|evt_0|1|message"), by_time=False)


def lines_in(lane: str, tenant: TenantId = MANY) -> Iterator[str]:
    return (line for n in count() if lane_of(line := line_of(tenant, f"wh_{n}")) == lane)


def of(world: Told, line: str) -> list[Work]:
    return [work for work in world.lookouts() if work.id == line]


def until_sent(world: Told) -> None:
    world.sender.answers = [OK]
    for _ in range(40):
        world.clock.pass_ms(MINUTE)
        world.queues.wakes.clear()
        with suppress(Failures):
            world.sweep.run()
        if world.queues.wakes:
            world.take()
        if not world.store.work:
            break
    assert world.deliveries("pending") == [] and world.store.work == set()


def test_a_receiver_that_asks_for_rests_all_day_leaves_a_few_lookouts() -> None:
    """It takes one request of ten, so that it never counts as failing, and one delivery is always overdue."""
    world = Told(REST)
    told, most = 0, 0
    for minute in range((24 if os.environ.get("SWEEP") == "full" else 6) * 60):
        for _ in range(2):
            world.tell()
            told += 1
            world.clock.pass_ms(MINUTE // 2)
        world.sender.answers = [OK, REST]
        world.queues.wakes.clear()
        world.queues.held.clear()
        world.sweep.run()
        assert minute < 30 or world.queues.wakes == [(HOOK, 0)]
        world.take()
        most = max(most, len(world.lookouts()))
    assert world.endpoint.enabled and world.endpoint.failing_since is None
    assert len(world.deliveries("pending")) + len(world.parcels()) > told // 2, "it is always late"
    assert most <= 5


def test_a_lost_delivery_is_found_in_time_whatever_another_merchant_left() -> None:
    """A day's lookouts of twenty endpoints, all of them late, as they were left before they were closed."""
    world = Told(OK)
    for n in range(20):
        line = line_of(MANY, f"wh_{n}")
        late(world, line)
        for at in range(world.clock.now - DAY, world.clock.now, 30_000):
            world.store.work.add(lookout_work(line, at))
    took = slow(world, 40)
    world.tell()
    made = world.clock.now
    world.queues.wakes.clear()
    while (HOOK, 0) not in world.queues.wakes:
        world.clock.pass_ms(MINUTE)
        assert world.clock.now - made <= FOUND_MS
        world.sweep.run()
    world.take()
    for _ in range(60):
        world.clock.pass_ms(MINUTE)
        world.sweep.run()
    assert max(took) <= LOOKOUTS_MS + 16 * 40
    assert len(world.lookouts()) == 20, "one for each endpoint that is late"


def test_the_next_run_goes_on_where_time_was_over() -> None:
    """Those that have waited longest are looked after first. None is in the way of others then."""
    world = Told()
    lines = list(islice(lines_in("3"), 60))
    start = world.clock.now
    for n, line in enumerate(lines):
        world.store.open(lookout_work(line, start - DAY + n))
        late(world, line)
    slow(world, 100)
    age = {line.rpartition("|")[2]: n for n, line in enumerate(lines)}
    seen: list[int] = []
    for run in count(1):
        world.queues.wakes.clear()
        world.sweep.run()
        seen += sorted({age[id] for id, _ in world.queues.wakes} - {*seen})
        assert seen == [*range(len(seen))] and len(world.lookouts()) == 60
        world.clock.pass_ms(MINUTE)
        if len(seen) == 60:
            break
        assert run < 20
    assert run > 1


def test_one_merchants_many_endpoints_do_not_stand_before_anothers() -> None:
    world = Told()
    at = world.clock.now - GRACE_MS
    lane = lane_of(line_of(SHOP, HOOK))
    for line in islice(lines_in(lane), 150):
        world.store.open(lookout_work(line, at - 1_000))
        late(world, line)
    world.store.open(lookout_work(line_of(SHOP, HOOK), at))
    late(world, line_of(SHOP, HOOK))
    slow(world, 50)
    world.sweep.run()
    assert (HOOK, 0) in world.queues.wakes and 1 < len(world.queues.wakes) < 150


@pytest.mark.parametrize("answer", [OK, REST], ids=["it was never sent", "its receiver rests"])
def test_what_was_lost_before_its_lookout_closed_is_found_as_long_as_it_is_there(answer: Answer) -> None:
    world = Told(answer)
    world.tell()
    if answer is REST:
        world.take()
    for minute in range(20):
        for _ in range(2):
            world.tell()
            world.clock.pass_ms(MINUTE // 2)
        world.queues.wakes.clear()
        world.sweep.run()
        assert minute < 3 or world.queues.wakes == [(HOOK, 0)]
        assert len(world.lookouts()) <= 5
    assert len(world.parcels()) >= 40
    world.clock.pass_ms(20 * MINUTE)
    until_sent(world)
    assert len(world.deliveries("delivered")) == 41


@pytest.mark.parametrize("after", [False, True], ids=["instead of it", "behind it"])
@pytest.mark.parametrize("how", [Cuts, Deaths], ids=["fails", "dies"])
def test_whichever_call_fails_or_is_its_last_nothing_is_lost(how: type[Cuts], after: bool) -> None:
    cut = 0
    while True:
        cut += 1
        world = Told(OK)
        cuts = how(cut, after=after)
        sweep = DueSweep(cuts.around(world.store), cuts.around(world.queues), world.clock)
        for _ in range(4):  # parcels of several periods, whose messages are all lost
            world.tell()
            world.clock.pass_ms(PERIOD_MS)
        world.minutes(1)
        world.clock.pass_ms(MINUTE)
        with suppress(Failures, Died):
            sweep.run()
        world.queues.wakes.clear()
        world.clock.pass_ms(MINUTE)
        world.sweep.run()
        assert world.queues.wakes == [(HOOK, 0)] and len(world.lookouts()) == 1, f"cut {cut}"
        until_sent(world)
        assert len(world.deliveries("delivered")) == 4, f"cut {cut}"
        if cuts.calls < cut:
            break
    assert cut > 45


def test_a_message_that_is_lost_is_sent_again_in_the_next_run() -> None:
    world = Told(OK)
    world.tell()
    world.minutes(1)
    for _ in range(5):
        world.queues.wakes.clear()  # lost
        world.minutes(1)
        assert world.queues.wakes == [(HOOK, 0)]
    world.queues.down = True
    world.clock.pass_ms(MINUTE)
    with pytest.raises(Failures):
        world.sweep.run()
    world.queues.down = False
    until_sent(world)


def test_what_is_due_for_its_retry_is_brought_though_lookouts_can_not_be_read() -> None:
    world = Told(Answer(500, b"", 1))
    world.tell()
    world.take()
    world.tell()
    real = world.store.open_work

    def open_work(kind: str, lane: str, **how: Any) -> Any:
        if kind == "lookout":
            raise Unavailable("no answer")
        return real(kind, lane, **how)

    world.store.open_work = open_work  # type: ignore[method-assign,assignment]
    world.queues.wakes.clear()
    world.clock.pass_ms(2 * MINUTE)
    with pytest.raises(Failures) as failed:
        world.sweep.run()
    assert world.queues.wakes == [(HOOK, 0)] and len(failed.value.exceptions) == 16


def test_lookouts_are_looked_after_though_the_index_of_time_can_not_be_read() -> None:
    world = Told()
    world.tell()

    def work_by_time(*args: Any, **how: Any) -> Any:
        raise Unavailable("no answer")

    world.store.work_by_time = work_by_time  # type: ignore[method-assign]
    world.queues.wakes.clear()
    world.clock.pass_ms(2 * MINUTE)
    with pytest.raises(Failures):
        world.sweep.run()
    assert world.queues.wakes == [(HOOK, 0)]


def test_a_lane_that_can_not_be_read_leaves_the_others_looked_after() -> None:
    world = Told()
    world.tell()
    lane = lane_of(line_of(SHOP, HOOK))
    other = next(lines_in("5" if lane != "5" else "6"))
    world.store.open(lookout_work(other, world.clock.now))
    late(world, other)
    real = world.store.open_work

    def open_work(kind: str, of_lane: str, **how: Any) -> Any:
        if (kind, of_lane) == ("lookout", lane):
            raise Unavailable("no answer")
        return real(kind, of_lane, **how)

    world.store.open_work = open_work  # type: ignore[method-assign,assignment]
    world.queues.wakes.clear()
    world.clock.pass_ms(2 * MINUTE)
    with pytest.raises(Failures):
        world.sweep.run()
    assert world.queues.wakes == [(other.rpartition("|")[2], 0)] and len(of(world, line_of(SHOP, HOOK))) == 1


def test_due_deliveries_do_not_wait_for_lookouts() -> None:
    world = Told()
    calls: list[str] = []
    for name in ("work_by_time", "open_work"):
        real = getattr(world.store, name)

        def call(kind: str, *args: Any, real: Any = real, **how: Any) -> Any:
            calls.append(kind)
            return real(kind, *args, **how)

        setattr(world.store, name, call)
    world.sweep.run()
    assert calls == ["delivery"] * 16 + ["unheld"] * 8 + ["lookout"] * 16


def test_an_endpoint_that_has_a_message_already_gets_no_other() -> None:
    """Its overdue retry is in the index of time, and a first delivery has a lookout."""
    world = Told(Answer(500, b"", 1), OK)
    world.tell()
    world.take()
    world.tell()
    world.queues.wakes.clear()
    world.clock.pass_ms(3 * MINUTE)
    assert world.sweep.run() == 1 and world.queues.wakes == [(HOOK, 0)]


def test_it_searches_at_the_same_time() -> None:
    world = Told()
    lines = [line_of(MANY, f"wh_{n}") for n in range(200)]
    for n, line in enumerate(lines):
        world.store.open(lookout_work(line, world.clock.now - KNOWN_MS - DAY * (n % 2)))
        if n % 3:
            late(world, line)
    found = LateLines(world.store, world.clock, in_threads)
    found.search()
    assert sorted(found.found) == sorted(line for n, line in enumerate(lines) if n % 3)
    assert sorted(work.id for work in world.lookouts()) == sorted(found.found)


def test_a_lookout_of_the_last_moment_is_no_other_runs() -> None:
    """It has the time of the one that a late line has again, and is closed with the others where nothing is late."""
    world = Told()
    line = line_of(SHOP, HOOK)
    for is_late in (True, False):
        world.store.work.clear()
        world.store.work = ()  # type: ignore[assignment]
        lookout = lookout_work(line, world.clock.now - GRACE_MS)
        world.store.open(lookout)
        if is_late:
            at = world.clock.now - GRACE_MS + LATE_MS
            world.store.work.add(Work("delivery", line, time_order(at), f"parcel|{at}|evt_1"), by_time=False)
        world.queues.wakes.clear()
        world.sweep.run()
        assert (of(world, line), world.queues.wakes) == (([lookout], [(HOOK, 0)]) if is_late else ([], []))
