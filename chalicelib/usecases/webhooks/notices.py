"""Notices to a merchant about its own webhook endpoints: an event, together with the change that it tells of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain.ids import Realm, tenant_parts
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.deliveries import unheld_work
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.domain.webhooks.hooks import is_hook
from chalicelib.domain.webhooks.leases import FAILING_TOLD_MS
from chalicelib.domain.work import NOTICE
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Change, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.webhooks.views import noticed_view


class Notices:
    """`clock_of` gives the time of a realm: events bear it, so that they stand in order among those of their realm. Everything
    else about endpoints and deliveries is on the machines' time (`usecases/base/clock.py`)."""

    def __init__(self, clock_of: Callable[[Realm], Clock]) -> None:
        self._clock_of = clock_of

    def turned_off(self, endpoint: WebhookEndpoint, reason: str, now: int) -> Sequence[Change]:
        """Disable `endpoint`, and tell its owner. `now` in milliseconds since 1970, the machines' time. Raises Unavailable."""
        after = replace(endpoint.disabled(reason, now), told=endpoint.told + 1)
        if not endpoint.paused:
            return [Save(after), *self._told("webhook.disabled", endpoint, after, now)]
        after = after.unheld(now)
        return [Save(after), Open(unheld_work(after)), *self._told("webhook.disabled", endpoint, after, now)]

    def failing(self, endpoint: WebhookEndpoint, since: int, now: int) -> Sequence[Change]:
        """Store that every attempt at `endpoint` fails since `since`, and report it, once in `FAILING_TOLD_MS`. The report may fail
        at the owner's other endpoints, which is reported as well. Times in milliseconds since 1970, the machines' time.
        Raises Unavailable."""
        marked = replace(next_version(endpoint), failing_since=since)
        if now - endpoint.failing_told_at < FAILING_TOLD_MS:
            return [Save(marked)]
        after = replace(marked, failing_told_at=now, told=endpoint.told + 1)
        return [Save(after), *self._told("webhook.failing", endpoint, after, now)]

    def _told(self, name: str, before: WebhookEndpoint, after: WebhookEndpoint, now: int) -> Sequence[Change]:
        if is_hook(after.id):
            return ()  # many invoices have the same URL: the other endpoints would be told of each
        _, realm = tenant_parts(after.tenant)
        news = News(self._clock_of(realm).now_ms())
        previous = None if before.status == after.status else before.status
        news.tell(after.tenant, name, after.id, after.told, noticed_view(after, now), previous)
        return news.emit(NOTICE)


def well_again(endpoint: WebhookEndpoint) -> Sequence[Change]:
    """Take the failing flag away. Nobody is told: the next successful delivery says the same."""
    return [Save(replace(next_version(endpoint), failing_since=None))]
