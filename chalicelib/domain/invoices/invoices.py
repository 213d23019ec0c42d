"""Invoices: a request to be paid, and the rule that gives its status from what the chain has shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

from chalicelib.domain.ids import AssetId, NetworkId, TenantId

PAYMENTS_KEPT = 50
"""An invoice shows its newest payments; all of them are in the transactions."""
PRICED_DECIMALS = 8
OPEN = ("pending", "partial", "confirming")
"""An invoice of such a status takes every amount, also one below its coin's minDepositAmount."""
SUMS = ("unconfirmed", "confirmed", "late", "late_unconfirmed", "doubtful")
"""The sums that an invoice counts of its deposits; `domain.deposits.deposits.share_of` says what one adds."""


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

    def units_for(self, amount: str) -> int:
        """The least units that are worth at least `amount` (plain decimal), in at most 8 decimals of the coin: a payer has to
        read and type them."""
        decimals = min(self.decimals, PRICED_DECIMALS)
        steps = ceil(Fraction(Decimal(amount)) * 10**decimals / Fraction(Decimal(self.value)))
        return int(steps * 10 ** (self.decimals - decimals))


@dataclass(frozen=True, slots=True)
class Payment:
    """A deposit as the invoice shows it. `amount` in units; `block` is the number of the block that holds it, None for none."""

    deposit: str
    hash: str
    amount: int
    block: int | None
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class Invoice:
    """Amounts in units of `asset`, times in milliseconds since 1970.

    `unconfirmed` and `confirmed` are payments that came in time, `late` and `late_unconfirmed` those after expiry.
    `doubtful` is the part of `unconfirmed` that is in no block yet or comes from the grey list. `expired` is set once, when the
    time passes unpaid. `manual_status` is an override by hand: automatic transitions stop. `auto_confirm`: small enough to be
    completed by what is in a block, before it is credited. `usd` is the rate that totals are counted at, None where there was no
    fresh one; `priced` the rate that `amount` was made from, where a fiat amount was asked. `payments` are those of its own coin
    that are in the chain now or wait to be, oldest first.
    """

    id: str
    tenant: TenantId
    network: NetworkId
    asset: AssetId
    address: str
    address_id: str
    amount: int
    created_at: int
    expires_at: int
    status: str = "pending"
    external_id: str | None = None
    description: str | None = None
    redirect_url: str | None = None
    unconfirmed: int = 0
    confirmed: int = 0
    late: int = 0
    late_unconfirmed: int = 0
    doubtful: int = 0
    expired: bool = False
    cancelled: bool = False
    manual_status: str | None = None
    manual_by: str | None = None
    manual_at: int | None = None
    auto_confirm: bool = False
    usd: Quote | None = None
    priced: Quote | None = None
    fiat_amount: str | None = None
    checkout_url: str | None = None
    payments: tuple[Payment, ...] = ()
    emitted: int = 0
    version: int = 1

    @property
    def received(self) -> int:
        """All credited payments, in time or late, in units."""
        return self.confirmed + self.late

    @property
    def overpaid(self) -> int:
        return max(0, self.confirmed - self.amount)

    @property
    def missing(self) -> int:
        """The open amount, in units: unconfirmed payments count as paid."""
        return max(0, self.amount - self.confirmed - self.unconfirmed)

    def settled_status(self) -> str:
        """The status that follows from the payments. Enough paid in time beats expiry and cancellation; a manual status beats
        all."""
        if self.manual_status is not None:
            return self.manual_status
        if self._paid_in_full():
            return "completed"
        if self.confirmed + self.unconfirmed >= self.amount:
            return "confirming"
        if self.cancelled:
            return "cancelled"
        if self.expired:
            return "expired"
        return "partial" if self.confirmed + self.unconfirmed > 0 else "pending"

    def _paid_in_full(self) -> bool:
        """Enough is confirmed; or, where the merchant wants it so, seen and not in doubt."""
        trusted = self.unconfirmed - self.doubtful if self.auto_confirm else 0
        return self.confirmed >= self.amount or self.confirmed + trusted >= self.amount

    def settled(self) -> Invoice:
        """This invoice with the status that follows from its payments."""
        return replace(self, status=self.settled_status())

    @property
    def final(self) -> bool:
        """Whether no further payment is awaited: it does not count as pending."""
        return self.status in ("completed", "expired", "cancelled") or self.manual_status is not None

    def takes_any(self, block: int | None) -> bool:
        """Whether a payment seen now, in the block of that number (None: in none), counts however small it is.

        Payments of one block are seen together: what the others of that block completed was open when the block was seen.
        """
        if self.status in OPEN:
            return True
        with_it = sum(payment.amount for payment in self.payments if payment.block == block is not None and not payment.confirmed)
        before = replace(self, unconfirmed=max(0, self.unconfirmed - with_it))
        return self.status == "completed" and before.settled_status() in OPEN

    def with_payment(self, payment: Payment) -> Invoice:
        """This invoice with one more payment."""
        return replace(self, payments=(*self.payments, payment)[-PAYMENTS_KEPT:])

    def with_payment_now(self, payment: Payment) -> Invoice:
        """This invoice with the new state of a payment, where it lists that payment."""
        return replace(self, payments=tuple(payment if p.deposit == payment.deposit else p for p in self.payments))

    def without_payment(self, deposit: str) -> Invoice:
        """This invoice without a payment that fell out of the chain."""
        return replace(self, payments=tuple(p for p in self.payments if p.deposit != deposit))


@dataclass(frozen=True, slots=True)
class ExternalId:
    """Makes a merchant's own invoice id unique, and finds the invoice by it."""

    tenant: TenantId
    value: str
    invoice_id: str
    version: int = 1
