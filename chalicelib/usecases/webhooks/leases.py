"""The lease of an endpoint: its due deliveries are sent in batches, by one worker at a time. Touches webhooks, events and work
only.

A message names an endpoint. The worker reads the due deliveries from the store, takes the lease with the batch that it is about to
send, and repeats this until nothing is due or its time is up. First attempts that the receiver took are recorded together at the
end of their batch, all others at once. Then the endpoint goes to the end of the queue, as long as its chain of messages may grow
(`message_chains`), else the schedule brings it. A message that finds the lease taken sets the wake-up flag, so that the holder
reads once more before it gives the lease back: no message is lost between the two.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Literal, TypeVar

from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import DISABLED_AFTER_MS, EARLY_MS, FAILING_AFTER, SLOW_BATCH_MS, TURN_MS, Turn
from chalicelib.domain.webhooks.ordering import Blockers
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.secrets import Opener
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.delivery_attempts import Accepted, Deliveries, Sent
from chalicelib.usecases.webhooks.due_deliveries import DueReads, Look
from chalicelib.usecases.webhooks.notices import well_again
from chalicelib.usecases.webhooks.ordering import Ordering
from chalicelib.usecases.webhooks.recording import Made, Recording, Tried
from chalicelib.usecases.webhooks.signing_secrets import opened

log = logging.getLogger(__name__)

Outcome = Literal["idle", "taken", "resting", "done", "more", "lost"]
T = TypeVar("T")


def in_threads(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run `jobs` at the same time, each with the caller's context variables, and wait for all of them. Raises what the first failed
    one raised."""
    if len(jobs) == 1:
        return [jobs[0]()]
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        running = [pool.submit(copy_context().run, job) for job in jobs]
    return [one.result() for one in running]


