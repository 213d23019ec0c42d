"""Rescans of blocks that were scanned before: for a coin that was added later, or an address that was paid before the first scan.

It goes the way of the scanner itself: the same matching, the same proof by receipt, the same deposits with the same ids, so
that what was recorded once is found and left alone, and crediting is the poll's, after the network's confirmations. Each
part is recorded under the epoch that the poll before it left, so that a reorganisation in between wins; then the
cursor passes it. After a crash before that, the part is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Cursor
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import NetworkId, new_id
from chalicelib.domain.scanning.rescans import MOST_BLOCKS, Rescan, rescan_work
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.changes import Close, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.scanning.recording import Recorder
from chalicelib.usecases.scanning.reorganisations import batch_blocks

OPEN_AT_ONCE = 20
"""Unfinished rescans of one network that a poll looks at: those that were not tried for longest."""


class Rescans:
    """Orders and reads rescans, for an operator."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def order(self, network: Network, from_block: int, to_block: int) -> Rescan:
        """A rescan of blocks `from_block` to `to_block`, both included. Raises BusinessRule, Unavailable."""
        return self.ordering(network, from_block, to_block).run()

    def ordering(self, network: Network, from_block: int, to_block: int) -> Creation[Rescan]:
        """What `order` commits."""
        return Creation(self._store, partial(self._prepare, network, from_block, to_block), tries=1)

    def _prepare(self, network: Network, from_block: int, to_block: int) -> Prepared[Rescan]:
        if from_block > to_block:
            raise BusinessRule("toBlock", "must not be below fromBlock")
        if to_block - from_block >= MOST_BLOCKS:
            raise BusinessRule("toBlock", f"at most {MOST_BLOCKS} blocks at once")
        if network.status != "active":
            raise BusinessRule("network", f"{network.slug} is not active here: nobody would look")
        cursor = self._store.get(Cursor, network=network.id)
        if cursor is None or to_block > cursor.number:
            known = "nothing has been scanned yet" if cursor is None else f"block {cursor.number} is the last that was scanned"
            raise BusinessRule("toBlock", f"only what was scanned can be scanned again: {known}")
        if len(self._store.open_work("rescan", network.id, limit=OPEN_AT_ONCE)) >= OPEN_AT_ONCE:
            raise BusinessRule("network", f"{OPEN_AT_ONCE} rescans of {network.slug} are not finished yet")
        now = self._clock.now_ms()
        made = Rescan(new_id("rsc", now), network.id, from_block, to_block, from_block, now, noted=True)
        return Prepared(made, [Save(made), Open(rescan_work(made))])

    def get(self, network: NetworkId, rescan_id: str) -> Rescan:
        """Raises NotFound."""
        found = self._store.get(Rescan, network=network, id=rescan_id)
        if found is None:
            raise NotFound(f"No rescan {rescan_id[:80]}", {"id": rescan_id[:80]})
        return found


class Rescanner:
    """Carries out the rescans of one network, after the poll has scanned new blocks."""

    def __init__(self, context: NetworkContext, recorder: Recorder) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._clock, self._recorder = context.clock, recorder

    def work(self, more: Callable[[], bool]) -> None:
        """Go on with every open rescan, until `more` says that the time is over.

        A rescan that can not go on, or needs long, does not hold up the others: those that were tried go behind those that wait
        for the next poll. Raises Unavailable, Failures.
        """
        with Each(f"{self._network.id}: rescans") as each:
            works = self._store.open_work("rescan", self._network.id, limit=OPEN_AT_ONCE)
            tried: list[Work] = []
            for work in works:
                if tried and not more():
                    break
                tried.append(work)
                each.take(work.id, partial(self._go_on, work, more))
            if len(tried) < len(works) or len(works) == OPEN_AT_ONCE:
                for work in tried:
                    each.take(work.id, partial(self._put_behind, work))

    def _put_behind(self, work: Work) -> None:
        """Where it is not done, the others that are open come before it."""
        now = self._clock.now_ms()
        found = self._store.get(Rescan, network=self._network.id, id=work.id)
        if found is None:
            self._store.commit([Close(work), Open(replace(work, order=time_order(now)))])
        elif not found.done and rescan_work(found) == work:
            after = replace(next_version(found), tried_at=now)
            self._store.commit([Save(after), Close(work), Open(rescan_work(after))])

    def _go_on(self, work: Work, more: Callable[[], bool]) -> None:
        found = self._store.get(Rescan, network=self._network.id, id=work.id)
        if found is None:
            raise LookupError(f"{work.id} is open and not there")
        while not found.done and more():
            found = self._part(found, more)

    def _part(self, rescan: Rescan, more: Callable[[], bool]) -> Rescan:
        """The next blocks of it: those that there was time for."""
        cursor = self._store.get(Cursor, network=self._network.id)
        if cursor is None or cursor.rewind_to is not None or cursor.halted is not None or cursor.number < rescan.next_block:
            # A reorganisation is being followed: it decides first what the chain is.
            raise Unavailable(f"{self._network.id} is not scanned as far as {rescan.id} wants to look")
        last = min(rescan.to_block, rescan.next_block + batch_blocks(self._network) - 1, cursor.number)
        blocks = self._reader.blocks(rescan.next_block, last, self._recorder.contracts())
        self._check(blocks, rescan.next_block, last, cursor)
        # What is left over of a block is its own rescan's; that one comes again until all of the block is recorded.
        comes_again = rescan.from_block == rescan.to_block
        recorded = self._recorder.record(blocks, cursor.epoch, more, tip=cursor.tip, comes_again=comes_again)
        if not recorded.blocks:
            return rescan
        after = replace(next_version(rescan), next_block=rescan.next_block + recorded.blocks)
        if after.done and after.noted:
            until_settled(partial(self._noted, after))
        self._store.commit([Save(after), *([Close(rescan_work(after))] if after.done else [])])
        return after

    def _noted(self, rescan: Rescan) -> None:
        """Where it reaches the blocks that sightings are complete from, they are complete from its first block on."""
        cursor = self._store.get(Cursor, network=self._network.id)
        if cursor is None or cursor.noted_from is None or not rescan.from_block < cursor.noted_from <= rescan.to_block + 1:
            return
        self._store.commit([Save(replace(cursor.noted(rescan.from_block), version=version_after(cursor)))])

    def _check(self, blocks: Sequence[Block], first: int, last: int, cursor: Cursor) -> None:
        """Raise Unavailable unless `blocks` are the first of those numbers, form a chain, and are what the cursor remembers of it.

        What hangs together with the cursor's own block is the chain that reorganisations are followed on; below what the
        cursor remembers the node is believed.
        """
        parent: str | None = None
        for number, block in zip(range(first, last + 1), blocks, strict=False):
            if block.number != number or (parent is not None and block.parent_hash != parent):
                raise Unavailable(f"the blocks of {self._network.id} do not form a chain")
            if cursor.recent.get(str(number), block.hash) != block.hash:
                raise Unavailable(f"the node of {self._network.id} has another block {number} than was scanned")
            parent = block.hash
        if not blocks:
            raise Unavailable(f"the node of {self._network.id} does not have the blocks {first} to {last}")
