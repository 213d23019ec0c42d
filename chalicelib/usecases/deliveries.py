"""Making webhook deliveries: one attempt at a time, retries on schedule, dead letters. Touches webhooks, events and work only.

At least once: an attempt is recorded after it was made, so a crash in between repeats it. Twin messages do not send at the
same time, because an attempt begins by taking a lease on the delivery.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks import (
    ANSWER_BYTES,
    LEASE_MS,
    RETRY_SECONDS,
    Attempt,
    Delivery,
    EventRecord,
    WebhookEndpoint,
    delivery_key,
    delivery_work,
    signature_headers,
)
from chalicelib.domain.work import LANES, Work, time_order
from chalicelib.usecases.changes import Change, Close, Conflict, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.secrets import Opener
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhook_secrets import UNREADABLE, opened

log = logging.getLogger(__name__)

MAX_DELAY_SECONDS = 900
"""Longest DelaySeconds of SQS. docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html"""
EARLY_MS = 1_000
"""A message that comes this much before its time is taken: clocks of two machines differ, and it will not come again."""
SWEEP_GRACE_MS = 60_000
"""How long a message may be on its way before the sweep takes it for lost."""
SWEEP_LIMIT = 500
SWEEP_MS = 15_000
USER_AGENT = "crypto-gateway-webhooks/1"
_SETTLE_TRIES = 5

Outcome = Literal["delivered", "retry", "dead", "cancelled", "finished", "early", "busy"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of sending: `status` None and `error` set where no answer came. `duration` in milliseconds."""

    status: int | None
    body: bytes
    duration: int
    error: str | None = None


class Sender(Protocol):
    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """POST `body`, in at most `ATTEMPT_SECONDS`. What goes wrong on the way is in the answer, never raised."""
        ...


class DeadLetters(Protocol):
    def bury(self, delivery_id: str, tenant: str) -> None:
        """Put a delivery that failed for good in the dead-letter queue. May come twice. Raises Unavailable."""
        ...


