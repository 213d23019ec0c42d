"""What of a merchant's old payments is in the tables: all that leaves with one, or why it stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
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
from chalicelib.domain.work import Work
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import MOST_ITEMS
from chalicelib.usecases.ports.store import Listed, Store
from chalicelib.usecases.wallets.sweep_candidates import hint_work
from chalicelib.usecases.wallets.utxos import pays_from_coins

Stays = Literal["waits", "large"]
"""`waits`: something of it is not settled, or not old enough; or it is archived. `large`: it has more rows than one transaction
takes."""
_NEAR = 16
"""Hints that are read from the one before an id on: its own is the first but for those that differ in the last digit alone."""
_ENDED = GIVEN_BACK | {"completed"}

_Key = tuple[type[Any], dict[str, str]]


class OldPayments:
    def __init__(self, store: Store, rules: AddressRules) -> None:
        self._store, self._rules = store, rules

    def of_invoice(self, tenant: TenantId, invoice_id: str, cutoff: int) -> Payment | Stays:
        """All of an invoice that is in the tables. Five reads where there is no refund. Raises Unavailable."""
        invoice = self._store.get(Invoice, tenant=tenant, id=invoice_id)
        if invoice is None:
            return "waits"
        deposits = self._deposits(invoice)
        if deposits is None:
            return "large"
        if not settled_before(invoice, {d.id: d for d in deposits}, cutoff):
            return "waits"
        addresses: list[_Key] = [(Address, {"tenant": tenant, "id": id}) for id in _address_ids(invoice)]
        itself: _Key = (Invoice, {"tenant": tenant, "id": invoice_id})
        whole = self._store.whole([itself, *((Deposit, {"id": d.id}) for d in deposits), *addresses])
        if not whole[0]:
            return "waits"
        in_table = [d for d, is_whole in zip(deposits, whole[1:], strict=False) if is_whole]
        found = self._facts(
            refunds=[(InvoiceRefunds, {"tenant": tenant, "invoice_id": invoice_id})],
            lying=self._where_coins_lie(deposits),
            addresses=[key for key, is_whole in zip(addresses, whole[1 + len(deposits) :], strict=True) if is_whole],
            empty=self._balances(in_table),
            **_beside(in_table),
        )
        if self._open(found["refunds"]) or self._unspent(deposits, found["lying"]):
            return "waits"
        own = tuple(address for address in found["addresses"] if address.invoice_id == invoice.id)
        empty = tuple(balance for balance in found["empty"] if is_empty(balance))
        return Payment(tenant, invoice, tuple(in_table), tuple(found["entries"]), own, tuple(found["claims"]), empty)

    def without_invoice(self, tenant: TenantId, deposit_id: str, cutoff: int) -> Payment | Stays:
        """All of a deposit that has no invoice. Balances at its address stay: others may come. On networks of coins it waits until
        nothing lies there, as `_where_coins_lie` says. Three reads. Raises Unavailable."""
        deposit = self._store.get(Deposit, id=deposit_id)
        if deposit is None or deposit.tenant != tenant or not stands_alone(deposit) or not settled(deposit, cutoff):
            return "waits"
        if not self._store.whole([(Deposit, {"id": deposit_id})])[0]:
            return "waits"
        found = self._facts(lying=self._where_coins_lie([deposit]), **_beside([deposit]))
        if self._unspent([deposit], found["lying"]):
            return "waits"
        return Payment(tenant, None, (deposit,), tuple(found["entries"]), claims=tuple(found["claims"]))

    def _facts(self, **wanted: Sequence[_Key]) -> dict[str, list[Any]]:
        """The records at these keys that are there, by the same names; one read for all."""
        keys = [key for some in wanted.values() for key in some]
        read = iter(self._store.get_many(keys) if keys else [])
        return {name: [record for record in islice(read, len(some)) if record is not None] for name, some in wanted.items()}

    def _deposits(self, invoice: Invoice) -> list[Deposit] | None:
        """Its deposits: those that are listed at its addresses, and those that it shows, which may be archived already. None where
        they are too many for one transaction."""
        found: dict[str, Deposit] = {}
        for address in invoice.addresses:
            listed = self._store.places(Listed("tx", "address", invoice.tenant, address), limit=MOST_ITEMS)
            if listed.more:
                return None
            found |= {d.id: d for d in (self._store.at(listed.places) if listed.places else []) if isinstance(d, Deposit)}
        shown: list[_Key] = [(Deposit, {"id": payment.deposit}) for payment in invoice.payments if payment.deposit not in found]
        found |= {d.id: d for d in self._facts(shown=shown)["shown"]}
        return [d for d in found.values() if (d.tenant, d.invoice_id) == (invoice.tenant, invoice.id)]

    def _balances(self, deposits: Sequence[Deposit]) -> list[_Key]:
        """Balances at its addresses: in the coins that came, and in the native coin that paid for collecting them."""
        keys: dict[tuple[str, ...], _Key] = {}
        for deposit in deposits:
            network, place = self._network(deposit), self._place(deposit)
            for asset in (deposit.asset, self._store.catalogue(network.realm).native(network.slug).asset):
                keys[(*place.values(), asset)] = (WalletBalance, place | {"asset": asset})
        return list(keys.values())

    def _open(self, rows: Sequence[InvoiceRefunds]) -> bool:
        """Whether a refund is not at its end. One that is made later reads the archive."""
        wanted: list[_Key] = [(Refund, {"tenant": row.tenant, "id": id}) for row in rows for id in row.ids]
        refunds = self._facts(of=wanted)["of"]
        paid = self._facts(by=[(Withdrawal, {"tenant": r.tenant, "id": r.withdrawal_id}) for r in refunds if r.withdrawal_id])["by"]
        status = {withdrawal.id: withdrawal.status for withdrawal in paid}
        return any(status_of(r.status, status.get(r.withdrawal_id or "")) not in _ENDED for r in refunds)

    def _where_coins_lie(self, deposits: Sequence[Deposit]) -> list[_Key]:
        """The balances that have to be empty, where coins of UTXO networks came: each deposit there is an input of ours, found in
        the lists by who collects it, and by who compares the ledger with the chain."""
        return [(WalletBalance, self._place(d) | {"asset": d.asset}) for d in deposits if pays_from_coins(self._network(d))]

    def _unspent(self, deposits: Sequence[Deposit], lying: Sequence[WalletBalance]) -> bool:
        """Whether coins lie where they came, or may lie there again: what is signed leaves the balance, and comes back where its
        transaction dies. The hint to collect a deposit is closed once its coin is spent for good. One read for each."""
        if any(not is_empty(balance) for balance in lying):
            return True
        return any(self._hinted(hint_work(d.network, d.id)) for d in deposits if pays_from_coins(self._network(d)))

    def _hinted(self, hint: Work) -> bool:
        """Whether the hint is open."""
        near = self._store.open_work(hint.kind, hint.lane, after=replace(hint, id=hint.id[:-1]), limit=_NEAR)
        return any(work.id == hint.id for work in near)

    def _place(self, deposit: Deposit) -> dict[str, str]:
        """The network and the address in storage form, as the keys of balances have them."""
        network = self._network(deposit)
        return {"network": network.id, "address": form_of(self._rules, network, deposit.address)}

    def _network(self, deposit: Deposit) -> Network:
        realm, slug = network_parts(deposit.network)
        return self._store.catalogue(realm).networks[slug]


def _beside(deposits: Sequence[Deposit]) -> dict[str, list[_Key]]:
    """The journal entries that these deposits may have, and the claims of their transactions that can go."""
    txids = dict.fromkeys(
        (d.network, d.txid) for d in deposits if d.status == "confirmed" and log_number(d.position) is not None and outlived(d)
    )
    return {
        "entries": [(JournalEntry, {"id": id}) for deposit in deposits for id in entry_ids(deposit)],
        "claims": [(LogClaim, {"network": network, "txid": txid}) for network, txid in txids],
    }


def _address_ids(invoice: Invoice) -> list[str]:
    choices = () if invoice.choosing is None else invoice.choosing.choices
    ids = (invoice.address_id, *(choice.address_id for choice in choices))
    return list(dict.fromkeys(id for id in ids if id is not None))
