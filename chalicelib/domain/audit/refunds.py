"""Audit rules of refunds and payout links: each has the withdrawal that it names, its invoice, and its open work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from chalicelib.domain.audit.books import Books
from chalicelib.domain.refunds.refunds import Refund, refund_work


def claimed_once(books: Books) -> Iterable[str]:
    """Each is paid by one withdrawal at most, which it names, with its amount; and only when it is claimed."""
    withdrawals = {w.id: w for w in books.withdrawals if w.repays is not None}
    paying = Counter(w.repays.id for w in withdrawals.values() if w.repays is not None)
    for refund in books.refunds:
        if paying.pop(refund.id, 0) != (refund.status == "claimed"):
            yield f"{refund.id} is {refund.status}, and withdrawals say otherwise"
        elif refund.status == "claimed":
            yield from _paid_by(refund, books)
    for refund_id, count in paying.items():
        yield f"{count} withdrawals pay {refund_id}, and there is no such refund"


def _paid_by(refund: Refund, books: Books) -> Iterable[str]:
    found = next((w for w in books.withdrawals if w.id == refund.withdrawal_id), None)
    if found is None or found.repays is None or (found.repays.id, found.repays.terms) != (refund.id, refund.terms):
        yield f"{refund.id} is paid by {refund.withdrawal_id}, which pays something else or is none"
        return
    wanted = (refund.tenant, refund.terms.asset, refund.terms.amount, refund.address)
    if (found.tenant, found.asset, found.amount, found.to_address) != wanted:
        yield f"{refund.id} is paid by {found.id}, which pays another amount, or somebody else"


def invoices_name_refunds(books: Books) -> Iterable[str]:
    """Each refund is in the row of its invoice, and in no other."""
    named = {(row.tenant, row.invoice_id, name) for row in books.refunded for name in row.ids}
    made = {(r.tenant, r.terms.invoice_id, r.id) for r in books.refunds if r.terms.invoice_id is not None}
    for tenant, invoice, name in sorted(named ^ made, key=str):
        yield f"{name} of the invoice {invoice} of {tenant} is in the invoice's row, or stored, and not both"


def refund_work_agrees(books: Books) -> Iterable[str]:
    """Each that reserves money has the work that ends it. Work may be left for what is claimed: it is closed when it is due."""
    records = {refund_work(refund): refund for refund in books.refunds}
    open_work = {work for work in books.work if work.kind == "refund"}
    for work, refund in records.items():
        if refund.reserves and work not in open_work:
            yield f"{refund.id} is {refund.status} and nobody will look at it again"
        if not refund.reserves and refund.status != "claimed" and work in open_work:
            yield f"{refund.id} is {refund.status} and still open"
    for work in sorted(open_work - records.keys(), key=str):
        yield f"refund {work.id} is open and there is no such refund"


def told_of(refund: Refund, books: Books) -> int:
    """The number of events that were told of it: from its claim on, its withdrawal counts them."""
    if refund.status == "claimed":
        for withdrawal in books.withdrawals:
            if withdrawal.id == refund.withdrawal_id and withdrawal.repays is not None:
                return withdrawal.repays.told
    return refund.emitted
