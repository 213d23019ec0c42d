"""Making deliveries, each with its obligation, and each once: for the relay, for jobs of redelivery, on request. Touches webhooks
and work only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_work
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.usecases.ports.changes import MOST_ITEMS, Change, Conflict, Open, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.views import as_it_goes

_MAX_CHANGES = MOST_ITEMS
"""Of one transaction that makes deliveries."""
_TRIES = 5

Made = EventRecord | Delivery


def made_once(
    store: Store,
    wanted: Sequence[Made],
    beside: Mapping[int, Sequence[Change]] | None = None,
    only_if: Change | None = None,
    *,
    by_time: Callable[[Delivery], bool] = lambda _: True,
) -> list[Made]:
    """Store the deliveries of `wanted` that do not exist yet, each with its obligation; returns those stored now, in their order.

    `beside`: further changes, by place, in the transaction that stores the one at that place; `only_if`: a condition in each of
    them; `by_time`: whether an obligation is in the index of time. Raises Unavailable, and Conflict where one of these does not
    fit the stored records: part of `wanted` may be made then.
    """
    known: dict[int, Made] = {}
    always = [] if only_if is None else [only_if]
    for _ in range(_TRIES):
        try:
            _commit_missing(store, wanted, beside or {}, always, known, by_time)
        except Conflict:
            # Another worker made them before, all or some: keep what there is, make the rest.
            found = store.get_many([(type(record), {"tenant": record.tenant, "id": record.id}) for record in wanted])
            known.update({place: record for place, record in enumerate(found) if record is not None})
        else:
            return [known[place] for place in range(len(wanted))]
    raise Conflict(None)


def _commit_missing(
    store: Store,
    wanted: Sequence[Made],
    beside: Mapping[int, Sequence[Change]],
    always: list[Change],
    known: dict[int, Made],
    by_time: Callable[[Delivery], bool],
) -> None:
    batch: dict[int, list[Change]] = {}
    for place, record in enumerate(wanted):
        if place in known:
            continue
        changes: list[Change] = [Save(record), *beside.get(place, ())]
        if isinstance(record, Delivery):
            changes.append(Open(delivery_work(record), by_time(record)))
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


@dataclass(frozen=True, slots=True)
class Sent:
    """A delivery that is to be sent, its endpoint, and the endpoint's lease; None where it never had one."""

    delivery: Delivery
    endpoint: WebhookEndpoint
    turn: Turn | None

    @property
    def shown(self) -> Delivery:
        """The delivery as merchants see it."""
        return as_it_goes(self.delivery, self.endpoint, self.turn)


def check_enabled(endpoint: WebhookEndpoint) -> None:
    """Raises BusinessRule where the endpoint is disabled."""
    if not endpoint.enabled:
        raise BusinessRule("id", f"this webhook is disabled: enable it first, {turning_on(endpoint)}")


def turning_on(endpoint: WebhookEndpoint) -> str:
    return f'PUT /v1/webhooks/{endpoint.id} {{"status": "active"}}'
