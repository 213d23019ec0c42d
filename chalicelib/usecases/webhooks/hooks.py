"""Webhooks of single invoices: made with the invoice, an endpoint from its first event on, kept as long as deliveries are.

Touches webhooks only. The API seals the secret and stores it with the invoice; the relay makes the endpoint of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, WebhookEndpoint, new_secret
from chalicelib.domain.webhooks.hooks import PREFIX, Hooked, InvoiceHook
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.secrets import Sealer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.endpoints import Webhooks

_NAMES = {"url": "webhookUrl", "secret": "webhookSecret"}


@dataclass(frozen=True, slots=True)
class NewHook:
    """A webhook with its secret in the clear, for the one answer that shows it."""

    hook: InvoiceHook
    secret: str = field(repr=False)


class InvoiceHooks:
    def __init__(self, clock: Clock, sealer: Sealer, webhooks: Webhooks) -> None:
        self._clock, self._sealer, self._webhooks = clock, sealer, webhooks

    def problems(self, url: object, secret: object | None) -> list[FieldProblem]:
        """The problems of a URL, under the rules of all webhooks, and of a secret; None is generated here."""
        found = self._webhooks.problems({"url": url, "secret": secret})
        return [replace(problem, field=_NAMES[problem.field]) for problem in found]

    def new(self, tenant: TenantId, url: str, secret: str | None = None) -> NewHook:
        """A webhook for an invoice that is being made; url and secret have no problems. Raises Unavailable."""
        now = self._clock.now_ms()
        id, clear = new_id(PREFIX, now), secret or new_secret()
        return NewHook(InvoiceHook(id, url, self._sealer.seal(tenant, id, clear), now), clear)


def endpoints_of_hooks(store: Store, tenant: TenantId, hooks: Sequence[Hooked], now: int) -> dict[str, WebhookEndpoint]:
    """The endpoints that are told of these objects, by the object; made where they are not there, or no more.

    Each is kept until at least as long after the last event as its delivery is. Raises Unavailable, Conflict.
    """
    made = {one.hook.id: one.hook for one in hooks}
    found = {id: until_settled(lambda hook=hook: _endpoint(store, tenant, hook, now)) for id, hook in made.items()}  # type: ignore[misc]
    return {one.object_id: found[one.hook.id] for one in hooks}


def _endpoint(store: Store, tenant: TenantId, hook: InvoiceHook, now: int) -> WebhookEndpoint:
    endpoint = store.get(WebhookEndpoint, tenant=tenant, id=hook.id)
    if endpoint is not None and (endpoint.ttl or 0) >= now // 1000 + KEEP_SECONDS:
        return endpoint
    ttl = now // 1000 + 2 * KEEP_SECONDS
    if endpoint is None:
        after = WebhookEndpoint(tenant, hook.id, hook.url, ("*",), hook.secret, hook.created_at, sealed=True, ttl=ttl)
    else:
        after = replace(next_version(endpoint), ttl=ttl)
    store.commit([Save(after)])
    return after
