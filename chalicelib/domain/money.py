"""Amounts: integers of a coin's smallest unit, typed with their coin (money rule 1). No float."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Annotated

from chalicelib.domain.ids import AssetId

MAX_DIGITS = 38
"""Significant digits that DynamoDB keeps exactly; also the longest amount that the interface takes."""

MOST_SUM = 10**37
"""Units that a sum of deposits may come to: a tenth of what `MAX_DIGITS` hold. The rest is for what a reorganisation brings back to
a sum that has been filled again meanwhile."""

_EXACT = Context(prec=120)
_PLAIN_DECIMAL = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)


UNBOUNDED = "unbounded"
Units = Annotated[int, UNBOUNDED]
"""An amount as a chain tells it: a token may log 2^256 - 1. Stored as text where it has more than 38 digits."""


class NotAnAmount(ValueError):
    """The text is not an amount of this coin; the message gives the reason, in words for the caller."""


@dataclass(frozen=True, slots=True)
class Amount:
    """`units` of the smallest unit (wei, satoshi, sun) of `asset`. Amounts of two assets can not be added or compared."""

    asset: AssetId
    units: int

    def _same(self, other: Amount) -> None:
        if self.asset != other.asset:
            raise TypeError(f"{self.asset} and {other.asset} are two different coins")

    def __add__(self, other: Amount) -> Amount:
        self._same(other)
        return Amount(self.asset, self.units + other.units)

    def __sub__(self, other: Amount) -> Amount:
        self._same(other)
        return Amount(self.asset, self.units - other.units)

    def __lt__(self, other: Amount) -> bool:
        self._same(other)
        return self.units < other.units

    def __le__(self, other: Amount) -> bool:
        self._same(other)
        return self.units <= other.units


def parse_units(text: str, decimals: int) -> int:
    """The units of the plain decimal `text`, in a coin of `decimals` decimals. Zero is an amount.

    Raises NotAnAmount for signs, exponents, NaN, blanks, more decimals than the coin has, more than 38 significant digits.
    """
    match = _PLAIN_DECIMAL.fullmatch(text) if len(text) <= 200 else None
    if match is None:
        raise NotAnAmount("must be a plain decimal such as 12.5, without sign or exponent")
    whole, fraction = match.group(1), match.group(2) or ""
    if len(fraction) > decimals:
        raise NotAnAmount(f"must have at most {decimals} decimals")
    digits = (whole + fraction).lstrip("0")
    if len(digits) > MAX_DIGITS or len((whole + fraction.ljust(decimals, "0")).lstrip("0")) > MAX_DIGITS:
        raise NotAnAmount(f"must have at most {MAX_DIGITS} significant digits")
    return int(whole + fraction.ljust(decimals, "0"))


def format_units(units: int, decimals: int) -> str:
    """`units` as the interface writes amounts: plain decimal, no exponent, no needless zeros ("0.5", "0", "1500")."""
    sign, digits = ("-", str(-units)) if units < 0 else ("", str(units))
    if decimals == 0:
        return sign + digits
    digits = digits.rjust(decimals + 1, "0")
    whole, fraction = digits[:-decimals], digits[-decimals:].rstrip("0")
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def plain(text: str) -> str:
    """The plain decimal `text` in the one spelling that the interface uses: without needless zeros."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def usd_cents(units: int, decimals: int, rate: Decimal) -> float:
    """The value in USD, rounded to cents, as the JSON number that the interface shows. For display only."""
    value = _EXACT.multiply(Decimal(units).scaleb(-decimals, _EXACT), rate)
    return float(value.quantize(Decimal("0.01"), ROUND_HALF_EVEN, _EXACT))


def floor_units(text: str, decimals: int) -> int:
    """The most units of a coin that are at most the plain decimal `text`, which may have more decimals than the coin."""
    whole, _, fraction = text.partition(".")
    return int(whole + fraction[:decimals].ljust(decimals, "0"))


def ceil_units(text: str, decimals: int) -> int:
    """The fewest units of a coin that are at least the plain decimal `text`, which may have more decimals than the coin."""
    return floor_units(text, decimals) + bool(text.partition(".")[2][decimals:].strip("0"))
