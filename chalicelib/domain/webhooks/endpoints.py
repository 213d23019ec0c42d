"""Webhook endpoints, event records, secrets and signatures. Pure: sends nothing, reads no clock."""

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

from chalicelib.domain.ids import TenantId
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.events import Event

EndpointStatus = Literal["active", "paused", "disabled"]

MAX_ENDPOINTS = 20
"""Endpoints of one tenant."""
KEEP_SECONDS = 30 * 86_400
"""How long events and deliveries are kept."""
MIN_SECRET, MAX_SECRET = 16, 256
OVERLAP_SECONDS, MAX_OVERLAP = 86_400, 7 * 86_400
"""How long the secret of before signs too, by default and at most."""
TEST_EVENT = "webhook.test"
"""Sent to one endpoint when its owner asks for it. Nobody subscribes to it."""
STANDARD_PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event as it is sent. `body` is the JSON text whose UTF-8 bytes are sent and signed: made once, never made again.

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
    """A tenant's endpoint for `events` (names, or "*"). Times in milliseconds since 1970.

    `previous_secret` signs as well until `previous_until`, while receivers change over. Where `sealed`, both are ciphertext that
    `usecases/ports/secrets.py` opens; rows from before secrets were encrypted have them in the clear until they are written next.

    `paused`: its deliveries are parked, and sent when it is unpaused. `failing_since`: no attempt has succeeded since then.
    `fresh_at` is when its owner last enabled it or gave it another URL: earlier failures do not count. `told` counts the events
    about the endpoint itself; its failing was last reported at `failing_told_at`. `unheld_at`: it was paused
    until then, last time, see `unheld`. `ttl`, in seconds, is when an invoice's own may be forgotten; None: never.
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
    paused: bool = False
    failing_since: int | None = None
    failing_told_at: int = 0
    fresh_at: int = 0
    told: int = 0
    version: int = 1
    sealed: bool = False
    unheld_at: int = 0
    ttl: int | None = None

    @property
    def status(self) -> EndpointStatus:
        return "disabled" if not self.enabled else "paused" if self.paused else "active"

    def wants(self, event: str) -> bool:
        return self.enabled and ("*" in self.events or event in self.events)

    def told_of(self, event: Event | EventRecord) -> bool:
        """Whether `event` is sent to it: it subscribes to the event, and the event is not about this endpoint itself."""
        return self.wants(event.name) and event.object_id != self.id

    def disabled(self, reason: str, at: int) -> WebhookEndpoint:
        return replace(next_version(self), enabled=False, paused=False, disabled_reason=reason, disabled_at=at, failing_since=None)

    def unheld(self, now: int) -> WebhookEndpoint:
        """The endpoint resumed, or deleted: its parked deliveries wait no more. Each pause has its own time; the version stays."""
        return replace(self, unheld_at=max(now, self.unheld_at + 1))

    def signing(self, now: int) -> tuple[str, ...]:
        """The stored secrets that sign at `now`, newest first; the second is the previous one, during its overlap."""
        overlaps = self.previous_until is not None and now < self.previous_until
        previous = self.previous_secret if overlaps else None
        return (self.secret,) if previous is None else (self.secret, previous)

    def with_sealed(self, seal: Callable[[str], str], now: int) -> WebhookEndpoint:
        """The endpoint with plain secrets sealed by `seal`; a secret that no longer signs is forgotten."""
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
        """The endpoint with a new secret from `now` on; the previous one signs beside it for `overlap` seconds. Both sealed, or
        neither."""
        return replace(
            next_version(self),
            secret=secret,
            previous_secret=self.secret if overlap > 0 else None,
            previous_until=now + overlap * 1000 if overlap > 0 else None,
        )


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def event_record(event: Event, timestamp: str, now: int) -> EventRecord:
    """The record of `event`; `timestamp` is its time as the interface writes times.

    It is kept from `now` on (milliseconds since 1970), the machines' time as for deliveries. An event of the test realm bears that
    realm's time, which may be years ahead, and must not outlive its deliveries.

    The body is what ECMAScript's JSON.stringify would write of the same value (ECMA-262 section 25.5.2: no blanks, nothing
    escaped that need not be, whole numbers without ".0"): many receivers check the signature over `JSON.stringify(parsed)`
    instead of the bytes. What a newer version added to the event is in it as that version says it (`Event.more`). Raises ValueError
    for NaN and infinities, TypeError for what JSON has no form for.
    """
    content = {"id": event.id, "event": event.name, "data": event.data, "timestamp": timestamp, "sequence": event.sequence}
    content |= {name: said for name, said in event.more.items() if name not in content}
    body = json.dumps(_whole_numbers(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    body = _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", body)
    return EventRecord(
        tenant=event.tenant, id=event.id, name=event.name, object_id=event.object_id, sequence=event.sequence, at=event.at,
        body=body, ttl=now // 1000 + KEEP_SECONDS,
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
    """The reason why `secret` is invalid, as a constraint for the caller; None when it is valid."""
    if not isinstance(secret, str) or not MIN_SECRET <= len(secret) <= MAX_SECRET:
        return f"must be a string of {MIN_SECRET} to {MAX_SECRET} characters"
    if not secret.isprintable():
        return "must have printable characters only"
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
    """The signature headers of `body`, for an attempt at `now` (milliseconds since 1970).

    `secrets` are in the clear, newest first: one, or two during a rotation's overlap, in which the previous one signs as well.

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
