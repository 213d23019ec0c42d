"""First deliveries under one obligation: sent whole, or unpacked into deliveries of their own; nothing lost, whoever dies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, delivery_id, delivery_work, unsent
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.leases import BATCH, LEASE_MS
from chalicelib.domain.webhooks.parcels import Parcel, is_parcel, parcel_of, parcels_of
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.base.message_chains import MOST, brought_by
from chalicelib.usecases.ports.changes import Close, Conflict, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_attempts import Answer, Deliveries
from chalicelib.usecases.webhooks.leases import Leases
from chalicelib.usecases.webhooks.relay import Relay
from tests.support.memory_store import Cuts
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, SHOP, an_endpoint, an_event
from tests.unit.webhooks.line import BAD, HOOK, OK
from tests.unit.webhooks.told import MINUTE, Told


class Died(BaseException):
    """The function's process is gone."""


def statuses(world: Told) -> list[str]:
    return sorted(delivery.status for delivery in world.deliveries())


def delivered(world: Told) -> set[str]:
    return {one.event_id for one in world.deliveries("delivered")}


def nothing_is_open(world: Told) -> bool:
    return not [work for work in world.store.work if work.kind != "lookout"] and world.store.all(OutboxRow) == []


def follow(world: Told, minutes: int = 20) -> None:
    """Everything that messages and schedules bring until it is well."""
    for _ in range(minutes):
        world.queues.wakes.clear()
        world.clock.pass_ms(MINUTE)
        for _ in range(2):
            with suppress(Unavailable, Conflict):
                world.relay.sweep()
            with suppress(Unavailable, Conflict):
                world.sweep.run()
        if world.queues.wakes:
            world.take(held=any(world.queues.held))


# -- what a parcel is


def test_a_parcel_is_its_work_and_is_read_from_it() -> None:
    parcel = Parcel(SHOP, HOOK, NOW, ("evt_1", "evt_2"))
    assert is_parcel(parcel.work.id) and parcel_of(SHOP, HOOK, parcel.work.id) == parcel
    assert parcel.delivery_ids == (delivery_id("evt_1", HOOK), delivery_id("evt_2", HOOK))
    assert not is_parcel(delivery_work(delivery_for(an_event(), an_endpoint(HOOK), NOW)).id)


def test_parcels_have_one_time_another_object_for_each_event_and_no_more_than_are_sent_at_once() -> None:
    def of(n: int, object: str, at: int) -> tuple[Delivery, str]:
        return unsent(an_event(f"evt_{n:02}"), HOOK, at), object

    many = [of(n, f"inv_{n}", NOW) for n in range(BATCH + 3)]
    assert [len(parcel.events) for parcel in parcels_of(many)] == [BATCH, 3]
    same = [of(1, "inv_1", NOW), of(2, "inv_1", NOW), of(3, "inv_2", NOW)]
    assert [parcel.events for parcel in parcels_of(same)] == [("evt_01",), ("evt_02", "evt_03")]
    later = [of(2, "inv_2", NOW + 1), of(1, "inv_1", NOW)]
    assert [(parcel.at, parcel.events) for parcel in parcels_of(later)] == [(NOW, ("evt_01",)), (NOW + 1, ("evt_02",))]
    assert len(Parcel(SHOP, "wh_" + "x" * 26, NOW, tuple(f"evt_{n:026d}" for n in range(BATCH))).work.id) < 500


# -- the relay


def test_a_row_goes_as_it_becomes_a_parcel() -> None:
    world = Told()
    row = world.emit(3)
    cuts = Cuts()
    assert world.relay_on(cuts.around(world.store)).tell(row.id)
    assert cuts.calls == 5, "the row, its events, who listens, the lookout, the parcel"
    (parcel,) = world.parcels()
    assert parcel.events == tuple(event.id for event in row.events) and world.deliveries() == []
    assert world.store.all(OutboxRow) == [] and world.queues.wakes == [(HOOK, 0)]
    assert not world.relay.tell(row.id) and len(world.parcels()) == 1


@pytest.mark.parametrize("why", ["failing", "paused", "no lookouts", "the end of a chain"])
def test_what_will_wait_is_stored_as_deliveries_at_once(why: str) -> None:
    world = Told()
    if why == "failing":
        world.change(failing_since=NOW)
    if why == "paused":
        world.change(paused=True)
    relay = Relay(world.store, world.queues, world.clock, lookouts=why != "no lookouts")
    with brought_by(MOST if why == "the end of a chain" else 0):
        assert relay.tell(world.emit(2).id)
    assert world.parcels() == [] and statuses(world) == ["pending", "pending"] and world.consistent()


