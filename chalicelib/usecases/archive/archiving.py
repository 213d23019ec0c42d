"""One payment leaves the tables for the archive.

What stays is a stub in the place of the invoice, each deposit and each address; `Watched` and the externalId as they were; a name
by which a deposit is found by its hash; and the closing postings, which have grown by the payment's. Each step is safe to repeat:

1. Read the invoice, its deposits, their journal entries, its addresses. Nothing goes while anything is open (`settled_before`,
   open refunds, coins of UTXO networks that are not collected).
2. Write all of it as one object, whose name follows from its content. Dying here leaves an object that nothing names.
3. Read the object back and compare every byte.
4. One transaction: stubs, each on the version that was read; journal entries removed; closing postings grown by them; names
   added; the deposits taken off the lists of their blocks (`block_rows`). Dying before it leaves the rows as they were; it is all
   done, or nothing is.

Two workers with the same payment write the same object, and one of the two transactions fails: a stub is put on a whole row alone,
and each entry's removal goes with the stub of its deposit. So no posting is closed twice, and none is lost.

From then on a read of one of these records by its key reads the archive (`store/stubs.py`), and no use case can tell. What writes
the next version of one, such as a late payment of its invoice, stores the whole row again in its own transaction. Its old postings
stay closed, and `Invoice.archives` names their objects for as long as the invoice lives: the audit proves the closing postings with
them. A rescan finds the deposit as it was, and credits nothing (money rule 2).

An invoice can be refunded for as long as something of it is not: "not refundable" here means that no refund of it is open. A refund
that is made later reads the invoice in the archive. All that it writes lies in rows that are never archived (the refund, the row
that counts it, the withdrawal, balances and entries of its own), so nothing has to be put back for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.archive.closings import ClosingPosting, closings_of
from chalicelib.domain.archive.payments import Payment, entry_ids, hash_name, is_empty, outlived, settled_before
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.deposits.claims import LogClaim, log_number
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import TenantId, network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import JournalEntry, WalletBalance
from chalicelib.domain.refunds.refunds import InvoiceRefunds, Refund
from chalicelib.domain.refunds.status import GIVEN_BACK, status_of
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.archive.block_rows import BlockRows, leaving, noted
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.archive import Archive
from chalicelib.usecases.ports.changes import MOST_ITEMS, Change, Delete, DeleteEmpty, Name, Save, Stub
from chalicelib.usecases.ports.store import Listed, Store
from chalicelib.usecases.wallets.utxos import pays_from_coins

log = logging.getLogger(__name__)

Outcome = Literal["archived", "waits", "large"]
"""`waits`: something of it is not settled, or not old enough. `large`: it has more rows than one transaction takes (`MOST_ITEMS`,
as groups of deposits), and stays."""
_ENDED = GIVEN_BACK | {"completed"}
_TRIES = 3

_Key = tuple[type[Any], dict[str, str]]


class Archiving:
    def __init__(self, store: Store, archive: Archive, rules: AddressRules) -> None:
        self._store, self._archive, self._rules = store, archive, rules

    def archive(self, tenant: TenantId, invoice_id: str, cutoff: int) -> Outcome:
        """Archive an invoice that nothing has happened to since `cutoff` (milliseconds since 1970), with its payments.

        Raises Unavailable, NotKept, Conflict where others are at work on it.
        """

        def decide() -> Outcome:
            payment = self._payment(tenant, invoice_id, cutoff)
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

        return until_settled(decide, tries=_TRIES)

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

    def _payment(self, tenant: TenantId, invoice_id: str, cutoff: int) -> Payment | Literal["waits", "large"]:
        """All of it that is in the tables; `waits` while it has to stay there, or where it is archived already."""
        invoice = self._store.get(Invoice, tenant=tenant, id=invoice_id)
        if invoice is None or not self._whole([(Invoice, {"tenant": tenant, "id": invoice_id})])[0]:
            return "waits"
        deposits = self._deposits(invoice)
        if deposits is None:
            return "large"
        if not settled_before(invoice, {d.id: d for d in deposits}, cutoff):
            return "waits"
        if self._refunds_open(invoice) or self._unspent(deposits):
            return "waits"
        whole = self._only_whole(deposits, [(Deposit, {"id": deposit.id}) for deposit in deposits])
        return Payment(
            invoice,
            tuple(whole),
            tuple(self._addresses(invoice)),
            tuple(self._found([(JournalEntry, {"id": id}) for deposit in whole for id in entry_ids(deposit)])),
            tuple(self._claims(whole)),
            tuple(self._empty(whole)),
        )

    def _deposits(self, invoice: Invoice) -> list[Deposit] | None:
        """Its deposits: those that are listed at its addresses, and those that it shows, which may be archived already. None where
        they are too many for one transaction."""
        found: dict[str, Deposit] = {}
        for address in invoice.addresses:
            listed = self._store.places(Listed("tx", "address", invoice.tenant, address), limit=MOST_ITEMS)
            if listed.more:
                return None
            found |= {d.id: d for d in self._store.at(listed.places) if isinstance(d, Deposit)}
        shown = [(Deposit, {"id": payment.deposit}) for payment in invoice.payments if payment.deposit not in found]
        found |= {d.id: d for d in self._found(shown)}
        return [d for d in found.values() if (d.tenant, d.invoice_id) == (invoice.tenant, invoice.id)]

    def _addresses(self, invoice: Invoice) -> list[Address]:
        choices = () if invoice.choosing is None else invoice.choosing.choices
        ids = dict.fromkeys(id for id in (invoice.address_id, *(choice.address_id for choice in choices)) if id is not None)
        keys: list[_Key] = [(Address, {"tenant": invoice.tenant, "id": id}) for id in ids]
        found = [a for a in self._found(keys) if a.invoice_id == invoice.id]
        return self._only_whole(found, [(Address, {"tenant": a.tenant, "id": a.id}) for a in found])

    def _claims(self, deposits: Sequence[Deposit]) -> list[LogClaim]:
        txids = dict.fromkeys(
            (d.network, d.txid) for d in deposits if d.status == "confirmed" and log_number(d.position) is not None and outlived(d)
        )
        return self._found([(LogClaim, {"network": network, "txid": txid}) for network, txid in txids])

    def _empty(self, deposits: Sequence[Deposit]) -> list[WalletBalance]:
        """Balances of nothing at its addresses: in the coins that came, and in the native coin that paid for collecting them."""
        keys: dict[tuple[str, ...], _Key] = {}
        for deposit in deposits:
            network, place = self._network(deposit), self._place(deposit)
            for asset in (deposit.asset, self._store.catalogue(network.realm).native(network.slug).asset):
                keys[(*place.values(), asset)] = (WalletBalance, place | {"asset": asset})
        found = self._found(keys.values())
        return [balance for balance in found if is_empty(balance)]

    def _refunds_open(self, invoice: Invoice) -> bool:
        """Whether a refund of it is not at its end. One that is made later reads the archive."""
        row = self._store.get(InvoiceRefunds, tenant=invoice.tenant, invoice_id=invoice.id)
        if row is None or not row.ids:
            return False
        refunds = self._found([(Refund, {"tenant": invoice.tenant, "id": id}) for id in row.ids])
        paid = self._found([(Withdrawal, {"tenant": r.tenant, "id": r.withdrawal_id}) for r in refunds if r.withdrawal_id])
        status = {withdrawal.id: withdrawal.status for withdrawal in paid}
        return any(status_of(r.status, status.get(r.withdrawal_id or "")) not in _ENDED for r in refunds)

    def _unspent(self, deposits: Sequence[Deposit]) -> bool:
        """Whether coins of UTXO networks lie where they came: each deposit there is an input of ours, found in the lists by who
        collects it, and by who compares the ledger with the chain."""
        keys = [(WalletBalance, self._place(d) | {"asset": d.asset}) for d in deposits if pays_from_coins(self._network(d))]
        return any(not is_empty(balance) for balance in self._found(keys))

    def _place(self, deposit: Deposit) -> dict[str, str]:
        """The network and the address in storage form, as the keys of balances have them."""
        network = self._network(deposit)
        return {"network": network.id, "address": form_of(self._rules, network, deposit.address)}

    def _network(self, deposit: Deposit) -> Network:
        realm, slug = network_parts(deposit.network)
        return self._store.catalogue(realm).networks[slug]

    def _found(self, keys: Iterable[_Key]) -> list[Any]:
        wanted = list(keys)
        return [record for record in self._store.get_many(wanted) if record is not None] if wanted else []

    def _whole(self, keys: list[_Key]) -> list[bool]:
        return self._store.whole(keys) if keys else []

    def _only_whole(self, records: list[Any], keys: list[_Key]) -> list[Any]:
        return [record for record, whole in zip(records, self._whole(keys), strict=True) if whole]


def _changes(payment: Payment, closings: Sequence[ClosingPosting], kept_in: str) -> list[Change]:
    named = [(hash_name(payment.invoice.tenant, d.txid), d.id) for d in payment.deposits]
    return [
        *(Stub(record, kept_in) for record in (payment.invoice, *payment.deposits, *payment.addresses)),
        *(Delete(JournalEntry, {"id": entry.id}) for entry in payment.entries),
        *(Save(closing) for closing in closings),
        *(Name(name, id) for name, id in named),
        *(Delete(LogClaim, {"network": claim.network, "txid": claim.txid}) for claim in payment.claims),
        *(DeleteEmpty(balance) for balance in payment.empty),
    ]
