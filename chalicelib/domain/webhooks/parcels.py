"""Parcels: the first deliveries of an outbox row to an endpoint, under one obligation. Pure.

Almost all deliveries are accepted at their first attempt, a moment after their event. A parcel names their events alone: what the
attempts came to is what is stored first of each delivery. Whatever is not as usual has the parcel unpacked: then each delivery is
stored, with an obligation of its own. So nothing else in the service has to know parcels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_id, line_of, unsent
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.leases import BATCH
from chalicelib.domain.work import Work, time_order

_KIND = "parcel"


@dataclass(frozen=True, slots=True)
class Parcel:
    """Deliveries of `events`, by their ids, that are made, and due, at `at` (ms since 1970): each of another object, and no more
    than are sent at once."""

    tenant: TenantId
    endpoint_id: str
    at: int
    events: tuple[str, ...]

    @property
    def work(self) -> Work:
        """Open work: send it, or unpack it. It lies among the endpoint's due deliveries."""
        id = f"{_KIND}|{self.at}|{','.join(self.events)}"
        return Work("delivery", line_of(self.tenant, self.endpoint_id), time_order(self.at), id)

    @property
    def delivery_ids(self) -> tuple[str, ...]:
        return tuple(delivery_id(event, self.endpoint_id) for event in self.events)

    def deliveries(self, events: Iterable[Event | EventRecord]) -> list[Delivery]:
        """Its deliveries of those of `events` that it has, none of them stored: their next version is the first."""
        return [unsent(event, self.endpoint_id, self.at) for event in events if event.id in self.events]


def takes_parcels(endpoint: WebhookEndpoint) -> bool:
    """Whether first deliveries to it are likely to be accepted at once. Those of others are listed while they wait."""
    return endpoint.status == "active" and endpoint.failing_since is None


def parcels_of(deliveries: Iterable[tuple[Delivery, str]]) -> list[Parcel]:
    """As few parcels as can be of deliveries to one endpoint, each with its event's object. Those of one parcel have one time: what
    is earlier or later than it is so for each of its events."""
    made: list[Parcel] = []
    objects: set[str] = set()
    for delivery, of in sorted(deliveries, key=lambda pair: pair[0].created_at):
        last = made[-1] if made else None
        if last is not None and last.at == delivery.created_at and of not in objects and len(last.events) < BATCH:
            made[-1] = replace(last, events=(*last.events, delivery.event_id))
            objects.add(of)
        else:
            made.append(Parcel(delivery.tenant, delivery.endpoint_id, delivery.created_at, (delivery.event_id,)))
            objects = {of}
    return made


def is_parcel(work_id: str) -> bool:
    """Whether such work is a parcel, and no delivery's own."""
    return work_id.startswith(f"{_KIND}|")


def parcel_of(tenant: TenantId, endpoint_id: str, work_id: str) -> Parcel:
    """The parcel that such work of an endpoint is. Raises ValueError for an id that is none."""
    _, at, events = work_id.split("|")
    return Parcel(tenant, endpoint_id, int(at), tuple(events.split(",")))
