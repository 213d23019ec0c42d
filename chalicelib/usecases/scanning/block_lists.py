"""Lists of a block's deposits, stored under the block's hash before any of the deposits, or in one transaction with all of them.

Each deposit's commits rest on its own part of the list (`AtPart`). A part is small, since a condition costs what its item costs,
and few deposits share one, since DynamoDB refuses transactions that meet at an item. The first part says how many there are, and
is saved with every change of the list: of two writers, or of a writer and a reorganisation, one reads again.

A list is started, gone on with and taken up at the epoch of its scan alone. A reorganisation raises the epoch, then drops the lists
of all blocks above its fork, passed or not: the first part, then the others. Only then it orphans what they list. What is
committed on a part before, the orphaning finds; after that nothing is committed on it. The scan that finds a block again takes its
parts up: its epoch is that of the reorganisation or a later one, and scans from before have too low an epoch for them.

A version without epochs put up to 2,000 deposits in a part and counted no parts: they are read one after the other. While its
functions still run, they leave out epoch and count, and drop nothing: `Reorganisations.catch_up` does.

With a list, or before it, goes a row that tells the block by its height (`DepositBlock`). A transaction that begins a list with
its deposits (`to_begin`) rests on the epoch as any change of a list does: before the epoch is raised it is all there, and the
reorganisation finds the list by the row; after that nothing of it is stored. A row without a list tells of no deposit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from chalicelib.domain.chain import Block, BlockDeposits, DepositBlock
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.deposits import groups
from chalicelib.usecases.ports.changes import MOST_ITEMS, AtEpoch, AtPart, Change, Conflict, Save
from chalicelib.usecases.ports.store import Store

MOST = groups.MOST
"""Ids in one part, as many as a group of payments has, each of some thirty bytes: with its keys below the kilobyte of a write
unit."""


def list_deposits(store: Store, network: NetworkId, block: Block, ids: Sequence[str], epoch: int) -> Mapping[str, int]:
    """Put `ids` on the list of `block`, which was read at `epoch`, unless they are on it; the part of each id on the list.

    Raises Conflict where a reorganisation has dropped the block since (`AtPart`), or was followed before a change of the list
    (`AtEpoch`), Unavailable.
    """
    key = {"network": str(network), "hash": block.hash}

    def decide() -> Mapping[str, int]:
        first, row = store.get_many([(BlockDeposits, key), (DepositBlock, {**key, "number": str(block.number)})])
        if first is not None and first.epoch > epoch:
            raise Conflict(AtPart(network, block.hash, 0, epoch))
        stored = _parts(store, first)
        listed = _listed(stored, network, block.hash, ids, epoch)
        changes: list[Change] = [AtEpoch(network, epoch)]
        if row is None:
            changes.append(Save(DepositBlock(network, block.number, block.hash)))
        if any(part is not known for part, known in zip_longest(listed, stored)):
            _save(store, stored, listed, changes)
        elif row is None:
            store.commit(changes)
        return {deposit: part.part for part in listed for deposit in part.deposits}

    return until_settled(decide)


def to_begin(store: Store, network: NetworkId, block: Block, ids: Sequence[str], epoch: int) -> Sequence[Change] | None:
    """The changes with which the transaction that records the deposits `ids`, all that `block` has for us, begins its list, as it
    was read at `epoch`. None where somebody else has started it, or does, where a deposit is known, and where one part has no room.

    The block's row by height is stored by then. Raises Unavailable.
    """
    if len(ids) > MOST:
        return None
    key = {"network": str(network), "hash": block.hash}
    deposits: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": id_}) for id_ in ids]
    row, first, *known = each_of(store, [(DepositBlock, {**key, "number": str(block.number)}), (BlockDeposits, key), *deposits])
    if first is not None or any(each is not None for each in known):
        return None
    if row is None:
        try:
            store.commit([Save(DepositBlock(network, block.number, block.hash))])  # by itself: half of what it costs with others
        except Conflict:
            return None
    return [AtEpoch(network, epoch), Save(BlockDeposits(network, block.hash, tuple(ids), epoch=epoch, parts=1))]


def drop_list(store: Store, network: NetworkId, block_hash: str, upto: int, epoch: int) -> None:
    """Drop the list of a block that fell out, if it has one, unless a scan has started it or taken it up after epoch `upto`.

    From then on nothing is committed on it at an epoch before `epoch`. Done twice, or by two at once, it is done once. Raises
    Conflict, Unavailable.
    """

    def decide() -> None:
        first = store.get(BlockDeposits, network=network, hash=block_hash)
        if first is None or (first.epoch > upto and not first.dropped):
            return
        if not first.dropped or first.epoch < epoch:
            first = replace(next_version(first), epoch=epoch, dropped=True)
            store.commit([Save(first)])
        # Read after that: a writer of another part saves the first one with it.
        standing = [part for part in _parts(store, first)[1:] if not part.dropped]
        for some in _batches(standing, MOST_ITEMS):
            store.commit([Save(replace(next_version(part), epoch=epoch, dropped=True)) for part in some])

    until_settled(decide)


def deposits_of(store: Store, network: NetworkId, hashes: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The list parts of each of `hashes` that has a list, part after part. Raises Unavailable."""
    for first in store.get_many([(BlockDeposits, {"network": str(network), "hash": hash_}) for hash_ in hashes]):
        for part in _parts(store, first):
            yield part.hash, part.deposits


