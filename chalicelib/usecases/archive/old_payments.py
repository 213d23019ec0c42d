"""What of a merchant's old payments is in the tables: all that leaves with one, or why it stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.archive.payments import Payment, entry_ids, is_empty, outlived, settled, settled_before, stands_alone
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.deposits.claims import LogClaim, log_number
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import TenantId, network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import JournalEntry, WalletBalance
from chalicelib.domain.refunds.refunds import InvoiceRefunds, Refund
from chalicelib.domain.refunds.status import GIVEN_BACK, status_of
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import MOST_ITEMS
from chalicelib.usecases.ports.store import Listed, Store
from chalicelib.usecases.wallets.utxos import pays_from_coins

Stays = Literal["waits", "large"]
"""`waits`: something of it is not settled, or not old enough; or it is archived. `large`: it has more rows than one transaction
takes."""
_ENDED = GIVEN_BACK | {"completed"}

_Key = tuple[type[Any], dict[str, str]]


class OldPayments:
    def __init__(self, store: Store, rules: AddressRules) -> None:
        self._store, self._rules = store, rules

    def of_invoice(self, tenant: TenantId, invoice_id: str, cutoff: int) -> Payment | Stays:
        """All of an invoice that is in the tables. Raises Unavailable."""
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
        addresses, empty = self._addresses(invoice), self._empty(whole)
        return Payment(tenant, invoice, tuple(whole), self._entries(whole), tuple(addresses), self._claims(whole), tuple(empty))

    def without_invoice(self, tenant: TenantId, deposit_id: str, cutoff: int) -> Payment | Stays:
        """All of a deposit that has no invoice. Balances at its address stay: others may come. On networks of coins it waits until
        nothing lies there, as `_unspent` says. Raises Unavailable."""
        deposit = self._store.get(Deposit, id=deposit_id)
        if deposit is None or deposit.tenant != tenant or not stands_alone(deposit) or not settled(deposit, cutoff):
            return "waits"
        if not self._whole([(Deposit, {"id": deposit_id})])[0] or self._unspent([deposit]):
            return "waits"
        return Payment(tenant, None, (deposit,), self._entries([deposit]), claims=self._claims([deposit]))

    def _entries(self, deposits: Sequence[Deposit]) -> tuple[JournalEntry, ...]:
        return tuple(self._found([(JournalEntry, {"id": id}) for deposit in deposits for id in entry_ids(deposit)]))

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

    def _claims(self, deposits: Sequence[Deposit]) -> tuple[LogClaim, ...]:
        txids = dict.fromkeys(
            (d.network, d.txid) for d in deposits if d.status == "confirmed" and log_number(d.position) is not None and outlived(d)
        )
        return tuple(self._found([(LogClaim, {"network": network, "txid": txid}) for network, txid in txids]))

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
