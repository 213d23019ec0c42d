"""Scanning one network: blocks after the cursor, reorganisations, confirmations.

The protocol, and what makes each step safe to die after:

1. *Store, then pass.* The list of a block's deposits is stored under its hash, then the deposits, then the cursor moves.
   Dying before the last step scans the block again, and finds the same deposits by their ids.
2. *Credit late.* A deposit is credited when its block has the network's confirmations, the node still names the same hash
   at its height, and no reorganisation was followed since that was checked (the cursor's epoch).
3. *Walk back, then go on.* When the chain no longer holds the cursor's hash, the fork is found among the remembered
   hashes; the cursor notes where to rewind to and raises its epoch; every deposit of the dropped blocks is orphaned; only
   then the cursor stands at the fork. A note that is found unfinished is finished first.
4. *Too deep stops.* A fork below what is remembered halts crediting on the network until an operator looks.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.domain.addresses import Watched
from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.chain import Block, BlockDeposits, Cursor, Transfer
from chalicelib.domain.deposits import Deposit, deposit_id
from chalicelib.domain.work import Work
from chalicelib.usecases.addresses import watched_key
from chalicelib.usecases.changes import Conflict, Save
from chalicelib.usecases.deposits import Deposits
from chalicelib.usecases.forks import BATCH_BLOCKS, Forks
from chalicelib.usecases.large_payments import LargePayments
from chalicelib.usecases.own_transactions import from_others
from chalicelib.usecases.ports import AddressRules, ChainReader, Clock, Store, Unavailable
from chalicelib.usecases.trying import until_settled

log = logging.getLogger(__name__)

CONFIRM_AT_ONCE = 100
CHANGES_MET = 5
STARTED_AGO = 300
"""Seconds that may lie between a network's activation and its first poll, with room for slow blocks."""
MOST_UNITS = 10**34
"""Sums of amounts must stay exact: DynamoDB keeps 38 digits."""


class Halted(Exception):
    """Crediting on this network has stopped until an operator takes it up again."""


