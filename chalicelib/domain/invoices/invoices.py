"""Invoices: a request to be paid, and the rule that gives its status from what the chain has shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Annotated, Any

from chalicelib.domain.ids import AssetId, NetworkId, TenantId, asset_parts
from chalicelib.domain.invoices.choices import Choice, Choosing
from chalicelib.domain.invoices.quotes import FiatValue, Quote
from chalicelib.domain.invoices.terms import Terms
from chalicelib.domain.versions import Known, newer_state
from chalicelib.domain.webhooks.hooks import InvoiceHook

PAYMENTS_KEPT = 50
"""An invoice shows its newest payments; all of them are in the transactions."""
OPEN = ("pending", "partial", "confirming")
"""An invoice of such a status takes every amount, also one below its coin's minDepositAmount."""
SUMS = ("unconfirmed", "confirmed", "late", "late_unconfirmed", "doubtful")
"""The sums that an invoice counts of its deposits; `domain.deposits.deposits.share_of` says what one adds."""
_LATE_OF = {"confirmed": "late", "unconfirmed": "late_unconfirmed"}
PAYABLE = ("pending", "partial")
"""An invoice of such a status waits for more money."""
STATUSES = frozenset((*OPEN, "completed", "expired", "cancelled"))
"""Those that follow from payments; one that is set by hand may be any other."""


@dataclass(frozen=True, slots=True)
class Payment:
    """A deposit as the invoice shows it. `amount` in units; `block` is the number of the block that holds it, None for none.
    `worth` is what it was worth when it was paid."""

    deposit: str
    hash: str
    amount: int
    block: int | None
    confirmed: bool = False
    worth: FiatValue | None = None


