"""Notices to a merchant about its own webhook endpoints: an event, together with the change that it tells of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.turns import FAILING_TOLD_MS
from chalicelib.domain.webhooks import WebhookEndpoint
from chalicelib.usecases.changes import Change, Save
from chalicelib.usecases.outbox import News
from chalicelib.usecases.webhook_views import endpoint_view


def turned_off(endpoint: WebhookEndpoint, reason: str, now: int) -> Sequence[Change]:
    """Disable `endpoint`, and say so. `now` in milliseconds since 1970."""
    after = replace(endpoint.disabled(reason, now), told=endpoint.told + 1)
    return [Save(after), *_told("webhook.disabled", endpoint, after, now)]


def failing(endpoint: WebhookEndpoint, since: int, now: int) -> Sequence[Change]:
    """Mark `endpoint` as one that answers nothing well since `since`, and say so, once in `FAILING_TOLD_MS`: what is said may fail
    at the owner's other endpoints, and that is said as well. Times in milliseconds since 1970."""
    marked = replace(endpoint, failing_since=since, version=endpoint.version + 1)
    if now - endpoint.failing_told_at < FAILING_TOLD_MS:
        return [Save(marked)]
    after = replace(marked, failing_told_at=now, told=endpoint.told + 1)
    return [Save(after), *_told("webhook.failing", endpoint, after, now)]


def well_again(endpoint: WebhookEndpoint) -> Sequence[Change]:
    """Take that mark away: the next success of anything says the same, so nobody is told."""
    return [Save(replace(endpoint, failing_since=None, version=endpoint.version + 1))]


def _told(name: str, before: WebhookEndpoint, after: WebhookEndpoint, now: int) -> Sequence[Change]:
    news = News(now)
    data = endpoint_view(after, now)
    if before.status != after.status:
        data["previous_status"] = before.status
    news.tell(after.tenant, name, after.id, after.told, data)
    return news.emit()
