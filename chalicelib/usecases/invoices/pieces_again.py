"""An expired invoice that is paid after all takes a piece of its link's stock again, in a transaction of its own.

The transactions that see and credit a payment are kept to ten items, which DynamoDB Local of 2020 takes, so that they are tested
there: they have no room for the stock. Each looks here behind its commit: what one that died has left out, the next one of the
payment does. After the last the invoice stays expired, told as paid late, and is the merchant's to decide about.
"""

from __future__ import annotations

from chalicelib.domain.ids import network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.pieces import within_reach
from chalicelib.usecases.invoices.status import announce, changed
from chalicelib.usecases.ports.store import Store


def take_again(store: Store, invoice: Invoice | None, now_ms: int, tip: int | None) -> None:
    """Let `invoice`, as it was read before a payment, have a piece where it gave its own back and is paid now. `tip` is the height
    of the payment's chain. Nothing is read for another invoice. Raises Conflict, Unavailable."""
    if invoice is None or not invoice.without_piece:
        return
    tenant, invoice_id = invoice.tenant, invoice.id

    def decide() -> None:
        found = store.get(Invoice, tenant=tenant, id=invoice_id)
        before = None if found is None else within_reach(store, found)
        after = None if before is None else next_version(before).settled()
        if before is None or after is None or after.held is None:
            return  # it is not paid, or none is left
        news = News(now_ms)
        views = Views(store.catalogue(network_parts(before.network)[0]))
        told = announce(news, before, after, views, tip if before.choosing is None else None)
        store.commit([*changed(before, told), *news.emit()])

    until_settled(decide)
