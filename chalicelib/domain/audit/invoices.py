"""Audit rules of invoices: their sums, payments and statuses follow from their deposits, and the totals from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from chalicelib.domain.audit.books import Books
from chalicelib.domain.deposits.deposits import Deposit, counted_share, late_worth_of, payment_of, share_of
from chalicelib.domain.invoices.choices import Choosing
from chalicelib.domain.invoices.invoices import SUMS, Invoice
from chalicelib.domain.invoices.totals import Figures, figures, figures_of


def invoices_agree(books: Books) -> Iterable[str]:
    of_invoice: dict[str, list[Deposit]] = defaultdict(list)
    for deposit in books.deposits:
        of_invoice[deposit.invoice_id or ""].append(deposit)
    deposits = {deposit.id: deposit for deposit in books.deposits}
    for invoice in books.invoices:
        yield from _sums_agree(invoice, of_invoice[invoice.id])
        for payment in invoice.payments:
            deposit_ = deposits.get(payment.deposit)
            if deposit_ is None or payment != payment_of(deposit_) or deposit_.status == "orphaned" or deposit_.set_aside:
                yield f"invoice {invoice.id} shows the payment {payment.deposit}, which is another or none"
        if invoice.status != invoice.settled_status():
            yield f"invoice {invoice.id} is {invoice.status}, its payments say {invoice.settled_status()}"
        if (invoice.piece is not None) and (invoice.given_back is not None or invoice.status in ("expired", "cancelled")):
            yield f"invoice {invoice.id} is {invoice.status} and holds a piece of {invoice.payment_link}"


def _sums_agree(invoice: Invoice, deposits: Iterable[Deposit]) -> Iterable[str]:
    if invoice.choosing is not None:
        yield from _choices_agree(invoice, invoice.choosing, deposits)
        return
    shown: dict[str, int] = defaultdict(int)
    for deposit in deposits:
        for name, units in share_of(deposit).items() if deposit.asset == invoice.asset else ():
            shown[name] += units
    for name in SUMS:
        if getattr(invoice, name) != shown[name]:
            yield f"invoice {invoice.id}: {name} is {getattr(invoice, name)}, its deposits say {shown[name]}"


def _choices_agree(invoice: Invoice, choosing: Choosing, deposits: Iterable[Deposit]) -> Iterable[str]:
    """The sums of every choice, and their worth at the rate of each deposit."""
    units: dict[tuple[str, str], int] = defaultdict(int)
    worth: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for deposit in deposits:
        share = counted_share(deposit)
        for name in share.units if choosing.accepted(deposit.asset) is not None else ():
            units[deposit.asset, name] += share.units[name]
            worth[deposit.asset, name] += share.worth(name)
    found = {(choice.asset, name): value for choice in choosing.choices for name, value in choice.units.items()}
    counted = {(choice.asset, name): choice.counted(name) for choice in choosing.choices for name in choice.worth}
    if found != {place: value for place, value in units.items() if value}:
        yield f"invoice {invoice.id}: its choices have {found}, its deposits say {dict(units)}"
    if counted != {place: value for place, value in worth.items() if value}:
        yield f"invoice {invoice.id}: its choices are worth {counted}, its deposits say {dict(worth)}"


def late_worth_agrees(books: Books) -> Iterable[str]:
    """The worth of late payments is what their deposits' rates make of them, where it decides."""
    worth: dict[tuple[str, str], dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for deposit in books.deposits:
        for name, value in late_worth_of(deposit).items():
            worth[deposit.invoice_id or "", deposit.asset][name] += value
    for invoice in books.invoices:
        told = {name: Fraction(Decimal(text)) for name, text in (invoice.late_worth or {}).items()}
        if invoice.values_late and told != {name: value for name, value in worth[invoice.id, invoice.asset].items() if value}:
            yield f"invoice {invoice.id}: its late payments are worth {invoice.late_worth}, and not what its deposits say"


def totals_agree(books: Books) -> Iterable[str]:
    """The sums behind the summary are those over the invoices. Which shard has what does not matter: versions of the service count
    an invoice in different ones."""
    expected: dict[tuple[str, str], Figures] = defaultdict(Figures)
    for invoice in books.invoices:
        expected[invoice.tenant, invoice.asset] += figures(invoice)
    found: dict[tuple[str, str], Figures] = defaultdict(Figures)
    for shard in books.totals:
        found[shard.tenant, shard.asset] += figures_of(shard)
    for place in sorted({*expected, *found}):
        if found.get(place, Figures()) != expected[place]:
            yield f"the totals of {' '.join(place)} are {found.get(place, Figures())}, its invoices say {expected[place]}"
