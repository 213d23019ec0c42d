"""First deliveries that no index shows: whichever message is lost, and whoever dies, the schedule finds them by their lookout."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.domain.webhooks.deliveries import Delivery, delivery_work, line_of
from chalicelib.domain.webhooks.leases import LEASE_MS
from chalicelib.domain.work import OutboxRow, Work, time_order
from chalicelib.usecases.base.message_chains import MOST, brought_by
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.due_search_time import GRACE_MS
from chalicelib.usecases.webhooks.due_sweep import DueSweep
from chalicelib.usecases.webhooks.late_deliveries import LONG_MS
from chalicelib.usecases.webhooks.lookouts import PERIOD_MS, lookout_work
from chalicelib.usecases.webhooks.relay import Relay
from tests.support.memory_store import Cuts
from tests.support.webhooks import SHOP
from tests.unit.webhooks.line import BAD, HOOK, OK
from tests.unit.webhooks.told import MINUTE, Told

LANE = line_of(SHOP, HOOK)
FOUND_MS = 150_000
"""How late a delivery may be found whose message was lost, with a schedule each minute."""


def test_a_first_delivery_is_in_no_index_and_its_endpoint_has_a_lookout() -> None:
    world = Told()
    world.tell(3)
    assert world.indexed() == [] and [len(parcel.events) for parcel in world.parcels()] == [3]
    until = world.clock.now - 1_000 + PERIOD_MS
    assert world.lookouts() == [lookout_work(LANE, until)]
    assert world.queues.wakes == [(HOOK, 0)]


def test_one_lookout_does_for_all_rows_of_its_period_and_the_next_period_has_another() -> None:
    world = Told()
    opened: list[Work] = []
    real = world.store.open
    world.store.open = lambda work: (opened.append(work), real(work))[1]  # type: ignore[func-returns-value,method-assign,misc]
    for _ in range(5):
        world.tell(2)
        world.clock.pass_ms(1_000)
    assert len(opened) == 1
    world.clock.pass_ms(PERIOD_MS)
    world.tell()
    assert len(opened) == len(world.lookouts()) == 2
    other = world.relay_on(world.store)
    other.tell(world.emit().id)
    assert len(opened) == 3 and opened[1] == opened[2], "another process opens the same one"


@pytest.mark.parametrize("at", [0, 1, PERIOD_MS // 2, PERIOD_MS - 1])
def test_a_delivery_whose_message_is_lost_is_found_in_time(at: int) -> None:
    for offset in range(0, MINUTE, 7_000):  # the schedule's minute and the period are strangers
        world = Told()
        world.clock.now += at - 1_000
        world.tell(2)
        made = world.clock.now
        world.queues.wakes.clear()
        world.clock.pass_ms(offset)
        while not world.queues.wakes:
            world.sweep.run()
            assert world.clock.now - made <= FOUND_MS
            world.clock.pass_ms(MINUTE)
        assert world.clock.now - made > GRACE_MS, "a message is given its time"
        assert set(world.queues.wakes) == {(HOOK, 0)} and world.take() == "done"
        world.minutes(2)
        assert world.lookouts() == [] and len(world.deliveries("delivered")) == 2


def test_what_was_sent_is_looked_for_once_and_nobody_is_woken() -> None:
    world = Told()
    world.tell(2)
    world.take()
    world.queues.wakes.clear()
    world.minutes(1)
    assert len(world.lookouts()) == 1
    world.minutes(1)
    assert world.lookouts() == [] and world.queues.wakes == []


def test_the_lookouts_of_an_endpoint_that_is_never_idle_end() -> None:
    world = Told()
    for _ in range(600):
        world.clock.pass_ms(1_000)
        world.take()
        world.tell()  # one delivery is always under way
        if world.clock.now % MINUTE < 1_000:
            world.queues.wakes.clear()
            world.sweep.run()
            assert world.queues.wakes == []
    assert len(world.lookouts()) <= 5


def test_it_is_kept_as_long_as_anything_is_there() -> None:
    world = Told()
    world.tell()
    for _ in range(10):
        world.queues.wakes.clear()
        world.minutes(1)
    assert world.queues.wakes == [(HOOK, 0)] and len(world.lookouts()) == 1


def test_an_attempt_that_failed_is_in_the_index() -> None:
    world = Told(BAD)
    world.tell()
    world.take()
    (waiting,) = world.deliveries("pending")
    assert world.indexed() == [delivery_work(waiting)]


def test_a_worker_that_died_with_its_batch_is_found() -> None:
    """Its message comes back too; here it is lost as well."""
    world = Told(OK)
    world.tell(2)

    def die() -> None:
        raise KeyboardInterrupt

    world.sender.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        world.take()
    world.queues.wakes.clear()
    world.minutes(2)
    assert (HOOK, 0) in world.queues.wakes
    world.clock.pass_ms(LEASE_MS)
    assert world.take() == "done"
    world.clock.pass_ms(6_000)
    world.take()
    assert len(world.deliveries("delivered")) == 2


def test_where_the_chain_of_messages_ends_deliveries_are_in_the_index() -> None:
    world = Told()
    with brought_by(MOST):
        world.tell()
    assert len(world.indexed()) == 1 and world.lookouts() == []


def test_what_another_process_made_and_did_not_live_to_look_after_is_looked_after() -> None:
    """Also where this one has them in the index itself. The endpoint fails: its deliveries go in no parcel."""
    for lookouts in (True, False):
        world = Told()
        world.change(failing_since=world.clock.now)
        row = world.emit()

        def down(work: Work) -> None:
            raise Unavailable("no answer")

        real, world.store.open = world.store.open, down  # type: ignore[method-assign]
        with pytest.raises(Unavailable):
            world.relay.tell(row.id)
        assert world.store.get(OutboxRow, id=row.id) is not None and world.lookouts() == []
        world.store.open = real  # type: ignore[method-assign]
        assert Relay(world.store, world.queues, world.clock, lookouts=lookouts).tell(row.id)
        assert len(world.lookouts()) == 1 and world.indexed() == []


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_with_every_message_lost_all_is_sent_by_the_schedules(after: bool) -> None:
    cut = 0
    while True:
        cut += 1
        world = Told()
        row = world.emit(2)
        cuts = Cuts(cut, after=after)
        faulty = cuts.around(world.store)
        relay, sweep = world.relay_on(faulty, cuts.around(world.queues)), DueSweep(faulty, cuts.around(world.queues), world.clock)
        for act in (lambda relay=relay, row=row: relay.tell(row.id), *[relay.sweep, sweep.run] * 6):
            with suppress(Unavailable, Failures):
                act()
            world.clock.pass_ms(MINUTE // 2)
            if world.queues.wakes and act == sweep.run:
                world.take()
            world.queues.wakes.clear()
        assert len(world.deliveries("delivered")) == 2, f"cut {cut}"
        world.minutes(3)
        assert world.store.work == set() and world.store.all(OutboxRow) == []
        if cuts.calls < cut:
            break
    assert cut > 30


def test_a_delivery_at_the_very_end_of_a_period_is_in_it() -> None:
    """By another relay's clock, which is somewhat ahead: its due time is beyond the lookout's."""
    world = Told()
    world.clock.now += PERIOD_MS - 1_001
    world.tell()
    (parcel,) = world.parcels()
    world.store.work.remove(parcel.work)
    world.store.work.add(replace(parcel, at=world.clock.now + 250).work, by_time=False)
    world.queues.wakes.clear()
    world.minutes(2)
    assert (HOOK, 0) in world.queues.wakes


def test_more_than_a_run_can_look_after_is_looked_after_by_the_next_ones(caplog: pytest.LogCaptureFixture) -> None:
    world = Told()
    until = world.clock.now - 1_000 + PERIOD_MS
    for n in range(300):
        world.store.open(lookout_work(line_of(SHOP, f"wh_x{n}"), until))
    real = world.store.open_work

    def slow(*args: Any, **how: Any) -> Any:
        world.clock.pass_ms(40)
        return real(*args, **how)

    world.store.open_work = slow  # type: ignore[method-assign]
    left = []
    for _ in range(6):
        world.clock.pass_ms(MINUTE)
        world.sweep.run()
        left.append(len(world.lookouts()))
    assert left[-1] == 0 and left[1] > 0 and "were not kept" in caplog.text and "ALARM" not in caplog.text
    assert world.store.all(Delivery) == [] and time_order(until) < time_order(world.clock.now)


def test_lookouts_that_wait_too_long_for_their_turn_are_an_alarm(caplog: pytest.LogCaptureFixture) -> None:
    world = Told()
    for n in range(300):
        world.store.open(lookout_work(line_of(SHOP, f"wh_x{n}"), world.clock.now - LONG_MS - 1))
    real = world.store.open_work

    def slow(*args: Any, **how: Any) -> Any:
        world.clock.pass_ms(100)
        return real(*args, **how)

    world.store.open_work = slow  # type: ignore[method-assign]
    world.sweep.run()
    assert "ALARM the sweep of webhook deliveries did not come to the end" in caplog.text


def test_a_function_that_opens_parcels_has_ended_when_the_schedule_looks_for_them() -> None:
    """It keeps the lookout first: were it to take longer, the lookout would be over before the parcel is there."""
    functions = json.loads((Path(__file__).parents[3] / ".chalice/config.json").read_text())["lambda_functions"]
    for name in ("relay", "housekeeping"):
        assert functions[name]["lambda_timeout"] * 1_000 <= GRACE_MS


def test_the_lookout_is_there_before_the_parcel() -> None:
    world = Told()
    row = world.emit()
    there = []
    real = world.store.commit

    def commit(changes: Any) -> None:
        there.append(len(world.lookouts()))
        real(changes)

    world.store.commit = commit  # type: ignore[method-assign]
    assert world.relay.tell(row.id) and there == [1]
