"""What a block's list says of payments that go to the archive leaves with them, and with the last of them the list itself.

Each takes its deposits off their parts of the list, in its own transaction, on the versions that were read: of two payments that
share a part, or of a payment and a scan, one reads again. An empty part is removed once it is the last one, since the first part
counts them, where there is room at once, otherwise behind it; the first one once all are, and with it the block's row by height.
What is listed and is not archived, such as a deposit to a wallet of the operator's, keeps the part that it is on, and the row.

Who reads these rows does without them:

* The crediting of a payment rests on its part (`AtPart`) until it is confirmed; what is archived is.
* A reorganisation orphans what the lists of its blocks name: it goes as deep as the cursor remembers, and nothing of those blocks
  leaves.
* `resume` takes the highest block with deposits that the chain still has for the one behind which all is to be scanned again.
  Before a row goes, `ArchivedBlock` says how high the rows that went may have been (`noted`): it stands for all of them.
* A scan that meets the block again finds its deposits in the archive, and lists none of them (`Recorder`). One that it did not
  know begins a list, as in a block that had none.

These rows stay:

* Those of a block that the cursor remembers: on a chain that few use it may be old enough.
* A list that was dropped, whose block fell out: what it listed stands elsewhere, or is orphaned.
* One of a version that counted no parts, or a deposit of a version that knew none.
* Those of a payment whose transaction has no room for what its own parts change; empty parts that a run left which died before
  it came to them (`tidy`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.domain.chain import ArchivedBlock, BlockDeposits, Cursor, DepositBlock
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.ports.changes import Change, Delete, Remove, Save
from chalicelib.usecases.ports.store import Store

TAIL = 50
"""Parts at the end of a list that are looked at, and removed, at a time."""


@dataclass(frozen=True, slots=True)
class BlockRows:
    """What leaving deposits change of the rows of one block. `last`: nothing is left of them. `own` are the changes of the parts
    that the deposits are on, where there is no room for more: `tidy` does the rest."""

    block: DepositBlock
    changes: tuple[Change, ...]
    last: bool
    own: tuple[Change, ...] = ()


def leaving(store: Store, deposits: Sequence[Deposit]) -> list[BlockRows]:
    """For each block that has some of `deposits`, which leave together, but for those that a reorganisation may still reach. One
    read, a second one for lists of several parts. Raises Unavailable."""
    ids: dict[DepositBlock, dict[str, int]] = defaultdict(dict)
    for deposit in deposits:
        if deposit.status == "confirmed" and deposit.block_hash is not None and deposit.part is not None:
            ids[DepositBlock(deposit.network, *deposit.block)][deposit.id] = deposit.part
    if not ids:
        return []
    networks = sorted({str(block.network) for block in ids})
    wanted: list[tuple[type[Any], dict[str, str]]] = [(Cursor, {"network": network}) for network in networks]
    read = store.get_many([*wanted, *((BlockDeposits, _key(block)) for block in ids)])
    oldest = {c.network: min(int(number) for number in c.recent) for c in read[: len(networks)] if c is not None and c.recent}
    found = []
    for block, first in zip(ids, read[len(networks) :], strict=True):
        if block.number >= oldest.get(block.network, 0):
            continue
        if first is not None and not first.dropped and first.parts is not None:
            found.append(_without(block, _parts(store, first, ids[block].values()), ids[block], first.parts))
    return [rows for rows in found if rows.changes]


def noted(store: Store, blocks: Iterable[DepositBlock]) -> None:
    """Note the highest of `blocks` of each network, whose rows are about to leave. One read, and a write where it is higher than
    any before. Raises Conflict, Unavailable."""
    highest: dict[NetworkId, DepositBlock] = {}
    for block in sorted(blocks, key=lambda block: block.number):
        highest[block.network] = block
    known = store.get_many([(ArchivedBlock, {"network": str(network)}) for network in highest]) if highest else []
    for block, before in zip(highest.values(), known, strict=True):
        if before is None or before.number < block.number:
            store.commit([Save(ArchivedBlock(block.network, block.number, block.hash, version_after(before)))])


def tidy(store: Store, block: DepositBlock) -> None:
    """Remove the empty parts at the end of a block's list, and with the last of them the list, by themselves. Dying in between
    leaves rows that say nothing. Raises Conflict, Unavailable."""
    while True:
        first = store.get(BlockDeposits, **_key(block))
        if first is None or first.dropped or first.parts is None:
            return
        rows = _without(block, _parts(store, first, ()), {}, first.parts)
        if not rows.changes:
            return
        noted(store, [block] if rows.last else [])
        store.commit(rows.changes)


def _parts(store: Store, first: BlockDeposits, own: Iterable[int]) -> dict[int, BlockDeposits]:
    """The list's first part, its last ones, and those that have the deposits, by their numbers."""
    count = first.parts or 1
    wanted = sorted({*range(max(1, count - TAIL), count), *own} - {0})
    key = {"network": str(first.network), "hash": first.hash}
    read = store.get_many([(BlockDeposits, {**key, "part": str(part)}) for part in wanted]) if wanted else []
    return {0: first} | {part.part: part for part in read if part is not None and not part.dropped}


def _without(block: DepositBlock, parts: Mapping[int, BlockDeposits], ids: Mapping[str, int], count: int) -> BlockRows:
    left = {number: tuple(id for id in part.deposits if id not in ids) for number, part in parts.items()}
    keep = count
    while keep > 1 and left.get(keep - 1) == ():
        keep -= 1
    gone: list[Change] = [Remove(parts[number]) for number in range(keep, count)]
    if keep == 1 and not left[0]:
        row = Delete(DepositBlock, {"network": str(block.network), "number": str(block.number), "hash": block.hash})
        return BlockRows(block, (Remove(parts[0]), *gone, row), last=True, own=_taken_off(parts, left))
    after = {
        number: replace(part, deposits=left[number], parts=part.parts if number else keep)
        for number, part in parts.items()
        if number < keep
    }
    saved = [Save(next_version(part)) for number, part in after.items() if part != parts[number]]
    return BlockRows(block, (*saved, *gone), last=False, own=_taken_off(parts, left))


def _taken_off(parts: Mapping[int, BlockDeposits], left: Mapping[int, tuple[str, ...]]) -> tuple[Change, ...]:
    return tuple(
        Save(next_version(replace(part, deposits=left[number]))) for number, part in parts.items() if part.deposits != left[number]
    )


def _key(block: DepositBlock) -> dict[str, str]:
    return {"network": str(block.network), "hash": block.hash}
