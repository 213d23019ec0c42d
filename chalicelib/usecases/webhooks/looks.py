"""What an endpoint's lease holder sees: its due deliveries, the parked ones, and what to do with each. Changes nothing.

Touches webhooks, events and work only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_key, delivery_work, due_of, line_of
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import BATCH, EARLY_MS, Turn
from chalicelib.domain.webhooks.ordering import Blockers
from chalicelib.domain.work import HELD, Work, held_order, is_held, time_order
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.deliveries import Deliveries
from chalicelib.usecases.webhooks.ordering import Ordering

UNSEEN_MS = 60_000
"""An event that is not there so long after its delivery was made is no longer kept; before, it may only not be seen yet."""


@dataclass(slots=True)
class Look:
    """The due deliveries of an endpoint as stored now: `batch` is to be sent, `aside` is to be settled without sending.

    `turn` is the lease as stored, `mine` the same with what its holder counted since, unless the endpoint was mended meanwhile.
    `whole`: nothing more was due. `unseen` are rows whose event is not there yet, and will be at any moment. `ending` are the
    deliveries that `aside` ends. `blockers` hold up later deliveries; `waiting` counts the due ones that the batch holds up.
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

    @property
    def due(self) -> bool:
        return bool(self.batch or self.aside)

    @property
    def undrained(self) -> bool:
        """Whether deliveries may be parked still that a pause kept: they go before all newer ones."""
        endpoint = self.endpoint
        return endpoint is not None and endpoint.status == "active" and endpoint.unheld_at > (self.mine.drained_at or 0)


class Looks:
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
        place = {"tenant": tenant, "id": endpoint_id}
        turn, endpoint, *found = self._store.get_many(
            [
                (Turn, {"tenant": tenant, "endpoint_id": endpoint_id}),
                (WebhookEndpoint, place),
                *((Delivery, delivery_key(tenant, row.id)) for row in rows),
                *((EventRecord, {"tenant": tenant, "id": due_of(row.id).event_id}) for row in rows),
            ]
        )
        turn = turn or Turn(tenant, endpoint_id, ttl=now // 1000 + KEEP_SECONDS, version=0)
        mine = turn if own is None else turn.with_health_of(own)
        mine = mine if endpoint is None else mine.forgiven(endpoint.fresh_at)
        look = Look(turn, endpoint, mine, len(rows) < BATCH)
        if endpoint is not None and draining and look.undrained and not any(is_held(row) for row in rows):
            look.mine = replace(mine, drained_at=endpoint.unheld_at)
        for row, delivery, event in zip(rows, found[: len(rows)], found[len(rows) :], strict=True):
            self._sort(look, row, delivery, event, now)
        if endpoint is not None and endpoint.paused and not held:
            self._outlived(look, endpoint, now)
        plan = self._ordering.plan(look.batch, Blockers.stored(mine.blockers), whole=look.whole)
        look.batch, look.waiting, look.blockers = plan.batch, plan.left, plan.blockers
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
        found = self._store.get_many([(Delivery, delivery_key(endpoint.tenant, row.id)) for row in rows]) if rows else []
        for row, delivery in zip(rows, found, strict=True):
            if delivery is None or delivery.status != "pending" or delivery_work(delivery) != row:
                self._forget(look, row, delivery)
            else:
                self._cancel(look, delivery, "the endpoint was paused for 30 days")

    def _sort(self, look: Look, row: Work, delivery: Delivery | None, event: EventRecord | None, now: int) -> None:
        """Sort one due row: to send, to settle without sending, or not seen yet."""
        endpoint = look.endpoint
        if delivery is None or delivery.status != "pending" or delivery_work(delivery) != row:
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

    def _forget(self, look: Look, row: Work, delivery: Delivery | None) -> None:
        look.aside.append(partial(self._deliveries.forget, row, look.turn.tenant, delivery))
        if delivery is None or delivery.status != "pending":
            look.ending.append(due_of(row.id).delivery_id)

    def _cancel(self, look: Look, delivery: Delivery, reason: str) -> None:
        look.aside.append(partial(self._deliveries.cancel, delivery, reason, look.endpoint))
        look.ending.append(delivery.id)
