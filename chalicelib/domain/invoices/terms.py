"""What a merchant forgives its payers: a shortfall up to a tolerance, and payments that come late. Exact fractions, no floats."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

LatePayments = Literal["manual", "accept", "acceptWithinPercent"]
MOST_TOLERANCE = 10
MOST_LATE = 50
"""Percent."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Percentages and US dollars as plain decimals, exact.

    A shortfall is forgiven up to `tolerance_percent` of the price and no more than `tolerance_max_usd` (None: no such bound),
    both inclusive. `late_payments`: `manual` leaves an expired invoice expired; `accept` counts what comes late like the rest;
    `acceptWithinPercent` completes by it where its worth at its time covers the rest less `late_payments_percent`.
    """

    tolerance_percent: str = "0"
    tolerance_max_usd: str | None = None
    late_payments: LatePayments = "manual"
    late_payments_percent: str = "0"

    @property
    def strict(self) -> bool:
        """Whether nothing is forgiven at all."""
        return not _exact(self.tolerance_percent) and self.late_payments == "manual"

    @property
    def by_worth(self) -> bool:
        """Whether the worth of a late payment at its time decides."""
        return self.late_payments == "acceptWithinPercent"

    def forgiven(self, price: Fraction, dollars: Fraction | None) -> Fraction:
        """The largest shortfall of `price` that is forgiven, in the same unit; `dollars` is the worth of one such unit.

        Nothing where dollars bound it and no rate was known: what can not be shown to be little is not given away.
        """
        within = price * _exact(self.tolerance_percent) / 100
        if self.tolerance_max_usd is None:
            return within
        return min(within, _exact(self.tolerance_max_usd) / dollars) if dollars else Fraction(0)

    def covers(self, rest: Fraction, late: Fraction) -> bool:
        """Whether late payments of the worth `late` are enough for `rest`, where their worth decides. Nothing never is."""
        return 0 < rest * (100 - _exact(self.late_payments_percent)) / 100 <= late


def _exact(text: str) -> Fraction:
    return Fraction(Decimal(text))
