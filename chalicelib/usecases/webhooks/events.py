"""Events as they were told: one is read for its merchant, with the record as it was at that moment."""

from __future__ import annotations

import json
from typing import Any, cast

from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.ports.store import Store


def told_event(store: Store, tenant: TenantId, id: str) -> EventRecord:
    """Raises NotFound."""
    event = store.get(EventRecord, tenant=tenant, id=id)
    if event is None:
        raise NotFound("Event not found", {"id": id})
    return event


def event_view(event: EventRecord) -> dict[str, Any]:
    """The event as it is told: `id`, `event`, `data`, `timestamp`, `sequence`."""
    return cast(dict[str, Any], json.loads(event.body))
