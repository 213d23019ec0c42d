"""Webhook deliveries: one event for one endpoint, its attempts, and when the next one is due. Pure: sends nothing, reads no clock.

A delivery is `pending` until it is `delivered` (answered 2xx), `dead` (every retry failed) or `cancelled` (its endpoint is
deleted, disabled, or gone).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal

from chalicelib.domain.ids import TenantId, derived_id
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.work import BEHIND, TIME_DIGITS, Work, held_order, lane_of, time_order

DeliveryStatus = Literal["pending", "delivered", "dead", "cancelled"]

LISTED_STATUSES: tuple[DeliveryStatus, ...] = ("dead", "cancelled")
"""Those that have lists of their own: what merchants look for, and few. A success costs no list anything."""
USER_AGENT = "crypto-gateway-webhooks/1"
ATTEMPT_SECONDS = 10.0
"""An attempt that takes longer has failed."""
ANSWER_BYTES = 1024
"""How much of an answer is kept, in bytes of UTF-8."""
_NO_TEXT = dict.fromkeys({*range(0x20), 0x7F} - {*map(ord, "\t\r\n")}, "\ufffd")
RETRY_SECONDS = (5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000)
"""Waits after the first, second, ... failed attempt; after the ninth the delivery is dead."""
JITTER = 0.2
"""A wait is up to this part longer, so that what failed together does not come back together."""
MAX_RETRY_AFTER_SECONDS = RETRY_SECONDS[-1]
"""A receiver may ask for a longer wait than published, up to the longest of the published ones."""
MAX_DELAY_SECONDS = 900
"""Longest DelaySeconds of SQS. docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: `status` is None where no answer came; `answer` is the beginning of what was answered; `duration` in ms.

    `next_at` is when the next attempt was due after this one, None where there was none to be. Times in ms since 1970.
    """

    at: int
    status: int | None
    duration: int
    answer: str = ""
    error: str | None = None
    next_at: int | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None and self.status is not None and 200 <= self.status < 300

    @property
    def ended(self) -> int:
        return self.at + self.duration


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one endpoint. Times in milliseconds since 1970, `ttl` in seconds.

    `due_at` is when the next attempt is wanted. `held`: the endpoint is paused, and nothing is attempted before it goes on.
    `again_id` is the latest delivery that was made of the same event, when this one had ended, because a redelivery was asked for;
    at the event's first delivery, the latest of all. `earlier_id` is the one that was the latest before this one was made: from the
    first one's `again_id` on they lead through all of them. `job_id` is the job that made it (`domain/webhooks/redelivery.py`).
    `unasked`: no message asks for the next attempt, however near it is, since its chain would be too long
    (`usecases/base/message_chains.py`). `behind`: it waits for an earlier event of its object, at this place among those that do
    (`domain/webhooks/ordering.py`).
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
    held: bool = False
    reason: str | None = None
    finished_at: int | None = None
    again_id: str | None = None
    earlier_id: str | None = None
    job_id: str | None = None
    unasked: bool = False
    behind: str | None = None
    version: int = 1

    @property
    def parked(self) -> bool:
        """Whether it waits for no time: for its endpoint to go on, or for an earlier event."""
        return self.held or self.behind is not None

    @property
    def scheduled(self) -> bool:
        """Whether the minute's schedule starts the next attempt: no message may ask for it, or can wait so long."""
        return bool(self.attempts) and (self.unasked or self.due_at - self.attempts[-1].ended > MAX_DELAY_SECONDS * 1000)

    def after(
        self, attempt: Attempt, now: int, jitter: float, wait: int = 0, *, gone: bool = False, unasked: bool = False
    ) -> Delivery:
        """The delivery after `attempt`, which ended at `now`.

        `jitter` (0 to 1) is by how much the next wait is longer; `wait` in seconds is what the receiver asked for at least. `gone`:
        the endpoint, as it is still, wants no more. `unasked`: no message will ask for the next attempt.
        """
        told = replace(next_version(self), attempts=(*self.attempts, attempt), held=False, unasked=False)
        if attempt.succeeded:
            return replace(told, status="delivered", finished_at=now)
        if gone:
            return replace(told, status="cancelled", reason="the endpoint answered 410 Gone", finished_at=now)
        delay = retry_delay_ms(len(told.attempts), jitter)
        if delay is None:
            return replace(told, status="dead", reason=f"{len(told.attempts)} attempts failed", finished_at=now)
        due = now + max(delay, wait * 1000)
        return replace(told, attempts=(*self.attempts, replace(attempt, next_at=due)), due_at=due, unasked=unasked)

    def hurried(self, now: int) -> Delivery:
        """The delivery, due at once instead of at its time."""
        return replace(next_version(self), due_at=min(self.due_at, now), unasked=False)

    def put_aside(self) -> Delivery:
        """The delivery, parked until its endpoint resumes."""
        return replace(next_version(self), held=True)

    def parked_behind(self, place: str) -> Delivery:
        """The delivery, waiting for an earlier one of its object; `place` is that of `ordering.place_behind`."""
        return replace(next_version(self), behind=place)

    def released(self) -> Delivery:
        """The delivery, waiting for no other: due when it was, so that it goes before those that came after it."""
        return replace(next_version(self), behind=None)

    def cancelled(self, reason: str, now: int) -> Delivery:
        return replace(next_version(self), status="cancelled", reason=reason, held=False, finished_at=now)


