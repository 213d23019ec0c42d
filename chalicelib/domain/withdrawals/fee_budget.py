"""Fee budget: the network fees of a merchant's withdrawals that the operator bears in a day, and their limit. Pure.

Counted are millionths of a US dollar, by the UTC day. A withdrawal keeps what was counted for it, so that it is counted once
however often it is looked at, and corrected when its fee is known better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.versions import next_version

DAY_MS = 24 * 3_600_000
MICROS = 10**6
_EXACT = Context(prec=120)


@dataclass(frozen=True, slots=True)
class Borne:
    """The fee counted for one withdrawal: `micros` in all, by `day` (since 1970); `earlier` of them on days before that one."""

    day: int
    micros: int
    earlier: int = 0

    @property
    def of_day(self) -> int:
        return max(0, self.micros - self.earlier)


@dataclass(frozen=True, slots=True)
class FeesBorne:
    """The operator's share of one merchant's fees on one network, on the `day` (since 1970) that was counted last."""

    tenant: TenantId
    network: NetworkId
    day: int = 0
    micros: int = 0
    version: int = 0

    def counting(self, before: Borne | None, now_ms: int, micros: int) -> tuple[FeesBorne, Borne]:
        """The next version, where a withdrawal that `before` was counted for costs `micros` in all, and its new count.

        The count of an earlier day stays there: only the excess over it counts now.
        """
        day = max(self.day, now_ms // DAY_MS)
        if before is None:
            earlier = there = 0
        elif before.day == day:
            earlier, there = before.earlier, before.of_day
        else:
            earlier, there = before.earlier + before.of_day, 0
        counted = Borne(day, micros, earlier)
        total = (self.micros if self.day == day else 0) - there + counted.of_day
        return replace(next_version(self), day=day, micros=max(0, total)), counted

    def over(self, usd: int) -> bool:
        """Whether the count is over a budget in US dollars."""
        return self.micros > usd * MICROS


@dataclass(frozen=True, slots=True)
class FeeBudget:
    """An operator's fee budget for one merchant in place of the deployment's FEE_BUDGET_USD: US dollars for each network and
    UTC day; None: the deployment's again. `by` is the operator's AWS identity, `at` in milliseconds since 1970."""

    tenant: TenantId
    usd: int | None
    at: int
    by: str
    version: int = 1


def micros_of(units: int, decimals: int, rate: Decimal) -> int:
    """The value of `units` of a coin at `rate` (US dollars for one coin), in millionths, rounded up."""
    worth = _EXACT.multiply(_EXACT.scaleb(Decimal(units), 6 - decimals), rate)
    return int(worth.to_integral_value(ROUND_CEILING))
