"""The outbox relay: everything told, nothing twice, whatever fails in between."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chalicelib.domain.webhooks.deliveries import Attempt, Delivery, delivery_work
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord
from chalicelib.domain.work import Command, OutboxRow, outbox_work
from chalicelib.usecases.ports.changes import Close, Emit, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.notices import Notices
from chalicelib.usecases.webhooks.relay import Relay, Swept
from tests.support.memory_store import Cuts, HandClock, MemoryQueues, MemoryStore
from tests.support.webhooks import NOW, OTHER, SHOP, a_row, an_endpoint, an_event

PAY = Command("payouts", "live:ethereum", {"id": "wd_1"})


class World:
    """Four endpoints: all events, one event, disabled, another merchant's."""

    def __init__(self) -> None:
        self.store, self.queues, self.clock = MemoryStore(), MemoryQueues(), HandClock(NOW + 5)
        self.relay = Relay(self.store, self.queues, self.clock)
        self.store.commit(
            [
                Save(an_endpoint("wh_all")),
                Save(an_endpoint("wh_one", events=("invoice.completed", "balance.updated"))),
                Save(an_endpoint("wh_other", tenant=OTHER)),
            ]
        )
        off = an_endpoint("wh_off")
        self.store.commit([Save(off)])
        self.store.commit([Save(off.disabled("by hand", NOW))])

    def emit(self, row: OutboxRow) -> OutboxRow:
        self.store.commit([Emit(row)])
        return row

    def told(self) -> set[tuple[str, str, str]]:
        return {(d.tenant, d.event_id, d.endpoint_id) for d in self.store.all(Delivery)}

    def woken(self) -> list[str]:
        """Endpoints, in the order of their messages."""
        return [endpoint for endpoint, _ in self.queues.wakes]

    def open(self, kind: str) -> set[Any]:
        return {work for work in self.store.work if work.kind == kind}


def test_a_row_becomes_events_deliveries_and_commands() -> None:
    world = World()
    row = world.emit(a_row(an_event(), an_event("evt_2", "invoice.created"), commands=(PAY,)))
    assert world.relay.tell(row.id) is True
    assert world.told() == {(SHOP, "evt_1", "wh_all"), (SHOP, "evt_1", "wh_one"), (SHOP, "evt_2", "wh_all")}
    deliveries = world.store.all(Delivery)
    assert sorted(world.queues.wakes) == [("wh_all", 0), ("wh_one", 0)], "one message an endpoint, whatever it is to be sent"
    assert world.queues.failing == world.queues.held == [False, False]
    assert world.open("delivery") == {delivery_work(d) for d in deliveries}
    assert {(d.status, d.created_at, d.due_at) for d in deliveries} == {("pending", NOW + 5, NOW + 5)}
    assert world.queues.commands == [PAY]
    assert world.store.all(OutboxRow) == []
    assert world.open("outbox") == set()


def test_the_event_is_stored_as_it_will_be_sent() -> None:
    world = World()
    world.relay.tell(world.emit(a_row(an_event(data={"amount": "0.1", "name": "Zürich"}))).id)
    (record,) = world.store.all(EventRecord)
    assert record.body == (
        '{"id":"evt_1","event":"invoice.completed","data":{"amount":"0.1","name":"Zürich"},'
        '"timestamp":"2026-01-02T03:04:05.006Z","sequence":1}'
    )
    assert (record.tenant, record.name, record.object_id, record.sequence, record.at) == (
        SHOP,
        "invoice.completed",
        "inv_1",
        1,
        NOW,
    )


