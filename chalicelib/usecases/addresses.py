"""Deposit addresses: derived from public keys, watched from the moment they are given out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from chalicelib.domain.addresses import Address, Mode, Watched
from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.errors import BusinessRule, InvalidParameter, NotFound
from chalicelib.domain.ids import Realm, TenantId, new_id, tenant_parts
from chalicelib.usecases.changes import Change, Save
from chalicelib.usecases.ports import AddressRules, Clock, Deriver, Store

Also = Callable[[Any], Sequence[Change]]
"""More changes for the same transaction, given the new record: the caller's stored answer, for instance."""

INDEX_RANGE = 50
"""Indexes taken out of a pool at once: one write for fifty addresses, and a gap of at most fifty when a function dies."""


def nothing_more(_: object) -> Sequence[Change]:
    return ()


class Addresses:
    """Makes and finds deposit addresses of one deployment. Needs no private key and can not reach one."""

    def __init__(self, store: Store, deriver: Deriver, rules: AddressRules, clock: Clock, pool_of: Callable[[str], str]) -> None:
        self._store, self._deriver, self._rules, self._clock, self._pool_of = store, deriver, rules, clock, pool_of
        self._ranges: dict[tuple[Realm, str], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def create(
        self,
        tenant: TenantId,
        network: Network,
        coin: Coin | None,
        mode: Mode,
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
        also: Also = nothing_more,
    ) -> Address:
        """A new deposit address. Raises InvalidParameter (single without a coin), BusinessRule (cross off EVM), Unavailable."""
        if mode == "single" and coin is None:
            raise InvalidParameter.one("coin", None, "is required when mode is single")
        address, changes = self.prepare(tenant, network, mode, coin, label=label, metadata=metadata)
        self._store.commit([*changes, *also(address)])
        return address

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
        """A new address and the changes that store it, for a transaction of the caller's."""
        networks = self._receiving(network, mode)
        now = self._clock.now_ms()
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
            coin=coin.slug if coin is not None and mode == "single" else None,
            label=label,
            metadata=metadata or {},
            invoice_id=invoice_id,
        )
        watched = Watched(
            realm=network.realm,
            family=family_key(network),
            address=self._rules.storage_form(network.slug, text),
            role="user",
            networks=networks,
            tenant=tenant,
            address_id=address.id,
            invoice_id=invoice_id,
        )
        return address, [Save(address), Save(watched)]

    def find(self, tenant: TenantId, network_slugs: Sequence[str], id_or_address: str) -> Address:
        """The merchant's address by its id or by itself. Raises NotFound, also for another merchant's."""
        address_id: str | None = id_or_address
        if not id_or_address.startswith("addr_"):
            address_id = self._id_of(tenant, network_slugs, id_or_address)
        found = None if address_id is None else self._store.get(Address, tenant=tenant, id=address_id)
        if found is None:
            raise NotFound(f"No address {id_or_address[:80]}", {"address": id_or_address[:80]})
        return found

    def _id_of(self, tenant: TenantId, network_slugs: Sequence[str], text: str) -> str | None:
        realm = tenant_parts(tenant)[1]
        catalogue = self._store.catalogue(realm)
        wanted: set[tuple[str, str]] = set()
        for slug in network_slugs:
            network = catalogue.networks[slug]
            try:
                spelled = self._rules.storage_form(slug, self._rules.normalize(slug, text))
            except ValueError:
                continue
            wanted.add((family_key(network), spelled))
        keys: list[tuple[type[Any], dict[str, str]]] = [
            (Watched, {"realm": realm, "family": family, "address": spelled}) for family, spelled in sorted(wanted)
        ]
        if not keys:
            raise InvalidParameter.one("address", text[:120], "must be an address of a supported network, or an address id")
        for watched in self._store.get_many(keys):
            if watched is not None and watched.tenant == tenant:
                found: str | None = watched.address_id
                return found
        return None

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
                index = self._store.reserve_indexes(f"{realm}:{pool}", INDEX_RANGE)
                end = index + INDEX_RANGE
            self._ranges[realm, pool] = (index + 1, end)
            return index


def family_key(network: Network) -> str:
    """What addresses of a network are told apart by: EVM networks share theirs, the others have each their own."""
    return "evm" if network.family == "evm" else network.slug


def watched_key(network: Network, storage_form: str) -> tuple[type[Any], dict[str, str]]:
    return Watched, {"realm": network.realm, "family": family_key(network), "address": storage_form}
