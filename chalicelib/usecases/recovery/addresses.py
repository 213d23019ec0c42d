"""Restores the deposit addresses from the seed and the chain, after the store was lost (docs/runbooks.md says when).

The seed gives every address there can be; which of them were used, only the chain knows. Indexes are taken in ranges of fifty by
functions that may die, and most of them are never paid: any gap is normal. So the pool's ceiling, which is kept outside the store
(`usecases.addresses.index_ceilings`), says below which index addresses may have been given out: all of those are asked about and
watched, whatever the chain says. Behind it the search ends once `gap` indexes behind the highest used one are all unused.

Networks of accounts are asked about windows of addresses. Nodes of bitcoin and litecoin know no addresses: their blocks are read
from a height on, and compared with all those addresses.

What makes it safe:

1. *Nothing is given out meanwhile.* `close` puts every pool's count of used indexes past the last index there is, before the xpubs
   are stored; `reopen` puts it at the ceiling, above everything that any of the pool's networks was found to use, and refuses while
   one of them was not searched.
2. *All are watched again.* Used addresses are listed; unused ones below the ceiling are archived (hidden, watched for ever): they
   may have been given out and be paid tomorrow. All are the merchant's who was named: whose they were, the chain
   does not know. Records that the store has already (from a backup of its tables) stay as they are.
3. *Store, then pass.* A window's addresses are stored before the `Restore` record passes it. After a crash the window is
   searched again, and finds them there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.domain.addresses.addresses import Address, Watched, family_key, watched_key
from chalicelib.domain.addresses.index_pools import INDEXES, IndexPool, pool_name
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import NetworkId, Realm, TenantId, network_parts, new_id
from chalicelib.domain.recovery.addresses import Restore, Usage
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.addresses.index_ceilings import IndexCeilings
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Change, Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.keys import Deriver
from chalicelib.usecases.ports.readers import Usages
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.scanning.reorganisations import batch_blocks
from chalicelib.usecases.wallets.utxos import pays_from_coins

WINDOW = 500
"""Addresses asked about at once, and stored before the next ones are."""
_TOGETHER = 5
"""Addresses stored in one transaction, which is kept to ten items (`FEW_ITEMS`)."""
LABEL = "restored"

Slots = dict[str, tuple[int, str, str]]


class AddressRecovery:
    """Searches one network. `owner` gets the addresses found."""

    def __init__(self, context: NetworkContext, deriver: Deriver, owner: TenantId) -> None:
        self._context, self._network, self._reader, self._store = context, context.network, context.reader, context.store
        self._clock, self._deriver, self._owner = context.clock, deriver, owner
        self._derived: dict[str, tuple[int, str, str]] = {}
        self._reach = 0

    def begin(
        self, gap: int, margin: int, from_block: int | None = None, known: int = -1, below: int = 0, since: int | None = None
    ) -> Restore:
        """The search as it stands, or a new one where there is none or the last one came to its end (a larger gap, later blocks).

        `known`: the highest index that networks which share its indexes were found to use. `below`: all under this index are
        asked about and watched. `since`: a search from before a point-in-time restore (`PaymentSwitch.put_back`) counts for
        nothing.

        Raises BusinessRule: `from_block` is needed where blocks are searched. Unavailable.
        """
        before = self._store.get(Restore, network=self._network.id)
        if before is not None and not before.never_used and before.started_at >= (since or 0):
            going_on = before.knowing(known)
            # Blocks that were looked through already were compared with no address above the ceiling of then.
            if not going_on.done and (before.next_block is None or below <= before.below):
                return replace(going_on, below=max(before.below, below))
        blocks = pays_from_coins(self._network)
        if blocks and from_block is None:
            raise BusinessRule("from_block", f"nodes of {self._network.slug} know no addresses: say from which block on to look")
        made = Restore(self._network.id, gap, margin, self._clock.now_ms(), known=known, below=below)
        if blocks:
            made = replace(made, from_block=from_block, next_block=from_block, to_block=self._reader.tip())
        made = replace(made, version=version_after(before))
        self._store.commit([Save(made)])
        return made

    def steps(self, restore: Restore) -> Iterator[Restore]:
        """Go on to the end; yields the record after each stored step. Raises Unavailable, Conflict (another worker is at it)."""
        while not restore.searched:
            restore = self._saved(self._window(restore) if restore.next_block is None else self._blocks(restore))
            yield restore
        while not restore.done:
            restore = self._saved(self._watch_on(restore))
            yield restore

    def _saved(self, restore: Restore) -> Restore:
        after = next_version(restore)
        self._store.commit([Save(after)])
        return after

    def _window(self, restore: Restore) -> Restore:
        """Ask about the next indexes."""
        end = min(restore.next_index + WINDOW, restore.end, INDEXES)
        slots = self._slots(restore.next_index, end)
        told = self._asked(list(slots))
        used: dict[str, Usage] = {place: usage for place, usage in zip(slots, told, strict=True) if usage != "unused"}
        self._keep({place: slots[place] for place in used}, used)
        return replace(
            restore,
            next_index=end,
            highest=max([restore.highest, *(slots[place][0] for place in used)]),
            found=restore.found + len(used),
            holding=restore.holding + sum(usage == "holding" for usage in used.values()),
        )

    def _asked(self, places: Sequence[str]) -> list[Usage]:
        if not isinstance(self._reader, Usages):
            raise LookupError(f"nodes of {self._network.id} know no addresses")
        told = self._reader.usage(places, self._contracts())
        if len(told) != len(places):
            raise Unavailable(f"{self._network.id}: the node does not tell of all addresses that it was asked about")
        return told

    def _blocks(self, restore: Restore) -> Restore:
        """Look through the next blocks. All addresses below the ceiling, and `gap` behind the highest found one, are known before a
        block is compared."""
        if restore.next_block is None or restore.to_block is None:
            raise LookupError(f"the search on {restore.network} is not one through blocks")
        last = min(restore.to_block, restore.next_block + batch_blocks(self._network) - 1)
        blocks = self._reader.blocks(restore.next_block, last, ())
        if not blocks:
            raise Unavailable(f"the node of {restore.network} does not have the blocks {restore.next_block} to {last}")
        paid = {t.recipient: block.number for block in reversed(blocks) for t in block.transfers}
        highest = restore.highest
        while True:
            known = self._up_to(max(restore.below, highest + restore.gap + 1))
            hits = {place: known[place] for place in paid.keys() & known.keys()}
            reached = max([highest, *(index for index, _, _ in hits.values())])
            if reached == highest:
                break
            highest = reached
        fresh = self._keep(hits, dict.fromkeys(hits, "used"))
        first = restore.first_block
        if hits and first is None:
            first = min(paid[place] for place in hits)
        return replace(
            restore, next_block=restore.next_block + len(blocks), highest=highest, found=restore.found + fresh, first_block=first
        )

    def _up_to(self, end: int) -> Slots:
        """All addresses below index `end`, by their storage form."""
        if end > self._reach:
            self._derived |= self._slots(self._reach, min(end, INDEXES))
            self._reach = end
        return self._derived

    def _watch_on(self, restore: Restore) -> Restore:
        """Watch those that nobody has paid yet. They are archived: no list is filled with them, and funds arriving still count."""
        end = min(restore.watched + WINDOW, restore.first_free, INDEXES)
        slots = self._slots(restore.watched, end)
        self._keep(slots, dict.fromkeys(slots, "unused"))
        return replace(restore, watched=max(end, restore.watched + 1) if end == INDEXES else end)

    def _keep(self, slots: Slots, usages: dict[str, Usage]) -> int:
        """Store those addresses that the store does not know; how many these were. Twice is once: an address is watched once."""
        places = list(slots)
        known: list[Any] = []
        for start in range(0, len(places), 100):
            known += self._store.get_many([watched_key(self._network, place) for place in places[start : start + 100]])
        absent = [place for place, watched in zip(places, known, strict=True) if watched is None]
        for place, watched in zip(places, known, strict=True):
            if watched is not None and usages[place] != "unused":
                self._list(watched, usages[place])
        made = [self._records(place, *slots[place], usages[place]) for place in absent]
        for start in range(0, len(made), _TOGETHER):
            some = made[start : start + _TOGETHER]
            try:
                self._store.commit([change for changes in some for change in changes])
            except Conflict:
                self._one_by_one(some)
        return len(made)

    def _list(self, watched: Watched, usage: Usage) -> None:
        """An address that another network of the same addresses (EVM) had never used, and that this one has: listed from now on."""
        if watched.tenant != self._owner or watched.address_id is None:
            return
        before = self._store.get(Address, tenant=self._owner, id=watched.address_id)
        if before is not None and before.archived and before.metadata.get("restored") == "unused":
            metadata = {**before.metadata, "restored": usage}
            self._store.commit([Save(replace(next_version(before), archived=False, metadata=metadata))])

    def _one_by_one(self, many: Iterable[Sequence[Change]]) -> None:
        """Some of them came to be stored meanwhile (another network of the same addresses): the others still are not."""
        for changes in many:
            try:
                self._store.commit(changes)
            except Conflict as conflict:
                if conflict.change is None:
                    raise

    def _records(self, place: str, index: int, text: str, path: str, usage: Usage) -> list[Change]:
        """An EVM address is restored for all EVM networks: where it may be paid, only who gave it out knew."""
        now = self._clock.now_ms()
        network, evm = self._network, self._network.family == "evm"
        networks: tuple[str, ...] = (network.slug,)
        if evm:
            networks = tuple(n.slug for n in self._store.catalogue(network.realm).networks.values() if n.family == "evm")
        address = Address(
            id=new_id("addr", now),
            tenant=self._owner,
            network=network.id,
            address=text,
            mode="cross" if evm else "common",
            networks=networks,
            path=path,
            created_at=now,
            label=LABEL,
            metadata={"restored": usage, "index": index},
            archived=usage == "unused",
        )
        watched = Watched(network.realm, family_key(network), place, "user", networks, self._owner, address.id)
        return [Save(address), Save(watched)]

    def _slots(self, first: int, end: int) -> Slots:
        """Addresses `first` to before `end`: by storage form their index, spelling and path, in order."""
        found: Slots = {}
        for index in range(first, end):
            text, path = self._deriver.derive(self._network.realm, self._network.slug, index)
            found[self._context.form(text)] = index, text, path
        return found

    def _contracts(self) -> Collection[str]:
        """Every token of the network that was ever in the catalogue."""
        return list(self._context.tokens())


class Pools:
    """The index pools, which are closed while addresses are restored."""

    def __init__(self, store: Store, ceilings: IndexCeilings, pool_of: Callable[[str], str]) -> None:
        self._store, self._ceilings, self._pool_of = store, ceilings, pool_of

    def close(self, realm: Realm, pools: Sequence[str]) -> None:
        """Close `pools`, so that they give out no index. Raises BusinessRule where an address was given out before; Unavailable,
        Conflict."""
        for pool in pools:
            name = pool_name(realm, pool)
            before = self._store.index_pool(name)
            found = before or IndexPool()
            if found.closed:
                continue
            if found.given_out:
                raise BusinessRule(
                    "store", f"{found.given_out} address indexes of {name} were given out here: this is no empty store"
                )
            self._store.change_index_pool(name, before, replace(found, count=INDEXES))

    def closed(self, realm: Realm, pool: str) -> bool:
        found = self._store.index_pool(pool_name(realm, pool))
        return found is not None and found.closed

    def below(self, realm: Realm, pool: str, since: int | None) -> int | None:
        """Below which index addresses of a pool may have been given out; None where nothing that outlives the tables says so.
        `since`: when a point-in-time restore became known, if there was one. Raises Unavailable."""
        found = self._store.index_pool(pool_name(realm, pool))
        if found is not None and since is not None and found.reopened >= since and not found.closed:
            return found.begins
        return self._ceilings.recorded(realm, pool)

    def missing(self, realm: Realm, pool: str) -> list[str]:
        """The networks of a pool whose search has not ended: behind the highest index found on any of them, and as far as any
        was to be searched."""
        found = self._restores(realm, pool)
        known = self.last_used(realm, pool)
        below = max([0, *(each.below for each in found.values() if each is not None)])
        return [slug for slug, each in found.items() if each is None or not _searched(each, known, below)]

    def unwatched(self, network: NetworkId, since: int, begins: int) -> bool:
        """Whether addresses of a network below index `begins` may not be watched: no search that began after `since` has ended."""
        realm, slug = network_parts(network)
        found = self._store.get(Restore, network=network)
        known = self.last_used(realm, self._pool_of(slug))
        return found is None or found.started_at < since or not _searched(found, known, begins)

    def last_used(self, realm: Realm, pool: str) -> int:
        """The highest index that any network of a pool was found to use, -1 for none."""
        return max([-1, *(found.highest for found in self._restores(realm, pool).values() if found is not None)])

    def never_used(self, network: NetworkId, now_ms: int) -> None:
        """Note that no address was ever given out for a network: the operator's word. One that was searched stays as it is."""
        before = self._store.get(Restore, network=network)
        if before is None or before.never_used:
            version = version_after(before)
            self._store.commit([Save(Restore(network, 0, 0, now_ms, never_used=True, version=version))])

    def reopen(self, realm: Realm, pool: str) -> int:
        """Let a pool go on above every index that may have been given out; its next index. It never goes back. Raises
        BusinessRule where one of its networks was not searched; Unavailable."""
        if missing := self.missing(realm, pool):
            raise BusinessRule("network", f"not searched to the end yet: {', '.join(missing)}")
        free = max([0, *(found.first_free for found in self._restores(realm, pool).values() if found is not None)])
        return self._ceilings.reopen(realm, pool, free)

    def _restores(self, realm: Realm, pool: str) -> dict[str, Restore | None]:
        networks = [n for n in self._store.catalogue(realm).networks.values() if self._pool_of(n.slug) == pool]
        wanted: list[tuple[type[Any], dict[str, str]]] = [(Restore, {"network": n.id}) for n in networks]
        return {n.slug: found for n, found in zip(networks, self._store.get_many(wanted), strict=True)}


def _searched(restore: Restore, known: int, below: int) -> bool:
    return restore.never_used or (restore.knowing(known).done and restore.below >= below)
