"""A message that a webhook endpoint may have due deliveries."""

from __future__ import annotations

import json

from chalicelib.domain.ids import TenantId
from chalicelib.wiring import services
from chalicelib.workers.batches import fields, of_newer


def handle(body: str) -> None:
    """Send its due deliveries. A receiver's failure is no failure here: it is recorded, and the next attempt is planned."""
    if of_newer(body):
        return
    tenant, endpoint = fields(body, "tenant", "endpoint")
    services().leases.take(TenantId(tenant), endpoint, held="held" in json.loads(body))