def test_an_event_of_a_realm_that_is_ahead_is_forgotten_when_its_deliveries_are() -> None:
    world = World()
    world.relay.tell(world.emit(a_row(an_event(at=NOW + 366 * 86_400_000))).id)
    assert {r.ttl for r in (*world.store.all(EventRecord), *world.store.all(Delivery))} == {NOW // 1000 + KEEP_SECONDS}


def test_events_of_nobody_who_listens_are_kept() -> None:
    world = World()
    quiet = an_event("evt_3", tenant=OTHER)
    world.store.records = {k: v for k, v in world.store.records.items() if k[1:] != (OTHER, "wh_other")}
    assert world.relay.tell(world.emit(a_row(quiet)).id) is True
    assert [r.id for r in world.store.all(EventRecord)] == ["evt_3"]
    assert world.told() == set()


def test_a_row_with_commands_only() -> None:
    world = World()
    assert world.relay.tell(world.emit(a_row(commands=(PAY, PAY))).id) is True
    assert world.queues.commands == [PAY, PAY]
    assert world.store.work == set()


def test_telling_twice_makes_nothing_new() -> None:
    world = World()
    row = world.emit(a_row(an_event()))
    assert world.relay.tell(row.id) is True
    before = (dict(world.store.records), set(world.store.work), list(world.queues.wakes))
    assert world.relay.tell(row.id) is False
    assert (world.store.records, world.store.work, world.queues.wakes) == before
    assert world.relay.tell("out_never") is False


def test_a_row_told_again_after_its_deliveries_went_does_not_send_them_again() -> None:
    world = World()
    row = world.emit(a_row(an_event()))
    world.relay.tell(row.id)
    for delivery in world.store.all(Delivery):
        done = delivery.cancelled("tested", NOW)
        world.store.commit([Save(done), Close(delivery_work(delivery))])
    world.queues.wakes.clear()
    world.emit(row)  # as if the commit that removes the row had been lost
    assert world.relay.tell(row.id) is True
    assert world.queues.wakes == []
    assert world.open("delivery") == set()
    assert {d.status for d in world.store.all(Delivery)} == {"cancelled"}


def test_a_row_told_again_does_not_hurry_a_delivery_that_waits_for_its_retry() -> None:
    world = World()
    row = world.emit(a_row(an_event()))
    world.relay.tell(row.id)
    first = world.store.all(Delivery)[0]
    waiting = first.after(Attempt(NOW, 500, 5), NOW, 0.0)
    world.store.commit([Save(waiting), Close(delivery_work(first)), Open(delivery_work(waiting))])
    world.queues.wakes.clear()
    world.emit(row)
    assert world.relay.tell(row.id) is True
    assert world.woken() == [({"wh_all", "wh_one"} - {first.endpoint_id}).pop()]


def test_an_endpoint_that_came_between_two_tellings_is_told_as_well() -> None:
    world = World()
    row = world.emit(a_row(an_event()))
    world.queues.down = True
    with pytest.raises(Unavailable):
        world.relay.tell(row.id)
    world.store.commit([Save(an_endpoint("wh_new"))])
    world.queues.down = False
    assert world.relay.tell(row.id) is True
    assert {endpoint for _, _, endpoint in world.told()} == {"wh_all", "wh_one", "wh_new"}
    assert set(world.woken()) == {"wh_all", "wh_one", "wh_new"}


def test_what_a_paused_endpoint_is_to_be_told_is_made_and_what_a_disabled_one_would_be_is_not() -> None:
    world = World()
    world.store.commit([Save(replace(an_endpoint("wh_paused"), paused=True))])
    world.relay.tell(world.emit(a_row(an_event())).id)
    assert {endpoint for _, _, endpoint in world.told()} == {"wh_all", "wh_one", "wh_paused"}


def test_an_endpoint_that_fails_is_asked_for_in_the_queue_of_those_that_do() -> None:
    world = World()
    world.store.commit([Save(replace(an_endpoint("wh_bad"), failing_since=NOW))])
    world.relay.tell(world.emit(a_row(an_event())).id)
    assert dict(zip(world.woken(), world.queues.failing, strict=True)) == {"wh_all": False, "wh_one": False, "wh_bad": True}


def test_a_notice_about_an_endpoint_is_told_to_the_others() -> None:
    world = World()
    notice = replace(an_event("evt_n", "webhook.failing"), object_id="wh_all")
    world.store.commit([Save(an_endpoint("wh_ops", events=("webhook.failing",)))])
    world.relay.tell(world.emit(a_row(notice)).id)
    assert world.told() == {(SHOP, "evt_n", "wh_ops")}
    assert [record.id for record in world.store.all(EventRecord)] == ["evt_n"]


def test_two_at_once_make_one_of_each() -> None:
    world = World()
    row = world.emit(a_row(an_event(), commands=(PAY,)))
    outcomes: list[bool] = []

    class Slow(MemoryStore):
        """Before the n-th write of this worker, the other one does the whole row."""

        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

        def written(self) -> None:
            self.at -= 1
            if self.at == 0:
                outcomes.append(world.relay.tell(row.id))

        def commit(self, changes: Any, /) -> None:
            self.written()
            super().commit(changes)

        def put_all(self, records: Any, /) -> None:
            self.written()
            super().put_all(records)

        def remove(self, kind: type[Any], /, **key: str) -> bool:
            self.written()
            return super().remove(kind, **key)

    for at in (1, 2, 3):
        world = World()
        world.emit(row)
        outcomes.clear()
        slow = Slow(at)
        slow.records, slow.work = world.store.records, world.store.work
        outcomes.append(Relay(slow, world.queues, world.clock).tell(row.id))
        assert outcomes == [True, False]
        assert len(world.store.all(Delivery)) == 2
        assert len(world.open("delivery")) == 2
        assert world.open("outbox") == set()


def test_twenty_endpoints_and_several_events_fit_into_transactions() -> None:
    world = World()
    for n in range(18):
        world.store.commit([Save(an_endpoint(f"wh_x{n:02}"))])
    row = world.emit(a_row(*(an_event(f"evt_{n}") for n in range(5))))
    world.relay.tell(row.id)
    assert len(world.told()) == 5 * 20
    assert sorted(world.woken()) == sorted({endpoint for _, _, endpoint in world.told()})


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_everything_is_told_once(after: bool) -> None:
    """Every store and queue call fails once, before or after it took effect; then the sweep runs until the row is gone."""
    cut = 0
    while True:
        cut += 1
        world = World()
        for n in range(6):
            world.store.commit([Save(an_endpoint(f"wh_x{n}"))])
        row = world.emit(a_row(an_event(), an_event("evt_2", "balance.updated"), commands=(PAY,)))
        cuts = Cuts(cut, after=after)
        faulty = Relay(cuts.around(world.store), cuts.around(world.queues), world.clock)
        world.clock.pass_ms(20_000)
        for act in (partial(faulty.tell, row.id), faulty.sweep, faulty.sweep):
            try:
                act()
            except Unavailable:
                continue
        wanted = {"wh_all", "wh_one", *(f"wh_x{n}" for n in range(6))}
        assert world.told() == {(SHOP, event, endpoint) for event in ("evt_1", "evt_2") for endpoint in wanted}, f"cut {cut}"
        assert set(world.woken()) == wanted
        assert world.open("delivery") == {delivery_work(d) for d in world.store.all(Delivery)}
        assert len(world.store.all(EventRecord)) == 2
        assert PAY in world.queues.commands
        assert world.store.all(OutboxRow) == []
        assert world.open("outbox") == set()
        if cuts.calls < cut:
            break
    assert cut > 20


def test_the_sweep_tells_old_rows_only() -> None:
    world = World()
    world.emit(a_row(an_event(), id="out_old", at=NOW))
    world.emit(a_row(an_event("evt_2"), id="out_new", at=NOW + 1))
    world.clock.now = NOW + 15_000
    assert world.relay.sweep() == Swept(told=1, failed=0)
    assert [row.id for row in world.store.all(OutboxRow)] == ["out_new"]
    assert world.open("outbox") == {outbox_work(row) for row in world.store.all(OutboxRow)}


def test_a_row_that_can_not_be_told_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for n in range(40):  # in every lane, before and behind good ones
        world.emit(a_row(an_event(f"evt_bad{n}", data={"usd": float("nan")}), id=f"out_bad{n}", at=NOW + 2 * n))
        world.emit(a_row(an_event(f"evt_good{n}"), id=f"out_good{n}", at=NOW + 2 * n + 1))
    world.clock.pass_ms(60_000)
    assert world.relay.sweep() == Swept(told=40, failed=40)
    assert {row.id for row in world.store.all(OutboxRow)} == {f"out_bad{n}" for n in range(40)}
    assert caplog.text.count("metric=relay_failed outbox row out_bad") == 40
    assert len(world.open("outbox")) == 40
    with pytest.raises(ValueError, match="JSON compliant"):
        world.relay.tell("out_bad0")


@pytest.mark.parametrize(
    ("names", "commands"),
    [
        (("invoice.completed",), ()),
        (("webhook.failing", "withdrawal.completed"), ()),
        (("webhook.disabled",), (PAY,)),
        ((), (PAY,)),
        (("webhooks.failing",), ()),
    ],
)
def test_a_notice_that_tells_of_more_than_webhooks_is_refused_and_stays_open(
    caplog: pytest.LogCaptureFixture, names: tuple[str, ...], commands: tuple[Command, ...]
) -> None:
    """What sends webhooks may write rows of such ids alone: it can not make anybody believe in a payment, or order one."""
    world = World()
    forged = a_row(*(an_event(f"evt_{n}", name) for n, name in enumerate(names)), id="note_1", commands=commands)
    world.emit(forged)
    with pytest.raises(ValueError, match="outbox row note_1 is not one that its place may hold"):
        world.relay.tell("note_1")
    world.clock.pass_ms(60_000)
    assert world.relay.sweep() == Swept(told=0, failed=1)
    assert "metric=relay_failed outbox row note_1" in caplog.text
    assert (world.store.all(EventRecord), world.told(), world.queues.commands, world.woken()) == ([], set(), [], [])
    assert world.store.all(OutboxRow) == [forged] and world.open("outbox") == {outbox_work(forged)}


def test_a_row_that_calls_itself_another_is_refused_and_the_other_stays() -> None:
    world = World()
    true = world.emit(a_row(an_event(), commands=(PAY,)))
    forged = a_row(an_event("evt_2"), id="out_1")
    world.store.records[OutboxRow, "note_1"] = forged
    with pytest.raises(ValueError, match="outbox row note_1 is not one that its place may hold"):
        world.relay.tell("note_1")
    assert world.store.get(OutboxRow, id="out_1") == true and world.open("outbox") == {outbox_work(true)}
    assert (world.store.all(EventRecord), world.queues.commands) == ([], [])


def test_a_notice_is_told() -> None:
    world = World()
    _, change = Notices(lambda _: world.clock).turned_off(an_endpoint("wh_one"), "by hand", NOW)
    assert isinstance(change, Emit) and change.row.id.startswith("note_")
    assert world.relay.tell(world.emit(change.row).id) is True
    assert [record.name for record in world.store.all(EventRecord)] == ["webhook.disabled"]
    assert {endpoint for _, _, endpoint in world.told()} == {"wh_all"}


def test_the_payment_of_a_row_whose_event_can_not_be_told_is_asked_for() -> None:
    world = World()
    world.emit(a_row(an_event(data={"usd": float("nan")}), commands=(PAY,)))
    with pytest.raises(ValueError, match="JSON compliant"):
        world.relay.tell("out_1")
    assert world.queues.commands == [PAY]


def test_the_body_is_json_of_the_event() -> None:
    world = World()
    world.relay.tell(world.emit(a_row(an_event())).id)
    (record,) = world.store.all(EventRecord)
    assert set(json.loads(record.body)) == {"id", "event", "data", "timestamp", "sequence"}
