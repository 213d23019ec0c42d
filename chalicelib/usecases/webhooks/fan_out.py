"""Making events and deliveries so that making them twice leaves them once, in as few transactions as they fit into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalicelib.domain.webhooks.deliveries import Delivery, delivery_work
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.ports.changes import Change, Conflict, Open, Save
from chalicelib.usecases.ports.store import Store

_MAX_CHANGES = 10
_TRIES = 5

Made = EventRecord | Delivery


def make(
    store: Store, wanted: Sequence[Made], beside: Mapping[int, Sequence[Change]] | None = None, only_if: Change | None = None
) -> list[Made]:
    """Store those of `wanted` that are not there yet, each delivery with its obligation; what is stored now, in their order.

    `beside`: further changes, by place, in the transaction that stores the one at that place; `only_if`: a condition in each of
    them. Raises Unavailable, and Conflict where it is these that do not fit what is stored: part of `wanted` may be made then.
    """
    known: dict[int, Made] = {}
    always = [] if only_if is None else [only_if]
    for _ in range(_TRIES):
        try:
            _commit_missing(store, wanted, beside or {}, always, known)
        except Conflict:
            # Somebody made them before, all or some: keep what there is, make the rest.
            found = store.get_many([(type(record), {"tenant": record.tenant, "id": record.id}) for record in wanted])
            known.update({place: record for place, record in enumerate(found) if record is not None})
        else:
            return [known[place] for place in range(len(wanted))]
    raise Conflict(None)


def _commit_missing(
    store: Store, wanted: Sequence[Made], beside: Mapping[int, Sequence[Change]], always: list[Change], known: dict[int, Made]
) -> None:
    batch: dict[int, list[Change]] = {}
    for place, record in enumerate(wanted):
        if place in known:
            continue
        changes: list[Change] = [Save(record), *beside.get(place, ())]
        if isinstance(record, Delivery):
            changes.append(Open(delivery_work(record)))
        if sum(map(len, batch.values())) + len(changes) + len(always) > _MAX_CHANGES:
            _commit(store, batch, wanted, always, known)
            batch = {}
        batch[place] = changes
    _commit(store, batch, wanted, always, known)


def _commit(
    store: Store, batch: Mapping[int, list[Change]], wanted: Sequence[Made], always: list[Change], known: dict[int, Made]
) -> None:
    if batch:
        store.commit([change for changes in batch.values() for change in changes] + always)
        known.update({place: wanted[place] for place in batch})
