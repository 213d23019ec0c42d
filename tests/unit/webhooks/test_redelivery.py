"""Sending the events of a time again: what is made, that nothing is made twice, and that nothing stops it but its owner."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chalicelib.domain.errors import BusinessRule, NotFound, ServiceError
from chalicelib.domain.ids import new_id
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import Attempt, Delivery, delivery_for, delivery_id, delivery_work
from chalicelib.domain.webhooks.endpoints import TEST_EVENT, EventRecord, WebhookEndpoint, event_record
from chalicelib.domain.webhooks.redelivery import JOBS_MS, KEPT_MS, MOST_JOBS, PAGE, RedeliveryJob, Which
from chalicelib.usecases.ports.changes import Close, Delete, Emit, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_lookup import DeliveryReads
from chalicelib.usecases.webhooks.redelivery import Redelivery, Wanted
from chalicelib.usecases.webhooks.redelivery_run import LOST_MS, RUN_MS, RedeliveryRun
from chalicelib.usecases.webhooks.relay import Relay
from tests.support.memory_store import Cuts, HandClock, MemoryQueues, MemoryStore
from tests.support.webhooks import NOW, OTHER, SHOP, a_row, an_endpoint, an_event

HOOK = "wh_1"
HOUR = 3_600_000
DAY = 24 * HOUR


class World:
    """An endpoint, and events that it was not told of: one a second from `NOW` on."""

    def __init__(self, events: int = 0, endpoint: WebhookEndpoint | None = None, ahead: int = 0) -> None:
        self.store, self.queues, self.clock = MemoryStore(), MemoryQueues(), HandClock(NOW + HOUR)
        self.realm_clock = HandClock(NOW + HOUR + ahead)
        self.redelivery = Redelivery(self.store, self.queues, self.clock, self.realm_clock)
        self.reads = DeliveryReads(self.store)
        self.run = RedeliveryRun(self.store, self.queues, self.clock)
        self.store.commit([Save(endpoint or an_endpoint(HOOK))])
        self.events = [self.event(NOW + 1000 * n) for n in range(events)]

    def event(self, at: int, name: str = "invoice.completed") -> EventRecord:
        record = event_record(an_event(new_id("evt", at), name, at=at), "2026-01-02T03:04:05.006Z", self.clock.now)
        self.store.commit([Save(record)])
        return record

    @property
    def endpoint(self) -> WebhookEndpoint:
        found: WebhookEndpoint = self.store.get(WebhookEndpoint, tenant=SHOP, id=HOOK)
        return found

    def change(self, **fields: Any) -> None:
        self.store.commit([Save(replace(self.endpoint, version=self.endpoint.version + 1, **fields))])

    def told(self, event: EventRecord) -> Delivery:
        delivery = delivery_for(event, self.endpoint, self.clock.now)
        self.store.commit([Save(delivery), Open(delivery_work(delivery))])
        return delivery

    def ends(self, delivery: Delivery, status: int | None = 200) -> Delivery:
        """It is answered with this status; None: it is cancelled."""
        now = self.clock.now
        if status is None:
            ended = delivery.cancelled("the endpoint is disabled", now)
        elif status == 200:
            ended = delivery.after(Attempt(now, 200, 1), now, 0.0)
        else:
            ended = replace(delivery, status="dead", finished_at=now, version=delivery.version + 1)
        self.store.commit([Save(ended), Close(delivery_work(delivery))])
        return ended

    def all_delivered(self) -> None:
        for delivery in self.deliveries("pending"):
            self.ends(delivery)

    def deliveries(self, *statuses: str) -> list[Delivery]:
        return [d for d in self.store.all(Delivery) if not statuses or d.status in statuses]

    def order(self, which: Which = "missed", since: int = NOW, until: int | None = None, **more: Any) -> RedeliveryJob:
        return self.redelivery.order(SHOP, HOOK, Wanted(since, until, which, **more))

    def carried(self, job: RedeliveryJob) -> RedeliveryJob:
        while self.run.carry(SHOP, job.id) == "more":
            pass
        return self.redelivery.job(SHOP, job.id)

    def done(self, which: Which = "missed", **more: Any) -> tuple[int, int, int]:
        job = self.carried(self.order(which, **more))
        assert (job.status, job.finished_at) == ("done", self.clock.now)
        return job.looked, job.made, job.skipped

    def consistent(self) -> bool:
        kept = {work for work in self.store.work if work.kind == "delivery"}
        jobs = [work for work in self.store.work if work.kind == "redelivery"]
        running = [job for job in self.store.all(RedeliveryJob) if job.status == "running"]
        return kept == {delivery_work(d) for d in self.deliveries("pending")} and len(jobs) == len(running)


def test_what_was_missed_is_made_once_and_the_next_job_makes_nothing() -> None:
    world = World(2 * PAGE + 50)
    assert world.done() == (250, 250, 0)
    assert {d.event_id for d in world.deliveries("pending")} == {event.id for event in world.events}
    assert world.queues.wakes == [(HOOK, 0)] * 3, "the endpoint is asked for after each page"
    world.clock.pass_ms(1)
    assert world.done() == (250, 0, 250), "what waits is left alone"
    world.all_delivered()
    assert world.done() == (250, 0, 250)
    assert world.consistent()


def test_all_sends_what_was_delivered_too_but_nothing_that_waits() -> None:
    world = World(3)
    for event, status in zip(world.events, (200, 500, None), strict=True):
        world.ends(world.told(event), status)
    waiting = world.told(world.event(NOW + 5000))
    assert world.done("all") == (4, 3, 1)
    again = [d for d in world.deliveries("pending") if d.id != waiting.id]
    assert Counter(d.event_id for d in again) == Counter(event.id for event in world.events)
    assert all(d.job_id and d.earlier_id for d in again)
    firsts = [d for d in world.deliveries() if d.again_id]
    assert {d.again_id for d in firsts} == {d.id for d in again}
    world.clock.pass_ms(1)
    assert world.done("all") == (4, 0, 4)


@pytest.mark.parametrize(("first", "again", "made"), [(500, 500, 1), (500, None, 1), (None, 200, 0), (200, 500, 0), (500, 0, 0)])
def test_what_was_missed_is_judged_by_the_latest_delivery(first: int | None, again: int | None, made: int) -> None:
    world = World(1)
    ended = world.ends(world.told(world.events[0]), first)
    later = world.redelivery.redeliver(SHOP, ended.id)
    if again != 0:  # else it waits
        world.ends(later, again)
    assert world.done()[1] == made


def test_what_it_does_not_subscribe_to_what_is_about_itself_and_test_events_are_left_out() -> None:
    world = World(0, an_endpoint(HOOK, events=("invoice.completed", "webhook.failing", "balance.updated")))
    wanted = world.event(NOW)
    for name in ("invoice.created", TEST_EVENT):
        world.event(NOW, name)
    own = replace(wanted, id=new_id("evt", NOW), name="webhook.failing", object_id=HOOK)
    world.store.commit([Save(own)])
    world.event(NOW, "balance.updated")
    assert world.done(events=("invoice.completed", "webhook.failing")) == (5, 1, 0)
    assert [d.event_id for d in world.deliveries()] == [wanted.id]
    with pytest.raises(BusinessRule, match=r"not told of invoice\.created"):
        world.order(events=("balance.updated", "invoice.created"))


def test_from_is_in_and_to_is_not() -> None:
    world = World(5)
    assert world.done(since=NOW + 1000, until=NOW + 3000) == (2, 2, 0)
    assert {d.event_id for d in world.deliveries()} == {event.id for event in world.events[1:3]}


def test_events_of_a_realm_that_is_ahead() -> None:
    """The test realm's clock can be moved on: what happened there bears its time, and so does what is asked for."""
    ahead = 40 * 86_400_000
    world = World(0, ahead=ahead)
    event = world.event(NOW + ahead)
    assert world.done(since=NOW + ahead) == (1, 1, 0)
    assert world.deliveries()[0].event_id == event.id
    assert world.deliveries()[0].due_at == world.clock.now, "webhooks are sent in real time"


