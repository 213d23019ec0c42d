"""Which of a network's due deposits other functions were asked to credit a moment ago.

A deposit may be due and wait all the same: for finality, for a second node, for a rate. What waits is not asked for by every tick.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Work

AGAIN_MS = 60_000
"""No deposit is asked for again sooner."""


@dataclass(frozen=True, slots=True)
class AskedCredits:
    """The crowd was asked for up to `upto`, a place in the order of obligations, and last `at`, milliseconds by the realm's
    clock."""

    network: NetworkId
    upto: str = ""
    at: int = 0
    version: int = 0

    def covers(self, work: Work, now: int) -> bool:
        """Whether the deposit of `work` was among those, less than a minute ago."""
        return self._fresh(now) and _place(work) <= self.upto

    def after(self, last: Work, now: int) -> AskedCredits:
        """This record where all up to `last` have been asked for now."""
        upto = max(self.upto, _place(last)) if self._fresh(now) else _place(last)
        return replace(next_version(self), upto=upto, at=now)

    def _fresh(self, now: int) -> bool:
        return abs(now - self.at) < AGAIN_MS


def _place(work: Work) -> str:
    return f"{work.order}#{work.id}"
