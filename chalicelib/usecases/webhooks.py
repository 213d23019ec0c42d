"""Webhook endpoints: registering, reading, removing, and what merchants see of endpoints, deliveries and events.

Touches no other records than webhooks and events. A secret leaves only in the answer of `register`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from chalicelib.domain.errors import BusinessRule, FieldProblem, InvalidParameter, NotFound
from chalicelib.domain.events import EVENT_NAMES
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.webhook_urls import has_credentials, url_problems
from chalicelib.domain.webhooks import (
    MAX_ENDPOINTS,
    Attempt,
    Delivery,
    EventRecord,
    WebhookEndpoint,
    new_secret,
    secret_problem,
)
from chalicelib.usecases.addresses import Also, nothing_more
from chalicelib.usecases.changes import Delete, Save
from chalicelib.usecases.ports import Clock, Store
from chalicelib.usecases.views import iso, without_none


def endpoints_of(store: Store, tenant: TenantId) -> list[WebhookEndpoint]:
    """All endpoints of a tenant, oldest first. Raises Unavailable."""
    return store.page(WebhookEndpoint, limit=100, tenant=tenant).items


class Webhooks:
    """Endpoints of merchants. `allow_private` (the local stack) lets URLs be http and private."""

    def __init__(self, store: Store, clock: Clock, *, allow_private: bool = False) -> None:
        self._store = store
        self._clock = clock
        self._allow_private = allow_private

    def register(
        self, tenant: TenantId, url: object, events: object, secret: object | None = None, *, also: Also = nothing_more
    ) -> tuple[WebhookEndpoint, str]:
        """Register an endpoint; with it comes its secret, made here when none is given: the only time that it is shown.

        `also` gives what commits together with the endpoint. Raises InvalidParameter with everything that is wrong,
        BusinessRule when the tenant has as many as it may.
        """
        problems = self._problems(url, events, secret)
        if problems:
            raise InvalidParameter(problems)
        if len(endpoints_of(self._store, tenant)) >= MAX_ENDPOINTS:
            raise _too_many()
        now = self._clock.now_ms()
        shown = new_secret() if secret is None else cast(str, secret)
        names = tuple(dict.fromkeys(cast(Sequence[str], events)))
        endpoint = WebhookEndpoint(tenant, new_id("wh", now), cast(str, url), names, shown, now)
        self._store.commit([Save(endpoint), *also(endpoint)])
        # Others may have registered since the count above. Whoever is last to be stored sees all of them here, so that
        # never more than the allowed number stay.
        if len(endpoints_of(self._store, tenant)) > MAX_ENDPOINTS:
            self._remove(endpoint)
            raise _too_many()
        return endpoint, shown

    def list(self, tenant: TenantId) -> list[WebhookEndpoint]:
        """All endpoints of the tenant, oldest first."""
        return endpoints_of(self._store, tenant)

    def get(self, tenant: TenantId, id: str) -> WebhookEndpoint:
        """Raises NotFound."""
        endpoint = self._store.get(WebhookEndpoint, tenant=tenant, id=id)
        if endpoint is None:
            raise NotFound("Webhook not found")
        return endpoint

    def delete(self, tenant: TenantId, id: str) -> WebhookEndpoint:
        """Remove an endpoint; its open deliveries are cancelled when they come up. Raises NotFound."""
        endpoint = self.get(tenant, id)
        self._remove(endpoint)
        return endpoint

    def _remove(self, endpoint: WebhookEndpoint) -> None:
        self._store.commit([Delete(WebhookEndpoint, {"tenant": endpoint.tenant, "id": endpoint.id})])

    def _problems(self, url: object, events: object, secret: object | None) -> tuple[FieldProblem, ...]:
        problems = []
        wrong_url = url_problems(url, allow_private=self._allow_private)
        if wrong_url:
            shown = None if isinstance(url, str) and has_credentials(url) else url
            problems.append(FieldProblem("url", shown, tuple(wrong_url)))
        if not _are_events(events):
            allowed = 'a list of at least one of: "*", ' + ", ".join(EVENT_NAMES)
            problems.append(FieldProblem("events", events, (allowed,)))
        wrong_secret = None if secret is None else secret_problem(secret)
        if wrong_secret is not None:
            problems.append(FieldProblem("secret", None, (wrong_secret,)))
        return tuple(problems)


def _are_events(events: object) -> bool:
    return (
        isinstance(events, (list, tuple))
        and len(events) > 0
        and all(isinstance(name, str) and (name == "*" or name in EVENT_NAMES) for name in events)
    )


def _too_many() -> BusinessRule:
    return BusinessRule("url", f"at most {MAX_ENDPOINTS} webhooks may be registered")


def endpoint_view(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """What merchants see of an endpoint: never its secret."""
    return without_none(
        {
            "id": endpoint.id,
            "url": endpoint.url,
            "events": list(endpoint.events),
            "enabled": endpoint.enabled,
            "disabledReason": endpoint.disabled_reason,
            "disabledAt": None if endpoint.disabled_at is None else iso(endpoint.disabled_at),
            "createdAt": iso(endpoint.created_at),
        }
    )


def delivery_view(delivery: Delivery) -> dict[str, Any]:
    """What merchants see of a delivery, with its attempts, oldest first."""
    return without_none(
        {
            "id": delivery.id,
            "webhookId": delivery.endpoint_id,
            "eventId": delivery.event_id,
            "event": delivery.event_name,
            "status": delivery.status,
            "reason": delivery.reason,
            "attempts": [_attempt_view(attempt) for attempt in delivery.attempts],
            "nextAttemptAt": iso(delivery.due_at) if delivery.status == "pending" else None,
            "createdAt": iso(delivery.created_at),
            "finishedAt": None if delivery.finished_at is None else iso(delivery.finished_at),
        }
    )


def _attempt_view(attempt: Attempt) -> dict[str, Any]:
    return without_none(
        {
            "at": iso(attempt.at),
            "responseStatus": attempt.status,
            "responseBody": attempt.answer if attempt.status is not None else None,
            "durationMs": attempt.duration,
            "error": attempt.error,
        }
    )


def event_view(event: EventRecord) -> dict[str, Any]:
    """The event as it is told: `id`, `event`, `data`, `timestamp`, `sequence`."""
    return cast(dict[str, Any], json.loads(event.body))
