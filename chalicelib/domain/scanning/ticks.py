"""Ticks: looks at a network between two minute's polls, while somebody waits for a payment on it.

A network is busy while payments are on their way to confirmation, and while somebody was asked to pay a short time ago. The second
costs nobody anything, so it has a bound a day. A tick is planned for a moment. It runs at that moment or not at all, and one
network has one at a time. Nothing rests on a tick: the minute's poll does all that it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.catalogue import Family
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version

VERSION = 1
"""Of the messages. A worker drops those of other versions: the minute's poll does their work."""
WAIT_MS = 30 * 60 * 1000
"""How long somebody who was given an address, or chose a coin, is expected to pay at any moment."""
NOTED_MS = 20_000
"""Asks write `Busy` at most once in so long, and each process reads it for them at most as often."""
OPEN_MS = 120_000
"""How long the sight of open payments keeps a network busy: two polls, of which one may be late."""
LATE_MS = 5_000
"""A tick that starts so much later than planned does nothing: a later one is due already."""
GAP_MS = 2_000
"""Least time between the planned moments of two ticks of a network that run."""
HASTE_MS = 1_000
"""Least time between their starts: SQS may bring late ones together. Not `GAP_MS`: a tick that came half a second late would cost
the next one, which comes in time, and a payment would wait for the one after that. In the model of tests/bench/bench_seconds.py
2,000 brings the p95 of account networks from 3.6..5.0 s to 4.9..5.9 s. No more ticks run by it: the plan has one in `GAP_MS`."""
DEAD_MS = 60_000
"""A tick that has not ended after so long has died: its function may run for half as long."""
REACH_MS = 58_000
"""How far ahead ticks are planned: up to the next minute's poll."""
LINKS_PART = 2
"""Invoices that strangers open by payment links get one part of so many of what asks alone have in a day: the rest is for payers
whom a merchant's key let in."""
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Busy:
    """Who waits for payments on a network. Times in milliseconds since 1970, of the machine's clock in both realms.

    `asked_until`: somebody may pay until then, as asks of payers and merchants say. `open_until`: payments are on their way to
    confirmation, as the poll saw them. On `day` (counted from 1970) asks alone keep the network busy for `alone_ms`. The last ask
    was written at `asked_at`.
    """

    network: NetworkId
    asked_until: int = 0
    open_until: int = 0
    day: int = 0
    alone_ms: int = 0
    asked_at: int = 0
    version: int = 0

    @property
    def until(self) -> int:
        return max(self.asked_until, self.open_until)

    def asked(self, until: int, now: int, most_ms: int) -> Busy | None:
        """This record after an ask that keeps the network busy to `until`, at most `most_ms` a day by asks alone; None where that
        is not worth a write, or the last one was a moment ago."""
        if now - self.asked_at < NOTED_MS:
            return None
        today = self._of(now)
        begins = max(today.until, now)
        until = min(until, begins + max(0, most_ms - today.alone_ms))
        if until < today.asked_until + NOTED_MS or until <= now:
            return None
        alone = today.alone_ms + max(0, until - begins)
        return replace(next_version(today), asked_until=until, alone_ms=alone, asked_at=now)

    def used_up(self, now: int, most_ms: int) -> bool:
        """Whether asks that may use `most_ms` a day keep the network busy no more today: what is left is not worth a write."""
        return self._of(now).alone_ms > most_ms - NOTED_MS

    def paying(self, now: int) -> Busy:
        """This record where the poll sees open payments now. What asks would have kept busy alone they do not any more."""
        today = self._of(now)
        until = max(today.open_until, now + OPEN_MS)
        together = min(until, today.asked_until) - max(today.open_until, now)
        return replace(next_version(today), open_until=until, alone_ms=max(0, today.alone_ms - max(0, together)))

    def _of(self, now: int) -> Busy:
        """This record on the day of `now`."""
        day = now // _DAY_MS
        return self if day == self.day else replace(self, day=day, alone_ms=0)


@dataclass(frozen=True, slots=True)
class TickLease:
    """One tick's right to scan a network: planned for `at`, begun at `started_at`, milliseconds since 1970."""

    network: NetworkId
    at: int = 0
    started_at: int = 0
    done: bool = True
    version: int = 0

    def taken(self, at: int, now: int) -> TickLease | None:
        """The lease of the tick planned for `at`, which starts now; None where it must not run.

        Moments that were planned count, so that a message that came a little later than meant does not cost the next one.
        """
        if at < self.at + GAP_MS or now < self.started_at + HASTE_MS:
            return None
        if not self.done and now < self.started_at + DEAD_MS:
            return None
        return replace(next_version(self), at=at, started_at=now, done=False)


def is_late(at: int, now: int) -> bool:
    """Whether a tick planned for `at` must not start now: late, or planned by a clock that is not ours."""
    return abs(now - at) > LATE_MS


def planned(family: Family, start: int, now: int, until: int) -> list[int]:
    """The moments of a network's ticks behind a poll that began at `start`: those still to come, up to `until` and to the next
    poll. Milliseconds since 1970.

    UTXO networks have half as many: each lists the whole mempool.
    """
    gap = 2 * GAP_MS if family == "utxo" else GAP_MS
    last = min(start + REACH_MS, until)
    return [at for at in range(start + gap, last + 1, gap) if at > now]