def _listed(
    stored: Sequence[BlockDeposits], network: NetworkId, block_hash: str, ids: Sequence[str], epoch: int
) -> list[BlockDeposits]:
    """The list with `ids`: the parts as they are stored where they stay so, and the next version of the others."""
    known = {deposit: part.part for part in stored for deposit in part.deposits}
    touched = {0, *(known[deposit] for deposit in ids if deposit in known)}
    missing = [deposit for deposit in dict.fromkeys(ids) if deposit not in known]
    if missing and stored and (room := MOST - len(stored[-1].deposits)) > 0:
        added, missing = missing[:room], missing[room:]
        touched.add(stored[-1].part)
    else:
        added = []
    listed = []
    for part in stored:
        after = replace(part, epoch=epoch, dropped=False) if part.dropped and part.part in touched else part
        if added and part is stored[-1]:
            after = replace(after, deposits=(*part.deposits, *added))
        listed.append(part if after is part else next_version(after))
    for start in range(0, len(missing), MOST):
        listed.append(BlockDeposits(network, block_hash, tuple(missing[start : start + MOST]), len(listed), epoch))
    return listed


def _save(store: Store, stored: Sequence[BlockDeposits], listed: Sequence[BlockDeposits], changes: Sequence[Change]) -> None:
    """Save the parts of `listed` that are not as `stored`, and `changes` with the first of them. The others rest on the list's
    first part: what drops it changes its version."""
    changed = [part for part, known in zip_longest(listed, stored) if part is not known and part.part]
    first = listed[0] if not stored or listed[0] is not stored[0] else next_version(stored[0])
    count = max(1, len(stored))
    for some in _batches(changed, MOST_ITEMS - 3) or [[]]:
        count = max(count, *(part.part + 1 for part in some)) if some else count
        store.commit([*changes, Save(replace(first, parts=count)), *map(Save, some)])
        first, changes = next_version(first), ()


def _batches(parts: Sequence[BlockDeposits], most: int) -> list[Sequence[BlockDeposits]]:
    return [parts[start : start + most] for start in range(0, len(parts), most)]


def _parts(store: Store, first: BlockDeposits | None) -> list[BlockDeposits]:
    """The parts of the list that begins with `first`; none where that is None."""
    if first is None:
        return []
    key = {"network": str(first.network), "hash": first.hash}
    if first.parts is not None:
        behind = [(BlockDeposits, {**key, "part": str(part)}) for part in range(1, first.parts)]
        return [first, *(store.get_many(behind) if behind else [])]
    found = [first]
    while (part := store.get(BlockDeposits, **key, part=str(len(found)))) is not None:
        found.append(part)
    return found
