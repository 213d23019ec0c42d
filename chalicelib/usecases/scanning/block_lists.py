"""Lists of a block's deposits, stored under the block's hash before any of the deposits.

A stranger decides how many there are, and an item of the table ends at 400 KB: the list is in parts, filled one after the other.
The part behind a full one may exist, the one behind any other does not. The first part lies where the whole list lay before
there were parts, and may be longer than they are now. With it goes a row that tells the block by its height (`DepositBlock`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from chalicelib.domain.chain import BlockDeposits, DepositBlock
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.store import Store

MOST = 2_000
"""Ids in one part, each of some thirty bytes."""


def list_deposits(store: Store, network: NetworkId, number: int, block_hash: str, ids: Sequence[str]) -> None:
    """Put `ids` on the list of the block `number`, unless they are on it. Raises Conflict, Unavailable."""
    key = {"network": str(network), "hash": block_hash}

    def decide() -> None:
        first, row = store.get_many([(BlockDeposits, key), (DepositBlock, {**key, "number": str(number)})])
        listed = [] if first is None else [first, *_parts_behind(store, network, block_hash, first)]
        known = {deposit for part in listed for deposit in part.deposits}
        missing = [deposit for deposit in dict.fromkeys(ids) if deposit not in known]
        changes: list[Change] = [] if row is not None else [Save(DepositBlock(network, number, block_hash))]
        if missing and listed and len(listed[-1].deposits) < MOST:
            last = listed[-1]
            room = MOST - len(last.deposits)
            changes.append(Save(replace(next_version(last), deposits=(*last.deposits, *missing[:room]))))
            missing = missing[room:]
        for place, start in enumerate(range(0, len(missing), MOST), len(listed)):
            if start:
                store.commit(changes)
                changes = []
            changes.append(Save(BlockDeposits(network, block_hash, tuple(missing[start : start + MOST]), place)))
        if changes:
            store.commit(changes)

    until_settled(decide)


def deposits_of(store: Store, network: NetworkId, hashes: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The list parts of each of `hashes` that has a list, part after part. Raises Unavailable."""
    for first in store.get_many([(BlockDeposits, {"network": str(network), "hash": hash_}) for hash_ in hashes]):
        if first is not None:
            yield first.hash, first.deposits
            for part in _parts_behind(store, network, first.hash, first):
                yield part.hash, part.deposits


def _parts_behind(store: Store, network: NetworkId, block_hash: str, last: BlockDeposits | None) -> list[BlockDeposits]:
    """The parts behind `last`, all of them where that is None."""
    found: list[BlockDeposits] = []
    while last is None or len(last.deposits) >= MOST:
        last = store.get(BlockDeposits, network=network, hash=block_hash, part=str(0 if last is None else last.part + 1))
        if last is None:
            break
        found.append(last)
    return found
