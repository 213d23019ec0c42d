"""Postings of deposits: where their coins lie, whose they are, and the events about them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits import received
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.deposits.sums import MATTERS, NEAR
from chalicelib.domain.ids import AssetId, NetworkId, TenantId, network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import JournalEntry, WalletBalance
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.webhooks.events import balance_object
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.awaited_deposits import Owned, awaiting, balance_keys, owned_of, shown
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.pieces import within_reach
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Beside, Change, Save
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


class DepositPostings:
    """Reads the records that a deposit's change rests on, and gives the changes that go with it."""

    def __init__(self, store: Store, rules: AddressRules) -> None:
        self._store, self._rules = store, rules

    def credited(
        self,
        news: News,
        tenant: TenantId,
        deposit: Deposit,
        entry: JournalEntry | None,
        views: Views,
        pending: int,
        owned: Owned | None = None,
    ) -> list[Change]:
        """The merchant's balance after `entry`, with `pending` more awaited; tells the newly available amount. `owned` was read
        before, where a decision rests on it."""
        if deposit.below_minimum or deposit.set_aside:
            return []
        awaits: list[Change] = [awaiting(tenant, deposit, pending)] if pending else []
        if entry is None:
            return awaits
        before, awaited = owned or self.owned(tenant, deposit)
        after = before.after(entry)
        if after.available == before.available:  # into the purse `held`, or out of it
            return [Save(after), *awaits]
        if after.available < 0 and after.available < before.available:
            # Spent before it fell out: the merchant owes it, and nothing is paid out for them until it is there again.
            log.error("ALARM %s: %s fell out of the chain and is spent: %d %s", tenant, deposit.id, after.available, after.asset)
        if (units := after.available - before.available) > 0:
            cents = views.cents(after.asset, units)
            after = replace(after, received=received.credited(before.received, entry.at, units, cents))
        after = replace(after, emitted=after.emitted + 1)
        record = views.balance(shown(after, awaited + pending))
        news.tell(tenant, "balance.updated", balance_object(after.asset), after.emitted, record)
        return [Save(after), *awaits]

    def all_credited(
        self, news: News, tenant: TenantId, credited: Sequence[tuple[Deposit, JournalEntry]], views: Views, owned: Owned
    ) -> list[Change]:
        """The merchant's balance after the entries of several deposits of one coin, none of them held; told once."""
        after, changes = owned.balance, list[Change]()
        for deposit, entry in credited:
            days = received.credited(after.received, entry.at, deposit.amount, views.cents(after.asset, deposit.amount))
            after = replace(after.after(entry), received=days)
            changes.append(awaiting(tenant, deposit, -deposit.amount))
        awaited = owned.awaited - sum(deposit.amount for deposit, _ in credited)
        after = replace(after, emitted=after.emitted + 1, version=version_after(owned.balance))
        record = views.balance(shown(after, awaited))
        news.tell(tenant, "balance.updated", balance_object(after.asset), after.emitted, record)
        return [Save(after), *changes]

    def told(self, news: News, deposit: Deposit, name: str, views: Views, tip: int | None, previous: str | None = None) -> Deposit:
        """`deposit` with one more event, which is in `news`. `previous` is its status before, where it existed."""
        told = replace(deposit, emitted=deposit.emitted + 1)
        if told.tenant is not None:
            record = views.deposit(told, tip)
            news.tell(told.tenant, name, told.id, told.emitted, {**record, "txId": told.txid}, previous)
        return told

    def owned(self, tenant: TenantId, deposit: Deposit) -> Owned:
        """What the merchant owns and awaits of the deposit's coin: one read."""
        return owned_of(tenant, deposit.asset, self._store.get_many(balance_keys(tenant, deposit.asset)))

    def owned_if_it_matters(self, deposit: Deposit) -> Owned | None:
        """The same for a deposit that is about to be awaited; None where so small a deposit can not matter to any sum, or no
        merchant awaits it."""
        if deposit.tenant is None or deposit.below_minimum or deposit.amount < MATTERS:
            return None
        return self.owned(deposit.tenant, deposit)

    def awaited(self, deposit: Deposit, owned: Owned | None) -> list[Change]:
        """The changes after which its merchant awaits the deposit. Near the bound of sums they rest on the balance as it was read,
        so that of two at once one reads again."""
        if deposit.tenant is None or deposit.below_minimum or deposit.set_aside:
            return []
        awaits: list[Change] = [awaiting(deposit.tenant, deposit, deposit.amount)]
        if owned is not None and owned.total + deposit.amount >= NEAR:
            awaits.append(Save(next_version(owned.balance)))
        return awaits

    def owned_without(self, tenant: TenantId, deposit: Deposit) -> Owned:
        """The same with a deposit that is about to be reversed taken off the day on which it was received."""
        known, awaited = self.owned(tenant, deposit)
        days = received.taken_back(known.received, received.received_at(deposit), deposit.amount)
        return Owned(replace(known, received=days), awaited)

    def invoice(self, tenant: TenantId | None, invoice_id: str | None, *, with_stock: bool = True) -> Invoice | None:
        """`with_stock`: with the piece of its link's stock that it could take. Without it, the transaction moves no piece."""
        if tenant is None or invoice_id is None:
            return None
        found = self._store.get(Invoice, tenant=tenant, id=invoice_id)
        return within_reach(self._store, found) if found is not None and with_stock else found

    def tip(self, network: Network) -> int | None:
        """The height of the network's chain, as far as it is known."""
        cursor = self._store.get(Cursor, network=network.id)
        return None if cursor is None else cursor.tip

    def place(self, network: Network, deposit: Deposit) -> str:
        """The wallet address where the deposit's coins lie."""
        return ledger.wallet(network.id, form_of(self._rules, network, deposit.address))

    def owner(self, deposit: Deposit) -> str:
        """The account that owns the deposit's coins."""
        if deposit.tenant is None or deposit.below_minimum:
            return ledger.operator(network_parts(deposit.network)[0])
        return ledger.merchant(deposit.tenant, "held" if deposit.held else "available")

    def beside(self, network: Network, deposit: Deposit, pending: int = 0, held: int = 0, small: int = 0, aside: int = 0) -> Beside:
        """The change of amounts kept beside the balance of its address, up or down. `aside` counts deposits."""
        return Beside(*self._at(network, deposit), pending, held, small, aside)

    def wallet(self, network: Network, deposit: Deposit) -> WalletBalance | None:
        """The ledger's balance at its address; None where so small a deposit can not matter to it."""
        if deposit.amount < MATTERS:
            return None
        id_, address, asset = self._at(network, deposit)
        return self._store.get(WalletBalance, network=id_, address=address, asset=asset) or WalletBalance(id_, address, asset)

    def unchanged(self, wallet: WalletBalance | None, more: int) -> tuple[int, int] | None:
        """The condition of a commit that adds `more` units to an address (`Beside.only_if`): of two at once one reads again;
        None while the sum is far from its bound, where two may well be added at once."""
        if wallet is None or wallet.units + wallet.pending + more < NEAR:
            return None
        return wallet.units, wallet.pending

    def _at(self, network: Network, deposit: Deposit) -> tuple[NetworkId, str, AssetId]:
        return network.id, form_of(self._rules, network, deposit.address), deposit.asset


def is_late(deposit: Deposit, invoice: Invoice | None, in_time: bool = False) -> bool:
    """Whether a deposit came after its invoice's time. Decided anew for each block that a payment is in (`Deposit.paid_at`).

    To a cancelled invoice everything comes late but what counted before (`in_time`): which of the two was first is what their
    commits say.
    """
    at = deposit.paid_at
    if invoice is None or at is None:
        return False
    return at > invoice.expires_at or (invoice.cancelled and not in_time)
