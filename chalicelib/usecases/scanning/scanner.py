"""Scanning one network: blocks after the cursor, reorganisations, confirmations.

The protocol, and what makes each step safe to die after:

1. *Store, then pass.* The list of a block's deposits is stored under its hash, then the deposits, then the cursor moves.
   Dying before the last step scans the block again, and finds the same deposits by their ids.
2. *Credit late.* A deposit is credited when its block has the network's confirmations, the node still names the same hash
   at its height, and no reorganisation has dropped the block since that was checked (`AtPart`).
3. *Walk back, then go on.* When the chain no longer holds the cursor's hash, the fork is found among the remembered
   hashes; the cursor notes where to rewind to and raises its epoch; the lists of the blocks that fell out are dropped, and
   every deposit on them is orphaned; only then the cursor stands at the fork. A note that is found unfinished is finished first.
4. *Too deep stops.* A fork below what is remembered halts crediting on the network until an operator looks.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain.chain import Block, Cursor
from chalicelib.usecases.base.fairness import MOST_AT_ONCE
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Halted, Unavailable
from chalicelib.usecases.ports.queues import ScanQueue
from chalicelib.usecases.scanning.backlog import Backlog
from chalicelib.usecases.scanning.confirming import Confirming
from chalicelib.usecases.scanning.leftover_rescans import Leftovers
from chalicelib.usecases.scanning.recording import Recorder
from chalicelib.usecases.scanning.reorganisations import Reorganisations, batch_blocks
from chalicelib.usecases.scanning.sharing import Share, Sharing

log = logging.getLogger(__name__)

CHANGES_MET = 5
OVERTAKEN = 3
"""How often a poll begins anew behind the cursor that a tick, or another poll, has moved meanwhile."""
STARTED_AGO = 300
"""Seconds that may lie between a network's activation and its first poll, with room for slow blocks."""


