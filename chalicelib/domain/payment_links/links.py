"""Payment links: the terms on which a visitor of a public page gets an invoice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import AssetId, TenantId

PREFIX = "plk"
"""Of their ids."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A coin that the payer may choose; without a network on all of them."""

    coin: str
    network: str | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What is asked for: plain decimals, of `fiat` (ISO 4217) where that is set, else in units of the coin `asset`.

    `amount` alone is fixed; with `most` the payer names an amount, from `amount` up to it. Without `asset` the payer chooses the
    coin, of those in `accept`; None for all that the merchant's settings allow.
    """

    amount: str
    most: str | None = None
    asset: AssetId | None = None
    fiat: str | None = None
    accept: tuple[Offered, ...] | None = None

    def demand(self, asked: str | None, unit: str) -> str:
        """The amount that an invoice is made over, where the payer sent `asked`. `unit` is the price's name for messages.

        Raises BusinessRule: the payer names an amount where there is a range, and only there.
        """
        if self.most is None:
            if asked is not None:
                raise BusinessRule("amount", f"must not be there: this link asks for {self.amount} {unit}")
            return self.amount
        if asked is None:
            raise BusinessRule("amount", f"is needed: from {self.amount} to {self.most} {unit}")
        if not Decimal(self.amount) <= Decimal(asked) <= Decimal(self.most):
            raise BusinessRule("amount", f"must be from {self.amount} to {self.most} {unit}")
        return asked


@dataclass(frozen=True, slots=True)
class PaymentLink:
    """A link. `name` and `description` are the merchant's words for its payers; `metadata` and `redirect_url` go to the invoices.

    `stocked`: each open or paid invoice of it holds a piece of its stock (`stock.LinkStock`). Times in milliseconds since 1970. A
    deleted link stays, so that its invoices can give their pieces back, and is found by nobody.
    """

    id: str
    tenant: TenantId
    name: str
    price: Price
    created_at: int
    updated_at: int
    description: str | None = None
    stocked: bool = False
    expires_at: int | None = None
    redirect_url: str | None = None
    metadata: Mapping[str, Any] | None = None
    deleted_at: int | None = None
    version: int = 1

    def over(self, now_ms: int) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and now_ms >= self.expires_at
