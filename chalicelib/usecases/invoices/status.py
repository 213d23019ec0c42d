"""An invoice's status after a payment, its events, and the changes that store both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from chalicelib.domain.deposits.deposits import Deposit, counted_share, late_worth_of, misdirected_of, payment_of, share_of
from chalicelib.domain.invoices.choices import Choice, PaidIn
from chalicelib.domain.invoices.invoices import PAYMENTS_KEPT, SUMS, Invoice
from chalicelib.domain.invoices.quotes import exact
from chalicelib.domain.invoices.totals import InvoiceTotals, deltas, shard_key
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Tips, Views
from chalicelib.usecases.invoices.pieces import as_stored, piece_moved
from chalicelib.usecases.ports.changes import Add, Change, Save

Shown = Mapping[str, Any]
"""An invoice's public record."""
_BY_PAYMENT = ("confirming", "completed")
_ORDER = ("pending", "partial", "confirming", "completed")
_TOLD = ("invoice.partial", "invoice.confirming", "invoice.completed", "invoice.expired", "invoice.cancelled")
_TOLD_BY_HAND = tuple(name for name in _TOLD if name != "invoice.cancelled")
"""A cancellation is told where it is one: an invoice that is called cancelled by hand can be called otherwise tomorrow."""


def changed(before: Invoice | None, after: Invoice | None) -> list[Change]:
    """The changes that store an invoice and its sums, and take or give back its piece of a link's stock; none where it stays as it
    is. Two items at most; three where a payer chooses another coin, under which it counts from then on, or for a link's invoice."""
    if after is None or after is before:
        return []
    if before is not None and before.asset != after.asset:
        gone, there = deltas(before, None), deltas(None, after)
        sums = [Add(InvoiceTotals, shard_key(before), gone), Add(InvoiceTotals, shard_key(after), there)]
    else:
        moved = deltas(before, after)
        sums = [Add(InvoiceTotals, shard_key(after), moved)] if moved else []
    return [Save(as_stored(after)), *sums, *piece_moved(before, after)]


def announce(news: News, before: Invoice, after: Invoice, views: Views, tip: Tips, shown: Shown | None = None) -> Invoice:
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
    news.tell(told.tenant, name, told.id, told.emitted, shown, previous, told.hook)
    return told


def set_by_hand(news: News, before: Invoice, status: str, by: str, now_ms: int, views: Views, tip: Tips) -> Invoice:
    """The invoice with a status set by hand. Told where there is an event of that name; never as reverted, since no payment was
    reversed."""
    after = replace(next_version(before), manual_status=status, manual_by=by, manual_at=now_ms).settled()
    if after.status == before.status or f"invoice.{status}" not in _TOLD_BY_HAND:
        return after
    return tell(news, after, f"invoice.{status}", views.invoice(after, tip), before.status)


def expired(news: News, before: Invoice, views: Views, tip: Tips) -> Invoice:
    """The invoice once its time is over. Also where enough money is on its way or there: should that fall out of the chain, the
    time is over all the same."""
    after = replace(next_version(before), expired=True).settled()
    return announce(news, before, after, views, tip)


def paid(
    news: News, before: Invoice, old: Deposit | None, new: Deposit, views: Views, tip: int | None, *, ends_it: bool = True
) -> Invoice:
    """The invoice after a deposit for it went from `old` to `new`: seen, in another block, credited, held, let go, orphaned.
    `old` is None for one that was not for it until now. `ends_it`: a late one in a block says that the invoice's time is over;
    else that is left to the clock.

    Another coin on its address is the merchant's, and listed as misdirected.
    """
    if not before.counts(new.asset):
        return _misdirected(before, old, new)
    share, had = share_of(new), share_of(old)
    comes_late = bool({"late", "late_unconfirmed"} & share.keys()) and not {"late", "late_unconfirmed"} & had.keys()
    ends = before.expired
    if ends_it and comes_late and not before.expired and new.block_number is not None:
        # A block after its time is in the chain: nobody has to wait for the clock.
        ends = before.settled_status(without=_unconfirmed(before, old)) in ("pending", "partial")
    counting = _counting(_showing(before, old, new), old, new)
    after = replace(counting, expired=ends, late_worth=_late_worth(before, old, new), version=version_after(before)).settled()
    heights: Tips = tip if before.choosing is None or tip is None else {new.network: tip}
    if not comes_late and not _without_use(after, old, new):
        return announce(news, before, after, views, heights)
    shown = views.invoice(after, heights)
    if after.status in _BY_PAYMENT:
        # The payment is told before what it does.
        return announce(news, before, tell(news, after, "invoice.late_payment", shown), views, heights, shown)
    return tell(news, announce(news, before, after, views, heights, shown), "invoice.late_payment", shown)


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


def _counting(invoice: Invoice, old: Deposit | None, new: Deposit) -> Invoice:
    """Its sums with the share of a deposit as it is now, in the place of what it was."""
    if invoice.choosing is None:
        share, had = share_of(new), share_of(old)
        return replace(invoice, **{name: getattr(invoice, name) + share.get(name, 0) - had.get(name, 0) for name in SUMS})
    accepted, choice = invoice.choosing.accepted(new.asset), invoice.choosing.choice(new.asset)
    if accepted is not None and choice is None:
        beside = next((one.family for one in invoice.choosing.choices if one.address == new.address), new.network)
        choice = Choice(new.asset, accepted.decimals, beside, new.address, new.address_id)
    if choice is None:
        raise LookupError(f"{invoice.id} takes no {new.asset}")
    moved = choice.moved(counted_share(old), counted_share(new))
    shown = {payment.deposit for payment in invoice.payments}
    paid_in = tuple(one for one in invoice.choosing.paid_in if one.deposit in shown and one.deposit != new.id)
    if new.id in shown:
        worth = Fraction(0) if new.rate is None else new.rate.worth(new.amount)
        paid_in = (*paid_in, PaidIn(new.id, new.asset, exact(worth)))
    return replace(invoice, choosing=replace(invoice.choosing.with_choice(moved), paid_in=paid_in))


def _unconfirmed(invoice: Invoice, deposit: Deposit | None) -> Fraction:
    """The part of what is unconfirmed that is the deposit's, in the price's unit."""
    share = counted_share(deposit)
    return Fraction(share.units.get("unconfirmed", 0)) if invoice.choosing is None else share.worth("unconfirmed")


def _misdirected(invoice: Invoice, old: Deposit | None, new: Deposit) -> Invoice:
    """The invoice with a deposit that does not count for it, as long as that is in the chain or about to be."""
    known = invoice.misdirected or ()
    if new.status == "orphaned" or new.set_aside:
        after = tuple(one for one in known if one.deposit != new.id)
    else:
        after = (*known, misdirected_of(new))[-PAYMENTS_KEPT:] if old is None else known
    return invoice if after == known else replace(next_version(invoice), misdirected=after or None)


def _without_use(invoice: Invoice, old: Deposit | None, new: Deposit) -> bool:
    """Whether a payment in time is seen when its invoice has given its piece of a link's stock to somebody else."""
    return invoice.without_piece and bool(share_of(new)) and not share_of(old)


def _showing(invoice: Invoice, old: Deposit | None, new: Deposit) -> Invoice:
    if new.status == "orphaned" or new.set_aside:
        return invoice.without_payment(new.id)
    if share_of(old):
        return invoice.with_payment_now(payment_of(new))
    return invoice.with_payment(payment_of(new))