def test_two_relays_at_once_open_a_parcel_once() -> None:
    world = Told()
    row = world.emit(2)
    real, other = world.store.commit, world.relay_on(world.store)
    outcomes = []

    def commit(changes: Any) -> None:
        world.store.commit = real  # type: ignore[method-assign]
        outcomes.append(other.tell(row.id))
        real(changes)

    world.store.commit = commit  # type: ignore[method-assign]
    assert not world.relay.tell(row.id)
    assert outcomes == [True] and len(world.parcels()) == 1
    assert world.take() == "done" and len(world.sender.sent) == 2


def test_a_row_of_more_parcels_than_a_transaction_takes_is_told_all_the_same() -> None:
    world = Told()
    world.tell_of(*(("inv_1", n) for n in range(1, 91)))
    assert world.parcels() == [] and len(world.deliveries("pending")) == 90 and world.store.all(OutboxRow) == []


def test_a_message_that_is_refused_is_the_lookouts_to_replace() -> None:
    world = Told()
    world.queues.down = True
    world.tell(2)
    assert world.store.all(OutboxRow) == []
    world.queues.down = False
    follow(world, 3)
    assert len(delivered(world)) == 2


# -- sending


def test_a_parcel_is_sent_and_recorded_in_four_calls() -> None:
    world = Told()
    world.tell(3)
    cuts = Cuts()
    world.turns = working(world, cuts)
    assert world.take() == "done"
    assert cuts.calls == 4, "what is due, the batch, the lease, and what came of it"
    assert [(one.status, len(one.attempts), one.version) for one in world.deliveries()] == [("delivered", 1, 1)] * 3
    assert nothing_is_open(world) and world.turn.until == 0 and world.turn.hand == ()


def working(world: Told, cuts: Cuts) -> Leases:
    """Another process, whose calls may be cut."""
    store, queues = cuts.around(world.store), cuts.around(world.queues)
    deliveries = Deliveries(store, world.clock, world.sender, queues, lambda: 0.0)
    return Leases(store, queues, world.clock, deliveries, PlainSeals(), lambda jobs: [job() for job in jobs])


def test_what_fails_of_it_is_retried_by_itself_at_the_published_time() -> None:
    world = Told(OK, BAD, OK, OK)
    world.tell(3)
    assert world.take() == "done"
    (waiting,) = world.deliveries("pending")
    assert len(delivered(world)) == 2 and world.parcels() == [] and world.consistent()
    assert waiting.due_at == world.clock.now + 5_000 and (HOOK, 5) in world.queues.wakes
    world.clock.pass_ms(5_000)
    assert world.take() == "done" and len(delivered(world)) == 3
    assert len(world.store.get(Delivery, tenant=SHOP, id=waiting.id).attempts) == 2


def test_all_of_it_may_fail() -> None:
    world = Told(BAD)
    world.tell(3)
    assert world.take() == "done"
    assert statuses(world) == ["pending"] * 3 and world.parcels() == [] and world.consistent()
    assert world.turn.failures == 3 and world.turn.blockers is not None


def test_a_410_turns_the_endpoint_off_and_unpacks_what_is_left() -> None:
    world = Told(Answer(410, b"", 1))
    world.tell()
    world.tell()
    assert world.take() == "done" and not world.endpoint.enabled
    world.take()
    assert statuses(world) == ["cancelled", "cancelled"] and nothing_is_open_but_notices(world)


def nothing_is_open_but_notices(world: Told) -> bool:
    return not [work for work in world.store.work if work.kind not in ("lookout", "outbox")]


def test_a_wake_up_flag_that_comes_while_it_is_sent_is_heeded() -> None:
    world = Told()
    world.tell(2)

    def meanwhile() -> None:
        world.tell()
        assert world.take() == "taken"

    world.sender.meanwhile = meanwhile
    assert world.take() == "done"
    assert len(delivered(world)) == 3 and nothing_is_open(world) and world.turn.until == 0


def test_a_batch_has_no_more_than_are_sent_at_once() -> None:
    world = Told()
    for _ in range(3):
        world.tell(4)
    hands = []
    real = world.store.commit

    def commit(changes: Any) -> None:
        taken = [change.record for change in changes if isinstance(change, Save) and hasattr(change.record, "hand")]
        hands.extend(len(turn.hand) for turn in taken if turn.hand)
        real(changes)

    world.store.commit = commit  # type: ignore[method-assign]
    assert world.take() == "done"
    assert hands == [2, 1] and len(delivered(world)) == 12


# -- unpacking


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (lambda world: world.change(enabled=False), "cancelled", "the endpoint is disabled"),
        (lambda world: world.webhooks.delete(SHOP, HOOK), "cancelled", "the endpoint was deleted"),
        (lambda world: world.change(paused=True), "pending", None),
    ],
    ids=["disabled", "deleted", "paused"],
)
def test_an_endpoint_that_takes_nothing_has_what_it_missed_in_its_log(
    change: Callable[[Told], object], status: str, reason: str | None
) -> None:
    world = Told()
    world.tell(2)
    change(world)
    world.take()
    assert {(one.status, one.reason) for one in world.deliveries()} == {(status, reason)}
    assert world.sender.sent == [] and world.parcels() == []
    if status == "pending":
        assert all(one.held for one in world.deliveries())
        world.change(paused=False)
        assert world.take(held=True) == "done" and len(delivered(world)) == 2


