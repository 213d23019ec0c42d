"""Quotes: the rate of a coin as an invoice keeps it, and exact values in its currency."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from math import ceil

from chalicelib.domain.catalogue.fiats import FIATS, MINOR_DIGITS

PRICED_DECIMALS = 8
FiatValue = tuple[str, str, str]
"""What an amount was worth when it was paid: a plain decimal rounded to the currency's minor unit, the currency, and the rate's
source. A tuple, since invoices keep it for each payment and are written at every one."""
_EXACT = Context(prec=400, Emin=-9999, Emax=9999, traps=[Inexact])


@dataclass(frozen=True, slots=True)
class Quote:
    """The rate of one coin (10 ** `decimals` units) when an invoice was made: `value` of `fiat`, as text, exact.

    `at` is when the provider said so, in milliseconds since 1970.
    """

    fiat: str
    value: str
    decimals: int
    at: int
    source: str

    def worth(self, units: int) -> Fraction:
        """The exact value of `units` in the quote's currency."""
        return Fraction(Decimal(self.value)) * Fraction(units, 10**self.decimals)

    def cents(self, units: int) -> int:
        """The same value in hundredths, rounded once, half to even."""
        return round(self.worth(units) * 100)

    def fiat_value(self, units: int) -> FiatValue:
        """The value of `units` in digits that the currency has, rounded once, half to even."""
        digits = FIATS.get(self.fiat, MINOR_DIGITS)
        return f"{Decimal(round(self.worth(units) * 10**digits)).scaleb(-digits, _EXACT):f}", self.fiat, self.source

    def units_for(self, amount: str) -> int:
        """The least units that are worth at least `amount` (plain decimal), in at most 8 decimals of the coin: a payer has to
        read and type them."""
        return self.units_worth(Fraction(Decimal(amount)))

    def units_worth(self, amount: Fraction) -> int:
        """The same of an exact amount."""
        return ceil(amount / self._step) * self.step

    def whole_steps(self, amount: Fraction) -> int:
        """The most units that are worth at most `amount`, in at most 8 decimals of the coin."""
        return amount // self._step * self.step

    def units_within(self, amount: Fraction) -> int:
        """The most units that are worth at most `amount`, in all decimals of the coin."""
        return int(amount * 10**self.decimals // Fraction(Decimal(self.value)))

    @property
    def step(self) -> int:
        """Units of one step of a price: a coin is asked for in at most 8 decimals."""
        return int(10 ** (self.decimals - min(self.decimals, PRICED_DECIMALS)))

    @property
    def _step(self) -> Fraction:
        return self.worth(self.step)


def exact(value: Fraction) -> str:
    """`value` as a plain decimal without needless zeros. Raises decimal.Inexact for one that is none, such as a third."""
    text = f"{_EXACT.divide(Decimal(value.numerator), Decimal(value.denominator)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def floor_percent(part: Fraction, whole: Fraction) -> str:
    """`part` of `whole` in percent, rounded down to two decimals: "33.33", "100"."""
    return exact(Fraction(part * 10_000 // whole, 100))