@dataclass(frozen=True, slots=True)
class Misdirected:
    """A deposit to the invoice's address in a coin that does not count for it: the merchant's, and no payment of it. `amount` in
    units of `asset`."""

    deposit: str
    asset: AssetId
    hash: str
    amount: int


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
    sums, at the rates of their deposits, as exact text; None for none. `misdirected` are deposits to its address in other coins.
    `payment_link` is the link that it was opened from. Where that has a stock, `piece` is the shard that it holds a piece of, and
    `given_back` the one that it gave its piece back to: without a piece it is not completed by itself.
    `hook` is the webhook that is told of it alone. `archives` names the archive's objects that have it, or once had it, newest
    first: the postings in them are closed. None where it never was there.

    Where the payer chooses the coin (`choosing`), the sums lie in the choices, and these fields show the latest choice. Before
    there is one, `asset` is the first accepted coin, `amount` 0, and there is no address.
    """

    id: str
    tenant: TenantId
    network: NetworkId
    asset: AssetId
    address: str | None
    address_id: str | None
    amount: int
    created_at: int
    expires_at: int
    status: Annotated[str, Known(STATUSES)] = "pending"
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
    choosing: Choosing | None = None
    misdirected: tuple[Misdirected, ...] | None = None
    payment_link: str | None = None
    piece: str | None = None
    given_back: str | None = None
    hook: InvoiceHook | None = None
    archives: tuple[str, ...] | None = None
    emitted: int = 0
    version: int = 1

    @property
    def received(self) -> int:
        """All credited payments, in time or late, in units; where the payer chooses, at the newest rate of the latest choice."""
        return self.confirmed + self.late if self.choosing is None else self.in_latest("confirmed", "late")

    def counted(self, name: str) -> Fraction:
        """One of its `SUMS` in what the price is in: units of its coin, or fiat where the payer chooses."""
        return Fraction(getattr(self, name)) if self.choosing is None else self.choosing.total(name)

    @property
    def price(self) -> Fraction:
        """What is asked for, in the same unit."""
        return Fraction(self.amount) if self.choosing is None else self.choosing.whole

    @property
    def dollars(self) -> Fraction | None:
        """The worth of one such unit in US dollars, by the rate that it keeps; None where there was none."""
        usd = self.usd if self.choosing is None else self.choosing.usd
        return None if usd is None else usd.worth(1)

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
        """The excess in units. Where the payer chooses, what is less than the last digit of an amount is none: `missing` is
        rounded up to it."""
        current = None if self.choosing is None else self.choosing.current
        if current is not None and current.quote is not None:
            return max(0, current.quote.whole_steps(self._paid("confirmed")) - self.amount)
        return max(0, int(self._paid("confirmed") - self.price))

    @property
    def missing(self) -> int:
        """The open amount, in units: unconfirmed payments count as paid. Nothing is missing where enough was seen, or it was
        completed by hand."""
        if self.choosing is not None:
            return 0 if self.choosing.current is None else self.missing_in(self.choosing.current)
        return max(0, int(self._rest))

    @property
    def _rest(self) -> Fraction:
        """The same in the price's unit."""
        seen = self.counted("confirmed") + self.counted("unconfirmed")
        if self.status == "completed" or self._enough(seen, self._late_seen):
            return Fraction(0)
        return self.price - self._paid("confirmed", "unconfirmed")

    def missing_in(self, choice: Choice) -> int:
        """The open amount in units of a choice, at its newest rate, rounded up: who pays it has paid the price."""
        return 0 if choice.quote is None else max(0, choice.quote.units_worth(self._rest))

    def in_latest(self, *names: str) -> int:
        """The worth of these sums in units of the latest choice, at its newest rate, rounded down."""
        current = None if self.choosing is None else self.choosing.current
        if current is None or current.quote is None:
            return 0
        return current.quote.units_within(sum((self.counted(name) for name in names), Fraction(0)))

    @property
    def shortfall(self) -> int:
        """What a completed invoice was forgiven, in units, rounded up: of the price, less what was seen at its worth."""
        if self.status != "completed":
            return 0
        seen = self._paid("confirmed", "unconfirmed")
        if self.values_late:
            seen += self._late_seen
        current = None if self.choosing is None else self.choosing.current
        if current is not None and current.quote is not None:
            return max(0, current.quote.units_worth(self.price - seen))
        return max(0, ceil(self.price - seen))

    @property
    def to_send(self) -> int:
        """The units that a payer should still send; 0 where nothing more should come."""
        return self.missing if self.status in PAYABLE else 0

    @property
    def addresses(self) -> list[str]:
        """Where it is paid to; none before a payer has chosen."""
        if self.choosing is not None:
            return list(dict.fromkeys(choice.address for choice in self.choosing.choices))
        return [] if self.address is None else [self.address]

    def address_in(self, family: str) -> str | None:
        """Where it is paid to on a network of its own lane, which has this family's addresses; None where no payer chose such a
        coin."""
        served = None if self.choosing is None else self.choosing.served(family)
        return self.address if self.choosing is None else None if served is None else served.address

    def counts(self, asset: AssetId) -> bool:
        """Whether a payment in this coin to one of its addresses counts for it."""
        return asset == self.asset if self.choosing is None else self.choosing.accepted(asset) is not None

    def settled_status(self, without: Fraction | int = 0) -> str:
        """The status that follows from the payments. Enough paid in time beats expiry, a cancellation beats both, and a manual
        status beats all. `without`: as if so much of what is unconfirmed had not come, in the price's unit."""
        if self.manual_status is not None or newer_state(self) is not None:
            return self.manual_status or self.status
        if self.cancelled or self.without_piece:
            return "cancelled" if self.cancelled else "expired"
        confirmed, unconfirmed = self.counted("confirmed"), max(Fraction(0), self.counted("unconfirmed") - without)
        # Where the merchant wants it so, what is seen in time and not in doubt is enough.
        trusted = unconfirmed - self.counted("doubtful") if self.auto_confirm else Fraction(0)
        late = self.late_counted("late")
        if self._enough(confirmed, late) or self._enough(confirmed + trusted, late):
            return "completed"
        if self._enough(confirmed + unconfirmed, self._late_seen):
            return "confirming"
        if self.expired:
            return "expired"
        return "partial" if confirmed + unconfirmed > 0 else "pending"

    def settled(self) -> Invoice:
        """This invoice with the status that follows from its payments. One of a newer version of the service stays."""
        if newer_state(self) is not None and self.manual_status is None:
            return self
        return replace(self, status=self.settled_status())._holding()

    @property
    def without_piece(self) -> bool:
        """Whether it gave back the piece that it held of its link's stock: another payer may have it by now."""
        return self.given_back is not None and self.piece is None

    @property
    def held(self) -> str | None:
        """The shard that it holds a piece of as it is stored: with `given_back` beside it, `piece` is only within its reach."""
        return self.piece if self.given_back is None else None

    def _holding(self) -> Invoice:
        """This invoice with the piece that its status needs: an expired or cancelled one gives it back, any other one keeps it."""
        if self.piece is None:
            return self
        if self.status in ("expired", "cancelled"):
            return replace(self, piece=None, given_back=self.given_back or self.piece)
        return self if self.given_back is None else replace(self, given_back=None)

    @property
    def final(self) -> bool:
        """Whether no further payment is awaited: it does not count as pending."""
        return self.status in ("completed", "expired", "cancelled") or self.manual_status is not None

    def takes_any(self, block: int | None, network: NetworkId) -> bool:
        """Whether a payment seen now on `network`, in the block of that number (None: in none), counts however small it is.

        Payments of one block are seen together: what the others of that block completed was open when the block was seen. Blocks
        of another network have numbers of their own.
        """
        if self.status in OPEN:
            return True
        together = [payment for payment in self.payments if payment.block == block is not None and not payment.confirmed]
        with_it = sum((self._worth(payment) for payment in together if self.network_of(payment) == network), Fraction(0))
        return self.status == "completed" and self.settled_status(without=with_it) in OPEN

    def asset_of(self, payment: Payment) -> AssetId:
        """The coin of one of its payments."""
        return self.asset if self.choosing is None else self.choosing.paid(payment.deposit).asset

    def network_of(self, payment: Payment) -> NetworkId:
        return asset_parts(self.asset_of(payment))[0]

    def _worth(self, payment: Payment) -> Fraction:
        return Fraction(payment.amount) if self.choosing is None else Fraction(self.choosing.paid(payment.deposit).worth)

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
