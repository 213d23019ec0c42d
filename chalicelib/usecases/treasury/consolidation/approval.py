"""Operators' view of consolidations: a `Collection` of each that needs their approval (approveThreshold), and one of the UTXOs
that wait for another reason. The consolidation that ends the waiting takes those over.

It stands at the hot wallet's address, since its coins are at many; its one sweep is the coin move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId, asset_parts
from chalicelib.domain.treasury.collections import Collecting, Collection, Ending, WaitReason, collection_work, ended
from chalicelib.domain.treasury.consolidations import CoinMove, ConsolidationQueue, coin_move_work
from chalicelib.domain.treasury.moves import operators
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.treasury.collection.open_here import open_at
from chalicelib.usecases.treasury.consolidation.parts import freed


class Why(NamedTuple):
    """What coins wait for."""

    reason: WaitReason
    detail: str


class Consolidations:
    """Of one network. Every method raises Unavailable; what it gives is to be committed with what caused it."""

    def __init__(self, store: Store, rules: AddressRules, network: Network) -> None:
        self._store, self._rules, self._network = store, rules, network

    def pressed(self, queue: ConsolidationQueue) -> bool:
        """Whether an operator wants the coins that wait looked at now (`retry`)."""
        shown = self._shown(queue)
        return shown is not None and shown.state == "planned"

    def waits(
        self, queue: ConsolidationQueue, asset: AssetId, hot: str, why: Why, look_at: int
    ) -> tuple[ConsolidationQueue, list[Change]]:
        """The queue with the collection that shows what waits, and for what; `look_at` in milliseconds since 1970."""
        now, before = queue.looked_at, self._shown(queue)
        changes: list[Change] = []
        if before is None:
            before, changes = self._begun(asset, hot, now)
        old = None if changes else collection_work(before)
        after = replace(
            before, state="waiting", reason=why.reason, detail=why.detail[:300], amount=queue.waiting, destination=hot,
            look_at=look_at, updated_at=now, version=before.version if changes else version_after(before),
        )  # fmt: skip
        works = _again(old, after)
        return replace(queue, shown=after.id), [Save(after), *changes, *works]

    def nothing_waits(self, queue: ConsolidationQueue) -> tuple[ConsolidationQueue, list[Change]]:
        """The queue without a collection: there is nothing any more."""
        shown = self._shown(queue)
        queue = replace(queue, shown=None)
        return queue, [] if shown is None else self._over(shown, ended(shown, "dropped", queue.looked_at))

    def taken_up(self, queue: ConsolidationQueue, move: CoinMove, ask: bool) -> tuple[ConsolidationQueue, CoinMove, list[Change]]:
        """The queue and `move`, which takes coins that waited; its collection, where one was shown or an operator is asked."""
        before = self._shown(queue)
        changes: list[Change] = []
        queue = replace(queue, shown=None)
        if before is None and not ask:
            return queue.holding(move.id), move, []
        new = before is None
        if before is None:
            before, changes = self._begun(move.asset, move.recipient, move.created_at)
        old = None if new else collection_work(before)
        noted = replace(
            before, amount=move.total, reason=None, detail=None, destination=move.recipient, updated_at=move.created_at,
            fee=0 if move.newest is None else move.newest.fee, version=before.version if new else version_after(before),
        )  # fmt: skip
        if not ask:
            after = replace(noted, state="sweep_sent", sweeps=(move.id,))
            return queue.holding(move.id), replace(move, owner=after.id), [Save(after), *changes, *_again(old, after)]
        places = len({coin.address for coin in move.inputs})
        detail = f"{len(move.inputs)} coins of {places} addresses, in one transaction"
        after = replace(noted, state="waits_for_approval", detail=detail)
        move = replace(move, state="waiting", newest=None, reason="approval", owner=after.id)
        return replace(queue, asked=(*queue.asked, move.id)), move, [Save(after), *changes, *_again(old, after)]

    def of(self, move: CoinMove) -> Collection | None:
        """The collection of a move; None where it has none."""
        return None if move.owner == move.id or move.wallet is not None else self._store.get(Collection, id=move.owner)

    def closed(self, move: CoinMove, how: Ending, now: int) -> list[Change]:
        """The changes that end the open collection of a move that is at its end."""
        collection = self.of(move)
        if collection is None or collection.ended:
            return []
        after = ended(collection, how, now)
        attempt = move.settled_attempt()
        if attempt is not None:
            after = replace(after, txid=attempt.txid, arrived=attempt.amount, fee=attempt.fee)
        return self._over(collection, after)

    def dropped(self, move: CoinMove, why: str, now: int) -> list[Change]:
        """What ends a move that is not signed: its coins can be moved anew. At most six items."""
        after = replace(move, state="dropped", reason=why[:300]).next(now)
        over = self.closed(after, "dropped", now)
        return [Save(after), Close(coin_move_work(move)), *freed(self._store, self._network, move), *over]

    def _shown(self, queue: ConsolidationQueue) -> Collection | None:
        return None if queue.shown is None else self._store.get(Collection, id=queue.shown)

    def _begun(self, asset: AssetId, address: str, now: int) -> tuple[Collection, list[Change]]:
        record = self._collecting(address)
        # Several at one address: one that nobody has decided on keeps no other coins waiting.
        id, record = record.begun(f"{asset_parts(asset)[1]}#{record.number + 1}")
        owner = operators(self._network.realm)
        made = Collection(id, self._network.id, asset, address, "", owner, 0, created_at=now, updated_at=now, look_at=now)
        return made, [Save(record)]

    def _over(self, before: Collection, after: Collection) -> list[Change]:
        # Where its obligation lies follows from the state before.
        return [Save(after), Save(self._collecting(after.address).past(after.id)), Close(collection_work(before))]

    def _collecting(self, address: str) -> Collecting:
        return open_at(self._store, self._rules, self._network, address)


def sent(collection: Collection, move: CoinMove, now: int) -> Save:
    """The collection of a move that goes on."""
    fee = 0 if move.newest is None else move.newest.fee
    after = replace(next_version(collection), state="sweep_sent", sweeps=(move.id,), fee=fee, updated_at=now)
    return Save(after)


def _again(old: object, after: Collection) -> list[Change]:
    """The changes that put the obligation of a collection where it is looked for; `old` is the one that is open."""
    new = collection_work(after)
    return [] if old == new else [Open(new), *([] if old is None else [Close(old)])]  # type: ignore[arg-type]