class Leases:
    """Takes leases. `together` runs the attempts of a batch."""

    def __init__(
        self,
        store: Store,
        queues: Queues,
        clock: Clock,
        deliveries: Deliveries,
        opener: Opener,
        together: Callable[[Sequence[Callable[[], Made]]], list[Made]] = in_threads,
    ) -> None:
        self._store, self._queues, self._clock = store, queues, clock
        self._deliveries, self._opener, self._together = deliveries, opener, together
        self._ordering = Ordering(store, deliveries)
        self._due_reads = DueReads(store, clock, deliveries, self._ordering)
        self._recording = Recording(store, deliveries)

    def take(self, tenant: TenantId, endpoint_id: str, *, held: bool = False) -> Outcome:
        """Send the due deliveries of an endpoint. Safe twice, at once, early or late; `held`: parked deliveries as well.

        `idle`: nothing was due. `taken`: another worker has the lease, and will look again. `resting`: the receiver asked for a
        rest; `more`: time is up; in both cases a message is on its way. `lost`: it took so long that another worker took the
        lease. Raises Unavailable and Conflict: what was being sent then is found when the lease ends.
        """
        started = self._clock.now_ms()
        me = new_id("turn", started)
        own: Turn | None = None
        while True:
            look = self._due_reads.look(tenant, endpoint_id, own, held=held)
            now = self._clock.now_ms()
            if own is None and (look.turn.taken(now) or look.turn.died(now)):
                if look.turn.died(now):
                    own = self._taken_over(look, now, me)
                elif self._is_marked(look.turn, held):
                    return "taken"
                continue
            if own is not None and look.turn.holder != me:
                log.warning("the turn of webhook endpoint %s was taken by another worker: the lease had ended", endpoint_id)
                return "lost"
            held = held or look.turn.wanted_held
            turn = look.mine
            outcome = self._ended(look, turn, now, started, first=own is None)
            if outcome == "done" and look.turn.wanted:
                # The wake-up flag may be younger than the read of due deliveries: take it away, and read once more.
                own = turn
                self._saved(turn.unmarked())
            elif outcome is not None:
                if own is None or self._saved(turn.over()):
                    self._ask_later(look, turn, outcome, now - started, held)
                    return outcome
                own = turn  # a worker came meanwhile: look again
            else:
                sending = self._go_on(look, turn, now, me, held)
                own = own if sending is None else sending
                # Nothing more was due, and a worker that brought a delivery since has left its wake-up flag: the lease can not be
                # given back then. Not where the flag was there before: a worker that saw it after this read relies on it.
                if sending is not None and (not sending.holder or (look.all_seen and self._saved(sending.over()))):
                    return "done"

    def _ended(self, look: Look, turn: Turn, now: int, started: int, *, first: bool) -> Outcome | None:
        """How the lease ends; None while its holder goes on."""
        if not look.due:
            return "idle" if first else "done"
        if turn.rests_until > now and look.batch:
            return "resting"
        return "more" if now - started >= TURN_MS else None

    def _go_on(self, look: Look, turn: Turn, now: int, me: str, held: bool) -> Turn | None:
        """Take or keep the lease, settle what needs no sending, and send the batch; the lease with the outcomes.

        None: another worker changed the lease first, and nothing was done.
        """
        endpoint = look.endpoint
        # Before the lease is taken: where KMS does not answer, no attempt has started that would count as interrupted.
        secrets = opened(self._opener, endpoint, now) if endpoint is not None and look.batch else ()
        taken = turn.with_batch(look.hand, now, me)
        taken = replace(taken, blockers=look.blockers.texts)
        if not self._saved(taken):
            return None
        taken = self._unblocked(look, taken)
        for settle in look.aside:
            settle()
        if endpoint is None or not look.batch:
            return taken
        made = self._together([_job(self._deliveries, pair, endpoint, secrets) for pair in look.batch])
        over = _over(look, taken, endpoint, made)
        recorded = self._recording.of(look, made, over)
        if recorded.released and over is not None:
            return over
        tried = recorded.tried
        sent = [one for one in tried if isinstance(one, Sent)]
        failed = tuple(one.attempt.at for one in sent if not one.attempt.succeeded)
        taken = taken.faring(len(sent) - len(failed), failed, max((one.rests_until for one in sent), default=0))
        taken = self._ordered(look, taken, tried)
        self._after_failures(endpoint, taken)
        self._ask_again(sent, taken, held)
        for one in tried:
            if isinstance(one, Exception):
                raise one
        return taken

    def _unblocked(self, look: Look, turn: Turn) -> Turn:
        """The lease once what ends without sending holds up nothing. Before it ends: then it is found again after a crash."""
        blockers = look.blockers
        for delivery_id in look.ending:
            blockers = self._ordering.ended(turn.tenant, turn.endpoint_id, delivery_id, blockers)
        return replace(turn, blockers=blockers.texts)

    def _ordered(self, look: Look, turn: Turn, tried: Sequence[Tried]) -> Turn:
        """The lease with what holds up later events now that the batch was sent."""
        blockers = before = Blockers.stored(turn.blockers)
        for (_, event), one in zip(look.batch, tried, strict=True):
            if isinstance(one, Sent) and one.outcome != "overtaken":
                blockers = self._ordering.after(one.delivery, event, blockers)
        sent = {delivery.id for delivery, _ in look.batch}
        look.waiting += sum(one.delivery not in sent and before.find(one.delivery) is None for one in blockers.all)
        return replace(turn, blockers=blockers.texts)

    def _taken_over(self, look: Look, now: int, me: str) -> Turn | None:
        """Take the lease of a dead worker, and record its batch as interrupted; None: another worker did."""
        dead = look.turn
        own = dead.taken_over(now, me)
        if not self._saved(own):
            return None
        interrupted, stored = self._recording.interrupted(dead)
        own = self._ordering.restored(own, stored)
        if look.endpoint is not None:
            own = own.forgiven(look.endpoint.fresh_at).faring(0, tuple(one.attempt.at for one in interrupted), 0)
            self._after_failures(look.endpoint, own)
        self._ask_again(interrupted, own)
        return own

    def _is_marked(self, turn: Turn, held: bool) -> bool:
        """Whether the holder of the lease will look again; False where the lease has changed meanwhile."""
        return (turn.wanted and (turn.wanted_held or not held)) or self._saved(turn.marked(held))

    def _saved(self, turn: Turn) -> bool:
        try:
            self._store.commit([Save(turn)])
        except Conflict:
            return False
        except Unavailable:
            # It may be stored all the same: then it is ours, and would lie there until the lease ends.
            stored = self._store.get(Turn, tenant=turn.tenant, endpoint_id=turn.endpoint_id)
            if stored != turn:
                raise
        return True

    def _after_failures(self, endpoint: WebhookEndpoint, turn: Turn) -> None:
        """Say so where an endpoint begins to fail, is well again, or has failed for so long that it is turned off."""

        def decide() -> None:
            changes = self._consequences(self._store.get(WebhookEndpoint, tenant=endpoint.tenant, id=endpoint.id), turn)
            if changes:
                self._store.commit(changes)

        if self._consequences(endpoint, turn):
            until_settled(decide)

    def _consequences(self, endpoint: WebhookEndpoint | None, turn: Turn) -> Sequence[Change]:
        if endpoint is None or not endpoint.enabled or endpoint.fresh_at != turn.fresh_at:
            return ()
        now, since = self._clock.now_ms(), turn.failing_since
        if since is None:
            return () if endpoint.failing_since is None else well_again(endpoint)
        if now - since >= DISABLED_AFTER_MS:
            return self._deliveries.notices.turned_off(endpoint, "nothing it was sent has succeeded for five days", now)
        if turn.failures >= FAILING_AFTER and endpoint.failing_since is None:
            return self._deliveries.notices.failing(endpoint, since, now)
        return ()

    def _ask_again(self, sent: Sequence[Sent], turn: Turn, held: bool = False) -> None:
        """Send messages for retries that are near; the schedule brings those that wait longer than a message can. `held`: parked
        deliveries are being sent as well, and the next ones follow when a rest is over."""
        now = self._clock.now_ms()
        waiting = [one.delivery for one in sent if one.outcome == "retry" and not one.delivery.scheduled]
        times = {max(delivery.due_at, turn.rests_until) for delivery in waiting}
        if any(one.rests_until for one in sent):
            times.add(turn.rests_until)  # one for all that comes up meanwhile, whatever the retries themselves wait for
        rest = _seconds(turn.rests_until - now)
        for seconds in sorted({_seconds(at - now) for at in times}):
            self._wake(turn, seconds, held=held and seconds == rest)

    def _ask_later(self, look: Look, turn: Turn, outcome: Outcome, took: int, held: bool) -> None:
        """Send a message for due deliveries that are not sent yet. For the end of a rest the worker that began it sent one, which
        may be early."""
        if outcome == "more":
            self._wake(turn, 0, held=held, slow=look.endpoint is not None and took - TURN_MS >= SLOW_BATCH_MS)
        elif (look.unseen and not look.due) or (outcome == "resting" and turn.rests_until - self._clock.now_ms() <= EARLY_MS):
            self._wake(turn, 1, held=held)

    def _wake(self, turn: Turn, seconds: int, *, held: bool = False, slow: bool = False) -> None:
        # After the first failure already, before its owner is told: many that hang at once would hold all functions of the common
        # queue before they had failed often enough.
        unwell = turn.failures > 0 or slow
        try:
            self._queues.wake(turn.tenant, turn.endpoint_id, seconds, failing=unwell, held=held)
        except Unavailable:
            log.warning("no message for the retries of webhook endpoint %s: the sweep brings them", turn.endpoint_id)


def _job(
    deliveries: Deliveries, pair: tuple[Delivery, EventRecord], endpoint: WebhookEndpoint, secrets: Sequence[str]
) -> Callable[[], Made]:
    def job() -> Made:
        try:
            return deliveries.send(pair[0], endpoint, pair[1], secrets)
        except Exception as error:  # noqa: BLE001 - raised again when what came of the others is known
            return error

    return job


def _over(look: Look, taken: Turn, endpoint: WebhookEndpoint, made: Sequence[Made]) -> Turn | None:
    """The lease given back with the record of a batch that leaves nothing to do: all of it accepted at once, and no more seen. None
    for any other."""
    usual = look.all_seen and taken.blockers is None and endpoint.failing_since is None
    if not usual or not all(isinstance(one, Accepted) for one in made):
        return None
    return taken.faring(len(made), (), 0).over()


def _seconds(ms: int) -> int:
    return max(0, math.ceil(ms / 1000))
