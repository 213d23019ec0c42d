"""One payment leaves the tables for the archive: an invoice with its deposits, or a deposit to an address without an invoice.

What stays is a stub in the place of the invoice, each deposit and each address; `Watched` and the externalId as they were; a name
by which a deposit is found by its hash; and the closing postings, which have grown by the payment's. Each step is safe to repeat:

1. Read the invoice, its deposits, their journal entries, its addresses (`old_payments`). Nothing goes while anything is open
   (`settled_before`, open refunds, coins of UTXO networks that are not collected). An address without an invoice lives on: it
   stays as it is, and so do its balances.
2. Write all of it as one object, whose name follows from its content. Dying here leaves an object that nothing names.
3. Read the object back and compare every byte.
4. One transaction: stubs, each on the version that was read; journal entries removed; closing postings grown by them; names
   added; the deposits taken off the lists of their blocks (`block_rows`). Dying before it leaves the rows as they were; it is all
   done, or nothing is.

Two workers with the same payment write the same object, and one of the two transactions fails: a stub is put on a whole row alone,
and each entry's removal goes with the stub of its deposit. So no posting is closed twice, and none is lost.

From then on a read of one of these records by its key reads the archive (`store/stubs.py`), and no use case can tell. What writes
the next version of one, such as a late payment of its invoice, stores the whole row again in its own transaction. Its old postings
stay closed, and `archives` of the invoice and of the deposit names their objects for as long as these live: the audit proves the
closing postings with them. A rescan finds the deposit as it was, and credits nothing (money rule 2).

An invoice can be refunded for as long as something of it is not: "not refundable" here means that no refund of it is open. A refund
that is made later reads the invoice in the archive. All that it writes lies in rows that are never archived (the refund, the row
that counts it, the withdrawal, balances and entries of its own), so nothing has to be put back for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from chalicelib.domain.archive.closings import ClosingPosting, closings_of
from chalicelib.domain.archive.payments import Payment, hash_name
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.ids import TenantId
from chalicelib.domain.ledger import JournalEntry
from chalicelib.usecases.archive.block_rows import BlockRows, leaving, noted
from chalicelib.usecases.archive.old_payments import OldPayments, Stays
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.archive import Archive
from chalicelib.usecases.ports.changes import MOST_ITEMS, Change, Delete, DeleteEmpty, Name, Save, Stub
from chalicelib.usecases.ports.store import Store

Outcome = Literal["archived"] | Stays
_TRIES = 3


class Archiving:
    def __init__(self, store: Store, archive: Archive, rules: AddressRules) -> None:
        self._store, self._archive, self._old = store, archive, OldPayments(store, rules)

    def archive(self, tenant: TenantId, invoice_id: str, cutoff: int) -> Outcome:
        """Archive an invoice that nothing has happened to since `cutoff` (milliseconds since 1970), with its payments.

        Raises Unavailable, NotKept, Conflict where others are at work on it.
        """
        return until_settled(lambda: self._archived(self._old.of_invoice(tenant, invoice_id, cutoff)), tries=_TRIES)

    def archive_deposit(self, tenant: TenantId, deposit_id: str, cutoff: int) -> Outcome:
        """Archive a deposit of a merchant's that has no invoice. Raises the same."""
        return until_settled(lambda: self._archived(self._old.without_invoice(tenant, deposit_id, cutoff)), tries=_TRIES)

    def _archived(self, payment: Payment | Stays) -> Outcome:
        if not isinstance(payment, Payment):
            return payment
        closings = closings_of(payment.entries)
        room = MOST_ITEMS - len(_changes(payment, closings, ""))
        if room < 0:
            return "large"
        rows = self._block_rows(payment, room)
        kept_in = self._archive.keep(payment.records)
        self._store.commit([*_changes(payment, self._grown(closings), kept_in), *rows])
        return "archived"

    def _block_rows(self, payment: Payment, room: int) -> list[Change]:
        """What it changes of the lists of its blocks, as far as there is room for it in the transaction."""
        blocks: list[BlockRows] = []
        for rows in leaving(self._store, payment.deposits):
            if len(rows.changes) <= room:
                blocks.append(rows)
                room -= len(rows.changes)
        noted(self._store, [rows.block for rows in blocks if rows.last])
        return [change for rows in blocks for change in rows.changes]

    def _grown(self, closings: Sequence[ClosingPosting]) -> list[ClosingPosting]:
        """The closing postings as they are stored, grown by `closings`."""
        before: list[ClosingPosting | None] = self._store.get_many([(ClosingPosting, c.key) for c in closings]) if closings else []
        return [(old or replace(c, units=0, count=0)).grown(c) for c, old in zip(closings, before, strict=True)]


def _changes(payment: Payment, closings: Sequence[ClosingPosting], kept_in: str) -> list[Change]:
    named = [(hash_name(payment.tenant, d.txid), d.id) for d in payment.deposits]
    return [
        *(Stub(record, kept_in) for record in payment.stubbed),
        *(Delete(JournalEntry, {"id": entry.id}) for entry in payment.entries),
        *(Save(closing) for closing in closings),
        *(Name(name, id) for name, id in named),
        *(Delete(LogClaim, {"network": claim.network, "txid": claim.txid}) for claim in payment.claims),
        *(DeleteEmpty(balance) for balance in payment.empty),
    ]
