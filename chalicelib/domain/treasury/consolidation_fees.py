"""Fees of a network's consolidations in a day, and their limit (money rule 14): strangers decide how many deposits there are. Pure.

Counted are millionths of a US dollar, by the UTC day.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.fee_budget import DAY_MS, MICROS


@dataclass(frozen=True, slots=True)
class ConsolidationFees:
    """The highest fees of a network's consolidations that were planned or replaced on the `day` (since 1970) that was counted
    last, or of the moves between its hot wallets that were planned. One that came to nothing stays counted: the count never falls
    within a day."""

    network: NetworkId
    day: int = 0
    micros: int = 0
    version: int = 0

    def counting(self, now_ms: int, micros: int) -> ConsolidationFees:
        """The next version, with `micros` more. A clock that is behind counts for the later day."""
        day = max(self.day, now_ms // DAY_MS)
        return replace(next_version(self), day=day, micros=(self.micros if day == self.day else 0) + micros)

    def over(self, usd: int) -> bool:
        """Whether the count is over a budget in US dollars."""
        return self.micros > usd * MICROS
