"""Webhook endpoints: registering, reading, changing, removing. Redelivery is in `usecases/webhooks/redelivery.py`.

Touches webhooks, events and work only. A secret leaves in the answers of `register` and `rotate_secret` alone; what is stored is
sealed, and nothing here can open it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast

from chalicelib.domain.errors import BusinessRule, FieldProblem, InvalidParameter, NotFound
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.versions import version_after
from chalicelib.domain.webhooks.deliveries import unheld_work
from chalicelib.domain.webhooks.endpoints import (
    MAX_ENDPOINTS,
    EndpointStatus,
    WebhookEndpoint,
    new_secret,
    secret_problem,
)
from chalicelib.domain.webhooks.events import names_problem
from chalicelib.domain.webhooks.hooks import is_hook
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.domain.webhooks.urls import has_credentials, url_problems
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.open_work import is_open
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Close, Delete, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.secrets import Sealer
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

Problems = list[FieldProblem]


def endpoints_of(store: Store, tenant: TenantId) -> list[WebhookEndpoint]:
    """All endpoints that a tenant registered, oldest first. Raises Unavailable."""
    return store.page(WebhookEndpoint, limit=100, tenant=tenant).items


@dataclass(frozen=True, slots=True)
class Shown:
    """An endpoint with its newest secret in the clear, for the one answer that shows it. `turn` is its lease; None where it
    never had one."""

    endpoint: WebhookEndpoint
    secret: str = field(repr=False)
    turn: Turn | None = None


def endpoint_of(store: Store, tenant: TenantId, id: str) -> WebhookEndpoint:
    """Raises NotFound, Unavailable."""
    endpoint = store.get(WebhookEndpoint, tenant=tenant, id=id)
    if endpoint is None:
        raise NotFound("Webhook not found", {"id": id})
    return endpoint


def registered(id: str) -> str:
    """The id of an endpoint that its owner may change: not that of an invoice's own. Raises NotFound."""
    if is_hook(id):
        raise NotFound("Webhook not found", {"id": id})
    return id


def endpoint_and_turn(store: Store, tenant: TenantId, id: str) -> tuple[WebhookEndpoint, Turn | None]:
    """An endpoint and its lease with its recent record, in one read. Raises NotFound, Unavailable."""
    turn_key = {"tenant": tenant, "endpoint_id": id}
    endpoint, turn = store.get_many([(WebhookEndpoint, {"tenant": tenant, "id": id}), (Turn, turn_key)])
    if endpoint is None:
        raise NotFound("Webhook not found", {"id": id})
    return endpoint, turn


def wake(queues: Queues, endpoint: WebhookEndpoint, *, held: bool = False) -> None:
    """Ask for due deliveries of `endpoint`. Never raises: the sweep brings them anyway. `held`: parked deliveries, too."""
    try:
        queues.wake(endpoint.tenant, endpoint.id, failing=endpoint.failing_since is not None, held=held)
    except Unavailable:
        log.warning("no message for webhook endpoint %s: the sweep brings it", endpoint.id)


