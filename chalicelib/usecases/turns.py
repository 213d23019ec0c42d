"""Taking an endpoint's turn: what is due there is sent in waves, one worker at a time. Touches webhooks, events and work only.

A message names an endpoint. Whoever gets it looks at what is due in the store, takes the turn with the wave that it is about to
send, and goes on until nothing is due or its time is up; then the endpoint goes to the end of the queue. A message that finds the
turn taken leaves a mark, so that the holder looks once more before it gives the turn back: no message is lost between the two.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from chalicelib.domain.deliveries import Delivery, delivery_key, delivery_work, due_of, line_of
from chalicelib.domain.ids import TenantId
from chalicelib.domain.turns import DISABLED_AFTER_MS, FAILING_AFTER, TURN_MS, WAVE, Turn
from chalicelib.domain.webhooks import KEEP_SECONDS, EventRecord, WebhookEndpoint
from chalicelib.domain.work import HELD, Work, time_order
from chalicelib.usecases.changes import Change, Conflict, Save
from chalicelib.usecases.deliveries import Deliveries, Sent
from chalicelib.usecases.notices import failing, turned_off, well_again
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.secrets import Opener
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.trying import until_settled
from chalicelib.usecases.webhook_secrets import opened

log = logging.getLogger(__name__)

EARLY_MS = 250
"""What is due this soon is sent now: clocks of two machines differ, and its message will not come again."""

Outcome = Literal["idle", "taken", "resting", "done", "more", "lost"]
T = TypeVar("T")


def in_threads(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run `jobs` at the same time and wait for all of them. Raises what the first failed one raised."""
    if len(jobs) == 1:
        return [jobs[0]()]
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        running = [pool.submit(job) for job in jobs]
    return [one.result() for one in running]


@dataclass(frozen=True, slots=True)
class _Look:
    """What is due at an endpoint as it is stored now. `wave` are the deliveries to be sent, with their events; `whole`: they are
    all that is due."""

    turn: Turn
    endpoint: WebhookEndpoint | None
    due: bool
    whole: bool
    wave: list[tuple[Delivery, EventRecord]]


