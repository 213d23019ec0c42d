"""The relay empties the outbox: events become records and webhook deliveries, commands go to their queues, hints become open work.

Every step may be done twice and leaves the same behind, and the row goes last: a crash anywhere means that the row is told
again, and telling again makes nothing new (`making`). First deliveries go in parcels (`domain/webhooks/parcels.py`) where there
are lookouts: these are opened in the transaction that removes the row. Before a row the open ones with earlier
events of its objects are told (`usecases/webhooks/earlier_rows.py`), so that deliveries come into being in the order of events.
Touches work, events and webhooks only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, line_of, unsent
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint, event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.hooks import is_hook
from chalicelib.domain.webhooks.parcels import Parcel, parcels_of, takes_parcels
from chalicelib.domain.work import LANES, Command, OutboxRow, Work, is_one_item, outbox_work, time_order
from chalicelib.usecases.base import message_chains
from chalicelib.usecases.ports.changes import MOST_ITEMS, Change, Close, Conflict, Delete, Open
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.sweep_candidates import open_hint
from chalicelib.usecases.webhooks.earlier_rows import EarlierRows
from chalicelib.usecases.webhooks.endpoints import endpoints_of, wake
from chalicelib.usecases.webhooks.hooks import endpoints_of_hooks
from chalicelib.usecases.webhooks.listeners import Listeners
from chalicelib.usecases.webhooks.lookouts import Lookouts
from chalicelib.usecases.webhooks.making import made_once

log = logging.getLogger(__name__)

SWEEP_AGE_MS = 15_000
"""How long a row's message may be on its way before the sweep takes it for lost."""
SWEEP_LIMIT = 500
SWEEP_MS = 15_000
_MOST_PARCELS = MOST_ITEMS - 2
"""Beside the row and its obligation."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What a row is told by: its deliveries, and of these the `parcels` that are to be opened. `waking` are the endpoints where one
    was not attempted yet."""

    waking: list[WebhookEndpoint]
    parcels: list[Parcel]
    deliveries: list[Delivery]


@dataclass(frozen=True, slots=True)
class Swept:
    """The outcome of a sweep: rows told, and rows that could not be told and stay open (to be alarmed about)."""

    told: int
    failed: int


