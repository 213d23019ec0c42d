"""Merchants' views of webhook endpoints, deliveries and jobs of redelivery."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import Attempt, Delivery, plain_headers
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.domain.webhooks.redelivery import RedeliveryJob
from chalicelib.usecases.base.views import without_none


def endpoint_view(endpoint: WebhookEndpoint, now: int, turn: Turn | None = None) -> dict[str, Any]:
    """A merchant's view of an endpoint: never its secret. `now` (milliseconds since 1970) tells whether a rotation still
    overlaps, and whether the endpoint rests, as far as its lease (`turn`) is known."""
    until, rest = endpoint.previous_until, rests_until(endpoint, turn)
    return without_none(
        {
            "id": endpoint.id,
            "url": endpoint.url,
            "events": list(endpoint.events),
            "status": endpoint.status,
            "enabled": endpoint.status == "active",
            "disabledReason": endpoint.disabled_reason,
            "disabledAt": _time(endpoint.disabled_at),
            "failingSince": _time(endpoint.failing_since),
            "failures": _failures(endpoint, turn),
            "restsUntil": iso(rest) if now < rest else None,
            "previousSecretUntil": iso(until) if until is not None and now < until else None,
            "createdAt": iso(endpoint.created_at),
        }
    )


def noticed_view(endpoint: WebhookEndpoint, now: int) -> dict[str, Any]:
    """The view of an endpoint for readers of events and other receivers: without the query of its URL, which often holds a
    token."""
    return {**endpoint_view(endpoint, now), "url": endpoint.url.partition("?")[0]}


def rests_until(endpoint: WebhookEndpoint, turn: Turn | None) -> int:
    """The end of the receiver's rest, in milliseconds since 1970; 0 where it asked for none."""
    return 0 if turn is None or endpoint.status != "active" else turn.forgiven(endpoint.fresh_at).rests_until


def _failures(endpoint: WebhookEndpoint, turn: Turn | None) -> int | None:
    """Failed attempts since the last success, as far as the endpoint's lease is known; None for none."""
    return None if turn is None or not endpoint.enabled else turn.forgiven(endpoint.fresh_at).failures or None


def as_it_goes(delivery: Delivery, endpoint: WebhookEndpoint | None, turn: Turn | None) -> Delivery:
    """`delivery` as a reader of its endpoint sees it: a time before the end of the rest becomes that end."""
    rest = 0 if endpoint is None else rests_until(endpoint, turn)
    return replace(delivery, due_at=max(delivery.due_at, rest))


def delivery_view(delivery: Delivery) -> dict[str, Any]:
    """A merchant's view of a delivery, with its attempts, oldest first."""
    return without_none(
        {
            "id": delivery.id,
            "webhookId": delivery.endpoint_id,
            "eventId": delivery.event_id,
            "event": delivery.event_name,
            "status": delivery.status,
            "reason": delivery.reason,
            "attempts": [_attempt_view(attempt) for attempt in delivery.attempts],
            "lastResponseStatus": delivery.attempts[-1].status if delivery.attempts else None,
            "nextAttemptAt": iso(delivery.due_at) if delivery.status == "pending" and not delivery.parked else None,
            "held": True if delivery.held else None,
            "waitsForEarlier": True if delivery.behind is not None else None,
            "redeliveredAs": delivery.again_id,
            "redeliveryOf": delivery.earlier_id,
            "redeliveryId": delivery.job_id,
            "createdAt": iso(delivery.created_at),
            "finishedAt": _time(delivery.finished_at),
        }
    )


def request_view(delivery: Delivery, endpoint: WebhookEndpoint | None, event: EventRecord | None) -> dict[str, Any]:
    """What a delivery sends, without signatures: those are made anew for each attempt."""
    return {
        "url": None if endpoint is None else endpoint.url,
        "headers": {**plain_headers(delivery), "webhook-id": delivery.event_id},
        "body": None if event is None else event.body,
    }


def redelivery_view(job: RedeliveryJob) -> dict[str, Any]:
    """A merchant's view of a redelivery job."""
    return without_none(
        {
            "id": job.id,
            "webhookId": job.endpoint_id,
            "from": iso(job.from_at),
            "to": iso(job.to_at),
            "which": job.which,
            "events": list(job.events),
            "status": job.status,
            "reason": job.reason,
            "looked": job.looked,
            "made": job.made,
            "skipped": job.skipped,
            "createdAt": iso(job.created_at),
            "finishedAt": _time(job.finished_at),
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
            "nextAttemptAt": _time(attempt.next_at),
        }
    )


def _time(at: int | None) -> str | None:
    return None if at is None else iso(at)
