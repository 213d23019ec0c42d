"""The relay empties the outbox: events become records and webhook deliveries, commands go to their queues, hints become open work.

Every step may be done twice and leaves the same behind, and the row goes last: a crash anywhere means that the row is told
again, and telling again makes nothing new (`made_once`, also for what is redelivered). Before a row the open ones with earlier
events of its objects are told (`usecases/webhooks/earlier_rows.py`), so that deliveries come into being in the order of events.
Touches work, events and webhooks only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, line_of
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint, event_record
from chalicelib.domain.webhooks.hooks import is_hook
from chalicelib.domain.work import LANES, Command, OutboxRow, Work, is_one_item, outbox_work, time_order
from chalicelib.usecases.base import message_chains
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.sweep_candidates import open_hint
from chalicelib.usecases.webhooks.earlier_rows import EarlierRows
from chalicelib.usecases.webhooks.endpoints import endpoints_of
from chalicelib.usecases.webhooks.hooks import endpoints_of_hooks
from chalicelib.usecases.webhooks.lookouts import Lookouts
from chalicelib.usecases.webhooks.making import made_once

log = logging.getLogger(__name__)

SWEEP_AGE_MS = 15_000
"""How long a row's message may be on its way before the sweep takes it for lost."""
SWEEP_LIMIT = 500
SWEEP_MS = 15_000


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
        self._earlier = EarlierRows(store, clock, pause)

    def tell(self, outbox_id: str) -> bool:
        """Tell an outbox row and remove it, behind those with earlier events of its objects; False when it is gone already, or so
        many go before it that it has to wait. Safe twice, at once, and out of order.

        Raises Unavailable, Conflict, and any error of the row itself or of an earlier one; then the row stays.
        """
        row = self._store.get(OutboxRow, id=outbox_id)
        if row is None:
            return False
        # Its place is what rights go by: a row that calls itself another would be taken for that one, and that one be removed.
        if row.id != outbox_id or row.is_forged:
            raise ValueError(f"outbox row {outbox_id} is not one that its place may hold: who wrote it?")
        return self._tell(row, self._told_before)

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

    def _tell(self, row: OutboxRow, after: Callable[[OutboxRow], bool] = lambda _: True) -> bool:
        """Tell and remove a row where `after` says that it may be told now; False where not, and where it is gone."""
        try:
            waking = self._make_deliveries(row, after)
        finally:
            # Behind the events: what a command brings about is told later than these. And though they can not be written: a
            # payment is not to wait for that.
            for command in row.commands:
                self._send(command)
        if waking is None:
            return False
        for endpoint in waking:
            self._queues.wake(endpoint.tenant, endpoint.id, failing=endpoint.failing_since is not None)
        # One after the other costs half of a transaction. Work without its row, where the function dies in between, is closed by
        # the sweep; a row without its work would be found by nobody. A row of one item is its own work.
        first = self._store.remove(OutboxRow, id=row.id)
        if not is_one_item(row.id):
            self._store.close(outbox_work(row))
        return first

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

    def _make_deliveries(self, row: OutboxRow, after: Callable[[OutboxRow], bool]) -> list[WebhookEndpoint] | None:
        """Store the row's events, then a delivery for every endpoint that wants them; endpoints where one was not attempted yet.
        None where deliveries have to wait: `after` is asked where there are any.

        The endpoints are read when the events are stored. So a merchant who turns an endpoint on, or registers one, and then
        redelivers misses no event: either the job sees it, or the endpoint is seen here as it is since then, however late the row
        is told.
        """
        now = self._clock.now_ms()
        records = [event_record(event, iso(event.at), now) for event in row.events]
        # Whoever tells the row stores the same, but for how long it is kept: no condition is needed, and no transaction.
        self._store.put_all(records)
        endpoints = {tenant: endpoints_of(self._store, tenant) for tenant in dict.fromkeys(r.tenant for r in records)}
        hooked = self._hooked(row, now)
        told = {record.id: [*endpoints[record.tenant], *hooked.get(record.object_id, ())] for record in records}
        pairs = [(record, e) for record in records for e in told[record.id] if e.told_of(record)]
        if pairs and not after(row):
            return None
        at = self._earlier.times(records, self._clock.now_ms())
        wanted = [delivery_for(record, e, at[record.id]) for record, e in pairs]
        stored = [made for made in made_once(self._store, wanted, by_time=self._by_time) if isinstance(made, Delivery)]
        # What another process made before this one may be in the index or not, as it was with that one.
        own = {one.id for one, mine in zip(stored, wanted, strict=True) if one is mine and self._by_time(one)}
        self._lookouts.keep({line_of(one.tenant, one.endpoint_id) for one in wanted if one.id not in own})
        self._earlier.told(row, stored)
        new = {(r.tenant, r.endpoint_id) for r in stored if r.status == "pending" and not r.attempts}
        everyone = {(e.tenant, e.id): e for of_one in told.values() for e in of_one}
        return [endpoint for key, endpoint in everyone.items() if key in new]

    def _by_time(self, delivery: Delivery) -> bool:
        """Whether a first delivery is in the index of time. No message wakes its endpoint where the chain of messages ends."""
        return not self._by_lookouts or is_hook(delivery.endpoint_id) or message_chains.ended()

    def _hooked(self, row: OutboxRow, now: int) -> dict[str, list[WebhookEndpoint]]:
        """The endpoint of its own that each object has. Nothing is read where no object has one."""
        if not row.hooks or row.tenant is None:
            return {}
        found = endpoints_of_hooks(self._store, row.tenant, row.hooks, now)
        return {object_id: [endpoint] for object_id, endpoint in found.items()}
