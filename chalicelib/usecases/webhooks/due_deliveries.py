"""What an endpoint's lease holder sees: its due deliveries, the parked ones, and what to do with each. Changes nothing.

Touches webhooks, events and work only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate

from chalicelib.domain.ids import TenantId
from chalicelib.domain.versions import newer_state
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_key, delivery_work, due_of, line_of
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import BATCH, EARLY_MS, Turn
from chalicelib.domain.webhooks.ordering import Blockers
from chalicelib.domain.webhooks.parcels import Parcel, is_parcel, parcel_of
from chalicelib.domain.work import HELD, Work, held_order, is_held, time_order
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.delivery_attempts import Deliveries
from chalicelib.usecases.webhooks.ordering import Ordering
from chalicelib.usecases.webhooks.parcels import packed

log = logging.getLogger(__name__)

UNSEEN_MS = 60_000
"""An event that is not there so long after its delivery was made is no longer kept; before, it may only not be seen yet."""


@dataclass(slots=True)
class Look:
    """The due deliveries of an endpoint as stored now: `batch` is to be sent, `aside` is to be settled without sending.

    `turn` is the lease as stored, `mine` the same with what its holder counted since, unless the endpoint was mended meanwhile.
    `whole`: nothing more was due. `unseen` are rows whose event is not there yet, and will be at any moment. `ending` are the
    deliveries that `aside` ends. `blockers` hold up later deliveries; `waiting` counts the due ones that the batch holds up.
    `parcels` are sent with the batch, each whole.
    """

    turn: Turn
    endpoint: WebhookEndpoint | None
    mine: Turn
    whole: bool
    batch: list[tuple[Delivery, EventRecord]] = field(default_factory=list)
    aside: list[Callable[[], object]] = field(default_factory=list)
    unseen: list[Work] = field(default_factory=list)
    ending: list[str] = field(default_factory=list)
    blockers: Blockers = field(default_factory=Blockers)
    waiting: int = 0
    parcels: list[Parcel] = field(default_factory=list)

    @property
    def hand(self) -> tuple[str, ...]:
        """The batch, as ids of its work."""
        own = [delivery_work(delivery).id for delivery, _ in self.batch if delivery.version]
        return (*own, *(parcel.work.id for parcel in self.parcels))

    @property
    def all_seen(self) -> bool:
        """Whether nothing is due but the batch."""
        return self.whole and not (self.aside or self.unseen or self.waiting or self.turn.wanted)

    @property
    def due(self) -> bool:
        return bool(self.batch or self.aside)

    @property
    def undrained(self) -> bool:
        """Whether deliveries may be parked still that a pause kept: they go before all newer ones."""
        endpoint = self.endpoint
        return endpoint is not None and endpoint.status == "active" and endpoint.unheld_at > (self.mine.drained_at or 0)


class DueReads:
    def __init__(self, store: Store, clock: Clock, deliveries: Deliveries, ordering: Ordering) -> None:
        self._store, self._clock = store, clock
        self._deliveries, self._ordering = deliveries, ordering

    def look(self, tenant: TenantId, endpoint_id: str, own: Turn | None, *, held: bool) -> Look:
        """Read due deliveries and change nothing: only the holder of the lease changes them. `own` is the lease as the holder has
        it; None where the caller does not hold it. `held`: parked deliveries as well.

        After a pause the parked ones come first: they are older than all that was not parked.
        """
        found = self._look(tenant, endpoint_id, own, held=held, draining=False)
        return self._look(tenant, endpoint_id, own, held=held, draining=True) if found.undrained else found

    def _look(self, tenant: TenantId, endpoint_id: str, own: Turn | None, *, held: bool, draining: bool) -> Look:
        now = self._clock.now_ms()
        rows = self._rows(line_of(tenant, endpoint_id), now, held=held, draining=draining)
        due = _at_once([_Row.of(tenant, endpoint_id, row) for row in rows])
        place = {"tenant": tenant, "id": endpoint_id}
        turn, endpoint, *found = each_of(
            self._store,
            [
                (Turn, {"tenant": tenant, "endpoint_id": endpoint_id}),
                (WebhookEndpoint, place),
                *((Delivery, {"tenant": tenant, "id": id}) for row in due for id in row.deliveries),
                *((EventRecord, {"tenant": tenant, "id": id}) for row in due for id in row.events),
            ],
        )
        if unread := next((one for one in (turn, endpoint) if isinstance(one, TooNew)), None):
            raise unread  # all of the line is left to the newer version
        turn = turn or Turn(tenant, endpoint_id, ttl=now // 1000 + KEEP_SECONDS, version=0)
        mine = turn if own is None else turn.with_health_of(own)
        mine = mine if endpoint is None else mine.forgiven(endpoint.fresh_at)
        look = Look(turn, endpoint, mine, len(due) == len(rows) < BATCH)
        if endpoint is not None and draining and look.undrained and not any(is_held(row) for row in rows):
            look.mine = replace(mine, drained_at=endpoint.unheld_at)
        deliveries, events = iter(found[: len(found) // 2]), iter(found[len(found) // 2 :])
        for one in due:
            stored, told = [next(deliveries) for _ in one.events], [next(events) for _ in one.events]
            if any(isinstance(each, TooNew) for each in (*stored, *told)):
                continue  # it stays due, and was reported
            if one.parcel is None:
                self._sort(look, one.work, stored[0], told[0], now)
            else:
                self._sort_parcel(look, one.parcel, stored, told, now)
        if endpoint is not None and endpoint.paused and not held:
            self._outlived(look, endpoint, now)
        way = packed(self._ordering, look.batch, look.parcels, Blockers.stored(mine.blockers), whole=look.whole)
        for parcel in way.unpack:
            self._unpack(look, parcel, [], [event for _, event in look.batch])
        plan = way.plan
        look.batch, look.parcels, look.blockers = plan.batch, way.sent, plan.blockers
        look.waiting = plan.left + way.left
        look.aside += plan.park
        return look

    def _rows(self, line: str, now: int, *, held: bool, draining: bool) -> list[Work]:
        parked = self._put_aside(line, f"{HELD}~", BATCH) if draining else []
        if len(parked) == BATCH:
            return parked
        due = self._store.open_work("delivery", line, upto=time_order(now + EARLY_MS), limit=BATCH - len(parked))
        if held and not draining and len(due) < BATCH:
            return due + self._put_aside(line, f"{HELD}~", BATCH - len(due))
        return parked + due

    def _put_aside(self, line: str, upto: str, limit: int) -> list[Work]:
        """The parked deliveries of an endpoint, the oldest first."""
        return self._store.open_work("delivery", line, after=Work("delivery", line, HELD, ""), upto=upto, limit=limit)

    def _outlived(self, look: Look, endpoint: WebhookEndpoint, now: int) -> None:
        """End parked deliveries that waited longer than deliveries are kept, as new ones come in."""
        rows = self._put_aside(line_of(endpoint.tenant, endpoint.id), held_order(now - KEEP_SECONDS * 1000), BATCH)
        found = each_of(self._store, [(Delivery, delivery_key(endpoint.tenant, row.id)) for row in rows]) if rows else []
        for row, delivery in zip(rows, found, strict=True):
            if isinstance(delivery, TooNew):
                continue
            if delivery is None or delivery.status != "pending" or delivery_work(delivery) != row:
                self._forget(look, row, delivery)
            else:
                self._cancel(look, delivery, "the endpoint was paused for 30 days")

    def _sort(self, look: Look, row: Work, delivery: Delivery | None, event: EventRecord | None, now: int) -> None:
        """Sort one due row: to send, to settle without sending, or not seen yet."""
        endpoint = look.endpoint
        if delivery is not None and newer_state(delivery) is not None:
            log.error("ALARM the Delivery %s needs a newer version of the service: it is %s", delivery.id, delivery.status)
        elif delivery is None or delivery.status != "pending" or delivery_work(delivery) != row:
            self._forget(look, row, delivery)
        elif endpoint is None:
            self._cancel(look, delivery, "the endpoint was deleted")
        elif not endpoint.enabled:
            self._cancel(look, delivery, "the endpoint is disabled")
        elif event is None:
            if now - delivery.created_at < UNSEEN_MS:
                look.unseen.append(row)
            else:
                self._cancel(look, delivery, "the event is no longer kept")
        elif not endpoint.paused:
            look.batch.append((delivery, event))
        elif not delivery.held:
            look.aside.append(partial(self._deliveries.put_aside, delivery, endpoint))

    def _sort_parcel(
        self, look: Look, parcel: Parcel, stored: Sequence[Delivery | None], found: Sequence[EventRecord | None], now: int
    ) -> None:
        """Sort one due parcel: to send, or to unpack, since it has to wait or something was done for its deliveries before."""
        endpoint = look.endpoint
        events = [event for event in found if event is not None]
        known = [delivery for delivery in stored if delivery is not None]
        usual = endpoint is not None and endpoint.status == "active" and look.mine.rests_until <= now
        if not usual or known or len(events) < len(parcel.events):
            self._unpack(look, parcel, known, events)
            return
        look.parcels.append(parcel)
        look.batch += zip(parcel.deliveries(events), events, strict=True)

    def _unpack(self, look: Look, parcel: Parcel, known: Sequence[Delivery], events: Sequence[EventRecord]) -> None:
        there = {delivery.id for delivery in known}
        missing = [one for one in parcel.deliveries(events) if one.id not in there]
        kept = len(there | {one.id for one in missing})
        look.aside.append(partial(self._deliveries.unpack, parcel, missing, kept))

    def _forget(self, look: Look, row: Work, delivery: Delivery | None) -> None:
        look.aside.append(partial(self._deliveries.forget, row, look.turn.tenant, delivery))
        if delivery is None or delivery.status != "pending":
            look.ending.append(due_of(row.id).delivery_id)

    def _cancel(self, look: Look, delivery: Delivery, reason: str) -> None:
        look.aside.append(partial(self._deliveries.cancel, delivery, reason, look.endpoint))
        look.ending.append(delivery.id)


@dataclass(frozen=True, slots=True)
class _Row:
    """A due row: one delivery, or a parcel. `deliveries` and `events` are the ids of what it is about."""

    work: Work
    parcel: Parcel | None
    deliveries: tuple[str, ...]
    events: tuple[str, ...]

    @classmethod
    def of(cls, tenant: TenantId, endpoint_id: str, work: Work) -> _Row:
        if is_parcel(work.id):
            parcel = parcel_of(tenant, endpoint_id, work.id)
            return cls(work, parcel, parcel.delivery_ids, parcel.events)
        due = due_of(work.id)
        return cls(work, None, (due.delivery_id,), (due.event_id,))


def _at_once(rows: Sequence[_Row]) -> list[_Row]:
    """The first rows, of which no more is due together than is sent at once; one at least, where there is one."""
    counts = list(accumulate(len(row.events) for row in rows))
    return [row for place, (row, count) in enumerate(zip(rows, counts, strict=True)) if count <= BATCH or place == 0]
