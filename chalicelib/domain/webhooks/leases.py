"""Whose turn it is to send to an endpoint. One worker at a time, so that a slow endpoint holds up one and no more, and what is
sent to it at once is bounded; what waits for it lies in the store and not in the queue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.ids import TenantId
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS
from chalicelib.domain.work import LANES

WAVE = 10
"""Deliveries that are sent to one endpoint at the same time, at most."""
LEASE_MS = 30_000
"""How long a wave keeps other workers away: the attempts (10 s), and time to write down what came of them."""
TURN_MS = 15_000
"""A worker begins no wave after this; if more is due, the endpoint waits in the queue behind others."""
REST_SECONDS = 900
"""For so long at most a receiver that says Retry-After with 429 or 503 is left alone altogether."""
FAILING_AFTER = 5
"""Failed attempts without a success between them after which an endpoint counts as failing, and its owner hears of it."""
FAILING_TOLD_MS = 86_400_000
"""An endpoint that is well and fails by turns is said to fail once in so long: what is said goes to the owner's other endpoints."""
SLOW_WAVE_MS = 5_000
"""What takes longer waits in the queue of those that fail."""
EARLY_MS = 250
"""What is due this soon is sent now: clocks of two machines differ, and its message will not come again."""
DISABLED_AFTER_MS = 5 * 86_400_000
"""An endpoint is turned off after so long without a success."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The lease on an endpoint, and how the endpoint has been doing. Times in milliseconds since 1970, `ttl` in seconds.

    `until`: nobody else sends before; `holder` is who has it. `hand` names the wave that is being sent since `began`, as ids of its
    work: what a worker leaves there has died with it. `wanted`: somebody came while it was taken, so look again; `wanted_held`:
    also at what was put aside. `rests_until`: the receiver asked to be left alone. `failing_since` is the first failure since the
    last success, `failures` how many there were: of the endpoint as it has been since `fresh_at`, see `WebhookEndpoint`.
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
    version: int = 1

    def taken(self, now: int) -> bool:
        return now < self.until

    def died(self, now: int) -> bool:
        """Whether a worker took the turn and never gave it back."""
        return not self.taken(now) and bool(self.hand)

    def marked(self, held: bool) -> Turn:
        return replace(next_version(self), wanted=True, wanted_held=self.wanted_held or held)

    def unmarked(self) -> Turn:
        return replace(next_version(self), wanted=False, wanted_held=False)

    def with_wave(self, hand: tuple[str, ...], now: int, holder: str) -> Turn:
        """Taken, or kept, by `holder` for another wave."""
        taken = replace(self.unmarked(), until=now + LEASE_MS, ttl=now // 1000 + KEEP_SECONDS, holder=holder)
        return replace(taken, hand=hand, began=now)

    def taken_over(self, now: int, holder: str) -> Turn:
        """Taken by `holder` from one that died, with what that one had in hand."""
        return replace(self.with_wave(self.hand, now, holder), began=self.began)

    def over(self) -> Turn:
        """Given back."""
        return replace(self.unmarked(), until=0, holder="", hand=())

    def forgiven(self, fresh_at: int) -> Turn:
        """With nothing held against an endpoint that its owner has changed or turned on since. The version stays."""
        if fresh_at == self.fresh_at:
            return self
        return replace(self, failures=0, failing_since=None, rests_until=0, fresh_at=fresh_at)

    def with_health_of(self, other: Turn) -> Turn:
        """As it is stored, with the health that `other` knows of. The version stays."""
        return replace(
            self, failures=other.failures, failing_since=other.failing_since, rests_until=other.rests_until, fresh_at=other.fresh_at
        )

    def faring(self, succeeded: int, failed_at: tuple[int, ...], rests_until: int) -> Turn:
        """With what came of a wave: how many succeeded, and when those that failed did. The version stays: nothing is saved."""
        rests = max(self.rests_until, rests_until)
        if succeeded:
            return replace(self, failures=0, failing_since=None, rests_until=rests)
        since = self.failing_since if self.failing_since is not None else min(failed_at, default=None)
        return replace(self, failures=self.failures + len(failed_at), failing_since=since, rests_until=rests)


@dataclass(frozen=True, slots=True)
class SweepCursor:
    """How far the minute's schedule `id` has come: with overdue deliveries, a place in each lane of time; with waiting payouts of a
    network, the merchant that it looked at last. "" is the beginning."""

    id: str
    places: tuple[str, ...] = ("",) * LANES
    version: int = 1