class Turns:
    """`together` runs the attempts of a wave."""

    def __init__(
        self,
        store: Store,
        queues: Queues,
        clock: Clock,
        deliveries: Deliveries,
        opener: Opener,
        together: Callable[[Sequence[Callable[[], Sent]]], list[Sent]] = in_threads,
    ) -> None:
        self._store, self._queues, self._clock = store, queues, clock
        self._deliveries, self._opener, self._together = deliveries, opener, together

    def take(self, tenant: TenantId, endpoint_id: str, *, held: bool = False) -> Outcome:
        """Send what is due at an endpoint. Safe twice, at once, early or late; `held`: what was put aside as well.

        `idle`: nothing was due. `taken`: somebody is at it, and will look again. `resting`: the receiver asked to be left alone;
        `more`: time is up; of both a message is on its way. `lost`: it took so long that another took the turn.
        Raises Unavailable and Conflict: what was being sent then is found when the lease ends.
        """
        started = self._clock.now_ms()
        own: Turn | None = None
        while True:
            look = self._look(tenant, endpoint_id, held)
            now = self._clock.now_ms()
            if own is None:
                if look.turn.taken(now):
                    if look.turn.wanted or self._saved(look.turn.marked()):
                        return "taken"
                    continue
                if look.turn.died(now):
                    own = self._taken_over(look.turn, now)
                    continue
            elif (look.turn.hand, look.turn.began) != (own.hand, own.began):
                log.warning("the turn of webhook endpoint %s was taken by another worker: the lease had ended", endpoint_id)
                return "lost"
            turn = look.turn if own is None else look.turn.with_health_of(own)
            if look.endpoint is not None:
                turn = turn.of_today(look.endpoint.fresh_at)
            outcome = self._ended(look, turn, now, started, first=own is None)
            if outcome == "done" and look.turn.wanted:
                # The mark may be younger than the look at what is due: take it away, and look once more.
                own = turn
                self._saved(turn.unmarked())
            elif outcome is not None:
                if own is None or self._saved(turn.over()):
                    self._ask_later(look, turn, outcome)
                    return outcome
                own = turn  # somebody came meanwhile: look again
            elif look.wave:
                sending = self._wave(look, turn, now)
                own = own if sending is None else sending
                # Nothing more was due, and whoever brought something since has left its mark: the turn can not be given back then.
                # Not where there was a mark before: who saw that one, and came after the look, relies on it.
                if sending is not None and look.whole and not look.turn.wanted and self._saved(sending.over()):
                    return "done"

    def _look(self, tenant: TenantId, endpoint_id: str, held: bool) -> _Look:
        """Read what is due, and settle what needs no sending."""
        now = self._clock.now_ms()
        line = line_of(tenant, endpoint_id)
        rows = self._store.open_work("delivery", line, upto=time_order(now + EARLY_MS), limit=WAVE)
        if held and len(rows) < WAVE:
            behind = Work("delivery", line, HELD, "")
            rows += self._store.open_work("delivery", line, after=behind, upto=HELD, limit=WAVE - len(rows))
        place = {"tenant": tenant, "id": endpoint_id}
        turn, endpoint, *found = self._store.get_many(
            [
                (Turn, {"tenant": tenant, "endpoint_id": endpoint_id}),
                (WebhookEndpoint, place),
                *((Delivery, delivery_key(tenant, row.id)) for row in rows),
                *((EventRecord, {"tenant": tenant, "id": due_of(row.id).event_id}) for row in rows),
            ]
        )
        turn = turn or Turn(tenant, endpoint_id, ttl=now // 1000 + KEEP_SECONDS, version=0)
        wave = []
        for row, delivery, event in zip(rows, found[: len(rows)], found[len(rows) :], strict=True):
            if delivery is None or delivery.status != "pending" or delivery_work(delivery) != row:
                self._deliveries.forget(row, lost=delivery is None)
            elif endpoint is None:
                self._deliveries.cancel(delivery, "the endpoint was deleted")
            elif not endpoint.enabled:
                self._deliveries.cancel(delivery, "the endpoint is disabled")
            elif event is None:
                self._deliveries.cancel(delivery, "the event is no longer kept")
            elif not endpoint.paused:
                wave.append((delivery, event))
            elif not delivery.held:
                self._deliveries.put_aside(delivery, endpoint)
        parked = endpoint is not None and endpoint.paused and all(row.order == HELD for row in rows)
        return _Look(turn, endpoint, bool(rows) and not parked, len(rows) < WAVE, wave)

    def _ended(self, look: _Look, turn: Turn, now: int, started: int, *, first: bool) -> Outcome | None:
        """How the turn ends; None while it goes on."""
        if not look.due:
            return "idle" if first else "done"
        if turn.rests_until > now and look.wave:
            return "resting"
        return "more" if now - started >= TURN_MS else None

    def _wave(self, look: _Look, turn: Turn, now: int) -> Turn | None:
        """Take the turn, or keep it, and send; the turn with what came of it. None: somebody else changed it first."""
        endpoint = look.endpoint
        if endpoint is None:
            raise ValueError("a wave without an endpoint")
        # Before the turn is taken: where KMS does not answer, no attempt has begun that would count as interrupted.
        secrets = opened(self._opener, endpoint, now)
        taken = turn.with_wave(tuple(delivery_work(delivery).id for delivery, _ in look.wave), now)
        if not self._saved(taken):
            return None
        sent = self._together([_job(self._deliveries, delivery, endpoint, event, secrets) for delivery, event in look.wave])
        failed = tuple(one.attempt.at for one in sent if not one.attempt.succeeded)
        taken = taken.faring(len(sent) - len(failed), failed, max(one.rests_until for one in sent))
        self._judge(endpoint, taken)
        self._ask_again(sent, taken)
        return taken

    def _taken_over(self, turn: Turn, now: int) -> Turn | None:
        """Take the turn of a worker that died, and record what it had in hand; None: somebody else did."""
        own = turn.with_wave(turn.hand, now)
        if not self._saved(own):
            return None
        hand = [due_of(id) for id in turn.hand]
        wanted = [(Delivery, {"tenant": turn.tenant, "id": one.delivery_id}) for one in hand]
        interrupted = [
            self._deliveries.interrupted(delivery, turn.began)
            for one, delivery in zip(hand, self._store.get_many(wanted), strict=True)
            if delivery is not None and delivery.status == "pending" and len(delivery.attempts) == one.attempts
        ]
        self._ask_again(interrupted, own)
        return own

    def _saved(self, turn: Turn) -> bool:
        try:
            self._store.commit([Save(turn)])
        except Conflict:
            return False
        return True

    def _judge(self, endpoint: WebhookEndpoint, turn: Turn) -> None:
        """Say so where an endpoint begins to fail, is well again, or has failed for so long that it is turned off."""

        def decide() -> None:
            changes = self._verdict(self._store.get(WebhookEndpoint, tenant=endpoint.tenant, id=endpoint.id), turn)
            if changes:
                self._store.commit(changes)

        if self._verdict(endpoint, turn):
            until_settled(decide)

    def _verdict(self, endpoint: WebhookEndpoint | None, turn: Turn) -> Sequence[Change]:
        if endpoint is None or not endpoint.enabled or endpoint.fresh_at != turn.fresh_at:
            return ()
        now, since = self._clock.now_ms(), turn.failing_since
        if since is None:
            return () if endpoint.failing_since is None else well_again(endpoint)
        if now - since >= DISABLED_AFTER_MS:
            return turned_off(endpoint, "nothing it was sent has succeeded for five days", now)
        if turn.failures >= FAILING_AFTER and endpoint.failing_since is None:
            return failing(endpoint, since, now)
        return ()

    def _ask_again(self, sent: Sequence[Sent], turn: Turn) -> None:
        """Messages for retries that are near; what waits longer than a message can is brought by the schedule."""
        now = self._clock.now_ms()
        waiting = [one.delivery for one in sent if one.outcome == "retry" and not one.delivery.long_wait]
        times = {max(delivery.due_at, turn.rests_until) for delivery in waiting}
        if any(one.rests_until for one in sent):
            times.add(turn.rests_until)  # one for all that comes up meanwhile, whatever the retries themselves wait for
        for seconds in sorted({_seconds(at - now) for at in times}):
            self._wake(turn, seconds)

    def _ask_later(self, look: _Look, turn: Turn, outcome: Outcome) -> None:
        """A message for what is due and not sent yet. For the end of a rest whoever heard of it sent one, which may be early."""
        if outcome == "more":
            self._wake(turn, 0, held=any(delivery.held for delivery, _ in look.wave))
        elif outcome == "resting" and turn.rests_until - self._clock.now_ms() <= EARLY_MS:
            self._wake(turn, 1)

    def _wake(self, turn: Turn, seconds: int, *, held: bool = False) -> None:
        # After the first failure already, before anybody is told of it: many that hang at once would hold all functions of the
        # queue that is everybody's before they had failed often enough.
        unwell = turn.failures > 0
        try:
            self._queues.wake(turn.tenant, turn.endpoint_id, seconds, failing=unwell, held=held)
        except Unavailable:
            log.warning("no message for the retries of webhook endpoint %s: the sweep brings them", turn.endpoint_id)


def _job(
    deliveries: Deliveries, delivery: Delivery, endpoint: WebhookEndpoint, event: EventRecord, secrets: Sequence[str]
) -> Callable[[], Sent]:
    return lambda: deliveries.send(delivery, endpoint, event, secrets)


def _seconds(ms: int) -> int:
    return max(0, math.ceil(ms / 1000))