class Webhooks:
    """Endpoints of merchants. `allow_private` (the local stack) lets URLs be http and private."""

    def __init__(self, store: Store, queues: Queues, clock: Clock, sealer: Sealer, *, allow_private: bool = False) -> None:
        self._store = store
        self._queues = queues
        self._clock = clock
        self._sealer = sealer
        self._allow_private = allow_private

    def register(self, tenant: TenantId, url: object, events: object, secret: object | None = None) -> Shown:
        """Register an endpoint; with it comes its secret, made here when none is given: the only time that it is shown.

        Raises InvalidParameter with everything that is wrong, BusinessRule when the tenant has as many as it may, Unavailable: then
        nothing was made.
        """
        return self.registering(tenant, url, events, secret).run()

    def registering(self, tenant: TenantId, url: object, events: object, secret: object | None = None) -> Creation[Shown]:
        """What `register` commits. Raises InvalidParameter."""
        problems = self.problems({"url": url, "events": events, "secret": secret})
        if problems:
            raise InvalidParameter(problems)
        fresh = new_secret() if secret is None else cast(str, secret)
        id = new_id("wh", self._clock.now_ms())
        seal = self._sealing(tenant, id)

        def prepare() -> Prepared[Shown]:
            tally = self._tally(tenant)
            if tally.count >= MAX_ENDPOINTS:
                raise BusinessRule("url", f"at most {MAX_ENDPOINTS} webhooks may be registered")
            now = self._clock.now_ms()
            endpoint = WebhookEndpoint(tenant, id, cast(str, url), _names(events), seal(fresh), now, sealed=True)
            return Prepared(Shown(endpoint, fresh), [Save(endpoint), Save(tally.plus(1))])

        return Creation(self._store, prepare)

    def list(self, tenant: TenantId) -> list[WebhookEndpoint]:
        """All endpoints of the tenant, oldest first."""
        return endpoints_of(self._store, tenant)

    def get(self, tenant: TenantId, id: str) -> WebhookEndpoint:
        """Raises NotFound."""
        return endpoint_of(self._store, tenant, id)

    def with_turn(self, tenant: TenantId, id: str) -> tuple[WebhookEndpoint, Turn | None]:
        """An endpoint and its lease. Raises NotFound."""
        return endpoint_and_turn(self._store, tenant, id)

    def turns(self, endpoints: Sequence[WebhookEndpoint]) -> Sequence[Turn | None]:
        """The leases of those endpoints, in their order; None for an endpoint that was sent nothing yet."""
        wanted = [(Turn, {"tenant": one.tenant, "endpoint_id": one.id}) for one in endpoints]
        return self._store.get_many(wanted) if wanted else []

    def update(
        self,
        tenant: TenantId,
        id: str,
        url: object | None = None,
        events: object | None = None,
        status: EndpointStatus | None = None,
    ) -> WebhookEndpoint:
        """Change the given fields. Enabling forgets why it was disabled; deliveries parked while it was paused are sent when it
        is unpaused.

        Raises InvalidParameter, NotFound; Unavailable where a secret from before they were sealed is to be.
        """
        given = (("url", url), ("events", events))
        problems = self.problems({name: value for name, value in given if value is not None})
        if problems:
            raise InvalidParameter(problems)
        seal = self._sealing(tenant, registered(id))

        def decide() -> tuple[WebhookEndpoint, WebhookEndpoint]:
            before = self.get(tenant, id)
            now = self._clock.now_ms()
            after = replace(
                before,
                url=before.url if url is None else cast(str, url),
                events=before.events if events is None else _names(events),
            )
            if status == "disabled" and before.enabled:
                after = replace(after.disabled("its owner disabled it", now), version=before.version)
            elif status in ("active", "paused"):
                after = replace(after, enabled=True, paused=status == "paused", disabled_reason=None, disabled_at=None)
            if after == before:
                return before, before
            if after.url != before.url or (after.status == "active") != (before.status == "active"):
                after = replace(after, fresh_at=now, failing_since=None)
            after = replace(after.with_sealed(seal, now), version=version_after(before))
            obligation: Sequence[Change] = ()
            if before.paused and not after.paused:
                after = after.unheld(now)
                obligation = self._unheld(before, after)
            self._store.commit([Save(after), *obligation])
            return before, after

        before, after = until_settled(decide)
        if before.status == "paused" and after.status != "paused":
            wake(self._queues, after, held=True)
        return after

    def rotate_secret(self, tenant: TenantId, id: str, overlap: int, secret: object | None = None) -> Shown:
        """Give the endpoint a new secret; the previous one signs as well for `overlap` seconds; older ones no more.

        Raises InvalidParameter, NotFound, Unavailable: then the secret is what it was.
        """
        return self.rotating_secret(tenant, id, overlap, secret).run()

    def rotating_secret(self, tenant: TenantId, id: str, overlap: int, secret: object | None = None) -> Creation[Shown]:
        """What `rotate_secret` commits. Raises InvalidParameter."""
        problems = self.problems({"secret": secret})
        if problems:
            raise InvalidParameter(problems)
        fresh = new_secret() if secret is None else cast(str, secret)
        seal = self._sealing(tenant, registered(id))

        def prepare() -> Prepared[Shown]:
            (before, turn), now = self.with_turn(tenant, id), self._clock.now_ms()
            if before.sealed:
                after = before.rotated(seal(fresh), now, overlap)
            else:
                after = before.rotated(fresh, now, overlap).with_sealed(seal, now)
            return Prepared(Shown(after, fresh, turn), [Save(after)])

        return Creation(self._store, prepare)

    def delete(self, tenant: TenantId, id: str) -> WebhookEndpoint:
        """Remove an endpoint; its open deliveries are cancelled when they come up. Raises NotFound."""

        def decide() -> WebhookEndpoint:
            tally = self._tally(tenant)  # first: who deletes the same one meanwhile changes it
            endpoint = self.get(tenant, registered(id))
            # Whatever it is now: it may be paused before this commits.
            obligation = self._unheld(endpoint, endpoint.unheld(self._clock.now_ms()))
            self._store.commit([Delete(WebhookEndpoint, {"tenant": tenant, "id": id}), Save(tally.plus(-1)), *obligation])
            return endpoint

        gone = until_settled(decide)
        wake(self._queues, gone, held=True)
        return gone

    def problems(self, given: Mapping[str, object]) -> Problems:
        """The problems of the `url`, `events` and `secret` in `given`. A secret of None is generated here."""
        found: Problems = []
        if "url" in given:
            found += self._url_problems(given["url"])
        if "events" in given:
            found += _events_problems(given["events"])
        return [*found, *_secret_problems(given.get("secret"))]

    def _sealing(self, tenant: TenantId, id: str) -> Callable[[str], str]:
        """A function that seals secrets of one endpoint: each once, however often the change is decided again."""
        return cache(lambda secret: self._sealer.seal(tenant, id, secret))

    def _unheld(self, before: WebhookEndpoint, after: WebhookEndpoint) -> Sequence[Change]:
        """Open the obligation to send or cancel the parked deliveries, whether or not a message comes. It takes the place of the
        last one where that is still open: however often an endpoint is unpaused, it has one."""
        last = unheld_work(before)
        again = before.unheld_at and is_open(self._store, last)
        return [Open(unheld_work(after)), *([Close(last)] if again else [])]

    def _tally(self, tenant: TenantId) -> Tally:
        return self._store.get(Tally, tenant=tenant, of="webhooks") or Tally(tenant, "webhooks", 0, 0)

    def _url_problems(self, url: object) -> tuple[FieldProblem, ...]:
        wrong = url_problems(url, allow_private=self._allow_private)
        if not wrong:
            return ()
        shown = None if isinstance(url, str) and has_credentials(url) else url
        return (FieldProblem("url", shown, tuple(wrong)),)


def _events_problems(events: object) -> tuple[FieldProblem, ...]:
    wrong = names_problem(events)
    return () if wrong is None else (FieldProblem("events", events, (wrong,)),)


def _secret_problems(secret: object | None) -> tuple[FieldProblem, ...]:
    wrong = None if secret is None else secret_problem(secret)
    return () if wrong is None else (FieldProblem("secret", None, (wrong,)),)


def _names(events: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cast(Sequence[str], events)))
