"""The lease on a webhook endpoint. One worker at a time sends to it, so that a slow endpoint holds up one worker, and concurrent
requests to it are bounded; its due deliveries lie in the store and not in the queue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.ids import TenantId
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS
from chalicelib.domain.work import LANES

BATCH = 10
"""Deliveries that are sent to one endpoint at the same time, at most."""
LEASE_MS = 30_000
"""How long a batch keeps other workers away: the attempts (10 s), and time to store their outcomes."""
TURN_MS = 15_000
"""A worker begins no batch after this; if more is due, the endpoint waits in the queue behind others."""
REST_SECONDS = 900
"""The longest rest of an endpoint whose receiver says Retry-After with 429 or 503."""
FAILING_AFTER = 5
"""Failed attempts without a success between them after which an endpoint counts as failing, and its owner hears of it."""
FAILING_TOLD_MS = 86_400_000
"""An endpoint that works and fails by turns is reported as failing once in so long: reports go to the owner's other endpoints."""
SLOW_BATCH_MS = 5_000
"""An endpoint whose batch takes longer waits in the queue of failing ones."""
EARLY_MS = 250
"""A delivery due this soon is sent now: clocks of two machines differ, and its message will not come again."""
DISABLED_AFTER_MS = 5 * 86_400_000
"""An endpoint is turned off after so long without a success."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The lease on an endpoint, and the endpoint's health. Times in milliseconds since 1970, `ttl` in seconds.

    `until`: no other worker sends before; `holder` is the worker that has it. `hand` names the batch that is being sent since
    `began`, as ids of its work: a batch left there was cut short by a crash. `wanted` is a wake-up flag: another worker came
    during the lease, so look again; `wanted_held`: also at parked deliveries. `rests_until`: the receiver asked for a pause.
    `failing_since` is the first failure since the last success, `failures` how many there were: of the endpoint as it has been
    since `fresh_at`, see `WebhookEndpoint`. `blockers` are the deliveries that hold up later ones (`domain/webhooks/ordering.py`).
    `drained_at`: the deliveries that were parked by pauses until then (`WebhookEndpoint.unheld_at`) have been sent.
    """

    tenant: TenantId
    endpoint_id: str
    ttl: int
    until: int = 0
    holder: str = ""
    hand: tuple[str, ...] = ()
    began: int = 0
    wanted: bool = False
    wanted_held: bool = False
    rests_until: int = 0
    failures: int = 0
    failing_since: int | None = None
    fresh_at: int = 0
    blockers: tuple[str, ...] | None = None
    drained_at: int | None = None
    version: int = 1

    def taken(self, now: int) -> bool:
        return now < self.until

    def died(self, now: int) -> bool:
        """Whether a worker took the lease and never released it."""
        return not self.taken(now) and bool(self.hand)

    def marked(self, held: bool) -> Turn:
        return replace(next_version(self), wanted=True, wanted_held=self.wanted_held or held)

    def unmarked(self) -> Turn:
        return replace(next_version(self), wanted=False, wanted_held=False)

    def with_batch(self, hand: tuple[str, ...], now: int, holder: str) -> Turn:
        """The lease taken, or kept, by `holder` for another batch."""
        taken = replace(self.unmarked(), until=now + LEASE_MS, ttl=now // 1000 + KEEP_SECONDS, holder=holder)
        return replace(taken, hand=hand, began=now)

    def taken_over(self, now: int, holder: str) -> Turn:
        """The lease taken by `holder` from a worker that died, with that worker's batch."""
        return replace(self.with_batch(self.hand, now, holder), began=self.began)

    def over(self) -> Turn:
        """The lease released."""
        return replace(self.unmarked(), until=0, holder="", hand=())

    def forgiven(self, fresh_at: int) -> Turn:
        """The lease without failures of an endpoint that its owner has changed or turned on since. The version stays."""
        if fresh_at == self.fresh_at:
            return self
        return replace(self, failures=0, failing_since=None, rests_until=0, fresh_at=fresh_at)

    def with_health_of(self, other: Turn) -> Turn:
        """The stored lease with the health and the blockers that `other`, its holder's, has. The version stays."""
        return replace(
            self, failures=other.failures, failing_since=other.failing_since, rests_until=other.rests_until,
            fresh_at=other.fresh_at, blockers=other.blockers, drained_at=other.drained_at,
        )  # fmt: skip

    def faring(self, succeeded: int, failed_at: tuple[int, ...], rests_until: int) -> Turn:
        """The lease with the result of a batch: how many succeeded, and when others failed. The version stays: nothing is
        saved."""
        rests = max(self.rests_until, rests_until)
        if succeeded:
            return replace(self, failures=0, failing_since=None, rests_until=rests)
        since = self.failing_since if self.failing_since is not None else min(failed_at, default=None)
        return replace(self, failures=self.failures + len(failed_at), failing_since=since, rests_until=rests)


@dataclass(frozen=True, slots=True)
class SweepCursor:
    """Progress of the minute's schedule `id`: for overdue deliveries, a place in each lane of time; for waiting payouts of a
    network, the merchant that it looked at last. "" is the beginning."""

    id: str
    places: tuple[str, ...] = ("",) * LANES
    version: int = 1
