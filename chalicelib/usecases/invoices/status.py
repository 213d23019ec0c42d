"""An invoice's status after a payment, its events, and the changes that store both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from chalicelib.domain.deposits.deposits import Deposit, late_worth_of, payment_of, share_of
from chalicelib.domain.invoices.invoices import SUMS, Invoice
from chalicelib.domain.invoices.quotes import exact
from chalicelib.domain.invoices.totals import InvoiceTotals, deltas, shard_key
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.ports.changes import Add, Change, Save

Shown = Mapping[str, Any]
"""An invoice's public record."""
_BY_PAYMENT = ("confirming", "completed")
_ORDER = ("pending", "partial", "confirming", "completed")
_TOLD = ("invoice.partial", "invoice.confirming", "invoice.completed", "invoice.expired", "invoice.cancelled")
_TOLD_BY_HAND = tuple(name for name in _TOLD if name != "invoice.cancelled")
"""A cancellation is told where it is one: an invoice that is called cancelled by hand can be called otherwise tomorrow."""


def changed(before: Invoice | None, after: Invoice | None) -> list[Change]:
    """The changes that store an invoice and its sums; none where it stays as it is. Two items at most."""
    if after is None or after is before:
        return []
    moved = deltas(before, after)
    return [Save(after), *([Add(InvoiceTotals, shard_key(after), moved)] if moved else [])]


def announce(news: News, before: Invoice, after: Invoice, views: Views, tip: int | None, shown: Shown | None = None) -> Invoice:
    """Tell the change between the two; the invoice with its count of events raised. `tip` is how high its chain is, from which
    confirmations of its payments are counted; `shown` its public record, where that is rendered already."""
    if after.status == before.status:
        return after
    back = after.status in _ORDER and before.status in _ORDER and _ORDER.index(after.status) < _ORDER.index(before.status)
    # Expired by what its payments no longer are, not by the clock: that is told as what it is.
    back = back or (after.status == "expired" and before.expired)
    name = "invoice.reverted" if back else f"invoice.{after.status}"
    if not back and name not in _TOLD:
        return after
    return tell(news, after, name, views.invoice(after, tip) if shown is None else shown, before.status)


def tell(news: News, invoice: Invoice, name: str, shown: Shown, previous: str | None = None) -> Invoice:
    """Tell the event `name` with the public record `shown`; the invoice with its count of events raised."""
    told = replace(invoice, emitted=invoice.emitted + 1)
    news.tell(told.tenant, name, told.id, told.emitted, shown, previous)
    return told


def set_by_hand(news: News, before: Invoice, status: str, by: str, now_ms: int, views: Views, tip: int | None) -> Invoice:
    """The invoice with a status set by hand. Told where there is an event of that name; never as reverted, since no payment was
    reversed."""
    after = replace(next_version(before), manual_status=status, manual_by=by, manual_at=now_ms).settled()
    if after.status == before.status or f"invoice.{status}" not in _TOLD_BY_HAND:
        return after
    return tell(news, after, f"invoice.{status}", views.invoice(after, tip), before.status)


def expired(news: News, before: Invoice, views: Views, tip: int | None) -> Invoice:
    """The invoice once its time is over. Also where enough money is on its way or there: should that fall out of the chain, the
    time is over all the same."""
    after = replace(next_version(before), expired=True).settled()
    return announce(news, before, after, views, tip)


def paid(news: News, before: Invoice, old: Deposit | None, new: Deposit, views: Views, tip: int | None) -> Invoice:
    """The invoice after a deposit for it went from `old` to `new`: seen, in another block, credited, held, let go, orphaned.
    `old` is None for one that was not for it until now.

    Another coin on its address is the merchant's, not the invoice's.
    """
    if new.asset != before.asset:
        return before
    share, had = share_of(new), share_of(old)
    sums = {name: getattr(before, name) + share.get(name, 0) - had.get(name, 0) for name in SUMS}
    comes_late = bool({"late", "late_unconfirmed"} & share.keys()) and not {"late", "late_unconfirmed"} & had.keys()
    if comes_late and not before.expired and new.block_number is not None:
        without = replace(before, unconfirmed=before.unconfirmed - had.get("unconfirmed", 0))
        # A block after its time is in the chain: nobody has to wait for the clock.
        sums["expired"] = without.settled_status() in ("pending", "partial")
    after = replace(_showing(before, old, new), **sums, late_worth=_late_worth(before, old, new), version=version_after(before))
    after = after.settled()
    if not comes_late:
        return announce(news, before, after, views, tip)
    shown = views.invoice(after, tip)
    if after.status in _BY_PAYMENT:
        # The payment is told before what it does.
        return announce(news, before, tell(news, after, "invoice.late_payment", shown), views, tip, shown)
    return tell(news, announce(news, before, after, views, tip, shown), "invoice.late_payment", shown)


def _late_worth(invoice: Invoice, old: Deposit | None, new: Deposit) -> Mapping[str, str] | None:
    """The worth of its late payments by sum, with the deposit's as it is now in the place of what it was."""
    if not invoice.values_late:
        return None
    share, had, known = late_worth_of(new), late_worth_of(old), invoice.late_worth or {}
    sums = {
        name: Fraction(Decimal(known.get(name, "0"))) + share.get(name, Fraction(0)) - had.get(name, Fraction(0))
        for name in sorted({*known, *share, *had})
    }
    return {name: exact(worth) for name, worth in sums.items() if worth} or None


def _showing(invoice: Invoice, old: Deposit | None, new: Deposit) -> Invoice:
    if new.status == "orphaned" or new.set_aside:
        return invoice.without_payment(new.id)
    if share_of(old):
        return invoice.with_payment_now(payment_of(new))
    return invoice.with_payment(payment_of(new))