class Scanner:
    """Scans one network. Two at once on the same network waste work and harm nothing: the cursor's version lets one pass."""

    def __init__(self, context: NetworkContext, deposits: Deposits, queue: ScanQueue | None = None) -> None:
        """With a `queue` backlogs and crowded blocks are shared out; without one, the poll scans all of it."""
        self._network, self._reader, self._store, self._clock = context.network, context.reader, context.store, context.clock
        self._leftovers = Leftovers(context)
        self._sharing = Sharing(context.network.id, queue)
        self.recorder = Recorder(context, deposits, self._leftovers)
        self.passing = Recorder(context, deposits, self._leftovers, self._sharing)
        self._forks = Reorganisations(context, deposits)
        self._confirming = Confirming(context, deposits, self._forks, self._sharing)
        self.backlog = Backlog(context, self.recorder, queue)

    def start(self, seconds_ago: int = 0) -> Cursor:
        """Set the network's cursor to the chain's tip, unless it has one; the cursor. Nothing before can be ours.

        `seconds_ago`: addresses may have been given out for so long before, so the cursor begins that many seconds of blocks
        deeper.
        """
        cursor = self._cursor()
        if cursor is not None:
            return cursor
        tip = self._reader.tip()
        back = math.ceil(seconds_ago / self._network.block_time) if seconds_ago else 0
        first = self._forks.standing_at(max(0, tip - back), tip)
        try:
            self._store.commit([Save(first), self._forks.at_epoch(first.epoch)])
        except Conflict:
            log.info("another poll started %s first", self._network.id)
        return self._cursor() or first

    def resume(self, from_block: int | None = None) -> Cursor:
        """Take a halted network up again, see `Reorganisations.resume`.

        Raises ValueError when it is not halted, Unavailable, Conflict.
        """
        return self._forks.resume(self.start(), from_block)

    def poll(self, more: Callable[[], bool]) -> Cursor:
        """`advance`, then `confirm`. Raises Halted (an operator has to `resume`), Unavailable, Conflict, Failures."""
        cursor = self.advance(more)
        self.confirm(cursor, more)
        return cursor

    def advance(self, more: Callable[[], bool]) -> Cursor:
        """Scan to the tip, or until `more` says that the time is over. Returns the cursor, with the tip as it was seen.

        Raises Halted, Unavailable, Conflict.
        """
        for _ in range(OVERTAKEN):
            try:
                return self._advance(more)
            except Conflict:
                log.info("%s: another worker moved the cursor: on from there", self._network.id)
        return self._advance(more)

    def _advance(self, more: Callable[[], bool]) -> Cursor:
        cursor = self.start(STARTED_AGO)
        cursor = self._forks.catch_up(cursor, more)
        if cursor.rewind_to is not None:
            cursor = self._forks.rewind(cursor, more)
        cursor = self._forks.orphan_left(cursor, more)
        tip = self._reader.tip()
        changed = 0
        if cursor.number < tip:
            # Coins that were registered before the tip was mined count in every block up to it.
            self._store.catalogue(self._network.realm, fresh=True)
        goes_on = True
        while goes_on and cursor.halted is None:
            if not self._still_there(cursor, tip):
                cursor = self._forks.follow(cursor, more)
                continue
            if cursor.number >= tip:
                break
            before = cursor
            cursor, goes_on = self._step(cursor, tip, more)
            if goes_on and cursor is before:
                changed += 1
                if changed > CHANGES_MET:
                    raise Unavailable(f"the node of {self._network.id} contradicts itself")
        if cursor.halted is not None:
            raise Halted(f"{self._network.id} is halted: {cursor.halted}")
        return replace(cursor, tip=tip)

    def keep_up(self, more: Callable[[], bool]) -> Cursor | None:
        """Scan the few blocks that continue the cursor's chain, for a tick; the cursor, with the tip as it was seen.

        None where there is more to do than that: no cursor yet, a halt, a backlog, a reorganisation. The poll does it, which undoes
        first what the old branch settled. Raises Unavailable, Conflict (another worker passed the same blocks).
        """
        cursor = self._cursor()
        if cursor is None or cursor.halted is not None or cursor.rewind_to is not None or cursor.ranges_to is not None:
            return None
        tip = self._reader.tip()
        if cursor.number < tip:
            self._store.catalogue(self._network.realm, fresh=True)  # as in `advance`
        if tip < cursor.number or self.backlog.far(cursor, tip) or not self._still_there(cursor, tip):
            return None
        while cursor.number < tip and more():
            last = min(tip, cursor.number + batch_blocks(self._network))
            linked = self._linked(cursor, self._reader.blocks(cursor.number + 1, last, self.recorder.contracts()))
            if not linked:
                return None
            cursor = self._pass(cursor, linked, tip, more)
            if cursor.number < linked[-1].number:
                break
        return replace(cursor, tip=tip)

    def _step(self, cursor: Cursor, tip: int, more: Callable[[], bool]) -> tuple[Cursor, bool]:
        """Share out a backlog, or scan the next batch of blocks; the cursor after it, and whether this poll goes on.

        The same cursor, going on: the chain changed meanwhile. The blocks are large: they are let go before the next ones are read.
        """
        shared = self._shared(cursor, tip, more)
        if shared.ranges_to is not None:
            return shared, False  # another worker has the next blocks
        if shared is not cursor:
            return shared, True
        last = min(tip, cursor.number + batch_blocks(self._network))
        linked = self._linked(cursor, self._reader.blocks(cursor.number + 1, last, self.recorder.contracts()))
        if not linked:
            return cursor, linked is None
        read = linked[-1].number
        cursor = self._pass(cursor, linked, tip, more)
        return cursor, cursor.number >= read and more()

    def _shared(self, cursor: Cursor, tip: int, more: Callable[[], bool]) -> Cursor:
        """The cursor as it stands once others have helped with a backlog; the same one where there is nothing to share out."""
        if cursor.ranges_to is None and not self.backlog.far(cursor, tip):
            return cursor
        return self.backlog.advance(cursor, tip, more)

    def _still_there(self, cursor: Cursor, tip: int) -> bool:
        """Whether the chain still holds the cursor's block.

        A node whose tip is below the cursor says nothing: it lags, or a shorter branch has won for a moment. Wait for it.
        """
        if tip < cursor.number:
            raise Unavailable(f"the node of {self._network.id} is behind what was scanned")
        found = self._reader.block_hash(cursor.number)
        if found is None:
            raise Unavailable(f"the node of {self._network.id} does not know a block below its tip")
        return found == cursor.hash

    def _linked(self, cursor: Cursor, blocks: Sequence[Block]) -> Sequence[Block] | None:
        """`blocks` when they continue the cursor; None when the chain changed between two questions."""
        parent, number = cursor.hash, cursor.number
        for block in blocks:
            if block.number != number + 1:
                raise Unavailable(f"the node of {self._network.id} answered block {block.number} for {number + 1}")
            if block.parent_hash != parent:
                if number == cursor.number:
                    return None
                raise Unavailable(f"the blocks of {self._network.id} do not form a chain")
            parent, number = block.hash, block.number
        return blocks

    def _pass(self, cursor: Cursor, blocks: Sequence[Block], tip: int, more: Callable[[], bool]) -> Cursor:
        """Store what is ours in `blocks`, then let the cursor pass them: those that there was time for."""
        recorded = self.passing.record(blocks, cursor.epoch, more, MOST_AT_ONCE, tip=tip)
        blocks = blocks[: recorded.blocks]
        if not blocks:
            return cursor
        for block in recorded.crowded:
            self._leftovers.order(block)
        hashes = {str(b.number): b.hash for b in blocks}
        after = cursor.behind(hashes, blocks[-1].time, tip, self._network.reorg_depth, self._clock.now_ms())
        after = after.noted(blocks[0].number)
        self._store.commit([Save(after)])
        return after

    def confirm(self, cursor: Cursor, more: Callable[[], bool]) -> None:
        """As `Confirming.confirm`."""
        self._confirming.confirm(cursor, more)

    def help(self, share: Share, more: Callable[[], bool]) -> None:
        """Record or credit what a poll shares out, under the poll's own conditions; what is not to be done any more is left.

        Raises Conflict, Unavailable, Failures.
        """
        cursor = self._cursor()
        if cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            return
        if share.late(self._clock.now_ms()):
            return
        if share.deposits:
            self._confirming.help(share.deposits, cursor, more)
            return
        if cursor.epoch != share.epoch or cursor.recent.get(str(share.number), share.hash) != share.hash:
            return
        block = next(iter(self._reader.blocks(share.number, share.number, self.recorder.contracts())), None)
        if block is None or block.hash != share.hash:
            return
        # The whole of the transactions: a payment may be told twice by one.
        beside = replace(block, transfers=[t for t in block.transfers if t.txid in share.txids], rewards=())
        tip = max(cursor.tip, block.number)
        self.recorder.record([beside], share.epoch, more, MOST_AT_ONCE, tip=tip, comes_again=True, named=share.names)

    def _cursor(self) -> Cursor | None:
        return self._store.get(Cursor, network=self._network.id)
