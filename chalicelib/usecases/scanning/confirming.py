"""Crediting what is deep enough: step 2 of the scanner's protocol (`usecases/scanning/scanner`)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.work import Work
from chalicelib.usecases.base.fairness import MOST_AT_ONCE, MOST_TO_ONE
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.base.side_by_side import side_by_side
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.deposits.groups import MOST as MOST_TOGETHER
from chalicelib.usecases.scanning.quorum import LargePayments
from chalicelib.usecases.scanning.reorganisations import Reorganisations
from chalicelib.usecases.scanning.sharing import Sharing, shares

log = logging.getLogger(__name__)

CONFIRM_AT_ONCE = 100
MOST_ASKED = 1_000
"""Due deposits that are read to be shared out."""


class Confirming:
    """Of one network. Two at once on the same network waste work and harm nothing: of two that credit a deposit one does."""

    def __init__(self, context: NetworkContext, deposits: Deposits, forks: Reorganisations, sharing: Sharing) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._deposits, self._forks, self._sharing = deposits, forks, sharing
        self._large = LargePayments(context, deposits.rates)

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

    def help(self, keys: Sequence[str], cursor: Cursor, more: Callable[[], bool]) -> None:
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


def _has_a_turn(deposit: Deposit, taken: Counter[str]) -> bool:
    """Whether it is among the first of its address, and of its owner."""
    owner = deposit.tenant or deposit.address
    taken[f"address {deposit.address}"] += 1
    if taken[f"address {deposit.address}"] > MOST_TO_ONE:
        return False
    taken[f"owner {owner}"] += 1
    return taken[f"owner {owner}"] <= MOST_AT_ONCE
