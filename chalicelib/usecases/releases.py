"""Letting go of a deposit that was held because it came from the grey list, or was below its coin's minimum: an operator's
decision, one transaction.

A deposit below the minimum becomes the merchant's as if it had never been too little: it counts for the invoice of its address,
late or in time by its own time (decisions §9), and what was the operator's is posted to the merchant. Before its confirmations
nothing was posted yet; it is confirmed like any other then. A release is for the sender too where that is on the grey list by then;
a sender that is listed later was not judged, and holds it.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue import Network
from chalicelib.domain.deposits import BELOW_MINIMUM, HELD, Deposit
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import Realm, TenantId, asset_parts, network_parts
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.rates import RatesOf
from chalicelib.usecases.addresses import watched_key
from chalicelib.usecases.changes import Change, Post, Save
from chalicelib.usecases.collect_hints import hint_for
from chalicelib.usecases.deposit_book import DepositBook, is_late
from chalicelib.usecases.invoice_changes import changed, paid
from chalicelib.usecases.outbox import News
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Listed, Store
from chalicelib.usecases.trying import until_settled
from chalicelib.usecases.views import views_now

_MOST_NAMED = 20


class Releases:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, rates_of: RatesOf) -> None:
        self._store, self._rules, self._clock, self._rates_of = store, rules, clock, rates_of
        self._book = DepositBook(store, rules)

    def named(self, realm: Realm, name: str) -> str:
        """The id of a merchant's deposit in `realm` by the chain's hash; an id stays what it is.

        Raises NotFound, BusinessRule where several movements share the hash: which of them is meant has to be said.
        """
        if name.startswith("tx_"):
            return name
        places = self._store.places(Listed("dep", "hash", realm, name), limit=_MOST_NAMED).places
        found = [d for d in self._store.at(places) if isinstance(d, Deposit) and d.txid.lower() == name.lower()]
        if not found:
            raise NotFound(f"No transaction {name[:80]}", {"txId": name[:80]})
        if len(found) > 1:
            each = ", ".join(f"{d.id} ({_standing(d)})" for d in sorted(found, key=lambda d: d.id))
            raise BusinessRule("txId", f"several movements have this hash: send the id of one: {each}")
        return found[0].id

    def release(self, realm: Realm, name: str, by: str) -> Deposit:
        """Let go of a deposit of any merchant of `realm` that is held or below the minimum, by its id or its hash: its money is
        available, as soon as it is confirmed, and counts for its invoice from now on.

        `by` is the id of the operator's key. Raises NotFound, BusinessRule where there is nothing to let go of, Unavailable.
        """
        key = self.named(realm, name)

        def decide() -> Deposit:
            before = self._store.get(Deposit, id=key)
            if before is None or network_parts(before.network)[0] != realm:
                raise NotFound(f"No transaction {key[:80]}", {"txId": key[:80]})
            if not before.releasable or before.tenant is None:
                raise BusinessRule("txId", _why_not(before))
            now = self._clock.now_ms()
            news = News(now)
            catalogue = self._store.catalogue(realm)
            network, views = catalogue.networks[network_parts(before.network)[1]], views_now(catalogue, self._rates_of, now)
            after, entry = self._held(before, by, now) if before.held else self._small(network, before, realm, by, now)
            changes: list[Change] = [Save(after), *([] if entry is None else [Post(entry)])]
            if before.status == "confirmed":
                held, small = before.amount if before.held else 0, before.amount if before.small else 0
                changes.append(self._book.beside(network, before, held=-held, small=-small))
                hint = hint_for(self._rules, network, catalogue.coin(network.slug, asset_parts(before.asset)[1]), after)
                if hint is not None:
                    news.command(hint)
            invoice = self._book.invoice(before.tenant, after.invoice_id)
            if invoice is not None:
                known = before if before.held else None
                changes += changed(invoice, paid(news, invoice, known, after, views, self._book.tip(network)))
            pending = before.amount if entry is None else 0
            changes += self._book.credited(news, before.tenant, after, entry, views, pending)
            self._store.commit([*changes, *news.emit()])
            return after

        return until_settled(decide)

    def _held(self, before: Deposit, by: str, now: int) -> tuple[Deposit, JournalEntry]:
        flags = tuple(flag for flag in before.flags if flag != HELD)
        after = replace(before, flags=flags, released_at=now, released_by=by, version=before.version + 1)
        return after, ledger.deposit_released(before.id, before.round, now, _owner(before), Amount(before.asset, before.amount))

    def _small(self, network: Network, before: Deposit, realm: Realm, by: str, now: int) -> tuple[Deposit, JournalEntry | None]:
        """No entry before its confirmations: then nothing is the operator's yet."""
        watched_at = watched_key(network, self._rules.storage_form(network.slug, before.address))
        (watched,) = self._store.get_many([watched_at])
        invoice_id = None if watched is None or watched.tenant != before.tenant else watched.invoice_id
        flags = tuple(flag for flag in before.flags if flag != BELOW_MINIMUM)
        after = replace(before, flags=flags, admitted_at=now, admitted_by=by, invoice_id=invoice_id, version=before.version + 1)
        after = replace(after, late=is_late(after, self._book.invoice(before.tenant, invoice_id)))
        if after.suspect:
            after = replace(after, released_at=now, released_by=by)
        if before.status == "pending":
            return after, None
        amount = Amount(before.asset, before.amount)
        return after, ledger.deposit_admitted(before.id, before.round, now, realm, _owner(before), amount)


def _owner(deposit: Deposit) -> TenantId:
    if deposit.tenant is None:
        raise LookupError(f"{deposit.id} is the operator's own")
    return deposit.tenant


def _standing(deposit: Deposit) -> str:
    return "held" if deposit.held else "below the minimum" if deposit.releasable else "not held"


def _why_not(deposit: Deposit) -> str:
    if deposit.below_minimum and deposit.tenant is not None:
        return "it is not in the chain"
    if deposit.released_at is not None or deposit.admitted_at is not None:
        return "it was released before"
    if deposit.status == "pending" and deposit.suspect:
        return "it is not confirmed yet: it is held from its confirmation on, and can be released then"
    return "it is neither held nor below the minimum"
