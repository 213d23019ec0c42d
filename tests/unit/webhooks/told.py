"""An endpoint that is told of events by a relay with lookouts, on a store in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.parcels import Parcel, is_parcel, parcel_of
from chalicelib.domain.work import LANES, OutboxRow, Work
from chalicelib.usecases.ports.changes import Emit
from chalicelib.usecases.webhooks.lookouts import PERIOD_MS
from chalicelib.usecases.webhooks.relay import Relay
from tests.support.webhooks import NOW, SHOP, a_row, an_event
from tests.unit.webhooks.line import HOOK, Line

MINUTE = 60_000


class Told(Line):
    """An endpoint that is told of events by a relay with lookouts."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(0, *answers)
        self.clock.now = NOW - NOW % PERIOD_MS + 1_000
        self.relay = self.relay_on(self.store)
        self.count = 0

    def relay_on(self, store: Any, queues: Any = None) -> Relay:
        return Relay(store, queues or self.queues, self.clock, lookouts=True)

    def emit(self, events: int = 1) -> OutboxRow:
        """A row of events, each of another object."""
        self.count += 1
        return self.emit_of(*((f"inv_{self.count}_{n}", 1) for n in range(events)))

    def emit_of(self, *of: tuple[str, int]) -> OutboxRow:
        """A row of events of these objects, each with its number."""
        self.count += 1
        told = [self.event(n, *one) for n, one in enumerate(of)]
        row = a_row(*told, id=f"out_{self.count}", at=self.clock.now)
        self.store.commit([Emit(row)])
        return row

    def event(self, n: int, object_id: str, sequence: int) -> Event:
        return replace(an_event(f"evt_{self.count}_{n}"), object_id=object_id, sequence=sequence)

    def tell(self, events: int = 1) -> None:
        assert self.relay.tell(self.emit(events).id)

    def tell_of(self, *of: tuple[str, int]) -> None:
        assert self.relay.tell(self.emit_of(*of).id)

    def indexed(self) -> list[Work]:
        return [work for lane in map(str, range(LANES)) for work in self.store.work_by_time("delivery", lane, limit=100).items]

    def parcels(self) -> list[Parcel]:
        return [parcel_of(SHOP, HOOK, work.id) for work in self.store.work if work.kind == "delivery" and is_parcel(work.id)]

    def lookouts(self) -> list[Work]:
        return sorted((work for work in self.store.work if work.kind == "lookout"), key=lambda work: work.order)

    def minutes(self, count: int) -> None:
        """The schedule, and nothing that it asks for."""
        for _ in range(count):
            self.clock.pass_ms(MINUTE)
            self.sweep.run()
