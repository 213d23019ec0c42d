"""A message that an outbox row wants to be told, or that a job of redelivery wants to go on."""

from __future__ import annotations

import json

from chalicelib.domain.ids import TenantId
from chalicelib.wiring import services
from chalicelib.workers.batches import fields


def handle(body: str) -> None:
    """Tell the row, or go on with the job for ten seconds. Raises what stops it; the queue brings the message again, and the
    sweep finds the row, or the job, anyway."""
    message = json.loads(body)
    if isinstance(message, dict) and "redelivery" in message:
        tenant, job = fields(body, "tenant", "redelivery")
        services().redelivery_run.carry(TenantId(tenant), job)
    else:
        (row,) = fields(body, "id")
        services().relay.tell(row)
