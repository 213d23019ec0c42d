"""Crediting what is deep enough: step 2 of the scanner's protocol (`usecases/scanning/scanner`)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.scanning.asked_credits import AskedCredits
from chalicelib.domain.work import Work
from chalicelib.usecases.base.fairness import MOST_AT_ONCE, MOST_TO_ONE
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.base.side_by_side import ahead, side_by_side
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.deposits.groups import MOST as MOST_TOGETHER
from chalicelib.usecases.deposits.groups import Prepared
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.scanning.quorum import LargePayments
from chalicelib.usecases.scanning.reorganisations import Reorganisations
from chalicelib.usecases.scanning.sharing import Sharing, lanes_of, whole_lanes

log = logging.getLogger(__name__)

CONFIRM_AT_ONCE = 100
MOST_ASKED = 1_000
"""Due deposits behind these that are read at once, where there are so many: in order of their lanes, and to be shared out."""
_PATIENCE = 3
"""How often a function tries a group while others are at its balance. Whoever asked it leaves the lane at once."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One crediting of what is `final`, the last block that is deep enough. `tried`: deposits that it came to. `asked`: those that
    others were asked for, in whose lanes it tries a group `patience` times where another worker is there."""

    cursor: Cursor
    final: int
    more: Callable[[], bool]
    each: Each
    patience: int = 1
    tried: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)


class Confirming:
    """Of one network. Two at once on the same network waste work and harm nothing: of two that credit a deposit one does."""

    def __init__(self, context: NetworkContext, deposits: Deposits, forks: Reorganisations, sharing: Sharing) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._clock = context.clock
        self._deposits, self._forks, self._sharing = deposits, forks, sharing
        self._large = LargePayments(context, deposits.rates)

    def confirm(self, cursor: Cursor, more: Callable[[], bool]) -> None:
        """Credit the pending deposits that are deep enough below `cursor`, and still in the chain: a fair share of each owner
        first, then the rest. A deposit that can not be credited does not hold up the others. Raises Unavailable, Failures."""
        # Blocks that were read count, not what a node says that its height is.
        final = min(cursor.number, cursor.tip) - self._network.confirmations + 1
        if final < 0:
            return
        with Each(f"{self._network.id}: deposits") as each:
            run = _Run(cursor, final, more, each)
            self._large.begin()
            if not self._confirm(run, Counter()):
                self._confirm(run, None)

    def _confirm(self, run: _Run, taken: Counter[str] | None) -> bool:
        """Whether no merchant's deposit was left for later. `taken` counts deposits by merchant; None where there is no such bound,
        and what others were asked for is come to as well."""
        all_served = True
        for some in self._pages(run, taken is not None):
            ready, hashes = list[Deposit](), dict[int, str | None]()
            in_time = True
            for deposit in some:
                if taken is not None and (deposit.id in run.asked or not _has_a_turn(deposit, taken)):
                    all_served = False
                    continue
                in_time = run.more()
                if not in_time:
                    break
                run.tried.add(deposit.id)
                run.each.take(deposit.id, partial(self._look_at, deposit, run.cursor, hashes, ready))
            self._credit(ready, run)
            if not in_time:
                return True
        return all_served

    def _pages(self, run: _Run, asks: bool) -> Iterator[Sequence[Deposit]]:
        """What is due and was not tried in this run, a page at a time. Of many a thousand are read at once, since the members of
        a group lie far apart; where this run `asks`, others get what is more than a page of them."""
        after: Work | None = None
        while True:
            due = self._due(run, after, CONFIRM_AT_ONCE)
            crowded = len(due) == CONFIRM_AT_ONCE
            if crowded:
                due = [*due, *self._due(run, due[-1], MOST_ASKED)]
            found = [d for d in self._read(work.id for work in due if work.id not in run.tried) if d.status == "pending"]
            if crowded:
                lanes = lanes_of(found)
                if asks:
                    self._ask(run, lanes, due)
                found = [deposit for lane in lanes for deposit in lane]
            for start in range(0, len(found), CONFIRM_AT_ONCE):
                yield found[start : start + CONFIRM_AT_ONCE]
            if len(due) < CONFIRM_AT_ONCE + MOST_ASKED:
                return
            # A deposit that has to wait must not hold up those behind it.
            after = due[-1]

    def _due(self, run: _Run, after: Work | None, most: int) -> Sequence[Work]:
        return self._store.open_work("deposit", self._network.id, upto=f"{run.final:015d}", after=after, limit=most)

    def _ask(self, run: _Run, lanes: Sequence[Sequence[Deposit]], due: Sequence[Work]) -> None:
        """Ask other functions to credit the lanes behind the first page, where that is much: each deposit of what is `due` at most
        once a minute, since it may have to wait."""
        own = list(accumulate(len(lane) for lane in lanes))
        behind = [lane for lane, upto in zip(lanes, own, strict=True) if upto > CONFIRM_AT_ONCE]
        if not self._sharing.wanted(sum(len(lane) for lane in behind)):
            return
        now = self._clock.now_ms()
        record = self._store.get(AskedCredits, network=self._network.id) or AskedCredits(self._network.id)
        covered = {work.id for work in due if record.covers(work, now)}
        run.asked.update(deposit.id for lane in behind for deposit in lane if deposit.id in covered)
        fresh = [[deposit for deposit in lane if deposit.id not in covered] for lane in behind]
        if not self._sharing.wanted(sum(len(lane) for lane in fresh)):
            return
        run.asked.update(deposit.id for lane in fresh for deposit in lane)
        try:
            self._store.commit([Save(record.after(due[-1], now))])
        except Conflict:
            log.info("%s: another worker asks for them", self._network.id)
            return
        for ids in whole_lanes(fresh):
            self._sharing.ask_credited(ids, now)

    def help(self, keys: Sequence[str], cursor: Cursor, more: Callable[[], bool]) -> None:
        """Credit those of the deposits `keys` that are due, on a poll's behalf. Raises Unavailable, Failures."""
        final = min(cursor.number, cursor.tip) - self._network.confirmations + 1
        ready, hashes = list[Deposit](), dict[int, str | None]()
        self._large.begin()
        with Each(f"{self._network.id}: shared deposits") as each:
            run = _Run(cursor, final, more, each, patience=_PATIENCE)
            for deposit in self._read(keys):
                if deposit.status != "pending" or deposit.network != self._network.id:
                    continue
                if deposit.block_number is not None and deposit.block_number <= final:
                    each.take(deposit.id, partial(self._look_at, deposit, cursor, hashes, ready))
            run.asked.update(keys)
            self._credit(ready, run, more)

    def _read(self, keys: Iterable[str]) -> list[Deposit]:
        wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": key}) for key in keys]
        return [deposit for deposit in known_of(self._store, wanted) if deposit is not None]

    def _credit(self, ready: Sequence[Deposit], run: _Run, more: Callable[[], bool] = lambda: True) -> None:
        """Credit deposits whose blocks were found in the chain: those of one merchant, coin and part of a list together, and lanes
        side by side. What is of one lane meets at its balance: one group after the other, while there is time, and each is prepared
        while the one before it is committed."""

        def step(lane: Sequence[Deposit]) -> None:
            groups: dict[tuple[object, ...], list[Deposit]] = {}
            for deposit in lane:
                alone = deposit.id if deposit.tenant is None or deposit.part is None else None
                groups.setdefault((deposit.block_hash, deposit.part, alone), []).append(deposit)
            parts = [each[at : at + MOST_TOGETHER] for each in groups.values() for at in range(0, len(each), MOST_TOGETHER)]
            together = sum(len(part) > 1 for part in parts) > 1
            for part, prepared in ahead(partial(self._prepare, run), parts) if together else ((part, None) for part in parts):
                if not more() or not self._credit_group(part, run, prepared):
                    return

        side_by_side([partial(step, lane) for lane in lanes_of(ready)])

    def _prepare(self, run: _Run, group: Sequence[Deposit]) -> Prepared | None:
        if len(group) < 2:
            return None
        ids = [deposit.id for deposit in group]
        return self._deposits.prepare_together(self._network, ids, group[0].block[1], run.cursor.tip, run.cursor.epoch)

    def _credit_group(self, group: Sequence[Deposit], run: _Run, prepared: Prepared | None) -> bool:
        """In one transaction, and one by one what that can not take, all of them where it fails for a reason that is not the
        store's. Where the block has fallen out, or the store does not answer, all of them wait. Whether the lane is to be gone on
        with: one that others were asked for is left to whom it is met by."""
        _, block_hash = group[0].block
        left: Sequence[str] | None = [deposit.id for deposit in group]
        at = block_hash, run.cursor.tip, run.cursor.epoch
        if len(group) > 1:
            patience = run.patience if group[0].id in run.asked else None

            def together() -> None:
                nonlocal left
                ids = [deposit.id for deposit in group]
                try:
                    left = self._deposits.confirm_together(self._network, ids, *at, patience, prepared)
                except (Conflict, Unavailable):
                    left = []
                    raise

            run.each.take(group[0].id, together)
        for key in left or ():
            run.each.take(key, partial(self._deposits.confirm, self._network, key, *at))
        return left is not None

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


def _has_a_turn(deposit: Deposit, taken: Counter[str]) -> bool:
    """Whether it is among the first of its address, and of its owner."""
    owner = deposit.tenant or deposit.address
    taken[f"address {deposit.address}"] += 1
    if taken[f"address {deposit.address}"] > MOST_TO_ONE:
        return False
    taken[f"owner {owner}"] += 1
    return taken[f"owner {owner}"] <= MOST_AT_ONCE
