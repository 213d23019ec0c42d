"""Reads deliveries for merchants: one, all of an event to an endpoint, and the request that one sends. Changes nothing."""

from __future__ import annotations

from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_id
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.views import as_it_goes

_MOST_FOLLOWED = 50
"""Deliveries of one event to one endpoint that are looked up one after the other."""


class DeliveryReads:
    def __init__(self, store: Store) -> None:
        self._store = store

    def shown(self, tenant: TenantId, id: str) -> Delivery:
        """A delivery as merchants see it: while it waits, its time is not before the end of its endpoint's rest. Raises
        NotFound."""
        found = self.delivery(tenant, id)
        if found.status != "pending" or found.parked:
            return found
        place = {"tenant": tenant, "endpoint_id": found.endpoint_id}
        endpoint, turn = self._store.get_many([(WebhookEndpoint, {"tenant": tenant, "id": found.endpoint_id}), (Turn, place)])
        return as_it_goes(found, endpoint, turn)

    def request_of(self, delivery: Delivery) -> tuple[EventRecord | None, WebhookEndpoint | None]:
        """The event that a delivery sends, and its endpoint as it is now; None for what is there no more."""
        at = {"tenant": delivery.tenant}
        event, endpoint = self._store.get_many(
            [(EventRecord, {**at, "id": delivery.event_id}), (WebhookEndpoint, {**at, "id": delivery.endpoint_id})]
        )
        return event, endpoint

    def delivery(self, tenant: TenantId, id: str) -> Delivery:
        """Raises NotFound."""
        return delivery_at(self._store, tenant, id)

    def of_event(self, tenant: TenantId, endpoint_id: str, event_id: str) -> list[Delivery] | None:
        """All deliveries of an event to an endpoint; None where they are too many to be looked up one after the other."""
        first = self._store.get(Delivery, tenant=tenant, id=delivery_id(event_id, endpoint_id))
        if first is None:
            return []
        found, next_id = [first], first.again_id
        while next_id is not None and next_id != first.id:
            if len(found) > _MOST_FOLLOWED:
                return None
            following = self._store.get(Delivery, tenant=tenant, id=next_id)
            if following is None:
                return None
            found.append(following)
            next_id = following.earlier_id
        return found


def delivery_at(store: Store, tenant: TenantId, id: str) -> Delivery:
    """Raises NotFound."""
    found = store.get(Delivery, tenant=tenant, id=id)
    if found is None:
        raise NotFound("Delivery not found", {"id": id})
    return found