@pytest.mark.parametrize(
    ("since", "until", "field"),
    [
        (NOW, NOW, "to"),
        (NOW + 1, NOW, "to"),
        (NOW + HOUR, None, "from"),
        (NOW + 2 * HOUR, NOW + 3 * HOUR, "from"),
        (NOW - KEPT_MS - HOUR, NOW - KEPT_MS + HOUR, "to"),
        (-(2**40), 0, "to"),
    ],
)
def test_times_that_are_none(since: int, until: int | None, field: str) -> None:
    world = World()
    with pytest.raises(BusinessRule) as refused:
        world.order(since=since, until=until)
    assert refused.value.details["field"] == field
    assert world.store.work == set()


@pytest.mark.parametrize("ahead", [1, 9 * HOUR, 29 * DAY, 365 * DAY])
def test_a_time_in_the_future_is_now(ahead: int) -> None:
    world = World(1)
    job = world.order(since=NOW - 2 * DAY, until=world.clock.now + ahead)
    assert (job.from_at, job.to_at) == (NOW - 2 * DAY, NOW + HOUR)
    assert world.carried(job).made == 1


@pytest.mark.parametrize("since", [NOW - KEPT_MS, NOW - 45 * DAY, -(2**40)])
def test_a_time_of_which_nothing_is_kept_is_left_out(since: int) -> None:
    job = World().order(since=since, until=NOW - 16 * DAY)
    assert (job.from_at, job.to_at) == (NOW + HOUR - KEPT_MS, NOW - 16 * DAY)


