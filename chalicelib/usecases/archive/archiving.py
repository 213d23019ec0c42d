"""Payments leave the tables for the archive: an invoice with its deposits, or a deposit to an address without an invoice.

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

Payments of one merchant go together: as many as a transaction takes are one object and one transaction. All are read at the same
time, and then all objects written; the transactions come one after the other, since they meet at the merchant's closing postings.
Where one fails because of one of its payments, such as one that somebody is at work on, each is read again and goes by itself.

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from chalicelib.domain.archive.closings import ClosingPosting, closings_of
from chalicelib.domain.archive.payments import Payment, hash_name
from chalicelib.domain.chain import DepositBlock
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.ids import TenantId
from chalicelib.domain.ledger import JournalEntry
from chalicelib.usecases.archive.block_rows import BlockRows, leaving, noted, tidy
from chalicelib.usecases.archive.old_payments import OldPayments, Stays
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.base.side_by_side import side_by_side
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.archive import Archive
from chalicelib.usecases.ports.changes import MOST_ITEMS, Change, Conflict, Delete, DeleteEmpty, Name, Save, Stub
from chalicelib.usecases.ports.failures import TooNew, Unstorable
from chalicelib.usecases.ports.store import Store

Outcome = Literal["archived"] | Stays
_TRIES = 3
_Group = list[tuple[str, Payment]]
"""Payments of one transaction, with the ids of their invoices or deposits."""


class Archiving:
    def __init__(self, store: Store, archive: Archive, rules: AddressRules) -> None:
        self._store, self._archive, self._old = store, archive, OldPayments(store, rules)

    def archive(self, tenant: TenantId, invoice_id: str, cutoff: int) -> Outcome:
        """Archive an invoice that nothing has happened to since `cutoff` (milliseconds since 1970), with its payments.

        Raises Unavailable, NotKept, Conflict where others are at work on it.
        """
        return self._alone(lambda: self._old.of_invoice(tenant, invoice_id, cutoff))

    def archive_deposit(self, tenant: TenantId, deposit_id: str, cutoff: int) -> Outcome:
        """Archive a deposit of a merchant's that has no invoice. Raises the same."""
        return self._alone(lambda: self._old.without_invoice(tenant, deposit_id, cutoff))

    def archive_invoices(self, tenant: TenantId, ids: Sequence[str], cutoff: int, each: Each) -> Mapping[str, Outcome]:
        """The same for many invoices, as few steps as they take; what became of them. What fails is in `each`, and not in there."""
        return self._together(ids, lambda id: self._old.of_invoice(tenant, id, cutoff), each)

    def archive_deposits(self, tenant: TenantId, ids: Sequence[str], cutoff: int, each: Each) -> Mapping[str, Outcome]:
        """The same for many deposits without an invoice."""
        return self._together(ids, lambda id: self._old.without_invoice(tenant, id, cutoff), each)

    def _alone(self, read: Callable[[], Payment | Stays]) -> Outcome:
        def decide() -> Outcome:
            payment = read()
            if not isinstance(payment, Payment):
                return payment
            if _items([payment]) > MOST_ITEMS:
                return "large"
            self._commit([payment], self._archive.keep(_records([payment])))
            return "archived"

        return until_settled(decide, tries=_TRIES)

    def _together(self, ids: Sequence[str], read: Callable[[str], Payment | Stays], each: Each) -> Mapping[str, Outcome]:
        payments: dict[str, Payment] = {}
        outcomes: dict[str, Outcome] = {}

        def look(id: str) -> None:
            found = read(id)
            if not isinstance(found, Payment):
                outcomes[id] = found
            elif _items([found]) > MOST_ITEMS:
                outcomes[id] = "large"
            else:
                payments[id] = found

        side_by_side([partial(each.take, id, partial(look, id)) for id in ids])
        groups = _grouped([(id, payments[id]) for id in ids if id in payments])
        objects: dict[int, str] = {}

        def keep(place: int) -> None:
            objects[place] = self._archive.keep(_records([payment for _, payment in groups[place]]))

        side_by_side([partial(each.take, _named(group), partial(keep, place)) for place, group in enumerate(groups)])
        for place, group in enumerate(groups):
            if place in objects:
                each.take(_named(group), partial(self._end, group, objects[place], read, each, outcomes))
        return outcomes

    def _end(
        self, group: _Group, kept_in: str, read: Callable[[str], Payment | Stays], each: Each, outcomes: dict[str, Outcome]
    ) -> None:
        """The transaction of a group that is kept; where it meets others at work, or one of its payments can not leave, each by
        itself."""

        def alone(id: str) -> None:
            outcomes[id] = self._alone(partial(read, id))

        try:
            self._commit([payment for _, payment in group], kept_in)
        except (Conflict, TooNew, Unstorable):
            for id, _ in group:
                each.take(id, partial(alone, id))
        else:
            outcomes.update((id, "archived") for id, _ in group)

    def _commit(self, payments: Sequence[Payment], kept_in: str) -> None:
        closings = closings_of(entry for payment in payments for entry in payment.entries)
        rows, later = self._block_rows(payments, MOST_ITEMS - len(_changes(payments, closings, kept_in)))
        self._store.commit([*_changes(payments, self._grown(closings), kept_in), *rows])
        for block in later:
            until_settled(partial(tidy, self._store, block), tries=_TRIES)

    def _block_rows(self, payments: Sequence[Payment], room: int) -> tuple[list[Change], list[DepositBlock]]:
        """What they change of the lists of their blocks, as far as there is room for it in the transaction; and the blocks of
        which empty parts are left."""
        blocks: list[BlockRows] = []
        changes: list[Change] = []
        later: list[DepositBlock] = []
        for rows in leaving(self._store, [deposit for payment in payments for deposit in payment.deposits]):
            if len(rows.changes) <= room:
                blocks.append(rows)
                fits = rows.changes
            elif len(rows.own) <= room:
                later.append(rows.block)
                fits = rows.own
            else:
                continue
            changes += fits
            room -= len(fits)
        noted(self._store, [rows.block for rows in blocks if rows.last])
        return changes, later

    def _grown(self, closings: Sequence[ClosingPosting]) -> list[ClosingPosting]:
        """The closing postings as they are stored, grown by `closings`."""
        before: list[ClosingPosting | None] = self._store.get_many([(ClosingPosting, c.key) for c in closings]) if closings else []
        return [(old or replace(c, units=0, count=0)).grown(c) for c, old in zip(closings, before, strict=True)]