class Relay:
    """With `lookouts` first deliveries are in no index of time (`usecases/webhooks/lookouts.py`)."""

    def __init__(
        self, store: Store, queues: Queues, clock: Clock, pause: Callable[[float], object] = time.sleep, *, lookouts: bool = False
    ) -> None:
        self._by_lookouts, self._lookouts = lookouts, Lookouts(store, clock)
        self._store = store
        self._queues = queues
        self._clock = clock
        self._earlier, self._listeners = EarlierRows(store, clock, pause), Listeners(store)

    def tell(self, outbox_id: str, tenant: TenantId | None = None) -> bool:
        """Tell an outbox row and remove it, behind those with earlier events of its objects; False when it is gone already, or so
        many go before it that it has to wait. Safe twice, at once, and out of order. `tenant`: whose it is said to be, which saves
        a call where it is true.

        Raises Unavailable, Conflict, and any error of the row itself or of an earlier one; then the row stays.
        """
        read = self._listeners.with_row(outbox_id, tenant)
        row = read.row
        if row is None:
            return False
        # Its place is what rights go by: a row that calls itself another would be taken for that one, and that one be removed.
        if row.id != outbox_id or row.is_forged:
            raise ValueError(f"outbox row {outbox_id} is not one that its place may hold: who wrote it?")
        return self._tell(row, self._told_before, read.endpoints)

    def _told_before(self, row: OutboxRow) -> bool:
        """Tell the rows that go before `row`; whether these were all. One that can not be told holds it up for a time only."""
        earlier = self._earlier.of(row)
        for one in earlier.rows:
            try:
                self._tell(one)
            except Exception:  # whatever is wrong with it, later events must not wait for ever
                if self._earlier.failed(one):
                    raise
                log.exception("metric=relay_failed outbox row %s could not be told and holds up later events no more", one.id)
        return earlier.all

    def _tell(
        self,
        row: OutboxRow,
        after: Callable[[OutboxRow], bool] = lambda _: True,
        endpoints: Sequence[WebhookEndpoint] | None = None,
    ) -> bool:
        """Tell and remove a row where `after` says that it may be told now; False where not, and where it is gone. `endpoints` are
        its merchant's, where they were read after its events were stored."""
        try:
            told = self._make_deliveries(row, after, endpoints)
        finally:
            # Behind the events: what a command brings about is told later than these. And though they can not be written: a
            # payment is not to wait for that.
            for command in row.commands:
                self._send(command)
        if told is None:
            return False
        if told.parcels:
            return self._handed_over(row, told)
        self._earlier.told(row, told.deliveries)
        for endpoint in told.waking:
            self._queues.wake(endpoint.tenant, endpoint.id, failing=endpoint.failing_since is not None)
        # One after the other costs half of a transaction. Work without its row, where the function dies in between, is closed by
        # the sweep; a row without its work would be found by nobody. A row of one item is its own work.
        first = self._store.remove(OutboxRow, id=row.id)
        if not is_one_item(row.id):
            self._store.close(outbox_work(row))
        return first

    def _handed_over(self, row: OutboxRow, told: _Told) -> bool:
        """Open the parcels of a row in the transaction that removes it: so each is opened once. False where another process was
        first. A message that is not sent then is replaced by the endpoint's lookout."""
        gone: list[Change] = [Close(outbox_work(row))]
        if not is_one_item(row.id):
            gone.append(Delete(OutboxRow, {"id": row.id}))
        try:
            self._store.commit([*(Open(parcel.work, by_time=False) for parcel in told.parcels), *gone])
        except Conflict:
            if self._store.get(OutboxRow, id=row.id) is None:
                return False
            raise
        self._earlier.told(row, told.deliveries)
        for endpoint in told.waking:
            wake(self._queues, endpoint)
        return True

    def _send(self, command: Command) -> None:
        if command.queue == "collectable":
            open_hint(self._store, NetworkId(command.group), command.body["id"])
        else:
            self._queues.send(command)

    def sweep(self) -> Swept:
        """Tell the rows whose message was lost. A row that can not be told is reported and does not hold up the others.

        Raises Unavailable when the store does not answer; the next sweep does the rest.
        """
        start = self._clock.now_ms()
        told = failed = 0
        works: list[Work] = []
        for lane in map(str, range(LANES)):
            works += self._store.open_work("outbox", lane, upto=time_order(start - SWEEP_AGE_MS), limit=SWEEP_LIMIT)
            # Rows of the test realm bear its own time, which may be ahead (`sandbox.clock`): nobody can say how old they are.
            ahead = Work("outbox", lane, time_order(start + SWEEP_AGE_MS), "")
            works += self._store.open_work("outbox", lane, after=ahead, limit=SWEEP_LIMIT)
        for work in sorted(works, key=lambda one: one.order):  # the earlier events of an object first
            if self._clock.now_ms() - start > SWEEP_MS:
                break
            try:
                if self.tell(work.id):
                    told += 1
                elif self._store.get(OutboxRow, id=work.id) is None:
                    self._store.close(work)
            except Exception:  # whatever is wrong with one row, the others are told
                failed += 1
                log.exception("metric=relay_failed outbox row %s could not be told and stays open", work.id)
        return Swept(told, failed)

    def _make_deliveries(
        self, row: OutboxRow, after: Callable[[OutboxRow], bool], known: Sequence[WebhookEndpoint] | None
    ) -> _Told | None:
        """Store the row's events, then a delivery for every endpoint that wants them, but those that go in parcels. None where
        deliveries have to wait: `after` is asked where there are any.

        The endpoints are read when the events are stored. So a merchant who turns an endpoint on, or registers one, and then
        redelivers misses no event: either the job sees it, or the endpoint is seen here as it is since then, however late the row
        is told.
        """
        now = self._clock.now_ms()
        if not row.apart:
            # Whoever tells the row stores the same, but for how long it is kept: no condition is needed, and no transaction.
            # Also over what a newer version stored before it died: all that it said of the event is in the row (`Event.more`), and
            # it can rest on nothing else in the record, since events that this version tells first have none of that either
            # (tests/faults/test_two_versions.py: an event that both store is the same). No record of an event is saved.
            self._store.put_all([event_record(event, iso(event.at), now) for event in row.events])
        tenants = dict.fromkeys(event.tenant for event in row.events)
        endpoints = {tenant: endpoints_of(self._store, tenant) if known is None else known for tenant in tenants}
        hooked = self._hooked(row, now)
        told = {event.id: [*endpoints[event.tenant], *hooked.get(event.object_id, ())] for event in row.events}
        pairs = [(event, e) for event in row.events for e in told[event.id] if e.told_of(event)]
        if pairs and not after(row):
            return None
        at = self._earlier.times(row.events, self._clock.now_ms())
        parcels = self._parcels(pairs, at)
        packed = {(parcel.tenant, parcel.endpoint_id) for parcel in parcels}
        stored = self._stored([delivery_for(event, e, at[event.id]) for event, e in pairs if (e.tenant, e.id) not in packed])
        self._lookouts.keep({line_of(*one) for one in packed})
        new = packed | {(one.tenant, one.endpoint_id) for one in stored if one.status == "pending" and not one.attempts}
        everyone = {(e.tenant, e.id): e for of_one in told.values() for e in of_one}
        made = [*stored, *(one for parcel in parcels for one in parcel.deliveries(row.events))]
        return _Told([endpoint for key, endpoint in everyone.items() if key in new], parcels, made)

    def _stored(self, wanted: Sequence[Delivery]) -> list[Delivery]:
        """The deliveries as they are stored, by now or before."""
        stored = [made for made in made_once(self._store, wanted, by_time=self._by_time) if isinstance(made, Delivery)]
        # What another process made before this one may be in the index or not, as it was with that one.
        own = {one.id for one, mine in zip(stored, wanted, strict=True) if one is mine and self._by_time(one)}
        self._lookouts.keep({line_of(one.tenant, one.endpoint_id) for one in wanted if one.id not in own})
        return stored

    def _parcels(self, pairs: Sequence[tuple[Event, WebhookEndpoint]], at: Mapping[str, int]) -> list[Parcel]:
        """The parcels of a row; none where they are too many for the transaction that removes the row."""
        by_endpoint: dict[tuple[str, str], list[tuple[Delivery, str]]] = {}
        for event, endpoint in pairs:
            first = unsent(event, endpoint.id, at[event.id])
            if takes_parcels(endpoint) and not self._by_time(first):
                by_endpoint.setdefault((endpoint.tenant, endpoint.id), []).append((first, event.object_id))
        found = [parcel for of_one in by_endpoint.values() for parcel in parcels_of(of_one)]
        return found if len(found) <= _MOST_PARCELS else []

    def _by_time(self, delivery: Delivery) -> bool:
        """Whether a first delivery is in the index of time. No message wakes its endpoint where the chain of messages ends."""
        return not self._by_lookouts or is_hook(delivery.endpoint_id) or message_chains.ended()

    def _hooked(self, row: OutboxRow, now: int) -> dict[str, list[WebhookEndpoint]]:
        """The endpoint of its own that each object has. Nothing is read where no object has one."""
        if not row.hooks or row.tenant is None:
            return {}
        found = endpoints_of_hooks(self._store, row.tenant, row.hooks, now)
        return {object_id: [endpoint] for object_id, endpoint in found.items()}
