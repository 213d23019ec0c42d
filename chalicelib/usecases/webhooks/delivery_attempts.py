"""One attempt of a webhook delivery, and its outcome. Touches webhooks, events and work only.

At least once: an attempt is recorded after it was made, so a crash in between repeats it. The endpoint's lease decides which
worker may make one (`usecases/webhooks/leases.py`).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import (
    Attempt,
    Delivery,
    beginning,
    delivery_key,
    delivery_work,
    outlived,
    plain_headers,
    retry_after_seconds,
)
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint, signature_headers
from chalicelib.domain.webhooks.leases import REST_SECONDS
from chalicelib.domain.webhooks.parcels import Parcel
from chalicelib.domain.work import Work
from chalicelib.usecases.base import message_chains
from chalicelib.usecases.ports.changes import Absent, Change, Close, Conflict, Open, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.notices import Notices
from chalicelib.usecases.webhooks.signing_secrets import UNREADABLE

log = logging.getLogger(__name__)

GONE = "it answered 410 Gone"
_SETTLE_TRIES = 5
_ASKS_FOR_REST = (429, 503)

Outcome = Literal["delivered", "retry", "dead", "cancelled", "overtaken"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The receiver's answer: `status` None and `error` set where no answer came. `duration` in milliseconds. `retry_after` is
    the header of that name as it came."""

    status: int | None
    body: bytes
    duration: int
    error: str | None = None
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """An attempt that was made, the delivery after it, and the end of the receiver's rest (ms since 1970; 0)."""

    outcome: Outcome
    attempt: Attempt
    delivery: Delivery
    rests_until: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """An attempt that the receiver took, and that is not recorded yet; it ended at `now` (ms since 1970)."""

    delivery: Delivery
    endpoint: WebhookEndpoint
    attempt: Attempt
    now: int


class Sender(Protocol):
    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """POST `body`, in at most `ATTEMPT_SECONDS`. A failure on the way is in the answer, never raised."""
        ...


class DeadLetters(Protocol):
    def bury(self, delivery_id: str, tenant: str) -> None:
        """Put a delivery that failed for good in the dead-letter queue. May come twice. Raises Unavailable."""
        ...


