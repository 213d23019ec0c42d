"""The backlog: blocks far below the tip, cut into ranges that many workers scan at once. The cursor passes one range after the
other.

1. *Cut.* The poll stores ranges of blocks behind the cursor, each with an obligation, in the transactions that note on the
   cursor how far they reach; then it sends a message for each. None reaches into the blocks that a reorganisation may still change.
2. *Scan.* The worker that gets a message records the range's blocks as the poll would, under the epoch that the cursor had, and
   keeps their hashes. It goes on where the last one stopped. Twice or at once harms nothing: stored records are found by their
   ids, and of two workers only one can note that a part is done.
3. *Pass.* Only the poll moves the cursor, over a range that is complete, of the cursor's epoch, and whose first block names the
   cursor's hash as its parent. Nothing is credited above the cursor: `Scanner.confirm`.
4. *Drop.* A reorganisation raises the epoch: every range of the old one is void. So is all that does not link up. It is
   cut and scanned again.

A lost message delays: what nobody has touched for `IDLE_MS` the poll scans itself, the oldest first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain.chain import Block, Cursor
from chalicelib.domain.scanning.ranges import ScanRange, range_work
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import is_open
from chalicelib.usecases.ports.changes import Change, Close, Conflict, Delete, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import RangeQueue
from chalicelib.usecases.scanning.recording import Recorder
from chalicelib.usecases.scanning.reorganisations import batch_blocks

log = logging.getLogger(__name__)

BATCHES = 4
"""A range is this many reads of the node: seconds of work, so that little is done twice and no function runs out of time."""
FAR = 3
"""A poll that is no more than this many ranges behind goes on by itself."""
MOST_OUT = 20
"""Ranges of one network that are shared out at once."""
IDLE_MS = 60_000
CUT_AT_ONCE = 4
"""Two items for each range, and the cursor: within ten."""


class Backlog:
    def __init__(self, context: NetworkContext, recorder: Recorder, queue: RangeQueue | None) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._recorder, self._clock, self._queue = recorder, context.clock, queue

    @property
    def _size(self) -> int:
        return BATCHES * batch_blocks(self._network)

    def far(self, cursor: Cursor, tip: int) -> bool:
        """Whether the backlog is long enough to be shared out."""
        return self._queue is not None and tip - self._network.reorg_depth - cursor.number > FAR * self._size

    def advance(self, cursor: Cursor, tip: int, more: Callable[[], bool]) -> Cursor:
        """Pass complete ranges, drop void ones, share out the next, and scan those that no worker gets on with.

        The cursor's `ranges_to` is None afterwards where no range is shared out any more. Raises Conflict, Unavailable.
        """
        while True:
            cursor, out = self._settled(cursor, tip)
            cursor, out = self._shared_out(cursor, tip, out)
            now = self._clock.now_ms()
            idle = next((each for each in out if not each.done and now - each.touched_at >= IDLE_MS), None)
            if idle is None or not more():
                return cursor
            self._scan(idle, more)

    def work(self, name: str, more: Callable[[], bool]) -> bool:
        """Scan the range with this name, until `more` says that the time is over; whether this message is done.

        Raises Conflict (another worker got on with it, or a reorganisation was followed meanwhile), Unavailable.
        """
        found = self._store.get(ScanRange, network=self._network.id, name=name)
        cursor = self._store.get(Cursor, network=self._network.id)
        if found is None or cursor is None or found.epoch != cursor.epoch:
            return True
        return self._scan(found, more).done

    def _settled(self, cursor: Cursor, tip: int) -> tuple[Cursor, list[ScanRange]]:
        """Pass and drop; the cursor, and the ranges that are out behind it without a gap."""
        out = self._out()
        while out and out[0].follows(cursor.number, cursor.hash, cursor.epoch):
            first, *out = out
            now = self._clock.now_ms()
            after = cursor.behind(first.hashes, first.block_time, tip, self._network.reorg_depth, now)
            # One that was cut before there were sightings leaves a gap: they are complete behind it.
            after = after.noted(first.first) if first.noted else replace(after, noted_from=first.last + 1, noted_at=now)
            after = replace(after, ranges_to=cursor.ranges_to if out else None)
            self._store.commit([Save(after), *_gone(first)])
            cursor = after
        expected = cursor.number + 1
        void = bool(out) and out[0].done  # complete, and does not continue the cursor's chain
        for each in out:
            void = void or each.first != expected or each.epoch != cursor.epoch
            expected = each.last + 1
        if void:
            log.warning("%s: %d ranges behind block %d are void", self._network.id, len(out), cursor.number)
            for each in out:
                self._store.commit(_gone(each))
            out = []
        if not out and cursor.ranges_to is not None:
            after = replace(next_version(cursor), ranges_to=None)
            self._store.commit([Save(after)])
            cursor = after
        return cursor, out

    def _out(self) -> list[ScanRange]:
        works = self._store.open_work("range", self._network.id, limit=2 * MOST_OUT)
        found = self._store.get_many([(ScanRange, {"network": self._network.id, "name": work.id}) for work in works])
        missing = [work for work, range_ in zip(works, found, strict=True) if range_ is None]
        if any(is_open(self._store, work) for work in missing):
            raise LookupError(f"a range of {self._network.id} is open and not there")
        if missing:
            raise Conflict(None)  # another poll has passed it, or dropped it, between the two reads
        return found

    def _shared_out(self, cursor: Cursor, tip: int, out: list[ScanRange]) -> tuple[Cursor, list[ScanRange]]:
        """Cut further ranges where there is room for them and enough is left, and send for them."""
        end = tip - self._network.reorg_depth
        first = (out[-1].last if out else cursor.number) + 1
        if self._queue is None or (not out and not self.far(cursor, tip)):
            return cursor, out
        made: list[ScanRange] = []
        now = self._clock.now_ms()
        while len(out) + len(made) < MOST_OUT and first + self._size - 1 <= end:
            made.append(ScanRange(self._network.id, first, first + self._size - 1, cursor.epoch, first, now, noted=True))
            first += self._size
        for start in range(0, len(made), CUT_AT_ONCE):
            some = made[start : start + CUT_AT_ONCE]
            after = replace(next_version(cursor), ranges_to=some[-1].last)
            changes: list[Change] = [Save(after)]
            for each in some:
                changes += [Save(each), Open(range_work(each))]
            self._store.commit(changes)
            cursor = after
            for each in some:
                self._send(each)
        return cursor, out + made

    def _send(self, found: ScanRange) -> None:
        if self._queue is None:
            return
        try:
            self._queue.scan(self._network.id, found.name)
        except Unavailable:
            log.warning("%s: no message for the range at %d: a poll scans it", self._network.id, found.first)

    def _scan(self, found: ScanRange, more: Callable[[], bool]) -> ScanRange:
        # Coins that were registered before a block was mined count in it, and these blocks are mined already.
        self._store.catalogue(self._network.realm, fresh=True)
        while not found.done and more():
            found = self._part(found, more)
        return found

    def _part(self, found: ScanRange, more: Callable[[], bool]) -> ScanRange:
        """The next blocks of a range: stored, then noted; those that there was time for."""
        last = min(found.last, found.next_block + batch_blocks(self._network) - 1)
        blocks = self._reader.blocks(found.next_block, last, self._recorder.contracts())
        before = found.hashes.get(str(found.next_block - 1))
        self._check(found, blocks)
        if before is not None and blocks[0].parent_hash != before:
            log.warning("%s: the chain changed within the range at %d", self._network.id, found.first)
            after = replace(found, next_block=found.first, parent=None, hashes={}, block_time=0)
        else:
            blocks = blocks[: self._recorder.record(blocks, found.epoch, more).blocks]
            after = found if not blocks else _behind(found, blocks)
        after = replace(after, touched_at=self._clock.now_ms(), version=version_after(found))
        self._store.commit([Save(after)])
        return after

    def _check(self, found: ScanRange, blocks: Sequence[Block]) -> None:
        """Raise Unavailable unless `blocks` are the next ones, and form a chain."""
        if not blocks:
            raise Unavailable(f"the node of {self._network.id} does not have block {found.next_block}")
        for place, block in enumerate(blocks):
            if block.number != found.next_block + place:
                raise Unavailable(f"the node of {self._network.id} answered block {block.number} for {found.next_block + place}")
            if place and block.parent_hash != blocks[place - 1].hash:
                raise Unavailable(f"the blocks of {self._network.id} do not form a chain")


def _behind(found: ScanRange, blocks: Sequence[Block]) -> ScanRange:
    """The range once `blocks`, its next ones, are stored."""
    return replace(
        found,
        next_block=blocks[-1].number + 1,
        parent=blocks[0].parent_hash if found.next_block == found.first else found.parent,
        hashes={**found.hashes, **{str(block.number): block.hash for block in blocks}},
        block_time=blocks[-1].time,
    )


def _gone(found: ScanRange) -> list[Change]:
    """The changes that remove a range that is passed, or void."""
    return [Delete(ScanRange, {"network": found.network, "name": found.name}), Close(range_work(found))]
