"""The operator's grey list: one for all merchants of a realm."""

from __future__ import annotations

from typing import NoReturn

from chalicelib.domain.errors import BusinessRule, InvalidParameter, NotFound
from chalicelib.domain.ids import NetworkId, Realm, network_id, network_parts
from chalicelib.domain.screening.grey_list import GreyListEntry
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Conflict, Delete, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

_PAGE = 1000


def grey_listed(store: Store, rules: AddressRules, network: NetworkId, address: str) -> bool:
    """Whether `address` of `network` is on the list now. One read. Raises Unavailable."""
    kind, key = grey_key(rules, network, address)
    return store.get(kind, **key) is not None


def grey_key(rules: AddressRules, network: NetworkId, address: str) -> tuple[type[GreyListEntry], dict[str, str]]:
    """What to read of the list about `address` of `network`."""
    realm, slug = network_parts(network)
    return GreyListEntry, {"realm": realm, "network": slug, "address": rules.storage_form(slug, address)}


class GreyList:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock) -> None:
        self._store, self._rules, self._clock = store, rules, clock

    def entries(self, realm: Realm, network: str | None = None, most: int | None = None) -> list[GreyListEntry]:
        """The entries of the realm, or of one network, by network and address; the first `most` of them. Raises Unavailable."""
        found: list[GreyListEntry] = []
        # Sort keys begin with the network's slug and '#', and '"' is what sorts just before that.
        after = None if network is None else f'{network}"'
        while most is None or len(found) < most:
            page = self._store.page(GreyListEntry, limit=_PAGE if most is None else most - len(found), after=after, realm=realm)
            mine = [entry for entry in page.items if network in (None, entry.network)]
            found += mine
            after = page.next
            if after is None or len(mine) < len(page.items):
                break
        return found

    def add(self, realm: Realm, network: str, address: str, reason: str | None, by: str) -> GreyListEntry:
        """Put an address of `network` (a slug) on the list. `by` is the id of the operator's key.

        Raises InvalidParameter (no address of that network), BusinessRule (it is on the list already), Unavailable.
        """
        return self.adding(realm, network, address, reason, by).run()

    def adding(self, realm: Realm, network: str, address: str, reason: str | None, by: str) -> Creation[GreyListEntry]:
        """What `add` commits. Raises InvalidParameter."""
        shown, place = self._parsed(network_id(realm, network), network, address)

        def prepare() -> Prepared[GreyListEntry]:
            entry = GreyListEntry(realm, network, place, shown, self._clock.now_ms(), by, reason)
            return Prepared(entry, [Save(entry)], listed)

        def listed(conflict: Conflict) -> NoReturn:
            if isinstance(conflict.change, Save) and isinstance(conflict.change.record, GreyListEntry):
                raise BusinessRule("address", f"{shown} is on the grey list of {network} already") from conflict
            raise conflict

        return Creation(self._store, prepare, tries=1)

    def remove(self, realm: Realm, network: str, address: str) -> GreyListEntry:
        """Take an address off the list; deposits held because of it stay held. Raises InvalidParameter, NotFound, Unavailable."""
        shown, place = self._parsed(network_id(realm, network), network, address)
        key = {"realm": realm, "network": network, "address": place}
        entry = self._store.get(GreyListEntry, **key)
        if entry is None:
            raise NotFound(f"{shown} is not on the grey list of {network}", {"network": network, "address": shown})
        self._store.commit([Delete(GreyListEntry, key)])
        return entry

    def _parsed(self, full: NetworkId, network: str, address: str) -> tuple[str, str]:
        try:
            shown = self._rules.normalize(full, address)
        except ValueError as reason:
            raise InvalidParameter.one("address", address[:128], str(reason)) from None
        return shown, self._rules.storage_form(network, shown)
