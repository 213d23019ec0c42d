"""A message to relay an outbox row, or to go on with a redelivery job."""

from __future__ import annotations

import json

from chalicelib.domain.ids import TenantId
from chalicelib.wiring import services
from chalicelib.workers.batches import fields, of_newer


def handle(body: str) -> None:
    """Tell the row, or go on with the job for ten seconds. Raises any error that stops it; the queue brings the message again,
    and the sweep finds the row, or the job, anyway."""
    if of_newer(body):
        return
    message = json.loads(body)
    if isinstance(message, dict) and "redelivery" in message:
        tenant, job = fields(body, "tenant", "redelivery")
        services().redelivery_run.carry(TenantId(tenant), job)
    else:
        (row,) = fields(body, "id")
        tenant = message.get("tenant")
        services().relay.tell(row, TenantId(tenant) if isinstance(tenant, str) else None)