def _grouped(payments: Sequence[tuple[str, Payment]]) -> list[_Group]:
    """In their order: as many together as a transaction takes with the rows of their blocks, two for each as far as is known now.
    Where a payment has no room for those by itself, they stay."""
    groups: list[_Group] = []
    for one in payments:
        together = [payment for _, payment in (*(groups[-1] if groups else ()), one)]
        blocks = {deposit.block_hash for payment in together for deposit in payment.deposits}
        if not groups or _items(together) + 2 * len(blocks) > MOST_ITEMS:
            groups.append([])
        groups[-1].append(one)
    return groups


def _named(group: _Group) -> str:
    return ", ".join(id for id, _ in group)


def _items(payments: Sequence[Payment]) -> int:
    """Items of their transaction, but for the rows of their blocks."""
    return len(_changes(payments, closings_of(entry for payment in payments for entry in payment.entries), ""))


def _records(payments: Sequence[Payment]) -> list[Any]:
    """What the archive keeps of them. Two may be of one transaction, and have its claim both."""
    claims = {(claim.network, claim.txid): claim for payment in payments for claim in payment.claims}
    return [*(record for payment in payments for record in (*payment.stubbed, *payment.entries)), *claims.values()]


def _changes(payments: Sequence[Payment], closings: Sequence[ClosingPosting], kept_in: str) -> list[Change]:
    claims = dict.fromkeys((claim.network, claim.txid) for payment in payments for claim in payment.claims)
    empty = {(b.network, b.address, b.asset): b for payment in payments for b in payment.empty}
    return [
        *(Stub(record, kept_in) for payment in payments for record in payment.stubbed),
        *(Delete(JournalEntry, {"id": entry.id}) for payment in payments for entry in payment.entries),
        *(Save(closing) for closing in closings),
        *(Name(hash_name(payment.tenant, d.txid), d.id) for payment in payments for d in payment.deposits),
        *(Delete(LogClaim, {"network": network, "txid": txid}) for network, txid in claims),
        *(DeleteEmpty(balance) for balance in empty.values()),
    ]