def test_what_comes_while_the_receiver_rests_is_listed_and_sent_when_the_rest_is_over() -> None:
    world = Told(Answer(503, b"", 1, retry_after="60"), OK)
    world.tell()
    world.take()
    world.tell(2)
    assert world.take() == "resting"
    assert world.parcels() == [] and statuses(world) == ["pending"] * 3 and world.consistent()
    world.clock.pass_ms(61_000)
    assert world.take() == "done" and len(delivered(world)) == 3


def test_a_later_event_of_an_object_is_sent_behind_the_earlier_one() -> None:
    world = Told()
    world.tell_of(("inv_1", 1), ("tx_1", 1))
    world.tell_of(("inv_1", 2), ("tx_2", 1))
    world.tell_of(("tx_2", 2))
    assert world.take() == "done"
    order = [
        (event.object_id, event.sequence)
        for id in world.sender.sent
        for event in [world.store.get(EventRecord, tenant=SHOP, id=id)]
    ]
    for object in ("inv_1", "tx_2"):
        assert [number for of, number in order if of == object] == [1, 2]
    assert nothing_is_open(world)


def test_a_parcel_behind_a_failure_is_unpacked_and_what_need_not_wait_goes_on() -> None:
    world = Told(BAD, OK)
    world.tell_of(("inv_1", 1))
    world.take()
    world.tell_of(("inv_1", 2), ("tx_1", 1))
    world.tell_of(("tx_1", 2))
    world.take()
    assert sorted(one.event_id for one in world.deliveries("delivered")) == ["evt_2_1", "evt_3_0"]
    (parked,) = [one for one in world.deliveries("pending") if one.behind]
    assert parked.event_id == "evt_2_0" and world.consistent()
    world.clock.pass_ms(5_000)
    world.take()
    assert len(delivered(world)) == 4 and nothing_is_open(world)


def test_more_than_a_look_reads_keeps_the_order_of_objects() -> None:
    world = Told()
    for n in range(1, 3 * BATCH):
        world.tell_of(("inv_1", n), (f"tx_{n}", 1))
    follow(world, 3)
    numbers = [world.store.get(EventRecord, tenant=SHOP, id=id) for id in world.sender.sent]
    assert [event.sequence for event in numbers if event.object_id == "inv_1"] == list(range(1, 3 * BATCH))
    assert nothing_is_open(world) and len(world.sender.sent) == 2 * (3 * BATCH - 1)


def test_an_event_that_is_kept_no_more_is_said_to_be_lost(caplog: pytest.LogCaptureFixture) -> None:
    world = Told()
    world.tell(2)
    del world.store.records[EventRecord, SHOP, "evt_2_0"]
    world.take()
    assert delivered(world) == {"evt_2_1"} and "metric=delivery_lost" in caplog.text and nothing_is_open(world)


def again(world: Told, event_id: str) -> Delivery:
    """A job of redelivery makes the event's first delivery."""
    event = world.store.get(EventRecord, tenant=SHOP, id=event_id)
    made = delivery_for(event, world.endpoint, world.clock.now)
    world.store.commit([Save(made), Open(delivery_work(made))])
    return made


def test_what_a_redelivery_made_before_is_sent_once() -> None:
    world = Told()
    world.tell(2)
    again(world, "evt_2_0")
    assert world.take() == "done"
    assert sorted(world.sender.sent) == ["evt_2_0", "evt_2_1"] and nothing_is_open(world) and len(delivered(world)) == 2


def test_what_a_redelivery_makes_meanwhile_has_the_attempt_in_its_log() -> None:
    world = Told()
    world.tell(2)
    world.sender.meanwhile = lambda: again(world, "evt_2_0")
    assert world.take() == "done"
    assert sorted(world.sender.sent) == ["evt_2_0", "evt_2_1"], "and is not sent twice"
    assert [len(one.attempts) for one in world.deliveries("delivered")] == [1, 1] and nothing_is_open(world)


# -- whoever dies


def dies(world: Told, event_id: str) -> None:
    real = world.sender.send

    def send(url: str, headers: Any, body: bytes) -> Answer:
        answer = real(url, headers, body)
        if headers["webhook-id"] == event_id:
            world.sender.send = real  # type: ignore[method-assign]
            raise Died
        return answer

    world.sender.send = send  # type: ignore[method-assign]


