"""Releases of held deposits by an operator, in one transaction: from the grey list, below its coin's minimum, or set aside because
a sum could not take it.

A deposit below the minimum becomes the merchant's as if it had never been too little: it counts for the invoice of its address,
late or in time by its own time (decisions §9), and what was the operator's is posted to the merchant. Before its confirmations
nothing was posted yet; it is confirmed like any other then. A release covers the sender too where it is on the grey list by then. A
sender that is listed later was not part of the decision, and holds the deposit.

A deposit that is set aside is recorded as if it were seen now: pending before its confirmations, else credited at once. Nothing was
posted for it before. The release is refused while a sum still has no room for it.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import watched_key
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.deposits.deposits import BELOW_MINIMUM, HELD, SET_ASIDE, Deposit
from chalicelib.domain.deposits.sums import fits, seen_sums
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import Realm, TenantId, asset_parts, network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import views_now
from chalicelib.usecases.deposits.counted_rates import counting_at
from chalicelib.usecases.deposits.late_rates import at_its_worth
from chalicelib.usecases.deposits.posting import DepositPostings, is_late
from chalicelib.usecases.invoices.status import changed, paid
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Listed, Store
from chalicelib.usecases.wallets.sweep_candidates import hint_for
from chalicelib.usecases.wallets.utxos import confirmed

_MOST_NAMED = 20


class Releases:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, rates_of: RatesOf) -> None:
        self._store, self._rules, self._clock, self._rates_of = store, rules, clock, rates_of
        self._book = DepositPostings(store, rules)

    def named(self, realm: Realm, name: str) -> str:
        """The id of a merchant's deposit in `realm` by its transaction hash, where anything ever kept it from its merchant; an id
        is returned as it is.

        Raises NotFound, BusinessRule where several movements share the hash, of these or to their merchants: the caller has to
        name the deposit's id.
        """
        if name.startswith("tx_"):
            return name
        found = {d.id: d for d in self._of_hash(Listed("dep", "hash", realm, name), name)}
        if not found:
            raise NotFound(f"No transaction {name[:80]} that was ever held back", {"txId": name[:80]})
        for tenant in {_owner(deposit) for deposit in found.values()}:
            found |= {d.id: d for d in self._of_hash(Listed("tx", "hash", tenant, name), name)}
        if len(found) > 1:
            each = ", ".join(f"{key} ({_standing(found[key])})" for key in sorted(found))
            raise BusinessRule("txId", f"several movements have this hash: send the id of one: {each}")
        return next(iter(found))

    def _of_hash(self, listed: Listed, name: str) -> list[Deposit]:
        places = self._store.places(listed, limit=_MOST_NAMED).places
        return [d for d in self._store.at(places) if isinstance(d, Deposit) and d.txid.lower() == name.lower()]

    def release(self, realm: Realm, name: str, by: str) -> Deposit:
        """Release a deposit of any merchant of `realm` that is held or below the minimum, by its id or its hash. Its money is
        available once it is confirmed, and counts for its invoice from now on.

        A deposit that is set aside may be the operator's own, named by its id. `by` is the id of the operator's key. Raises
        NotFound, BusinessRule where there is nothing to release or a sum has no room for it, Unavailable.
        """
        key = self.named(realm, name)

        def decide() -> Deposit:
            before = self._store.get(Deposit, id=key)
            if before is None or network_parts(before.network)[0] != realm:
                raise NotFound(f"No transaction {key[:80]}", {"txId": key[:80]})
            if not before.releasable:
                raise BusinessRule("txId", _why_not(before))
            now = self._clock.now_ms()
            news = News(now)
            catalogue = self._store.catalogue(realm)
            network, views = catalogue.networks[network_parts(before.network)[1]], views_now(catalogue, self._rates_of, now)
            after, entry = self._held(before, by, now) if before.held else self._admitted(network, before, realm, by, now)
            invoice = self._book.invoice(before.tenant, after.invoice_id)
            after, waits = counting_at(after, invoice, catalogue, self._rates_of, now)
            changes: list[Change] = [Save(after), *([] if entry is None else [Post(entry)]), *waits]
            owned = None if before.tenant is None else self._book.owned(before.tenant, before)
            changes += self._at_its_address(network, before, after, invoice, None if owned is None else owned.shown)
            if before.status == "confirmed":
                hint = hint_for(self._rules, network, catalogue.coin(network.slug, asset_parts(before.asset)[1]), after)
                if hint is not None:
                    news.command(hint)
            if invoice is not None:
                known = before if before.held else None
                changes += changed(invoice, paid(news, invoice, known, after, views, self._book.tip(network)))
            if before.tenant is not None:
                pending = before.amount if entry is None else 0
                changes += self._book.credited(news, before.tenant, after, entry, views, pending, owned)
            self._store.commit([*changes, *news.emit()])
            return after

        return until_settled(decide)

    def _at_its_address(
        self, network: Network, before: Deposit, after: Deposit, invoice: Invoice | None, balance: Balance | None
    ) -> list[Change]:
        """The change of amounts beside the balance there. Raises BusinessRule where a sum has no room for the deposit."""
        if before.held:
            return [self._book.beside(network, before, held=-before.amount)]
        if not before.set_aside:
            # It lies there already, and was the operator's.
            _demand_room(before, balance, invoice, [])
            small = before.amount if before.status == "confirmed" else 0
            return [self._book.beside(network, before, small=-small)] if small else []
        wallet = self._book.wallet(network, before)
        _demand_room(before, balance, invoice, [] if wallet is None else [wallet.units + wallet.pending])
        only_if = self._book.unchanged(wallet, before.amount)
        if before.status == "pending":
            return [replace(self._book.beside(network, before, pending=before.amount, aside=-1), only_if=only_if)]
        beside = replace(self._book.beside(network, before, aside=-1), only_if=only_if)
        return [beside, *confirmed(self._store, network, after)]

    def _held(self, before: Deposit, by: str, now: int) -> tuple[Deposit, JournalEntry]:
        flags = tuple(flag for flag in before.flags if flag != HELD)
        after = replace(next_version(before), flags=flags, released_at=now, released_by=by)
        return after, ledger.deposit_released(before.id, before.round, now, _owner(before), Amount(before.asset, before.amount))

    def _admitted(self, network: Network, before: Deposit, realm: Realm, by: str, now: int) -> tuple[Deposit, JournalEntry | None]:
        """Admit a deposit below the minimum, or one that was set aside. No entry before its confirmations: nothing is the
        operator's yet."""
        flags = tuple(flag for flag in before.flags if flag not in (BELOW_MINIMUM, SET_ASIDE))
        after = replace(next_version(before), flags=flags, admitted_at=now, admitted_by=by)
        if before.small:
            after = replace(after, invoice_id=self._invoice_of(network, before))
            invoice = self._book.invoice(before.tenant, after.invoice_id)
            after = at_its_worth(replace(after, late=is_late(after, invoice)), invoice, self._rates_of, now)
        if after.suspect:
            after = replace(after, released_at=now, released_by=by)
        if before.status == "pending":
            return after, None
        amount = Amount(before.asset, before.amount)
        if before.set_aside:
            place, owner = self._book.place(network, after), self._book.owner(after)
            return after, ledger.deposit_credited(before.id, before.round, now, place, owner, amount)
        return after, ledger.deposit_admitted(before.id, before.round, now, realm, _owner(before), amount)

    def _invoice_of(self, network: Network, deposit: Deposit) -> str | None:
        """The invoice of its address, for which it did not count."""
        (watched,) = self._store.get_many([watched_key(network, form_of(self._rules, network, deposit.address))])
        return None if watched is None or watched.tenant != deposit.tenant else watched.invoice_id


def _demand_room(deposit: Deposit, balance: Balance | None, invoice: Invoice | None, there: list[int]) -> None:
    """`there`: what its address has, where it would become more. Raises BusinessRule."""
    if not fits(deposit.amount, [*seen_sums(deposit, balance, invoice, None), *there]):
        raise BusinessRule(
            "txId",
            "would take a sum past 10^37 units, the most that is kept of a coin: its merchant's, its invoice's, or its address'",
        )


def _owner(deposit: Deposit) -> TenantId:
    if deposit.tenant is None:
        raise LookupError(f"{deposit.id} is the operator's own")
    return deposit.tenant


def _standing(deposit: Deposit) -> str:
    if deposit.set_aside and deposit.releasable:
        return "set aside"
    return "held" if deposit.held else "below the minimum" if deposit.releasable else "not held"


def _why_not(deposit: Deposit) -> str:
    if deposit.below_minimum and deposit.tenant is not None:
        return "it is not in the chain"
    if deposit.released_at is not None or deposit.admitted_at is not None:
        return "it was released before"
    if deposit.status == "pending" and deposit.suspect:
        return "it is not confirmed yet: it is held from its confirmation on, and can be released then"
    return "it is neither held, nor below the minimum, nor set aside"