class Deliveries:
    """`jitter` gives numbers from 0 to 1."""

    def __init__(
        self,
        store: Store,
        queues: Queues,
        clock: Clock,
        sender: Sender,
        dead_letters: DeadLetters,
        opener: Opener,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._queues = queues
        self._dead_letters = dead_letters
        self._sender = sender
        self._opener = opener
        self._clock = clock
        self._jitter = jitter

    def attempt(self, tenant: TenantId, delivery_id: str) -> Outcome:
        """Make the delivery's next attempt if it is due. Safe twice, at once, early or late.

        `finished`: nothing is left to do; `early`, `busy`: another message, or the sweep, brings it again.
        Raises Unavailable and Conflict: then nothing was recorded, and the lease's end brings it up again.
        """
        delivery = self._store.get(Delivery, tenant=tenant, id=delivery_id)
        if delivery is None or delivery.status != "pending":
            return "finished"
        now = self._clock.now_ms()
        if delivery.leased(now):
            return "busy"
        if delivery.due_at > now + EARLY_MS:
            return "early"
        if delivery.attempting_until is not None:
            # An attempt began and never reported. Counting it keeps a delivery that kills its worker from coming back for ever.
            started = delivery.attempting_until - LEASE_MS
            return self._settle(delivery, None, Attempt(started, None, 0, error="the attempt was interrupted"))
        endpoint, event = self._store.get_many(
            [
                (WebhookEndpoint, {"tenant": tenant, "id": delivery.endpoint_id}),
                (EventRecord, {"tenant": tenant, "id": delivery.event_id}),
            ]
        )
        reason = _nobody_to_tell(endpoint, event)
        if reason is not None:
            return self._finish(delivery, delivery.cancelled(reason, now), None)
        # Before the lease: where KMS does not answer, no attempt has begun that would count as interrupted.
        secrets = opened(self._opener, endpoint, now)
        if not secrets:
            return self._settle(delivery, endpoint, Attempt(now, None, 0, error=UNREADABLE))
        claimed = delivery.claimed(now)
        try:
            self._store.commit([Save(claimed)])
        except Conflict:
            return "busy"
        return self._settle(claimed, endpoint, self._send(endpoint, event, delivery_id, secrets))

    def sweep(self) -> int:
        """Ask again for every delivery whose time has come without a message: long waits, lost messages, crashed attempts.

        How many were asked for. Raises Unavailable; what it did not come to, the next one does.
        """
        start = self._clock.now_ms()
        asked = 0
        lanes = [str(lane) for lane in range(LANES)]
        random.shuffle(lanes)
        for lane in lanes:
            due = self._store.open_work("delivery", lane, upto=time_order(start), limit=SWEEP_LIMIT)
            found = self._store.get_many([(Delivery, delivery_key(work)) for work in due])
            for work, delivery in zip(due, found, strict=True):
                if self._clock.now_ms() - start > SWEEP_MS:
                    return asked
                if delivery is None:
                    self._forget(work)
                elif _waits_for_sweep(delivery, start):
                    self._queues.deliver(delivery.id, delivery.tenant, 0)
                    asked += 1
        return asked

    def _send(self, endpoint: WebhookEndpoint, event: EventRecord, delivery_id: str, secrets: Sequence[str]) -> Attempt:
        body = event.body.encode()
        started = self._clock.now_ms()
        headers = {
            "content-type": "application/json",
            "user-agent": USER_AGENT,
            "x-gateway-event": event.name,
            "x-gateway-delivery": delivery_id,
            **signature_headers(secrets, event.id, body, started),
        }
        answer = self._sender.send(endpoint.url, headers, body)
        beginning = answer.body[:ANSWER_BYTES].decode("utf-8", "replace")
        return Attempt(started, answer.status, answer.duration, beginning, answer.error)

    def _settle(self, delivery: Delivery, endpoint: WebhookEndpoint | None, attempt: Attempt) -> Outcome:
        settled = delivery.after(attempt, self._clock.now_ms(), self._jitter())
        if settled.status == "dead":
            # Before the commit: a message too many is harmless, a missing one is a loss that nobody hears of.
            self._dead_letters.bury(delivery.id, delivery.tenant)
        outcome = self._finish(delivery, settled, endpoint if attempt.status == 410 else None)
        if outcome == "retry":
            self._ask_again(settled)
        return outcome

    def _finish(self, before: Delivery, after: Delivery, gone: WebhookEndpoint | None) -> Outcome:
        """Commit what became of a delivery; `gone` is the endpoint that wants no more, to be disabled with it."""
        for _ in range(_SETTLE_TRIES):
            changes: list[Change] = [Save(after), Close(delivery_work(before))]
            if after.status == "pending":
                changes.append(Open(delivery_work(after)))
            if gone is not None and gone.enabled:
                changes.append(Save(gone.disabled("it answered 410 Gone", self._clock.now_ms())))
            try:
                self._store.commit(changes)
            except Conflict:
                stored = self._store.get(Delivery, tenant=before.tenant, id=before.id)
                if stored is None or stored.version != before.version:
                    log.warning("webhook delivery %s was settled by another worker: this attempt's lease had ended", before.id)
                    return "busy"
                if gone is not None:
                    gone = self._store.get(WebhookEndpoint, tenant=gone.tenant, id=gone.id)
            else:
                return "retry" if after.status == "pending" else after.status
        raise Conflict(None)

    def _ask_again(self, delivery: Delivery) -> None:
        seconds = math.ceil((delivery.due_at - self._clock.now_ms()) / 1000)
        if seconds > MAX_DELAY_SECONDS:
            return  # the sweep brings it
        try:
            self._queues.deliver(delivery.id, delivery.tenant, max(0, seconds))
        except Unavailable:
            log.warning("no message for the retry of webhook delivery %s: the sweep brings it", delivery.id)

    def _forget(self, work: Work) -> None:
        """Close the work of a delivery that its retention has removed: there is nothing to send any more."""
        log.error("metric=delivery_lost webhook delivery %s is gone but was never made", work.id)
        try:
            self._store.commit([Close(work)])
        except Conflict:
            log.info("the work of webhook delivery %s was closed already", work.id)


def _nobody_to_tell(endpoint: WebhookEndpoint | None, event: EventRecord | None) -> str | None:
    if endpoint is None:
        return "the endpoint was deleted"
    if not endpoint.enabled:
        return "the endpoint is disabled"
    return "the event is no longer kept" if event is None else None


def _waits_for_sweep(delivery: Delivery, now: int) -> bool:
    """Whether no message can be on its way: the wait was longer than a message's, or it should have come a while ago."""
    if delivery.status != "pending" or delivery.leased(now) or delivery.due_at > now:
        return False
    failures = len(delivery.attempts)
    swept_only = 0 < failures <= len(RETRY_SECONDS) and RETRY_SECONDS[failures - 1] > MAX_DELAY_SECONDS
    return swept_only or delivery.due_at <= now - SWEEP_GRACE_MS