@pytest.mark.parametrize("ahead", [0, 40 * DAY])
def test_what_was_delivered_and_is_about_to_be_forgotten_is_not_missed(ahead: int) -> None:
    """The store forgets in any order, and days late: an event may be there when what tells of its delivery is not."""
    world = World(ahead=ahead)
    event = world.event(NOW + HOUR + ahead)
    world.ends(world.told(event))
    for clock in (world.clock, world.realm_clock):
        clock.pass_ms(KEPT_MS - 1000)
    assert world.done(since=event.at) == (1, 0, 1)
    for clock in (world.clock, world.realm_clock):
        clock.pass_ms(1000)
    world.store.commit([Delete(Delivery, {"tenant": SHOP, "id": delivery_id(event.id, HOOK)})])
    for which in ("missed", "all"):
        assert world.done(which, since=event.at)[1:] == (0, 0)
        world.clock.pass_ms(1)


def test_one_endpoint_has_so_many_jobs_a_day() -> None:
    world = World(1)
    first = world.clock.now
    for _ in range(MOST_JOBS):
        world.done("all")
        world.all_delivered()
        world.clock.pass_ms(HOUR // 2)
    jobs = len(world.store.all(RedeliveryJob))
    with pytest.raises(BusinessRule, match=re.escape(iso(first + JOBS_MS))):
        world.order()
    world.clock.now = first + JOBS_MS - 1
    with pytest.raises(BusinessRule, match="at most 24"):
        world.order()
    assert len(world.store.all(RedeliveryJob)) == jobs == MOST_JOBS and world.consistent()
    world.clock.pass_ms(1)
    world.done()
    with pytest.raises(BusinessRule, match=re.escape(iso(first + JOBS_MS + HOUR // 2))):
        world.order()


def test_a_job_that_does_not_end_well_counts_and_its_refusals_do_not() -> None:
    world = World(1)
    for _ in range(MOST_JOBS):
        job = world.order()
        with pytest.raises(BusinessRule, match=job.id):
            world.order()
        world.redelivery.cancel(SHOP, job.id)
        world.clock.pass_ms(1)
    with pytest.raises(BusinessRule, match="at most 24"):
        world.order()
    world.store.commit([Save(an_endpoint("wh_2"))])
    assert world.redelivery.order(SHOP, "wh_2", Wanted(NOW)).status == "running", "each endpoint has its own"


@pytest.mark.parametrize("registered", [False, True])
def test_what_the_relay_is_at_is_not_missed_by_who_turns_an_endpoint_on(registered: bool) -> None:
    """At each of the relay's calls an endpoint is turned on, or registered, and at once has everything sent up to now."""
    for at in itertools.count(1):
        world = World()
        world.change(enabled=False)
        if registered:
            world.store.commit([Delete(WebhookEndpoint, {"tenant": SHOP, "id": HOOK})])
        made = world.clock.now - 50
        row = a_row(an_event(new_id("evt", made), at=made))
        world.store.commit([Emit(row)])
        hooked = Before(at, partial(turn_on, world, registered))
        Relay(hooked.around(world.store), world.queues, world.clock).tell(row.id)
        if hooked.calls < at:
            break
        assert [d.event_id for d in world.deliveries("pending")] == [row.events[0].id], f"call {at}"
    assert at >= 5


def turn_on(world: World, registered: bool) -> None:
    world.store.commit([Save(an_endpoint(HOOK))]) if registered else world.change(enabled=True)
    assert world.carried(world.order("missed")).status == "done"


class Before:
    """Does something right before the n-th call of what it is put around."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.at, self.act, self.calls = at, act, 0

    def around(self, target: Any) -> Any:
        return _Watched(target, self)


class _Watched:
    def __init__(self, target: Any, before: Before) -> None:
        self._target, self._before = target, before

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._before.calls += 1
            if self._before.calls == self._before.at:
                self._before.act()
            return found(*args, **kwargs)

        return call


def test_an_event_that_is_told_long_after_a_job_up_to_now_is_sent_all_the_same() -> None:
    """Its row waited while the relay was down: the job does not see it, but the endpoint is on by then."""
    world = World()
    world.change(enabled=False)
    row = a_row(an_event(new_id("evt", NOW), at=NOW))
    world.store.commit([Emit(row)])
    world.change(enabled=True)
    assert world.done() == (0, 0, 0)
    world.clock.pass_ms(HOUR)
    Relay(world.store, world.queues, world.clock).tell(row.id)
    assert [d.event_id for d in world.deliveries("pending")] == [row.events[0].id]


def test_one_job_at_a_time_and_another_when_it_has_ended() -> None:
    world = World(1)
    job = world.order()
    with pytest.raises(BusinessRule, match=job.id):
        world.order()
    assert world.redelivery.cancel(SHOP, job.id).status == "cancelled"
    assert world.redelivery.cancel(SHOP, job.id).status == "cancelled"
    assert world.run.carry(SHOP, job.id) == "ended"
    assert world.deliveries() == []
    assert world.done() == (1, 1, 0)
    assert world.consistent()


def test_of_a_paused_endpoint_they_are_made_and_held() -> None:
    world = World(2, an_endpoint(HOOK))
    world.change(paused=True)
    assert world.done() == (2, 2, 0)
    assert all(d.held for d in world.deliveries("pending")) and world.consistent()


def test_a_disabled_endpoint_or_none_has_no_job() -> None:
    world = World(1)
    with pytest.raises(NotFound):
        world.redelivery.order(OTHER, HOOK, Wanted(NOW))
    world.change(enabled=False)
    with pytest.raises(BusinessRule):
        world.order()


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda world: world.change(enabled=False), "the endpoint is disabled"),
        (lambda world: world.store.commit([Delete(WebhookEndpoint, {"tenant": SHOP, "id": HOOK})]), "the endpoint was deleted"),
    ],
)
def test_an_endpoint_that_goes_in_the_middle_ends_it(act: Callable[[World], None], reason: str) -> None:
    world = World(PAGE + 1)
    job = world.order()
    at_page(world, 1, lambda: act(world))
    after = world.carried(job)
    assert (after.status, after.reason, after.looked) == ("cancelled", reason, PAGE)
    assert len(world.deliveries()) == PAGE and world.consistent()


def at_page(world: World, number: int, act: Callable[[], object]) -> None:
    """Do something right before the page of that number is written down."""
    real, seen = world.store.commit, 0

    def commit(changes: Sequence[Any], /) -> None:
        nonlocal seen
        if isinstance(changes[0], Save) and isinstance(changes[0].record, RedeliveryJob) and changes[0].record.looked:
            seen += 1
            if seen == number:
                act()
        real(changes)

    world.store.commit = commit  # type: ignore[method-assign]


def test_one_that_is_cancelled_in_the_middle_of_a_page_counts_that_page_and_makes_no_other() -> None:
    world = World(PAGE + 1)
    job = world.order()
    at_page(world, 1, lambda: world.redelivery.cancel(SHOP, job.id))
    assert world.run.carry(SHOP, job.id) == "ended"
    after = world.redelivery.job(SHOP, job.id)
    assert (after.status, after.looked, after.made) == ("cancelled", PAGE, PAGE)
    assert len(world.deliveries()) == PAGE and world.consistent()


def test_two_at_once_make_one_of_each() -> None:
    world = World(PAGE + 1)
    job = world.order()
    seen: list[str] = []
    at_page(world, 1, lambda: seen.append(world.run.carry(SHOP, job.id)))
    assert world.run.carry(SHOP, job.id) == "overtaken"
    after = world.redelivery.job(SHOP, job.id)
    assert seen == ["ended"] and (after.looked, after.made, after.skipped) == (PAGE + 1, PAGE + 1, 0)
    assert len(world.deliveries()) == PAGE + 1 and world.consistent()


def test_time_is_up_and_it_waits_behind_others() -> None:
    world = World(3 * PAGE)
    job = world.order("all")
    at_page(world, 1, lambda: world.clock.pass_ms(RUN_MS))
    world.queues.redeliveries.clear()
    assert world.run.carry(SHOP, job.id) == "more"
    assert world.queues.redeliveries == [job.id]
    assert world.redelivery.job(SHOP, job.id).looked == PAGE
    assert world.run.carry(SHOP, job.id) == "ended"
    assert len(world.deliveries()) == 3 * PAGE


def test_one_whose_message_was_lost_is_found() -> None:
    world = World(1)
    world.queues.down = True
    job = world.order()
    world.queues.down = False
    assert (world.run.sweep(), world.queues.redeliveries) == (0, [])
    world.clock.pass_ms(LOST_MS)
    assert (world.run.sweep(), world.queues.redeliveries) == (1, [job.id])
    world.carried(job)
    assert world.run.sweep() == 0


@pytest.mark.parametrize("which", ["missed", "all"])
@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_nothing_is_lost_and_nothing_comes_twice(which: Which, after: bool) -> None:
    """Every call fails once; what was made is sent at once, so that a page done twice finds other states than the first time."""
    cut = 0
    while True:
        cut += 1
        world = World(14)
        for event in world.events[:8]:
            world.ends(world.told(event), 500)
        for event in world.events[8:10]:
            world.ends(world.told(event))
        cuts = Cuts(cut, after=after)
        store, queues = cuts.around(world.store), cuts.around(world.queues)
        asking, faulty = Redelivery(store, queues, world.clock, world.clock), RedeliveryRun(store, queues, world.clock)
        for act in (partial(asking.order, SHOP, HOOK, Wanted(NOW, None, which)), None, None, None):
            jobs = world.store.all(RedeliveryJob)
            try:
                act() if act is not None and not jobs else faulty.carry(SHOP, jobs[0].id) if jobs else None
            except (Unavailable, ServiceError):
                world.all_delivered()
        if not world.store.all(RedeliveryJob):
            assert world.deliveries("pending") == [] and world.consistent(), "it was never begun, and nothing is left of it"
            continue
        (job,) = world.store.all(RedeliveryJob)
        made = Counter(d.event_id for d in world.deliveries() if d.job_id == job.id)
        wanted = [e.id for e in world.events if which == "all" or e not in world.events[8:10]]
        assert made == Counter(wanted), f"cut {cut}"
        assert (job.status, job.looked, job.made, job.skipped) == ("done", 14, len(wanted), 14 - len(wanted)), f"cut {cut}"
        assert world.consistent()
        if cuts.calls < cut:
            break
    assert cut > 15


def test_somebody_asks_for_one_of_them_meanwhile() -> None:
    world = World(3)
    ended = [world.ends(world.told(event), 500) for event in world.events]
    job = world.order()
    real, done = world.store.commit, False

    def commit(changes: Sequence[Any], /) -> None:
        nonlocal done
        if not done and any(isinstance(c, Save) and isinstance(c.record, Delivery) and c.record.job_id for c in changes):
            done = True
            world.redelivery.redeliver(SHOP, ended[1].id)
        real(changes)

    world.store.commit = commit  # type: ignore[method-assign]
    assert (world.carried(job).made, world.carried(job).skipped) == (2, 1)
    assert Counter(d.event_id for d in world.deliveries("pending")) == Counter(event.id for event in world.events)


def test_all_deliveries_of_an_event_are_found_however_they_came_about() -> None:
    world = World(1)
    (event,) = world.events
    assert world.reads.of_event(SHOP, HOOK, event.id) == []
    first = world.ends(world.told(event), 500)
    second = world.ends(world.redelivery.redeliver(SHOP, first.id), 500)
    world.ends(world.redelivery.redeliver(SHOP, second.id), 500)
    world.ends(world.redelivery.redeliver(SHOP, first.id), 500)
    world.done()
    found = world.reads.of_event(SHOP, HOOK, event.id)
    assert found is not None and {d.id for d in found} == {d.id for d in world.deliveries()} and len(found) == 5
    assert found[0].id == delivery_id(event.id, HOOK) == first.id
    assert world.reads.delivery(SHOP, second.id).again_id == found[3].id
    assert world.reads.of_event(OTHER, HOOK, event.id) == []


def test_one_of_a_paused_endpoint_is_made_and_held() -> None:
    world = World(1)
    ended = world.ends(world.told(world.events[0]))
    world.change(paused=True)
    again = world.redelivery.redeliver(SHOP, ended.id)
    assert again.held and world.consistent()
