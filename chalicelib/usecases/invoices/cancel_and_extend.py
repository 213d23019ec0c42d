"""Cancelling an invoice, and giving it more time, with the open work of its expiry in the same transaction.

A payment and a cancellation meet at the invoice's version: the one that commits second has read what the first one left. So a
payment either counts, or comes to a cancelled invoice and is told as late; and a cancellation either finds the invoice open, or is
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId, network_parts
from chalicelib.domain.invoices.invoices import PAYABLE, SUMS, Invoice
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.invoices import Invoices, expiry_work
from chalicelib.usecases.invoices.pieces import within_reach
from chalicelib.usecases.invoices.status import announce, changed
from chalicelib.usecases.ports.changes import Change, Close, Open
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


class InvoiceDeadlines:
    def __init__(self, store: Store, invoices: Invoices, clock: Clock) -> None:
        self._store, self._invoices, self._clock = store, invoices, clock

    def cancel(self, tenant: TenantId, invoice_id: str) -> Invoice:
        """The invoice, cancelled for good: no payment completes it any more. One that is cancelled already stays as it is.

        Raises NotFound, BusinessRule where it is neither pending nor partial, Conflict, Unavailable.
        """

        def decide() -> Invoice:
            before = self._invoices.get(tenant, invoice_id)
            if before.status == "cancelled":
                return before
            if before.manual_status is not None or before.status not in PAYABLE:
                raise _refused(before, "only a pending or partial invoice can be cancelled")
            return self._commit(before, replace(before, cancelled=True), [Close(expiry_work(before))])

        return until_settled(decide)

    def extend(self, tenant: TenantId, invoice_id: str, seconds: int) -> Invoice:
        """The invoice, payable until so many `seconds` from now; never shorter than it was, so a request that comes twice or late
        takes no time away. One that expired is open again.

        Raises NotFound, BusinessRule where it is neither pending nor partial, nor expired unpaid, Conflict, Unavailable.
        """

        def decide() -> Invoice:
            before = self._invoices.get(tenant, invoice_id)
            if before.manual_status is not None or not (before.status in PAYABLE or _expired_unpaid(before)):
                raise _refused(before, "only a pending or partial invoice, or an expired one without payments, can be extended")
            until = self._clock.now_ms() + seconds * 1000
            if not before.expired:
                if until <= before.expires_at:
                    return before
                after = replace(before, expires_at=until)
                return self._commit(before, after, [Close(expiry_work(before)), Open(expiry_work(after))])
            # Its work may be open still, where a late payment was faster than the clock: the new one is another row in any case.
            after = replace(before, expires_at=max(until, before.expires_at + 1), expired=False)
            after = within_reach(self._store, after)
            if after.without_piece:
                raise BusinessRule("id", "its piece of the payment link's stock went back when it expired, and none is left")
            return self._commit(before, after, [Open(expiry_work(after))])

        return until_settled(decide)

    def _commit(self, before: Invoice, after: Invoice, work: Sequence[Change]) -> Invoice:
        news = News(self._clock.now_ms())
        views = Views(self._store.catalogue(network_parts(before.network)[0]))
        told = announce(news, before, next_version(after).settled(), views, self._invoices.tips([before]))
        self._store.commit([*changed(before, told), *work, *news.emit()])
        return told


def _expired_unpaid(invoice: Invoice) -> bool:
    return invoice.status == "expired" and not invoice.payments and not any(invoice.counted(name) for name in SUMS)


def _refused(invoice: Invoice, rule: str) -> BusinessRule:
    by_hand = "" if invoice.manual_status is None else ", set by hand"
    return BusinessRule("status", f"{rule}; this one is {invoice.status}{by_hand}")
