"""The scan's position on its chain: its beginning, following a reorganisation, resuming after a halt.

A rewind is noted on the cursor before anything is undone, and the cursor's epoch is raised. The next poll that finds the note
finishes the work: the lists of all blocks that fell out are dropped, then what they list is orphaned. A worker that credits or
records by the old branch fails to commit once its block's list is dropped (`usecases/scanning/block_lists.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor, ScanEpoch
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.fairness import AT_LEAST
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.deposits.blocks import ensure_rows, highest_first
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.ports.changes import Conflict, Dropped, Save
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.scanning.block_lists import deposits_of, drop_list
from chalicelib.usecases.scanning.deep_reorganisations import DeepReorganisations, Fallen

log = logging.getLogger(__name__)

BATCH_BLOCKS = 50
"""Blocks asked for at once."""


def batch_blocks(network: Network) -> int:
    """The number of blocks asked for at once: those of bitcoin and litecoin have thousands of outputs, and a function half a
    gigabyte."""
    return min(BATCH_BLOCKS, 5) if network.family == "utxo" and not network.simulated else BATCH_BLOCKS


class Reorganisations:
    def __init__(self, context: NetworkContext, deposits: Deposits) -> None:
        self._context, self._network, self._reader, self._store = context, context.network, context.reader, context.store
        self._deposits, self._clock = deposits, context.clock

    def standing_at(self, number: int, tip: int) -> Cursor:
        """A cursor at block `number` that remembers as many blocks before it as a reorganisation is followed."""
        headers = self._reader.headers(max(0, number - self._network.reorg_depth), number)
        if not headers or headers[-1].number != number:
            raise Unavailable(f"the node of {self._network.id} does not have block {number}")
        at, recent = headers[-1], {str(header.number): header.hash for header in headers}
        now = self._clock.now_ms()
        noted_from = at.number + 1
        return Cursor(
            self._network.id, at.number, at.hash, at.time, tip, now, recent=recent, noted_from=noted_from, noted_at=now, drops=True
        )  # fmt: skip

    def resume(self, cursor: Cursor, from_block: int | None) -> Cursor:
        """Resume a halted network, by an operator's decision: all deposits of blocks that the cursor remembers are orphaned, and
        those of lower blocks that the chain no longer has. All is scanned again behind `from_block`, so that what is still in
        the chain is credited again, once. The default is the highest block with deposits that the chain still has: nobody knows
        where above it the branches part. Where there is none, it is the block before all orphaned deposits.

        The network stays halted until the cursor is saved: after a crash before that, the next try goes on. Raises ValueError when
        it is not halted, or when `from_block` would leave out orphaned blocks, Unavailable, Conflict.
        """
        if cursor.halted is None:
            raise ValueError(f"{self._network.id} is not halted")
        ensure_rows(self._store, self._network, self._clock)
        fallen = DeepReorganisations(self._context).fallen()
        fresh = self.standing_at(self._behind(cursor, fallen, from_block), self._reader.tip())
        for block in fallen.gone:
            log.warning("%s: block %d fell out, and what it held with it", self._network.id, block.number)
        oldest = min(int(number) for number in cursor.recent)
        left = self._fell([*self._above(cursor, oldest - 1), *(block.hash for block in fallen.gone)], cursor.tip, cursor.epoch)
        fallen_too = _together(cursor.fallen, left)
        after = replace(fresh, epoch=cursor.epoch + 1, ranges_to=cursor.ranges_to, fallen=fallen_too, version=version_after(cursor))
        # Put whole: what a newer version noted in the cursor is of the branch that is left.
        self._store.commit([Save(after, anew=True), self.at_epoch(after.epoch)])
        return after

    def _behind(self, cursor: Cursor, fallen: Fallen, from_block: int | None) -> int:
        """The block that the scan goes on behind. Raises ValueError."""
        oldest = min(int(number) for number in cursor.recent)
        most = fallen.below(oldest)
        if from_block is None:
            return most if fallen.standing is None else min(most, fallen.standing)
        if from_block > most:
            lowest = "oldest that is remembered" if most == max(0, oldest - 1) else "lowest whose deposits fell out"
            raise ValueError(f"--from-block {from_block} is too high: at most {most}, the block before the {lowest}")
        return from_block

    def follow(self, cursor: Cursor, more: Callable[[], bool] = lambda: True) -> Cursor:
        """Find the last common block of both branches, and go back there. Raises as `rewind` does."""
        heights = sorted((int(number) for number in cursor.recent), reverse=True)
        fork = self._fork(cursor, heights)
        now = self._clock.now_ms()
        if fork is None:
            log.error("ALARM %s: the chain changed deeper than %d blocks; crediting stops", self._network.id, len(heights))
            halted = replace(
                next_version(cursor), halted="reorganisation deeper than is followed", updated_at=now, epoch=cursor.epoch + 1,
            )  # fmt: skip
            self._store.commit([Save(halted), self.at_epoch(halted.epoch)])
            self._drop(self._above(cursor, heights[-1] - 1), cursor.epoch)  # for polls that have not heard of it
            return halted
        log.warning("%s: following a reorganisation of %d blocks", self._network.id, cursor.number - fork)
        noted = replace(next_version(cursor), rewind_to=fork, epoch=cursor.epoch + 1, updated_at=now)
        self._store.commit([Save(noted), self.at_epoch(noted.epoch)])
        return self.rewind(noted, more)

    def _fork(self, cursor: Cursor, heights: Sequence[int]) -> int | None:
        """The highest remembered block that the chain still holds. A height that the node does not know decides nothing."""
        for height in heights:
            found = self._reader.block_hash(height)
            if found is None:
                raise Unavailable(f"the node of {self._network.id} does not know a block below its tip")
            if found == cursor.recent[str(height)]:
                return height
        return None

    def rewind(self, cursor: Cursor, more: Callable[[], bool] = lambda: True) -> Cursor:
        """Orphan everything above the noted fork, then set the cursor there.

        Raises Unavailable where `more` says that the time is over before: the note stays, and the next run goes on.
        """
        fork = cursor.rewind_to
        if fork is None:
            return cursor
        left = self._fell(self._above(cursor, fork), cursor.tip, cursor.epoch - 1, more)
        after = replace(
            next_version(cursor),
            number=fork,
            hash=cursor.recent[str(fork)],
            rewind_to=None,
            noted_from=None if cursor.noted_from is None else min(cursor.noted_from, fork + 1),
            recent={number: hash_ for number, hash_ in cursor.recent.items() if int(number) <= fork},
            fallen=_together(cursor.fallen, left),
            updated_at=self._clock.now_ms(),
        )
        self._store.commit([Save(after)])
        return after

    def catch_up(self, cursor: Cursor, more: Callable[[], bool]) -> Cursor:
        """Drop and orphan the blocks that are not `cursor`'s, after a version that drops none has saved it. Raises as `rewind`
        does."""
        if cursor.drops or cursor.halted is not None:
            return cursor
        self._store.commit([self.at_epoch(cursor.epoch)])
        oldest = min(int(number) for number in cursor.recent)
        gone = []
        for block in highest_first(self._store, self._network):
            if block.number < oldest:
                break
            if cursor.recent.get(str(block.number), block.hash) != block.hash:
                gone.append(block.hash)
        left = self._fell(gone, cursor.tip, cursor.epoch, more, cursor.epoch)
        after = replace(next_version(cursor), drops=True, fallen=_together(cursor.fallen, left))
        self._store.commit([Save(after)])
        return after

    def orphan_left(self, cursor: Cursor, more: Callable[[], bool]) -> Cursor:
        """Orphan what was left to a newer version when its block fell out, as far as it can be now; the cursor, which names the
        blocks of what is still left. Where a scan found a block again, its deposits stand. Raises as `rewind` does."""
        if not cursor.fallen or cursor.halted is not None:
            return cursor
        left = _together(self._orphan(cursor.fallen, cursor.tip, more, may_be_back=True))
        if left == cursor.fallen:
            return cursor
        after = replace(next_version(cursor), fallen=left)
        self._store.commit([Save(after)])
        return after

    def drop(self, cursor: Cursor, block_hash: str) -> None:
        """Drop the list of a block that is not on the chain on which `cursor` stands. Raises Conflict, Unavailable."""
        drop_list(self._store, self._network.id, block_hash, cursor.epoch, cursor.epoch)

    def at_epoch(self, epoch: int) -> Save:
        """The change that goes with each of the cursor's epoch. One read. Raises Unavailable."""
        known = self._store.get(ScanEpoch, network=self._network.id)
        return Save(ScanEpoch(self._network.id, epoch, version_after(known)))

    def _above(self, cursor: Cursor, fork: int) -> list[str]:
        """The blocks above `fork` that `cursor` has passed, or that have a list: of those that no scan passed, too."""
        found = [hash_ for number, hash_ in cursor.recent.items() if int(number) > fork]
        for block in highest_first(self._store, self._network):
            if block.number <= fork:
                break
            found.append(block.hash)
        return list(dict.fromkeys(found))

    def _drop(self, hashes: Sequence[str], upto: int, epoch: int | None = None) -> None:
        """Drop the lists of these blocks, as of `epoch`, by default the one that followed `upto`."""
        for hash_ in dict.fromkeys(hashes):
            drop_list(self._store, self._network.id, hash_, upto, upto + 1 if epoch is None else epoch)

    def _fell(
        self, hashes: Sequence[str], tip: int, upto: int, more: Callable[[], bool] = lambda: True, epoch: int | None = None
    ) -> list[str]:
        """Drop these blocks' lists as `_drop` does, then orphan what they list; the blocks of what is left to a newer version."""
        self._drop(hashes, upto, epoch)
        return self._orphan(hashes, tip, more)

    def _orphan(self, hashes: Sequence[str], tip: int, more: Callable[[], bool], *, may_be_back: bool = False) -> list[str]:
        """Orphan what these blocks list; the blocks of what is left to a newer version, each of which is reported. With
        `may_be_back` a scan may have found a block again: it stays as it is."""
        done, left = 0, list[str]()
        for hash_, listed in deposits_of(self._store, self._network.id, hashes):
            keys: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": key}) for key in listed]
            for deposit in each_of(self._store, keys):
                if isinstance(deposit, TooNew):
                    left.append(hash_)
                    continue
                if deposit is None or deposit.status == "orphaned" or deposit.block_hash != hash_:
                    continue
                if done >= AT_LEAST and not more():
                    raise Unavailable(f"{self._network.id}: a reorganisation has more deposits than there is time for: it goes on")
                try:
                    self._deposits.orphan(self._network, deposit.id, hash_, tip, dropped=True)
                except TooNew:
                    left.append(hash_)
                except Conflict as conflict:
                    if not (may_be_back and isinstance(conflict.change, Dropped)):
                        raise
                done += 1
        return left


def _together(*hashes: Sequence[str] | None) -> tuple[str, ...] | None:
    """All of these blocks, each once; None where there is none."""
    return tuple(dict.fromkeys(hash_ for some in hashes for hash_ in some or ())) or None
