"""Who is told of a row is read with it, and nobody is missed: who registers, leaves or comes back changes the count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.domain.ids import new_id
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint, event_record
from chalicelib.domain.work import OutboxRow, as_one_item, outbox_id, with_events_apart
from chalicelib.usecases.ports.changes import Delete, Emit
from chalicelib.usecases.webhooks.endpoints import Webhooks
from chalicelib.usecases.webhooks.listeners import Listeners
from chalicelib.usecases.webhooks.relay import Relay
from tests.support.memory_store import Cuts, HandClock, MemoryQueues, MemoryStore
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, OTHER, SHOP, a_row, an_event

URL = "https://shop.example/hook"


class World:
    def __init__(self) -> None:
        self.store, self.queues, self.clock = MemoryStore(), MemoryQueues(), HandClock(NOW)
        self.webhooks = Webhooks(self.store, self.queues, self.clock, PlainSeals())
        self.cuts = Cuts()
        self.listeners = Listeners(self.cuts.around(self.store))
        self.first = self.register()

    def register(self) -> str:
        self.clock.pass_ms(1)
        return self.webhooks.register(SHOP, URL, ["*"]).endpoint.id

    def row(self, *, apart: bool = True) -> OutboxRow:
        """A row as the store keeps it, with its events beside it."""
        event = replace(an_event(new_id("evt", NOW)), object_id=new_id("inv", NOW))
        row = as_one_item(a_row(event, id=outbox_id(new_id("out", NOW), [event])))
        self.store.commit([Emit(with_events_apart(row) if apart else row)])
        if apart:
            self.store.put_all([event_record(event, "2026-01-02T03:04:05.006Z", NOW)])
        return row

    def told(self, row: OutboxRow, tenant: str = SHOP) -> list[str] | None:
        found = self.listeners.with_row(row.id, tenant)  # type: ignore[arg-type]
        assert found.row is not None and found.row.id == row.id
        return None if found.endpoints is None else [endpoint.id for endpoint in found.endpoints]

    def calls(self, row: OutboxRow) -> int:
        before = self.cuts.calls
        self.told(row)
        return self.cuts.calls - before


def test_the_second_row_of_a_merchant_is_one_call() -> None:
    world = World()
    assert world.told(world.row()) == [world.first]
    assert world.calls(world.row()) == 1
    assert world.told(world.row()) == [world.first]


def test_one_that_is_registered_is_found_with_the_next_row_and_then_remembered() -> None:
    world = World()
    world.told(world.row())
    second = world.register()
    assert world.calls(world.row()) == 2
    assert world.told(world.row()) == [world.first, second] and world.calls(world.row()) == 1


def test_one_that_is_removed_is_told_no_more() -> None:
    world = World()
    second = world.register()
    world.told(world.row())
    world.webhooks.delete(SHOP, world.first)
    assert world.told(world.row()) == [second]
    world.webhooks.delete(SHOP, second)
    assert world.told(world.row()) == []
    third = world.register()
    assert world.told(world.row()) == [third]


def test_what_an_endpoint_is_is_read_each_time() -> None:
    world = World()
    world.told(world.row())
    world.webhooks.update(SHOP, world.first, status="paused")
    found = world.listeners.with_row(world.row().id, SHOP)
    assert found.endpoints is not None and found.endpoints[0].paused and world.calls(world.row()) == 1


def test_one_that_is_registered_between_the_two_reads_is_found_with_the_next_row_at_the_latest() -> None:
    world = World()
    real, late = world.store.page, list[str]()

    def page(*args: object, **how: object) -> object:
        found = real(*args, **how)  # type: ignore[arg-type]
        if not late:
            late.append(world.register())
        return found

    world.store.page = page  # type: ignore[assignment]
    assert world.told(world.row()) == [world.first]
    assert world.told(world.row()) == [world.first, *late]


def test_a_count_that_began_anew_is_not_taken_for_the_old_one() -> None:
    """As after the demo's reset, which empties the tables."""
    world = World()
    world.told(world.row())
    world.store.commit(
        [Delete(WebhookEndpoint, {"tenant": SHOP, "id": world.first}), Delete(Tally, {"tenant": SHOP, "of": "webhooks"})]
    )
    second = world.register()
    assert world.told(world.row()) == [second]


@pytest.mark.parametrize("why", ["its events are not stored yet", "another's", "nobody said whose"])
def test_where_it_is_not_certain_they_are_read_by_themselves(why: str) -> None:
    world = World()
    row = world.row(apart=why != "its events are not stored yet")
    world.told(world.row())
    found = world.listeners.with_row(row.id, None if why == "nobody said whose" else OTHER if why == "another's" else SHOP)
    assert found.row is not None and found.endpoints is None


def test_a_merchant_without_a_count_has_whoever_is_there() -> None:
    world = World()
    world.store.commit([Delete(Tally, {"tenant": SHOP, "of": "webhooks"})])
    for _ in range(2):
        assert world.told(world.row()) == [world.first]


def test_a_row_is_told_in_two_calls_beside_the_first() -> None:
    """And a row that is gone, or whose merchant is not the one that the message names, as ever."""
    world = World()
    cuts = Cuts()
    relay = Relay(cuts.around(world.store), world.queues, world.clock, lookouts=True)
    relay.tell(world.row().id, SHOP)
    before = cuts.calls
    assert relay.tell(world.row().id, SHOP) and cuts.calls - before == 2, "the row with who listens, and the parcel"
    row = world.row()
    assert relay.tell(row.id, OTHER) and not relay.tell(row.id, SHOP)
    assert [work.kind for work in world.store.work if work.kind != "lookout"] == ["delivery"] * 3
