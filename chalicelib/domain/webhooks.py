"""Webhooks: the records, how a delivery's state goes on, and the signatures. Pure: sends nothing, reads no clock.

A delivery is `pending` until it is `delivered` (answered 2xx), `dead` (every retry failed) or `cancelled` (nobody is there
to be told any more: endpoint deleted, disabled, or gone).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_bytes
from typing import Any, Literal

from chalicelib.domain.events import Event
from chalicelib.domain.ids import TenantId, derived_id
from chalicelib.domain.work import Work, lane_of, time_order

DeliveryStatus = Literal["pending", "delivered", "dead", "cancelled"]

MAX_ENDPOINTS = 20
"""Endpoints of one tenant."""
ATTEMPT_SECONDS = 10.0
"""An attempt that takes longer has failed."""
LEASE_MS = 30_000
"""How long an attempt keeps others from sending the same delivery: the attempt itself, and time to write down what came of it."""
ANSWER_BYTES = 1024
"""How much of an answer is kept."""
KEEP_SECONDS = 30 * 86_400
"""How long events and deliveries are kept."""
RETRY_SECONDS = (5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000)
"""Waits after the first, second, ... failed attempt; after the ninth the delivery is dead."""
JITTER = 0.2
"""A wait is up to this part longer, so that what failed together does not come back together."""
MIN_SECRET, MAX_SECRET = 16, 256
OVERLAP_SECONDS, MAX_OVERLAP = 86_400, 7 * 86_400
"""How long the secret of before signs too, by default and at most."""
TEST_EVENT = "webhook.test"
"""Sent to one endpoint when its owner asks for it. Nobody subscribes to it."""
STANDARD_PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event as it is told. `body` is the JSON text whose UTF-8 bytes are sent and signed: made once, never made again.

    `at` in milliseconds, `ttl` (when it may be forgotten) in seconds since 1970.
    """

    tenant: TenantId
    id: str
    name: str
    object_id: str
    sequence: int
    at: int
    body: str
    ttl: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """Where a tenant wants to be told of `events` (names, or "*"). Times in milliseconds since 1970.

    `previous_secret` signs as well until `previous_until`, while receivers change over. Where `sealed`, both are ciphertext that
    `usecases/ports/secrets.py` opens; rows from before secrets were encrypted have them in the clear until they are written next.
    """

    tenant: TenantId
    id: str
    url: str
    events: tuple[str, ...]
    secret: str = field(repr=False)
    created_at: int
    enabled: bool = True
    disabled_reason: str | None = None
    disabled_at: int | None = None
    previous_secret: str | None = field(default=None, repr=False)
    previous_until: int | None = None
    version: int = 1
    sealed: bool = False

    def wants(self, event: str) -> bool:
        return self.enabled and ("*" in self.events or event in self.events)

    def disabled(self, reason: str, at: int) -> WebhookEndpoint:
        return replace(self, enabled=False, disabled_reason=reason, disabled_at=at, version=self.version + 1)

    def signing(self, now: int) -> tuple[str, ...]:
        """The secrets that sign at `now` as they are stored, newest first; the second is that of before, during its overlap."""
        overlaps = self.previous_until is not None and now < self.previous_until
        previous = self.previous_secret if overlaps else None
        return (self.secret,) if previous is None else (self.secret, previous)

    def with_sealed(self, seal: Callable[[str], str], now: int) -> WebhookEndpoint:
        """With its secrets as `seal` gives them, where they are in the clear still; one that signs no more is forgotten."""
        if self.sealed:
            return self
        current, *previous = (seal(secret) for secret in self.signing(now))
        return replace(
            self,
            secret=current,
            previous_secret=previous[0] if previous else None,
            previous_until=self.previous_until if previous else None,
            sealed=True,
        )

    def rotated(self, secret: str, now: int, overlap: int) -> WebhookEndpoint:
        """With a new secret from `now` on; the one of before signs beside it for `overlap` seconds. Both sealed, or neither."""
        return replace(
            self,
            secret=secret,
            previous_secret=self.secret if overlap > 0 else None,
            previous_until=now + overlap * 1000 if overlap > 0 else None,
            version=self.version + 1,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: `status` is None where no answer came; `answer` is the beginning of what was answered; `duration` in ms."""

    at: int
    status: int | None
    duration: int
    answer: str = ""
    error: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None and self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one endpoint. Times in milliseconds since 1970, `ttl` in seconds.

    `due_at` is when the next attempt is wanted; `attempting_until` is the lease of the attempt that is going on.
    """

    tenant: TenantId
    id: str
    endpoint_id: str
    event_id: str
    event_name: str
    created_at: int
    due_at: int
    ttl: int
    status: DeliveryStatus = "pending"
    attempts: tuple[Attempt, ...] = ()
    attempting_until: int | None = None
    reason: str | None = None
    finished_at: int | None = None
    version: int = 1

    def claimed(self, now: int) -> Delivery:
        """With the lease of an attempt that starts at `now`."""
        return replace(self, attempting_until=now + LEASE_MS, version=self.version + 1)

    def leased(self, now: int) -> bool:
        return self.attempting_until is not None and now < self.attempting_until

    def after(self, attempt: Attempt, now: int, jitter: float) -> Delivery:
        """What becomes of it by `attempt`, which ended at `now`; `jitter` (0 to 1) is by how much the next wait is longer."""
        told = replace(self, attempts=(*self.attempts, attempt), attempting_until=None, version=self.version + 1)
        if attempt.succeeded:
            return replace(told, status="delivered", finished_at=now)
        if attempt.status == 410:
            return replace(told, status="cancelled", reason="the endpoint answered 410 Gone", finished_at=now)
        delay = retry_delay_ms(len(told.attempts), jitter)
        if delay is None:
            return replace(told, status="dead", reason=f"{len(told.attempts)} attempts failed", finished_at=now)
        return replace(told, due_at=now + delay)

    def hurried(self, now: int) -> Delivery:
        """Due at once instead of when its turn would have come."""
        return replace(self, due_at=min(self.due_at, now), version=self.version + 1)

    def cancelled(self, reason: str, now: int) -> Delivery:
        return replace(self, status="cancelled", reason=reason, attempting_until=None, finished_at=now, version=self.version + 1)


def delivery_for(event: EventRecord, endpoint: WebhookEndpoint, now: int, again: str = "") -> Delivery:
    """The delivery of `event` to `endpoint`, due at once. Its id follows from the two: making it twice makes one.

    `again` tells a later delivery of the same event from the first one.
    """
    return Delivery(
        tenant=event.tenant, id=derived_id("dlv", event.id, endpoint.id, *filter(None, [again])), endpoint_id=endpoint.id,
        event_id=event.id,
        event_name=event.name, created_at=now, due_at=now, ttl=now // 1000 + KEEP_SECONDS,
    )  # fmt: skip


def delivery_work(delivery: Delivery) -> Work:
    """The obligation to make the delivery's next attempt. Another one after every rescheduling: the order is the due time."""
    return Work("delivery", lane_of(delivery.id), time_order(delivery.due_at), f"{delivery.tenant}|{delivery.id}")


def delivery_key(work: Work) -> dict[str, str]:
    """Key fields of the delivery that `work` is about."""
    tenant, _, id = work.id.rpartition("|")
    return {"tenant": tenant, "id": id}


def retry_delay_ms(failures: int, jitter: float) -> int | None:
    """Milliseconds to wait after that many failed attempts (1 or more), None when it is time to give up.

    `jitter` from 0 to 1 lengthens the wait by up to a fifth; it is never shorter than published.
    """
    if failures > len(RETRY_SECONDS):
        return None
    return round(RETRY_SECONDS[failures - 1] * 1000 * (1 + JITTER * jitter))


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def event_record(event: Event, timestamp: str) -> EventRecord:
    """The record of `event`; `timestamp` is its time as the interface writes times.

    The body is what ECMAScript's JSON.stringify would write of the same value (ECMA-262 section 25.5.2: no blanks, nothing
    escaped that need not be, whole numbers without ".0"): many receivers check the signature over `JSON.stringify(parsed)`
    instead of the bytes. Raises ValueError for NaN and infinities, TypeError for what JSON has no form for.
    """
    content = {"id": event.id, "event": event.name, "data": event.data, "timestamp": timestamp, "sequence": event.sequence}
    body = json.dumps(_whole_numbers(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    body = _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", body)
    return EventRecord(
        tenant=event.tenant, id=event.id, name=event.name, object_id=event.object_id, sequence=event.sequence, at=event.at,
        body=body, ttl=event.at // 1000 + KEEP_SECONDS,
    )  # fmt: skip


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def new_secret() -> str:
    """A fresh secret in the form of Standard Webhooks: `whsec_` and 32 random bytes in base64."""
    return STANDARD_PREFIX + base64.b64encode(token_bytes(32)).decode()


def secret_problem(secret: object) -> str | None:
    """Why `secret` can not be one, as a constraint for the caller; None when it can."""
    if not isinstance(secret, str) or not MIN_SECRET <= len(secret) <= MAX_SECRET:
        return f"a string of {MIN_SECRET} to {MAX_SECRET} characters"
    if not secret.isprintable():
        return "printable characters only"
    if secret.startswith(STANDARD_PREFIX):
        try:
            strong = len(standard_key(secret)) >= MIN_SECRET
        except ValueError:
            strong = False
        if not strong:
            return f"whsec_ must be followed by at least {MIN_SECRET} bytes in base64"
    return None


def standard_key(secret: str) -> bytes:
    """The key of the Standard Webhooks signature: what follows `whsec_`, from base64 (padded or not); without it the text's bytes.

    Raises ValueError for a `whsec_` secret that is not base64.
    """
    if secret.startswith(STANDARD_PREFIX):
        coded = secret.removeprefix(STANDARD_PREFIX)
        return base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True)
    return secret.encode()


def signature_headers(secrets: Sequence[str], event_id: str, body: bytes, now: int) -> dict[str, str]:
    """The headers that prove where `body` comes from, for an attempt at `now` (milliseconds since 1970).

    `secrets` are in the clear, newest first: one, or with it the one of before, which signs as well during a rotation's overlap.

    `x-gateway-signature` is HMAC-SHA256 of the exact bytes, keyed with the secret's text as it was shown (prefix and all).
    The `webhook-*` headers follow Standard Webhooks (github.com/standard-webhooks, spec version 1.0.0): timestamp in
    seconds, signature over `id.timestamp.body`.
    """
    stamp = str(now // 1000)
    signed = f"{event_id}.{stamp}.".encode() + body
    current, *previous = secrets
    standard = [f"v1,{_base64_hmac(standard_key(secret), signed)}" for secret in secrets]
    headers = {
        "x-gateway-signature": _gateway_signature(current, body),
        "webhook-id": event_id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(standard),
    }
    if previous:
        headers["x-gateway-signature-previous"] = _gateway_signature(previous[0], body)
    return headers


def _gateway_signature(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _base64_hmac(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()