def test_a_worker_that_dies_has_each_attempt_in_the_log_and_each_is_sent_again() -> None:
    world = Told(BAD, OK)
    world.tell(3)
    dies(world, "evt_2_1")
    with pytest.raises(Died):
        world.take()
    assert len(world.parcels()) == 1
    world.clock.pass_ms(LEASE_MS)
    world.take()
    logs = {one.event_id: [attempt.error or attempt.status for attempt in one.attempts] for one in world.deliveries()}
    interrupted = "the attempt was interrupted"
    assert logs["evt_2_1"] == [interrupted] and logs["evt_2_2"] == [interrupted] and logs["evt_2_0"][0] == 500
    assert world.parcels() == [] and world.turn.hand == ()
    follow(world)
    assert len(delivered(world)) == 3 and nothing_is_open(world)


def test_a_late_worker_whose_successor_recorded_its_attempts_changes_nothing() -> None:
    world = Told()
    world.tell(2)

    def meanwhile() -> None:
        world.clock.pass_ms(LEASE_MS + 1)
        world.take()

    world.sender.meanwhile = meanwhile
    world.take()
    follow(world)
    assert len(delivered(world)) == 2 and nothing_is_open(world)
    assert all(one.attempts[0].error == "the attempt was interrupted" for one in world.deliveries())


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
@pytest.mark.parametrize("answers", [(OK,), (BAD, OK)], ids=["accepted", "one fails"])
@pytest.mark.parametrize("change", ["none", "pause", "redelivery"])
def test_cut_at_any_call_of_its_sending_nothing_is_lost(after: bool, answers: tuple[Answer, ...], change: str) -> None:
    cut = 0
    while True:
        cut += 1
        world = Told(*answers)
        world.tell(2)
        world.tell_of(("inv_2_1", 2), ("tx_1", 1))
        if change == "pause":
            world.change(paused=True)
        if change == "redelivery":
            again(world, "evt_2_1")
        cuts = Cuts(cut, after=after)
        leases = working(world, cuts)
        with suppress(Unavailable, Conflict):
            leases.take(SHOP, HOOK)
        if change == "pause":
            world.change(paused=False)
        follow(world)
        assert len(delivered(world)) == 4 and nothing_is_open(world), f"cut {cut}"
        assert world.turn.until == 0 or world.clock.now > world.turn.until
        if cuts.calls < cut:
            break
    assert cut > 4


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_of_its_successor_nothing_is_lost(after: bool) -> None:
    cut = 0
    while True:
        cut += 1
        world = Told()
        world.tell(2)
        dies(world, "evt_2_1")
        with suppress(Died):
            world.take()
        world.clock.pass_ms(LEASE_MS)
        cuts = Cuts(cut, after=after)
        with suppress(Unavailable, Conflict):
            working(world, cuts).take(SHOP, HOOK)
        follow(world)
        assert len(delivered(world)) == 2 and nothing_is_open(world), f"cut {cut}"
        assert all(one.attempts[0].error == "the attempt was interrupted" for one in world.deliveries())
        if cuts.calls < cut:
            break
    assert cut > 6


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_of_the_relay_it_is_told_once(after: bool) -> None:
    cut = 0
    while True:
        cut += 1
        world = Told()
        row = world.emit(2)
        cuts = Cuts(cut, after=after)
        with suppress(Unavailable, Conflict):
            world.relay_on(cuts.around(world.store), cuts.around(world.queues)).tell(row.id)
        assert (world.store.get(OutboxRow, id=row.id) is None) == (len(world.parcels()) == 1), f"cut {cut}"
        follow(world)
        assert sorted(world.sender.sent) == ["evt_2_0", "evt_2_1"] and nothing_is_open(world), f"cut {cut}"
        if cuts.calls < cut:
            break
    assert cut > 6


def test_a_parcel_opened_again_sends_nothing_again() -> None:
    """As where a version that stores deliveries told the row, and died before it removed it."""
    world = Told()
    world.tell(2)
    (parcel,) = world.parcels()
    world.take()
    world.store.open(parcel.work)
    world.take()
    assert len(world.sender.sent) == 2 and nothing_is_open(world)
    assert replace(parcel, at=parcel.at + 1).work not in world.store.work


def test_a_parcel_that_another_worker_unpacked_is_not_closed_twice() -> None:
    world = Told()
    world.tell(2)
    (parcel,) = world.parcels()

    def meanwhile() -> None:
        made = [replace(one, version=1) for one in parcel.deliveries(world.store.all(EventRecord))]
        world.store.commit([*(change for one in made for change in (Save(one), Open(delivery_work(one)))), Close(parcel.work)])

    world.sender.meanwhile = meanwhile
    assert world.take() == "done"
    assert [len(one.attempts) for one in world.deliveries("delivered")] == [1, 1] and nothing_is_open(world)
