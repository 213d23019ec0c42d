"""Invoices: a request to be paid, and the rule that gives its status from what the chain has shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.terms import Terms

PAYMENTS_KEPT = 50
"""An invoice shows its newest payments; all of them are in the transactions."""
OPEN = ("pending", "partial", "confirming")
"""An invoice of such a status takes every amount, also one below its coin's minDepositAmount."""
SUMS = ("unconfirmed", "confirmed", "late", "late_unconfirmed", "doubtful")
"""The sums that an invoice counts of its deposits; `domain.deposits.deposits.share_of` says what one adds."""
_LATE_OF = {"confirmed": "late", "unconfirmed": "late_unconfirmed"}
PAYABLE = ("pending", "partial")
"""An invoice of such a status waits for more money."""


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

    `unconfirmed` and `confirmed` are payments that came in time, `late` and `late_unconfirmed` those after expiry or cancellation.
    `doubtful` is the part of `unconfirmed` that is in no block yet or comes from the grey list. `expired` is set when the time
    passes unpaid, and taken back where more time is given; `cancelled` by the merchant's request, for ever. `manual_status` is an
    override by hand: automatic transitions stop. `auto_confirm`: small enough to be completed by what is in a block, before it is
    credited. `usd` is the rate that totals are counted at, None where there was no fresh one; `priced` the rate that `amount` was
    made from, where a fiat amount was asked. `payments` are those of its own coin that are in the chain now or wait to be, oldest
    first. `metadata` is the merchant's own, and shown to no payer; None where none was sent. `terms` are what is forgiven, None for
    nothing. Where the worth of late payments decides and the price is in fiat, `late_worth` has that worth by the names of their
    sums, at the rates of their deposits, as exact text; None for none.
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
    cancel_url: str | None = None
    metadata: Mapping[str, Any] | None = None
    terms: Terms | None = None
    late_worth: Mapping[str, str] | None = None
    emitted: int = 0
    version: int = 1

    @property
    def received(self) -> int:
        """All credited payments, in time or late, in units."""
        return self.confirmed + self.late

    def counted(self, name: str) -> Fraction:
        """One of its `SUMS` in what the price is in: units of its coin."""
        return Fraction(getattr(self, name))

    @property
    def price(self) -> Fraction:
        """What is asked for, in the same unit."""
        return Fraction(self.amount)

    @property
    def dollars(self) -> Fraction | None:
        """The worth of one such unit in US dollars, by the rate that it keeps; None where there was none."""
        return None if self.usd is None else self.usd.worth(1)

    @property
    def due(self) -> Fraction:
        """What completes it: the price less the shortfall that is forgiven."""
        return self.price if self.terms is None else self.price - self.terms.forgiven(self.price, self.dollars)

    @property
    def values_late(self) -> bool:
        """Whether a late payment needs a rate of its own time."""
        return self.terms is not None and self.terms.by_worth and self.priced is not None

    def late_counted(self, name: str) -> Fraction:
        """The worth of a sum of late payments at their time, in the price's unit."""
        if self.priced is None or not self.values_late:
            return self.counted(name)
        return Fraction(Decimal((self.late_worth or {}).get(name, "0"))) / self.priced.worth(1)

    def _enough(self, in_time: Fraction, late: Fraction) -> bool:
        """Whether so much is the price, or what is forgiven of it. Payments that come late count as the terms say."""
        if in_time >= self.due:
            return True
        if self.terms is None or not self.takes_late:
            return False
        return self.terms.covers(self.price - in_time, late) if self.terms.by_worth else in_time + late >= self.due

    @property
    def takes_late(self) -> bool:
        """Whether late payments may complete it: never once it is cancelled."""
        return self.terms is not None and self.terms.late_payments != "manual" and not self.cancelled

    @property
    def _late_like_the_rest(self) -> bool:
        """Whether late payments count at face value."""
        return self.takes_late and not self.values_late

    def _paid(self, *names: str) -> Fraction:
        """These sums of payments in time, and of late ones where those count at face value."""
        late = tuple(_LATE_OF[name] for name in names) if self._late_like_the_rest else ()
        return sum((self.counted(name) for name in (*names, *late)), Fraction(0))

    @property
    def _late_seen(self) -> Fraction:
        return self.late_counted("late") + self.late_counted("late_unconfirmed")

    @property
    def overpaid(self) -> int:
        return max(0, int(self._paid("confirmed") - self.price))

    @property
    def missing(self) -> int:
        """The open amount, in units: unconfirmed payments count as paid. Nothing is missing where enough was seen, or it was
        completed by hand."""
        seen = self.counted("confirmed") + self.counted("unconfirmed")
        if self.status == "completed" or self._enough(seen, self._late_seen):
            return 0
        return max(0, int(self.price - self._paid("confirmed", "unconfirmed")))

    @property
    def shortfall(self) -> int:
        """What a completed invoice was forgiven, in units, rounded up: of the price, less what was seen at its worth."""
        if self.status != "completed":
            return 0
        seen = self._paid("confirmed", "unconfirmed")
        if self.values_late:
            seen += self._late_seen
        return max(0, ceil(self.price - seen))

    @property
    def to_send(self) -> int:
        """The units that a payer should still send; 0 where nothing more should come."""
        return self.missing if self.status in PAYABLE else 0

    def settled_status(self) -> str:
        """The status that follows from the payments. Enough paid in time beats expiry, a cancellation beats both, and a manual
        status beats all."""
        if self.manual_status is not None:
            return self.manual_status
        if self.cancelled:
            return "cancelled"
        confirmed, unconfirmed = self.counted("confirmed"), self.counted("unconfirmed")
        # Where the merchant wants it so, what is seen in time and not in doubt is enough.
        trusted = unconfirmed - self.counted("doubtful") if self.auto_confirm else Fraction(0)
        late = self.late_counted("late")
        if self._enough(confirmed, late) or self._enough(confirmed + trusted, late):
            return "completed"
        if self._enough(confirmed + unconfirmed, self._late_seen):
            return "confirming"
        if self.expired:
            return "expired"
        return "partial" if self.confirmed + self.unconfirmed > 0 else "pending"

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
