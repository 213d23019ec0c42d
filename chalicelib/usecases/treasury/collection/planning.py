"""Plans collections from hints: one at a time for each coin at an address.

A hint closes in every case: into a collection, into the note on the collection that is under way, or because there is nothing to
collect. It closes for nothing only while the balance is the one that was looked at: a deposit that is credited meanwhile finds
its hint still open, and would be forgotten with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.domain.addresses.addresses import Address, Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, collects
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import Collecting, Collection, collection_work, waited, went_on
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.work import Work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Beside, Change, Close, Open, Save, Still
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.wallets.sweep_candidates import hint_place


class CollectPlanning:
    """Of one network of accounts."""

    def __init__(self, context: NetworkContext, fees: MoveFees) -> None:
        self._network, self._store, self._clock, self._fees = context.network, context.store, context.clock, fees

    def plan(self, hint: Work) -> str | None:
        """Close a hint; the id of the collection that it has started or woken, if any. Raises Conflict, also where another worker
        has closed the hint, and Unavailable."""
        return until_settled(lambda: self._plan(hint), of=hint)

    def _plan(self, hint: Work) -> str | None:
        address, slug = hint_place(hint.id)
        network = self._network
        coin = self._store.catalogue(network.realm).coins.get((network.slug, slug))
        kind, key = watched_key(network, address)
        if coin is None or not collects(coin):
            self._close(hint)
            return None
        place = {"network": network.id, "address": address}
        watched: Watched | None
        record: Collecting | None
        found: WalletBalance | None
        wanted: list[tuple[type[Any], dict[str, str]]] = [
            (kind, key),
            (Collecting, place),
            (WalletBalance, place | {"asset": coin.asset}),
        ]
        watched, record, found = self._store.get_many(wanted)
        record = record or Collecting(network.id, address)
        balance = found or WalletBalance(network.id, address, coin.asset)
        under_way = record.open.get(slug)
        if under_way is not None:
            return self._noted(hint, under_way, balance)
        if watched is None or watched.role != "user" or watched.tenant is None or watched.address_id is None:
            self._close(hint)
            return None
        owned = self._store.get(Address, tenant=watched.tenant, id=watched.address_id)
        there, now = balance.units - balance.small, self._clock.now_ms()
        if owned is None or not owned.path or there <= 0:
            self._close(hint, balance)
            return None
        id, opened = record.begun(slug)
        made = Collection(id, network.id, coin.asset, owned.address, owned.path, owned.tenant, there, now, now, now)
        least = self._least(coin)
        if isinstance(least, NoFreshRate):
            made = waited(made, "no_rate", str(least), now)
        elif least is not None and there < least:
            self._close(hint, balance)  # the next deposit opens another one
            return None
        self._store.commit([Save(opened), Save(made), Open(collection_work(made)), Close(hint)])
        return id if made.state == "planned" else None

    def _least(self, coin: Coin) -> int | NoFreshRate | None:
        try:
            return self._fees.limit(coin, "collectThreshold")
        except NoFreshRate as error:
            return error

    def _noted(self, hint: Work, id: str, balance: WalletBalance) -> str | None:
        """One is under way: it will ask for the next, or goes on where it was parked for money that is released by now."""
        before = self._store.get(Collection, id=id)
        if before is None:
            raise LookupError(f"collection {id} is under way and not there")
        if before.state == "parked" and before.reason == "held" and balance.held <= 0:
            now = self._clock.now_ms()
            woken = replace(went_on(before, "planned", now), updated_at=now, version=version_after(before))
            self._store.commit([Save(woken), Open(collection_work(woken)), Close(hint)])
            return id
        noted = Still(before) if before.again else Save(replace(next_version(before), again=True))
        self._store.commit([noted, Close(hint)])
        return None

    def _close(self, hint: Work, balance: WalletBalance | None = None) -> None:
        changes: list[Change] = [Close(hint)]
        if balance is not None:
            only_if = (balance.units, balance.pending)
            changes.append(Beside(balance.network, balance.address, balance.asset, only_if=only_if))
        self._store.commit(changes)
