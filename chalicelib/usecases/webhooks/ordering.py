"""Later events of an object wait for the earlier ones, at each endpoint (`domain/webhooks/ordering.py`). Touches webhooks and work.

Only the holder of an endpoint's lease comes here. What holds up others stands in the lease, which it reads and saves anyway: where
nothing waits, nothing more is read or written. A delivery that waits is parked in the endpoint's lane by object and sequence, and
the end of its blocker makes the next one due.

A crash leaves the lease as it was saved with the batch: the next holder finds there which deliveries were being sent, reads what
became of them, and does again what the dead one may have done. A delivery made due twice in this way is one of several that are
due, and the earliest is sent first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_key, delivery_work, line_of
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.domain.webhooks.ordering import Blocker, Blockers, Due, arranged, is_free, object_key, place_behind, sequence_at
from chalicelib.domain.work import BEHIND, Work
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.delivery_attempts import Deliveries

_TRIES = 20

Pair = tuple[Delivery, EventRecord]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with due deliveries: `batch` is sent, `park` settles without sending, `left` stay due."""

    batch: list[Pair]
    park: list[Callable[[], object]]
    left: int
    blockers: Blockers


class Ordering:
    def __init__(self, store: Store, deliveries: Deliveries) -> None:
        self._store, self._deliveries = store, deliveries

    def plan(self, pairs: Sequence[Pair], blockers: Blockers, *, whole: bool) -> Plan:
        """Choose what may be sent at once. Reads and changes nothing. `whole`: nothing more is due."""
        events = {delivery.id: event for delivery, event in pairs}
        due = [Due(delivery, object_key(event.object_id), event.sequence) for delivery, event in pairs]
        found = arranged(due, blockers, whole=whole)
        chosen = {one.delivery.id for one in found.send}
        batch = [(delivery, events[delivery.id]) for delivery, _ in pairs if delivery.id in chosen]
        park = [partial(self._deliveries.park_behind, one.delivery, place_behind(one.object, one.sequence)) for one in found.park]
        return Plan(batch, list(park), len(found.leave), found.blockers)

    def after(self, told: Delivery, event: EventRecord, blockers: Blockers) -> Blockers:
        """The blockers after an attempt of `event`; `told` is its delivery as it is stored now. Raises Unavailable, Conflict."""
        if is_free(told):
            return self.ended(told.tenant, told.endpoint_id, told.id, blockers)
        return blockers.plus(Blocker(object_key(event.object_id), event.sequence, told.id))

    def restored(self, turn: Turn, batch: Sequence[Delivery]) -> Turn:
        """The lease of a worker that died, with what holds up later events after its `batch`, as its deliveries are stored now.
        Raises Unavailable, Conflict."""
        blockers = Blockers.stored(turn.blockers)
        keys = [(EventRecord, {"tenant": one.tenant, "id": one.event_id}) for one in batch]
        for delivery, event in zip(batch, self._store.get_many(keys) if keys else [], strict=True):
            if is_free(delivery):
                blockers = self.ended(delivery.tenant, delivery.endpoint_id, delivery.id, blockers)
            elif event is not None and delivery.attempts:
                blockers = self.after(delivery, event, blockers)
        return replace(turn, blockers=blockers.texts)

    def ended(self, tenant: TenantId, endpoint_id: str, delivery_id: str, blockers: Blockers) -> Blockers:
        """The blockers once a delivery holds up nothing any more; the earliest parked behind it is due then.

        Safe twice. Raises Unavailable, Conflict.
        """
        freed = blockers.find(delivery_id)
        if freed is None:
            return blockers
        rest = blockers.minus(delivery_id)
        if not freed.followed:
            return rest
        line = line_of(tenant, endpoint_id)
        lane = Work("delivery", line, f"{BEHIND}{freed.object}", "")
        for _ in range(_TRIES):
            rows = self._store.open_work("delivery", line, after=lane, upto=f"{lane.order}~", limit=2)
            if not rows:
                return rest
            next_one = self._store.get(Delivery, **delivery_key(tenant, rows[0].id))
            if next_one is None or next_one.behind is None or delivery_work(next_one) != rows[0]:
                self._deliveries.forget(rows[0], tenant, next_one)
                continue
            sequence = sequence_at(next_one.behind)
            if rest.holds_up(freed.object, sequence):
                return rest
            if self._deliveries.release(next_one):
                return rest.plus(Blocker(freed.object, sequence, next_one.id, followed=len(rows) > 1))
        raise Conflict(None)
