"""Letting go of what was held because it came from the grey list: an operator's decision, one transaction."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.deposits import GREY_LISTED, HELD, Deposit
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import Realm, asset_parts, network_parts
from chalicelib.domain.money import Amount
from chalicelib.domain.rates import RatesOf
from chalicelib.usecases.changes import Change, Post, Save
from chalicelib.usecases.collect_hints import hint_for
from chalicelib.usecases.deposit_book import DepositBook
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
            each = ", ".join(f"{d.id} ({'held' if d.held else 'not held'})" for d in sorted(found, key=lambda d: d.id))
            raise BusinessRule("txId", f"several movements have this hash: send the id of one: {each}")
        return found[0].id

    def release(self, realm: Realm, name: str, by: str) -> Deposit:
        """Let go of a held deposit of any merchant of `realm`, by its id or its hash: its money is available, and counts for its
        invoice from now on.

        `by` is the id of the operator's key. Raises NotFound, BusinessRule where nothing is held (any more), Unavailable.
        """
        key = self.named(realm, name)

        def decide() -> Deposit:
            before = self._store.get(Deposit, id=key)
            if before is None or network_parts(before.network)[0] != realm:
                raise NotFound(f"No transaction {key[:80]}", {"txId": key[:80]})
            if not before.held or before.tenant is None:
                raise BusinessRule("txId", _why_not_held(before))
            now = self._clock.now_ms()
            news = News(now)
            catalogue = self._store.catalogue(realm)
            network, views = catalogue.networks[network_parts(before.network)[1]], views_now(catalogue, self._rates_of, now)
            flags = tuple(flag for flag in before.flags if flag != HELD)
            after = replace(before, flags=flags, released_at=now, released_by=by, version=before.version + 1)
            entry = ledger.deposit_released(before.id, before.round, now, before.tenant, Amount(before.asset, before.amount))
            changes: list[Change] = [Save(after), Post(entry), self._book.beside(network, before, held=-before.amount)]
            hint = hint_for(self._rules, network, catalogue.coin(network.slug, asset_parts(before.asset)[1]), after)
            if hint is not None:
                news.command(hint)
            invoice = self._book.invoice(before.tenant, before.invoice_id)
            if invoice is not None:
                changes += changed(invoice, paid(news, invoice, before, after, views, self._book.tip(network)))
            changes += self._book.credited(news, before.tenant, after, entry, views, 0)
            self._store.commit([*changes, *news.emit()])
            return after

        return until_settled(decide)


def _why_not_held(deposit: Deposit) -> str:
    if deposit.released_at is not None:
        return "it was released before"
    if deposit.status == "pending" and GREY_LISTED in deposit.flags:
        return "it is not confirmed yet: it is held from its confirmation on, and can be released then"
    return "it is not held"
