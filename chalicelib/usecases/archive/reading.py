"""Archived deposits that no list has: by their transaction's hash, and by their invoice. Reading a record by its key is the
store's own affair."""

from __future__ import annotations

from chalicelib.domain.archive.payments import DAY_MS, LEAST_DAYS, hash_name
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import TenantId, made_at, place_in_time
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.usecases.ports.store import Store


def newest_by_hash(store: Store, tenant: TenantId, txid: str) -> Deposit | None:
    """The merchant's newest archived deposit of a transaction. One call where there is none. Raises Unavailable."""
    return max(by_hash(store, tenant, txid), key=lambda d: place_in_time(d.created_at, d.id), default=None)


def by_hash(store: Store, tenant: TenantId, txid: str) -> list[Deposit]:
    """The merchant's archived deposits of a transaction, as they are now. One call where there is none. Raises Unavailable."""
    ids = store.named(hash_name(tenant, txid))
    if not ids:
        return []
    return [d for d in store.get_many([(Deposit, {"id": id}) for id in ids]) if d is not None and d.tenant == tenant]


def of_invoice(store: Store, tenant: TenantId, invoice_id: str, now_ms: int) -> list[Deposit]:
    """All deposits of an invoice that are or were in the archive, as they are now. No call for a young invoice, nor for a text
    that is no id; one for an old one that is not there. Raises Unavailable."""
    try:
        if now_ms - made_at(invoice_id) < LEAST_DAYS * DAY_MS:
            return []
    except ValueError:
        return []
    invoice = store.get(Invoice, tenant=tenant, id=invoice_id)
    kept = [] if invoice is None else [record for name in invoice.archives or () for record in store.kept(name)]
    ids = dict.fromkeys(record.id for record in kept if isinstance(record, Deposit) and record.invoice_id == invoice_id)
    return [d for d in store.get_many([(Deposit, {"id": id}) for id in ids]) if d is not None] if ids else []