class Deliveries:
    """`jitter` gives numbers from 0 to 1. `notices` tells of endpoints; without it in the time of `clock`, whatever the realm."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sender: Sender,
        dead_letters: DeadLetters,
        jitter: Callable[[], float] = random.random,
        notices: Notices | None = None,
    ) -> None:
        self.notices = notices or Notices(lambda _: clock)
        self._store = store
        self._dead_letters = dead_letters
        self._sender = sender
        self._clock = clock
        self._jitter = jitter

    def send(self, delivery: Delivery, endpoint: WebhookEndpoint, event: EventRecord, secrets: Sequence[str]) -> Sent | Accepted:
        """Make the next attempt of `delivery`, which is pending, and record it; a first one that is accepted is left to `recorded`.
        `secrets` sign, in the clear; without any nothing is sent, and the attempt has failed. Raises Unavailable and Conflict: then
        it was made and nothing was recorded."""
        started = self._clock.now_ms()
        if not secrets:
            unsigned = Attempt(started, None, 0, error=UNREADABLE)
            return self._settle(delivery, endpoint, unsigned, started, 0)
        body = event.body.encode()
        headers = {**plain_headers(delivery), **signature_headers(secrets, event.id, body, started)}
        answer = self._sender.send(endpoint.url, headers, body)
        attempt = Attempt(started, answer.status, answer.duration, beginning(answer.body), answer.error)
        now = self._clock.now_ms()
        if attempt.succeeded and not delivery.attempts:
            return Accepted(delivery, endpoint, attempt, now)
        wait = 0 if attempt.succeeded else retry_after_seconds(answer.retry_after, now)
        rests = min(wait, REST_SECONDS) if attempt.status in _ASKS_FOR_REST else 0
        sent = self._settle(delivery, endpoint, attempt, now, wait)
        return Sent(sent.outcome, attempt, sent.delivery, now + rests * 1000 if rests else 0)

    def recorded(self, accepted: Sequence[Accepted], beside: Sequence[Change] = ()) -> list[Sent] | None:
        """Record attempts that receivers took, all in one transaction with `beside`; None where another worker was at one of them.

        First attempts alone: a function that dies before this sends them once more, and the next time each is recorded by itself.
        So a delivery that kills every function has the others of its batch sent twice, and no more often. Raises Unavailable: then
        nothing is known of any of them.
        """
        after = [one.delivery.after(one.attempt, one.now, 0.0) for one in accepted]
        pairs = zip(accepted, after, strict=True)
        changes = [change for one, told in pairs for change in (Save(told), *_closed(one.delivery))]
        try:
            self._store.commit([*changes, *beside])
        except Conflict:
            return None
        return [Sent("delivered", one.attempt, told) for one, told in zip(accepted, after, strict=True)]

    def recorded_alone(self, one: Accepted) -> Sent | Exception:
        """Record an attempt that a receiver took by itself, or say what went wrong."""
        try:
            return self._settle(one.delivery, one.endpoint, one.attempt, one.now, 0)
        except Exception as error:  # noqa: BLE001 - raised again when what came of the others is known
            return error

    def interrupted(self, delivery: Delivery, began: int) -> Sent:
        """Record an attempt that began (ms since 1970) and never reported: its worker died, and the receiver may have got it.

        Counting it keeps a delivery that kills its worker from coming back for ever. Raises Unavailable, Conflict.
        """
        attempt = Attempt(began, None, 0, error="the attempt was interrupted")
        return self._settle(delivery, None, attempt, self._clock.now_ms(), 0)

    def cancel(self, delivery: Delivery, reason: str, endpoint: WebhookEndpoint | None) -> None:
        """Cancel a delivery whose endpoint can not be told any more; `endpoint` as it was read. Raises Unavailable."""
        place = {"tenant": delivery.tenant, "id": delivery.endpoint_id}
        rests_on: Change = Absent(WebhookEndpoint, place) if endpoint is None else Still(endpoint)
        cancelled = delivery.cancelled(reason, self._clock.now_ms())
        self._try([Save(cancelled), Close(delivery_work(delivery)), rests_on])

    def put_aside(self, delivery: Delivery, endpoint: WebhookEndpoint) -> None:
        """Park a due delivery of `endpoint`, which is paused, until it is unpaused. Raises Unavailable."""
        aside = delivery.put_aside()
        self._try([Save(aside), Close(delivery_work(delivery)), Open(delivery_work(aside)), Still(endpoint)])

    def park_behind(self, delivery: Delivery, place: str) -> None:
        """Park a due delivery until an earlier event of its object has been answered. Raises Unavailable."""
        parked = delivery.parked_behind(place)
        self._try([Save(parked), Close(delivery_work(delivery)), Open(delivery_work(parked))])

    def release(self, parked: Delivery) -> bool:
        """Make a delivery due that waited for an earlier one; False where it has changed meanwhile. Raises Unavailable."""
        due = parked.released()
        return self._try([Save(due), Close(delivery_work(parked)), Open(delivery_work(due))])

    def unpack(self, parcel: Parcel, missing: Sequence[Delivery], kept: int) -> None:
        """Store what is `missing` of a parcel's deliveries, each with an obligation of its own, in place of the parcel's. `kept` of
        its events are still kept. Raises Unavailable."""
        made = [replace(one, version=1) for one in missing]
        changes: list[Change] = [change for one in made for change in (Save(one), Open(delivery_work(one)))]
        if self._try([*changes, Close(parcel.work)]) and kept < len(parcel.events):
            log.error("metric=delivery_lost events of %s are kept no more, and were never sent", parcel.work.id)

    def forget(self, work: Work, tenant: TenantId, seen: Delivery | None) -> None:
        """Close work that no pending delivery stands behind: `seen` is the delivery as read, None where there is none. Raises
        Unavailable.

        A query and a batch of reads may each see a part of one transaction (read-committed isolation); what is seen has to hold in
        the transaction that closes the work.
        docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-isolation
        """
        place = delivery_key(tenant, work.id)
        closed = self._try([Close(work), Still(seen) if seen is not None else Absent(Delivery, place)])
        if closed and seen is None and outlived(work, self._clock.now_ms()):
            log.info("webhook delivery %s has ended with its time, before it could be made", work.id)
        elif closed and seen is None:
            log.error("metric=delivery_lost webhook delivery %s is gone but was never made", work.id)

    def _try(self, changes: list[Change]) -> bool:
        try:
            self._store.commit(changes)
        except Conflict:
            log.info("a webhook delivery was settled by another worker, or has only just been made")
            return False
        return True

    def _settle(self, before: Delivery, endpoint: WebhookEndpoint | None, attempt: Attempt, now: int, wait: int) -> Sent:
        """Commit what becomes of a delivery by `attempt`; with 410 the endpoint is turned off, where it is still the one that
        answered so."""
        jitter = self._jitter()
        gone = endpoint if attempt.status == 410 else None
        for _ in range(_SETTLE_TRIES):
            after = before.after(attempt, now, jitter, wait, gone=gone is not None, unasked=message_chains.ended())
            if after.status == "dead":
                # Before the commit: a message too many is harmless, a missing one is a loss that nobody hears of.
                self._dead_letters.bury(before.id, before.tenant)
            changes: list[Change] = [Save(after), *_closed(before)]
            if after.status == "pending":
                changes.append(Open(delivery_work(after)))
            if gone is not None and gone.enabled:
                changes += self.notices.turned_off(gone, GONE, self._clock.now_ms())
            try:
                self._store.commit(changes)
            except Conflict:
                stored = self._store.get(Delivery, tenant=before.tenant, id=before.id)
                if _begun(before, stored):
                    before = stored or before
                elif stored is None or stored.version != before.version:
                    log.warning("webhook delivery %s was settled by another worker: this attempt's lease had ended", before.id)
                    return Sent("overtaken", attempt, after)
                if gone is not None:
                    gone = self._as_it_is(gone)
            else:
                return Sent("retry" if after.status == "pending" else after.status, attempt, after)
        raise Conflict(None)

    def _as_it_is(self, gone: WebhookEndpoint) -> WebhookEndpoint | None:
        """The endpoint that answered 410, as it is stored now; None where its owner has changed it since: that one said nothing.
        A deleted one is as it was."""
        stored = self._store.get(WebhookEndpoint, tenant=gone.tenant, id=gone.id)
        if stored is None:
            return replace(gone, enabled=False)
        return stored if stored.fresh_at == gone.fresh_at or not stored.enabled else None


def _closed(before: Delivery) -> Sequence[Change]:
    """What ends an obligation of a delivery as it was; one that is not stored yet has none of its own."""
    return [Close(delivery_work(before))] if before.version else []


def _begun(before: Delivery, stored: Delivery | None) -> bool:
    """Whether a delivery that was not stored is now as it was, or is still not: what hindered it was another thing."""
    return before.version == 0 and (stored is None or (stored.status == "pending" and not stored.attempts))
