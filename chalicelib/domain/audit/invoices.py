"""Audit rules of invoices: their sums, payments and statuses follow from their deposits, and the totals from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from chalicelib.domain.audit.books import Books
from chalicelib.domain.deposits.deposits import late_worth_of, payment_of, share_of
from chalicelib.domain.invoices.invoices import SUMS
from chalicelib.domain.invoices.totals import Figures, figures, figures_of, shard_of


def invoices_agree(books: Books) -> Iterable[str]:
    paid: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for deposit in books.deposits:
        for name, units in share_of(deposit).items() if deposit.invoice_id is not None else ():
            paid[deposit.invoice_id or "", deposit.asset][name] += units
    deposits = {deposit.id: deposit for deposit in books.deposits}
    for invoice in books.invoices:
        shown = paid[invoice.id, invoice.asset]
        for name in SUMS:
            if getattr(invoice, name) != shown[name]:
                yield f"invoice {invoice.id}: {name} is {getattr(invoice, name)}, its deposits say {shown[name]}"
        for payment in invoice.payments:
            deposit_ = deposits.get(payment.deposit)
            if deposit_ is None or payment != payment_of(deposit_) or deposit_.status == "orphaned" or deposit_.set_aside:
                yield f"invoice {invoice.id} shows the payment {payment.deposit}, which is another or none"
        if invoice.status != invoice.settled_status():
            yield f"invoice {invoice.id} is {invoice.status}, its payments say {invoice.settled_status()}"


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
    """The sums behind the summary are those over the invoices, shard by shard."""
    expected: dict[tuple[str, str, str], Figures] = defaultdict(Figures)
    for invoice in books.invoices:
        expected[invoice.tenant, invoice.asset, shard_of(invoice.id)] += figures(invoice)
    found: dict[tuple[str, str, str], Figures] = {(t.tenant, t.asset, t.shard): figures_of(t) for t in books.totals}
    for place in sorted({*expected, *found}):
        if found.get(place, Figures()) != expected[place]:
            yield f"the totals of {' '.join(place)} are {found.get(place, Figures())}, its invoices say {expected[place]}"
