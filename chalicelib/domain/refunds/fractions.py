"""How much of an invoice can be refunded: each refund is a fraction of what was credited, and the fractions never exceed 1.

All is exact: units are integers, worth a fraction. The base is what is credited now, so a payment that fell out of the chain takes
its part with it: what was refunded already then counts for more than all, and nothing further is refunded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor

from chalicelib.domain.catalogue.fiats import FIATS
from chalicelib.domain.ids import AssetId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.money import format_units
from chalicelib.domain.refunds.refunds import Terms

MORE_THAN_ALL = Fraction(2)
CENT = 2
"""Decimals of a US dollar."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is credited of one coin: `units`, and their `worth` as it was counted."""

    asset: AssetId
    units: int
    worth: Fraction


@dataclass(frozen=True, slots=True)
class Credited:
    """What is credited for an invoice. `worth` is in `fiat`; in units of its coin where the invoice has no price in fiat."""

    parts: tuple[Part, ...]
    fiat: str | None

    @property
    def worth(self) -> Fraction:
        return sum((part.worth for part in self.parts), Fraction(0))

    def of(self, asset: AssetId) -> Part | None:
        """The part of one coin, None where nothing of it is credited."""
        return next((part for part in self.parts if part.asset == asset and part.units > 0), None)

    @property
    def most(self) -> Part | None:
        """The coin that was paid most, by worth; the first of equals."""
        return max((part for part in self.parts if part.units > 0), key=lambda part: part.worth, default=None)


def credited_of(invoice: Invoice) -> Credited:
    """What is credited for `invoice` now, late payments too. Where its payer chose the coin, what has no rate yet is left out."""
    if invoice.choosing is not None:
        parts = (
            Part(choice.asset, choice.in_units("confirmed", "late"), choice.counted("confirmed") + choice.counted("late"))
            for choice in invoice.choosing.choices
        )
        return Credited(tuple(part for part in parts if part.worth > 0), invoice.choosing.fiat)
    units = invoice.received
    worth = Fraction(units) if invoice.priced is None else invoice.priced.worth(units)
    return Credited((Part(invoice.asset, units, worth),), None if invoice.priced is None else invoice.priced.fiat)


def overpaid_worth(invoice: Invoice, credited: Credited) -> Fraction | None:
    """The worth of what a completed invoice was overpaid; None where it was not."""
    if invoice.status != "completed" or not invoice.overpaid:
        return None
    if invoice.choosing is not None and invoice.choosing.current is not None and invoice.choosing.current.quote is not None:
        return invoice.choosing.current.quote.worth(invoice.overpaid)
    part = credited.of(invoice.asset)
    return None if part is None else part.worth * invoice.overpaid / part.units


def taken(credited: Credited, refunds: Iterable[Terms]) -> Fraction:
    """The fraction of what is credited that `refunds` take; `MORE_THAN_ALL` where one is of a coin that is credited no more, or
    nothing is credited."""
    total, whole = Fraction(0), credited.worth
    for terms in refunds:
        if terms.mode == "fiat":
            worth = Fraction(Decimal(terms.fiat_amount or "0"))
        else:
            part = credited.of(terms.asset)
            if part is None:
                return MORE_THAN_ALL
            worth = part.worth * terms.amount / part.units
        if not whole:
            return MORE_THAN_ALL
        total += worth / whole
    return total


def covered(credited: Credited, refunds: Sequence[Terms]) -> bool:
    """Whether what is credited covers `refunds`: no payment that they rest on has fallen out of the chain."""
    return taken(credited, refunds) <= 1 and all(left_of(credited, refunds, part.asset) >= 0 for part in credited.parts)


def left_of(credited: Credited, refunds: Sequence[Terms], asset: AssetId) -> int:
    """The units of a coin that can be refunded in the mode `same`: never more than came in it. Negative where too much was."""
    part = credited.of(asset)
    before = sum(terms.amount for terms in refunds if terms.mode != "fiat" and terms.asset == asset)
    if part is None:
        return -before
    rest = (1 - taken(credited, refunds)) * credited.worth
    return min(part.units - before, floor(rest * part.units / part.worth))


def left_in_fiat(credited: Credited, refunds: Sequence[Terms]) -> str:
    """The worth that can be refunded in the mode `fiat`: plain decimal, as `in_fiat`."""
    return in_fiat((1 - taken(credited, refunds)) * credited.worth, credited.fiat)


def in_fiat(worth: Fraction, fiat: str | None) -> str:
    """`worth` as a plain decimal, rounded down to the digits that `fiat` has (ISO 4217); 0 where it is less."""
    decimals = FIATS.get(fiat or "", CENT)
    return format_units(max(0, floor(worth * 10**decimals)), decimals)


def cents_text(cents: int) -> str:
    """`cents` as a plain decimal; 0 where there are fewer."""
    return format_units(max(0, cents), CENT)
