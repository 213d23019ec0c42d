"""Deliveries on request: which endpoints take one, and what the request is answered."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.usecases.webhooks.views import as_it_goes


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