def delivery_for(event: Event | EventRecord, endpoint: WebhookEndpoint, now: int, again: str = "") -> Delivery:
    """The delivery of `event` to `endpoint`, due at once. Its id derives from the two: making it twice makes one.

    `again` tells a later delivery of the same event from the first one.
    """
    return _delivery(event, endpoint.id, now, again)


def unsent(event: Event | EventRecord, endpoint_id: str, now: int) -> Delivery:
    """The first delivery of `event` to an endpoint, which is stored with what its first attempt comes to."""
    return replace(_delivery(event, endpoint_id, now), version=0)


def _delivery(event: Event | EventRecord, endpoint_id: str, now: int, again: str = "") -> Delivery:
    return Delivery(
        tenant=event.tenant, id=delivery_id(event.id, endpoint_id, again), endpoint_id=endpoint_id, event_id=event.id,
        event_name=event.name, created_at=now, due_at=now, ttl=now // 1000 + KEEP_SECONDS,
    )  # fmt: skip


def delivery_id(event_id: str, endpoint_id: str, again: str = "") -> str:
    """The id of the delivery of an event to an endpoint: of the first one, or of the one that `again` names."""
    return derived_id("dlv", event_id, endpoint_id, *filter(None, [again]))


def delivery_work(delivery: Delivery) -> Work:
    """Open work: make the delivery's next attempt. A new row after every rescheduling: its order is the due time.

    The id also has the number of attempts, and whether the schedule starts the next one, so that the row alone says what it is
    about. Parked deliveries lie in the order in which they were made, those that wait for an earlier one by object and sequence.
    """
    order = held_order(delivery.created_at) if delivery.held else time_order(delivery.due_at)
    if delivery.behind is not None:
        order = f"{BEHIND}{delivery.behind}{time_order(delivery.created_at)}"
    by = "schedule" if delivery.scheduled else "message"
    id = f"{delivery.id}|{delivery.event_id}|{len(delivery.attempts)}|{by}"
    return Work("delivery", line_of(delivery.tenant, delivery.endpoint_id), order, id)


def line_of(tenant: str, endpoint_id: str) -> str:
    """The lane of an endpoint's delivery work: its due deliveries, in the order of time."""
    return f"{tenant}|{endpoint_id}"


def line_parts(line: str) -> tuple[TenantId, str]:
    """Tenant and endpoint of a lane."""
    tenant, _, endpoint_id = line.rpartition("|")
    return TenantId(tenant), endpoint_id


@dataclass(frozen=True, slots=True)
class Due:
    """The content of a row of delivery work. `scheduled`: no message was sent for it, the schedule starts it."""

    delivery_id: str
    event_id: str
    attempts: int
    scheduled: bool


def due_of(work_id: str) -> Due:
    """The content of a delivery work's id."""
    delivery_id, event_id, attempts, by = work_id.split("|")
    return Due(delivery_id, event_id, int(attempts), by == "schedule")


def outlived(work: Work, now: int) -> bool:
    """Whether such work is older than deliveries are kept: its delivery may have expired."""
    return int(work.order[-TIME_DIGITS:]) // 1000 + KEEP_SECONDS <= now // 1000


def unheld_work(endpoint: WebhookEndpoint) -> Work:
    """Open work: send, or cancel, the parked deliveries of an endpoint that resumed at `unheld_at`."""
    line = line_of(endpoint.tenant, endpoint.id)
    return Work("unheld", lane_of(endpoint.id), time_order(endpoint.unheld_at), line)


def beginning(body: bytes) -> str:
    """The stored part of an answer: its first `ANSWER_BYTES`, as text of no more. U+FFFD replaces bytes that are not UTF-8, and
    control characters, which JSON would write six times as long."""
    text = body[:ANSWER_BYTES].decode("utf-8", "replace").translate(_NO_TEXT)
    return text.encode()[:ANSWER_BYTES].decode("utf-8", "ignore")


def retry_delay_ms(failures: int, jitter: float) -> int | None:
    """Milliseconds to wait after that many failed attempts (1 or more), None when it is time to give up.

    `jitter` from 0 to 1 lengthens the wait by up to a fifth; it is never shorter than published.
    """
    if failures > len(RETRY_SECONDS):
        return None
    return round(RETRY_SECONDS[failures - 1] * 1000 * (1 + JITTER * jitter))


def retry_after_seconds(header: str | None, now: int) -> int:
    """The wait that a receiver asks for, in seconds from `now` (ms since 1970), at most `MAX_RETRY_AFTER_SECONDS`; 0 for text that
    can not be parsed. Seconds or a date (RFC 9110 section 10.2.3).
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]), MAX_RETRY_AFTER_SECONDS)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return 0
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return max(0, min(-(-(round(at.timestamp() * 1000) - now) // 1000), MAX_RETRY_AFTER_SECONDS))


def plain_headers(delivery: Delivery) -> dict[str, str]:
    """The headers of every attempt that sign nothing."""
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "x-gateway-event": delivery.event_name,
        "x-gateway-delivery": delivery.id,
    }


def delivery_key(tenant: str, work_id: str) -> Mapping[str, str]:
    """The key of the delivery that a row of work names."""
    return {"tenant": tenant, "id": due_of(work_id).delivery_id}
