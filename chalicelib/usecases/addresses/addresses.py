"""Deposit addresses: derived from public keys, watched from the moment they are given out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from chalicelib.domain.addresses.addresses import Address, Mode, Watched, family_key
from chalicelib.domain.addresses.index_pools import ALARM_LEFT, pool_name
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.errors import BusinessRule, InvalidParameter, NotFound
from chalicelib.domain.ids import NetworkId, Realm, TenantId, new_id, tenant_parts
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.versions import version_after
from chalicelib.usecases.addresses.daily_limit import DailyAddresses
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.balance_views import Holdings, coins_on
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.keys import Deriver
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.lookup import guard_archived

log = logging.getLogger(__name__)

INDEX_RANGE = 50
"""Indexes taken out of a pool at once: one write for fifty addresses, and a gap of at most fifty when a function dies."""

_REMEMBERED = 10_000
_Keys = list[tuple[type[Any], dict[str, str]]]


class Unchanged(Enum):
    """Tells a field that was not sent from one sent as null."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


class Addresses:
    """Makes and finds deposit addresses of one deployment. Needs no private key and can not reach one."""

    def __init__(
        self, store: Store, deriver: Deriver, rules: AddressRules, clock: Clock, pool_of: Callable[[str], str], most: int = 0
    ) -> None:
        """`most` addresses a day for each merchant and realm; 0 for any number."""
        self._store, self._deriver, self._rules, self._clock, self._pool_of = store, deriver, rules, clock, pool_of
        self._daily = DailyAddresses(store, most)
        self._ranges: dict[tuple[Realm, str], tuple[int, int]] = {}
        self._lock = threading.Lock()
        # By how a merchant named it. Of an address its id and its spelling never change, its networks may become more.
        self._seen: dict[tuple[TenantId, str], Address] = {}

    def create(
        self,
        tenant: TenantId,
        network: Network,
        coin: Coin | None,
        mode: Mode,
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Address:
        """A new deposit address. Raises InvalidParameter (no coin), BusinessRule (cross off EVM, too many in a day), Exhausted,
        Unavailable."""
        return self.creating(tenant, network, coin, mode, label, metadata).run()

    def creating(
        self,
        tenant: TenantId,
        network: Network,
        coin: Coin | None,
        mode: Mode,
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Creation[Address]:
        """What `create` commits. Raises InvalidParameter."""
        if mode == "single" and coin is None:
            raise InvalidParameter.one("coin", None, "is required when mode is single")

        def prepare() -> Prepared[Address]:
            return Prepared(*self.prepare(tenant, network, mode, coin, label=label, metadata=metadata))

        return Creation(self._store, prepare, lambda made: self._remember(made, made.id), tries=1)

    def prepare(
        self,
        tenant: TenantId,
        network: Network,
        mode: Mode,
        coin: Coin | None = None,
        *,
        invoice_id: str | None = None,
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> tuple[Address, list[Change]]:
        """A new address and the changes that store it, for a transaction of the caller's. Raises as `create` does."""
        networks = self._receiving(network, mode)
        now = self._clock.now_ms()
        self._daily.demand_room(tenant, now)
        text, path = self._deriver.derive(network.realm, network.slug, self._next_index(network.realm, network.slug))
        address = Address(
            id=new_id("addr", now),
            tenant=tenant,
            network=network.id,
            address=text,
            mode=mode,
            networks=networks,
            path=path,
            created_at=now,
            coin=None if coin is None else coin.slug,
            label=label,
            metadata=metadata or {},
            invoice_id=invoice_id,
        )
        watched = Watched(
            realm=network.realm,
            family=family_key(network),
            address=form_of(self._rules, network, text),
            role="user",
            networks=networks,
            tenant=tenant,
            address_id=address.id,
            invoice_id=invoice_id,
        )
        return address, [Save(address), Save(watched)]

    def find(self, tenant: TenantId, id_or_address: str) -> Address:
        """The merchant's address by its id or by itself.

        Raises NotFound, also for another merchant's; InvalidParameter for what is neither an id nor an address of any network.
        """
        return self.read(tenant, id_or_address)[0]

    def read(self, tenant: TenantId, id_or_address: str) -> tuple[Address, Holdings]:
        """As `find`, with its ledger balances: one call to the store where this process knows the address, else two."""
        known = self._seen.get((tenant, id_or_address))
        if known is not None:
            found, *balances = self._store.get_many([(Address, {"tenant": tenant, "id": known.id}), *self._balances_of(known)])
            if found is not None and found.networks == known.networks:
                return found, _by_asset(balances)
            if found is not None:
                # A payment on another network was credited: since then it receives there, too.
                self._remember(found, id_or_address)
                return found, self.holdings_of([found])[0]
        if id_or_address.startswith("addr_"):
            return self._by_id(tenant, id_or_address, id_or_address)
        return self._by_text(tenant, id_or_address)

    def _by_id(self, tenant: TenantId, name: str, address_id: str | None) -> tuple[Address, Holdings]:
        found = None if address_id is None else self._store.get(Address, tenant=tenant, id=address_id)
        if found is None:
            raise _unknown(name)
        self._remember(found, name)
        return found, self.holdings_of([found])[0]

    def _by_text(self, tenant: TenantId, text: str) -> tuple[Address, Holdings]:
        """The balances are asked for together with whose address it is: their keys follow from the text alone."""
        realm = tenant_parts(tenant)[1]
        catalogue = self._store.catalogue(realm)
        watched: set[tuple[str, str]] = set()
        keys: _Keys = []
        for slug, network in catalogue.networks.items():
            try:
                place = form_of(self._rules, network, self._rules.normalize(network.id, text))
            except ValueError:
                continue
            watched.add((family_key(network), place))
            keys += [_balance_key(network.id, place, coin) for coin in catalogue.coins_of(slug)]
        if not watched:
            raise InvalidParameter.one("address", text[:120], "must be an address of a supported network, or an address id")
        who: _Keys = [(Watched, {"realm": realm, "family": family, "address": place}) for family, place in sorted(watched)]
        answers = self._store.get_many([*who, *keys])
        # A service wallet belongs to no tenant. Its address record is the operator's, and nobody else's id finds one.
        ids = [w.address_id for w in answers[: len(who)] if w is not None and w.tenant in (tenant, None) and w.address_id]
        found = self._store.get(Address, tenant=tenant, id=ids[0]) if ids else None
        if found is None:
            raise _unknown(text)
        self._remember(found, text)
        return found, _by_asset(answers[len(who) :])

    def _remember(self, address: Address, name: str) -> None:
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        self._seen[address.tenant, name] = address

    def _balances_of(self, address: Address) -> _Keys:
        """The keys of its balances: of the coins that there are today."""
        catalogue = self._store.catalogue(tenant_parts(address.tenant)[1])
        networks = [catalogue.networks[slug] for slug in address.networks]
        places = {network.id: form_of(self._rules, network, address.address) for network in networks}
        return [_balance_key(coin.network, places[coin.network], coin) for coin in coins_on(catalogue, address)]

    def holdings_of(self, addresses: Sequence[Address]) -> list[Holdings]:
        """The ledger balances of each address, 100 balances a call."""
        places = [self._balances_of(address) for address in addresses]
        wanted = [key for keys in places for key in keys]
        found = iter(self._store.get_many(wanted) if wanted else [])
        return [_by_asset([next(found) for _ in keys]) for keys in places]

    def change(
        self,
        tenant: TenantId,
        id_or_address: str,
        *,
        label: str | Unchanged | None = UNCHANGED,
        metadata: dict[str, Any] | Unchanged | None = UNCHANGED,
        archived: bool | Unchanged = UNCHANGED,
    ) -> tuple[Address, Holdings]:
        """Change an address's label, or archive it: hidden from lists, watched for ever. Raises NotFound, InvalidParameter."""

        def decide() -> tuple[Address, Holdings]:
            before, holdings = self.read(tenant, id_or_address)
            after = replace(
                before,
                label=before.label if label is UNCHANGED else label,
                metadata=before.metadata if metadata is UNCHANGED else metadata or {},
                archived=before.archived if archived is UNCHANGED else archived,
            )
            if after.archived and not before.archived:
                guard_archived(self._store, before)
            if after != before:
                after = replace(after, version=version_after(before))
                self._store.commit([Save(after)])
            return after, holdings

        return until_settled(decide)

    def _receiving(self, network: Network, mode: Mode) -> tuple[str, ...]:
        if mode != "cross":
            return (network.slug,)
        if network.family != "evm":
            raise BusinessRule("mode", f"cross addresses exist on EVM networks only; {network.slug} is none")
        catalogue = self._store.catalogue(network.realm)
        return tuple(n.slug for n in catalogue.networks.values() if n.family == "evm")

    def _next_index(self, realm: Realm, slug: str) -> int:
        pool = self._pool_of(slug)
        with self._lock:
            index, end = self._ranges.get((realm, pool), (0, 0))
            if index == end:
                taken = self._store.reserve_indexes(pool_name(realm, pool), INDEX_RANGE)
                if taken.left < ALARM_LEFT:
                    log.error("ALARM %s:%s has %d address indexes left, nobody raises its ceiling", realm, pool, taken.left)
                index, end = taken.first, taken.end
            self._ranges[realm, pool] = (index + 1, end)
            return index


def widest(network: Network) -> Mode:
    """The mode in which an address of `network` is watched wherever it can be paid: on every EVM network of its realm, whether
    that is active yet or not. One row is watched all the same."""
    return "cross" if network.family == "evm" else "common"


def _balance_key(network: NetworkId, place: str, coin: Coin) -> tuple[type[Any], dict[str, str]]:
    return WalletBalance, {"network": network, "address": place, "asset": coin.asset}


def _by_asset(balances: Sequence[WalletBalance | None]) -> Holdings:
    return {balance.asset: balance for balance in balances if balance is not None}


def _unknown(name: str) -> NotFound:
    return NotFound(f"No address {name[:80]}", {"address": name[:80]})