class Scanner:
    """Scans one network. Two at once on the same network waste work and harm nothing: the cursor's version lets one pass."""

    def __init__(
        self, network: Network, reader: ChainReader, store: Store, deposits: Deposits, rules: AddressRules, clock: Clock
    ) -> None:
        self._network, self._reader, self._store = network, reader, store
        self._deposits, self._rules, self._clock = deposits, rules, clock
        self._forks = Forks(network, reader, store, deposits, clock)
        self._large = LargePayments(network, reader, store, rules, deposits.rates, clock)

    def start(self, seconds_ago: int = 0) -> Cursor:
        """The network's cursor, set to the chain's tip when there is none yet: what came before can not be ours.

        `seconds_ago` is for how long addresses may have been given out before: it begins that many seconds of blocks deeper.
        """
        cursor = self._cursor()
        if cursor is not None:
            return cursor
        tip = self._reader.tip()
        back = math.ceil(seconds_ago / self._network.block_time) if seconds_ago else 0
        first = self._forks.standing_at(max(0, tip - back), tip)
        try:
            self._store.commit([Save(first)])
        except Conflict:
            log.info("another poll started %s first", self._network.id)
        return self._cursor() or first

    def resume(self, from_block: int | None = None) -> Cursor:
        """Take a halted network up again, see `Forks.resume`. Raises ValueError when it is not halted, Unavailable, Conflict."""
        return self._forks.resume(self.start(), from_block)

    def poll(self, more: Callable[[], bool]) -> Cursor:
        """Scan to the tip, or until `more` says that the time is over; then confirm what is due.

        Raises Halted (an operator has to `resume`), Unavailable, Conflict.
        """
        cursor = self.start(STARTED_AGO)
        if cursor.rewind_to is not None:
            cursor = self._forks.rewind(cursor)
        tip = self._reader.tip()
        changed = 0
        if cursor.number < tip:
            # Coins that were registered before the tip was mined count in every block up to it.
            self._store.catalogue(self._network.realm, fresh=True)
        while cursor.halted is None:
            if not self._still_there(cursor, tip):
                cursor = self._forks.follow(cursor)
                continue
            if cursor.number >= tip:
                break
            blocks = self._reader.blocks(cursor.number + 1, min(tip, cursor.number + BATCH_BLOCKS), self._contracts())
            linked = self._linked(cursor, blocks)
            if linked is None:
                changed += 1
                if changed > CHANGES_MET:
                    raise Unavailable(f"the node of {self._network.id} contradicts itself")
                continue
            if not linked:
                break
            cursor = self._pass(cursor, linked, tip)
            if not more():
                break
        if cursor.halted is not None:
            raise Halted(f"{self._network.id} is halted: {cursor.halted}")
        self._confirm_due(cursor, tip, more)
        return cursor

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

    def _contracts(self) -> dict[str, Coin]:
        catalogue = self._store.catalogue(self._network.realm)
        return {
            self._rules.storage_form(self._network.slug, coin.contract): coin
            for coin in catalogue.coins_of(self._network.slug)
            if coin.contract is not None
        }

    def _pass(self, cursor: Cursor, blocks: Sequence[Block], tip: int) -> Cursor:
        """Store what is ours in `blocks`, then let the cursor pass them."""
        self.record(blocks, cursor.epoch)
        last = blocks[-1]
        recent = {**cursor.recent, **{str(b.number): b.hash for b in blocks}}
        keep = last.number - self._network.reorg_depth
        after = replace(
            cursor,
            number=last.number,
            hash=last.hash,
            block_time=last.time,
            tip=max(tip, last.number),
            updated_at=self._clock.now_ms(),
            recent={number: hash_ for number, hash_ in recent.items() if int(number) >= keep},
            version=cursor.version + 1,
        )
        self._store.commit([Save(after)])
        return after

    def contracts(self) -> dict[str, Coin]:
        """The tokens of the network by the storage form of their contracts."""
        return self._contracts()

    def record(self, blocks: Sequence[Block], epoch: int) -> None:
        """Store what is ours in `blocks`, which the chain holds at `epoch`; what is stored already stays as it is.

        Raises Conflict (`AtEpoch`: a reorganisation was followed meanwhile), Unavailable.
        """
        watched = self._ours(blocks)
        contracts = self._contracts()
        native = self._store.catalogue(self._network.realm).native(self._network.slug)
        for block in blocks:
            mine = [t for t in block.transfers if t.recipient in watched and self._bookable(t, contracts)]
            mine = from_others(self._store, self._network, mine, watched)
            if mine:
                self._store_block(block, mine, watched, contracts, native, epoch)

    def _ours(self, blocks: Sequence[Block]) -> dict[str, Watched]:
        """The watched addresses among all recipients, by batch reads: the cost does not depend on how many are watched."""
        recipients = sorted({t.recipient for block in blocks for t in block.transfers})
        found = self._store.get_many([watched_key(self._network, address) for address in recipients])
        ours = {address: watched for address, watched in zip(recipients, found, strict=True) if watched is not None}
        for address, watched in ours.items():
            if self._network.slug not in watched.networks:
                log.error("ALARM %s: a payment to %s, which receives on %s", self._network.id, address, ", ".join(watched.networks))
        return {address: watched for address, watched in ours.items() if self._network.slug in watched.networks}

    def _bookable(self, transfer: Transfer, contracts: dict[str, Coin]) -> bool:
        """Whether it is of a coin of ours, and an amount that sums of it can be kept of: no coin has as much as this."""
        if transfer.contract is not None and transfer.contract not in contracts:
            return False
        if transfer.amount > MOST_UNITS:
            log.error("ALARM %s: %s moves %d units, which is set aside", self._network.id, transfer.txid, transfer.amount)
            return False
        return True

    def _store_block(
        self,
        block: Block,
        mine: list[Transfer],
        watched: dict[str, Watched],
        contracts: dict[str, Coin],
        native: Coin,
        epoch: int,
    ) -> None:
        proven = self._reader.proven(block, mine)
        if not proven:
            return
        ids = [deposit_id(self._network.id, t.txid, t.position) for t in proven]
        # The list first: whoever drops the block finds everything that may have been stored of it, also where we die half-way
        # and somebody else credits what we did store.
        self._list(block, ids)
        for t in proven:
            coin = native if t.contract is None else contracts[t.contract]
            self._deposits.detect(self._network, coin, block, t, watched[t.recipient], epoch)

    def _list(self, block: Block, ids: list[str]) -> None:
        def decide() -> None:
            known = self._store.get(BlockDeposits, network=self._network.id, hash=block.hash)
            if known is None:
                self._store.commit([Save(BlockDeposits(self._network.id, block.hash, tuple(ids)))])
            elif not set(ids) <= set(known.deposits):
                both = tuple(dict.fromkeys((*known.deposits, *ids)))
                self._store.commit([Save(replace(known, deposits=both, version=known.version + 1))])

        until_settled(decide)

    def _confirm_due(self, cursor: Cursor, tip: int, more: Callable[[], bool]) -> None:
        """Credit the pending deposits that are deep enough and still in the chain."""
        # Blocks that were read count, not what a node says that its height is.
        final = min(cursor.number, tip) - self._network.confirmations + 1
        if final < 0:
            return
        after: Work | None = None
        while True:
            due = self._store.open_work("deposit", self._network.id, upto=f"{final:015d}", after=after, limit=CONFIRM_AT_ONCE)
            wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": work.id}) for work in due]
            hashes: dict[int, str | None] = {}
            for deposit in self._store.get_many(wanted):
                if deposit is None or deposit.status != "pending":
                    continue
                if not more():
                    return
                height = deposit.block_number
                if height not in hashes:
                    hashes[height] = self._reader.block_hash(height)
                if hashes[height] == deposit.block_hash:
                    if self._large.may_credit(deposit):
                        self._deposits.confirm(self._network, deposit.id, deposit.block_hash, tip, cursor.epoch)
                elif hashes[height] is not None and cursor.recent.get(str(height)) == hashes[height]:
                    # The block that held it is gone, and the cursor stands on the chain that replaced it: a scan that died
                    # between storing the deposit and passing its block left it behind.
                    self._deposits.orphan(self._network, deposit.id, deposit.block_hash)
                elif str(height) not in cursor.recent:
                    # One wrong answer of a node must not cost a payment that nobody would look at again.
                    log.error("ALARM %s: %s was in another block %d than the node has now", self._network.id, deposit.id, height)
            if len(due) < CONFIRM_AT_ONCE:
                return
            # What has to wait must not keep what is behind it waiting.
            after = due[-1]

    def _cursor(self) -> Cursor | None:
        return self._store.get(Cursor, network=self._network.id)
