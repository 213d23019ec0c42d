"""A merchant's settings for all new invoices, and the checks of a new invoice against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.choices import LOCK_SECONDS
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.terms import Terms

MAX_EXPIRY = 365 * 86400
"""Seconds."""


@dataclass(frozen=True, slots=True)
class InvoiceSettings:
    """`default_expiration_time` in seconds, None for the deployment's. `rate_lock_seconds`: for so long a payer who chooses a coin
    has its rate, None for a quarter of an hour. Amounts are plain decimals, as text, exact:
    `auto_confirm_threshold` in US dollars (0: off), `minimum_amounts` in coin units by coin slug. No `supported_currencies`: all.
    `terms` are what is forgiven, None for nothing.
    """

    tenant: TenantId
    default_expiration_time: int | None = None
    auto_confirm_threshold: str = "0"
    supported_currencies: tuple[str, ...] = ()
    minimum_amounts: Mapping[str, str] = field(default_factory=dict)
    terms: Terms | None = None
    rate_lock_seconds: int | None = None
    version: int = 0

    @property
    def lock_seconds(self) -> int:
        return LOCK_SECONDS if self.rate_lock_seconds is None else self.rate_lock_seconds

    @property
    def time_to_pay(self) -> int:
        """Seconds. Raises LookupError before the deployment's default is filled in."""
        if self.default_expiration_time is None:
            raise LookupError("nobody has said how long an invoice can be paid")
        return self.default_expiration_time

    def terms_with(self, wished: Mapping[str, Any]) -> Terms | None:
        """The terms of a new invoice that names some of its own; None where they forgive nothing."""
        terms = replace(self.terms or Terms(), **wished)
        return None if terms.strict else terms

    def demand(self, slug: str, units: int, decimals: int, asked: str = "amount") -> None:
        """Raises BusinessRule where the merchant wants no invoice over `units` of a coin. `asked` is the field that the amount
        came in."""
        self.demand_supported(slug)
        least = self.minimum_amounts.get(slug)
        if least is not None and Fraction(units, 10**decimals) < Fraction(Decimal(least)):
            raise BusinessRule(asked, f"is less than {least} {slug}, the minimumAmounts of your invoice settings")

    def demand_supported(self, slug: str, asked: str = "currency") -> None:
        """Raises BusinessRule where the merchant wants no invoice in a coin. `asked` is the field that it came in."""
        if self.supported_currencies and slug not in self.supported_currencies:
            raise BusinessRule(asked, f"{slug} is not among the supportedCurrencies of your invoice settings")

    def auto_confirms(self, units: int, usd: Quote | None) -> bool:
        """Whether an invoice over `units` is completed by a payment in a block, before its confirmations. That needs a rate."""
        return usd is not None and self.auto_confirms_worth(usd.worth(units))

    def auto_confirms_worth(self, dollars: Fraction) -> bool:
        """The same of an invoice that is worth so much."""
        return 0 < dollars <= Fraction(Decimal(self.auto_confirm_threshold))
