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
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chalicelib.domain.chain import Block, Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.work import Work
from chalicelib.usecases.base.fairness import MOST_AT_ONCE, MOST_TO_ONE
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.base.side_by_side import side_by_side
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.deposits.groups import MOST as MOST_TOGETHER
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Halted, Unavailable
from chalicelib.usecases.ports.queues import ScanQueue
from chalicelib.usecases.scanning.backlog import Backlog
from chalicelib.usecases.scanning.leftovers import Leftovers
from chalicelib.usecases.scanning.quorum import LargePayments
from chalicelib.usecases.scanning.recording import Recorder
from chalicelib.usecases.scanning.reorganisations import Reorganisations, batch_blocks
from chalicelib.usecases.scanning.sharing import Share, Sharing, shares

log = logging.getLogger(__name__)

CONFIRM_AT_ONCE = 100
MOST_ASKED = 1_000
"""Due deposits that are read to be shared out."""
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
        self._deposits = deposits
        self._leftovers = Leftovers(context.network, context.store, context.clock)
        self._sharing = Sharing(context.network.id, queue)
        self.recorder = Recorder(context, deposits, self._leftovers)
        self.passing = Recorder(context, deposits, self._leftovers, self._sharing)
        self._forks = Reorganisations(context, deposits)
        self._large = LargePayments(context, deposits.rates)
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
        """Credit the pending deposits that are deep enough below `cursor`, and still in the chain: a fair share of each owner
        first, then the rest. A deposit that can not be credited does not hold up the others. Raises Unavailable, Failures."""
        # Blocks that were read count, not what a node says that its height is.
        final = min(cursor.number, cursor.tip) - self._network.confirmations + 1
        if final < 0:
            return
        tried: set[str] = set()
        with Each(f"{self._network.id}: deposits") as each:
            if not self._confirm(cursor, final, more, each, tried, Counter()):
                self._confirm(cursor, final, more, each, tried, None)

    def _confirm(
        self, cursor: Cursor, final: int, more: Callable[[], bool], each: Each, tried: set[str], taken: Counter[str] | None
    ) -> bool:
        """Whether no merchant's deposit was left for later. `taken` counts deposits by merchant; None where there is no such bound.

        Deposits in `tried` were tried in this poll already.
        """
        after: Work | None = None
        all_served = True
        while True:
            due = self._store.open_work("deposit", self._network.id, upto=f"{final:015d}", after=after, limit=CONFIRM_AT_ONCE)
            wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": work.id}) for work in due if work.id not in tried]
            hashes: dict[int, str | None] = {}
            ready: list[Deposit] = []
            in_time = True
            if after is None and taken is not None and len(due) == CONFIRM_AT_ONCE:
                self._ask_for_more(final, due[-1])
            for deposit in self._store.get_many(wanted):
                if deposit is None or deposit.status != "pending":
                    continue
                if taken is not None and not _has_a_turn(deposit, taken):
                    all_served = False
                    continue
                in_time = more()
                if not in_time:
                    break
                tried.add(deposit.id)
                each.take(deposit.id, partial(self._look_at, deposit, cursor, hashes, ready))
            self._credit(ready, cursor, each)
            if not in_time:
                return True
            if len(due) < CONFIRM_AT_ONCE:
                return all_served
            # A deposit that has to wait must not hold up those behind it.
            after = due[-1]

    def _ask_for_more(self, final: int, after: Work) -> None:
        """Ask other functions to credit what is due behind `after`, where that is much."""
        behind = self._store.open_work("deposit", self._network.id, upto=f"{final:015d}", after=after, limit=MOST_ASKED)
        if self._sharing.wanted(len(behind)):
            for some in shares(behind):
                self._sharing.ask_credited([work.id for work in some])

    def help(self, share: Share, more: Callable[[], bool]) -> None:
        """Record or credit what a poll shares out, under the poll's own conditions; what is not to be done any more is left.

        Raises Conflict, Unavailable, Failures.
        """
        cursor = self._cursor()
        if cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            return
        if share.deposits:
            self._help_credit(share.deposits, cursor, more)
            return
        if cursor.epoch != share.epoch or cursor.recent.get(str(share.number), share.hash) != share.hash:
            return
        block = next(iter(self._reader.blocks(share.number, share.number, self.recorder.contracts())), None)
        if block is None or block.hash != share.hash:
            return
        mine = [transfer for transfer in block.transfers if transfer.txid in share.txids]
        named = replace(block, transfers=mine, rewards=())
        self.recorder.record([named], share.epoch, more, tip=max(cursor.tip, block.number), comes_again=True)

    def _help_credit(self, keys: Sequence[str], cursor: Cursor, more: Callable[[], bool]) -> None:
        final = min(cursor.number, cursor.tip) - self._network.confirmations + 1
        hashes: dict[int, str | None] = {}
        ready: list[Deposit] = []
        with Each(f"{self._network.id}: shared deposits") as each:
            for deposit in self._store.get_many([(Deposit, {"id": key}) for key in keys]):
                if deposit is None or deposit.status != "pending" or deposit.network != self._network.id:
                    continue
                if deposit.block_number is None or deposit.block_number > final or not more():
                    continue
                each.take(deposit.id, partial(self._look_at, deposit, cursor, hashes, ready))
            self._credit(ready, cursor, each)

    def _credit(self, ready: Sequence[Deposit], cursor: Cursor, each: Each) -> None:
        """Credit deposits whose blocks were found in the chain: those of one merchant, coin and part of a list together, and
        merchants side by side. What is of one merchant and coin meets at its balance: one group after the other."""
        lanes: dict[tuple[object, ...], dict[tuple[object, ...], list[Deposit]]] = {}
        for deposit in ready:
            lane = lanes.setdefault((deposit.tenant, deposit.asset), {})
            alone = deposit.id if deposit.tenant is None or deposit.part is None else None
            lane.setdefault((deposit.block_hash, deposit.part, alone), []).append(deposit)

        def step(groups: Iterable[Sequence[Deposit]]) -> None:
            for group in groups:
                for start in range(0, len(group), MOST_TOGETHER):
                    self._credit_group(group[start : start + MOST_TOGETHER], cursor, each)

        side_by_side([partial(step, groups.values()) for groups in lanes.values()])

    def _credit_group(self, group: Sequence[Deposit], cursor: Cursor, each: Each) -> None:
        """In one transaction, and one by one what that can not take. Where the block has fallen out, or the store does not answer,
        all of them wait."""
        _, block_hash = group[0].block
        left = [deposit.id for deposit in group]
        if len(group) > 1:

            def together() -> None:
                ids, left[:] = list(left), []
                left[:] = self._deposits.confirm_together(self._network, ids, block_hash, cursor.tip, cursor.epoch)

            each.take(left[0], together)
        for key in left:
            each.take(key, partial(self._deposits.confirm, self._network, key, block_hash, cursor.tip, cursor.epoch))

    def _look_at(self, deposit: Deposit, cursor: Cursor, hashes: dict[int, str | None], ready: list[Deposit]) -> None:
        """Put a deposit that can be credited to the `ready` ones, leave it, or orphan it. `hashes` of blocks that were asked for,
        by height."""
        height, block_hash = deposit.block
        if height not in hashes:
            hashes[height] = self._reader.block_hash(height)
        if hashes[height] == block_hash:
            if self._large.may_credit(deposit):
                ready.append(deposit)
        elif hashes[height] is not None and cursor.recent.get(str(height)) == hashes[height]:
            # The block that held it is gone, and the cursor stands on the chain that replaced it: a scan that died
            # between storing the deposit and passing its block left it behind.
            self._forks.drop(cursor, block_hash)
            self._deposits.orphan(self._network, deposit.id, block_hash, cursor.tip, dropped=True)
        elif str(height) not in cursor.recent:
            # One wrong answer of a node must not cost a payment that nobody would look at again.
            log.error("ALARM %s: %s was in another block %d than the node has now", self._network.id, deposit.id, height)

    def _cursor(self) -> Cursor | None:
        return self._store.get(Cursor, network=self._network.id)


def _has_a_turn(deposit: Deposit, taken: Counter[str]) -> bool:
    """Whether it is among the first of its address, and of its owner."""
    owner = deposit.tenant or deposit.address
    taken[f"address {deposit.address}"] += 1
    if taken[f"address {deposit.address}"] > MOST_TO_ONE:
        return False
    taken[f"owner {owner}"] += 1
    return taken[f"owner {owner}"] <= MOST_AT_ONCE
