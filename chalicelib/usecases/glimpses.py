"""Payments at first sight: in the mempool, before they are in a block (bitcoin and litecoin).

A glimpse is news and never money: the deposit is pending without a block, its invoice counts it as seen, and nothing is
credited or completed by it. The block decides: the scan finds the same movement there under the same id, whether somebody
glimpsed it or not. So looking may be incomplete: what a process misses here it learns from the block.

What was glimpsed has an obligation until it is in a block. Where it is neither waiting nor in any block that was scanned since,
it was replaced, double-spent or dropped. A node that was restarted, or another provider, has not everything in its mempool:
only what stays away for `GONE_MS` is orphaned. Should it come back, it is pending again.

What waits for the operator's own wallets is left to its block: nobody is told of it, and change of our own payments is no news.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.work import Work
from chalicelib.usecases.changes import Conflict, Save
from chalicelib.usecases.deposits import Deposits
from chalicelib.usecases.matching import Matcher
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.readers import Mempool
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

MOST_FETCHED = 2_000
"""Transactions that one poll asks the node for."""
FETCHED_AT_ONCE = 200
GONE_MS = 10 * 60 * 1000
"""How long a payment may be seen nowhere before it counts as gone."""
_OPEN_AT_ONCE = 1_000


@dataclass
class Looks:
    """What this process has looked at, per network. Lost with the process: then it looks again, and finds what it knows."""

    waiting: frozenset[str] = frozenset()
    """The mempool when it was last looked into."""
    unread: set[str] = field(default_factory=set)
    """Transactions of it that there was no time for."""
    txids: dict[str, str] = field(default_factory=dict)
    """The transactions of open glimpses, by deposit."""


class Glimpses:
    def __init__(
        self,
        network: Network,
        mempool: Mempool,
        store: Store,
        deposits: Deposits,
        rules: AddressRules,
        clock: Clock,
        looks: Looks,
    ) -> None:
        self._network, self._mempool, self._store = network, mempool, store
        self._deposits, self._clock, self._looks = deposits, clock, looks
        self._matcher = Matcher(network, store, rules)

    def look(self, scan: Callable[[], Cursor], more: Callable[[], bool]) -> Cursor:
        """Look into the mempool, let `scan` pass the blocks to the tip, then record what is new and end what is gone.

        In this order: what was not waiting any more is in a block that `scan` passes, or gone. Raises Unavailable, Conflict, and
        what `scan` raises; where only the mempool can not be read, the blocks are scanned all the same.
        """
        try:
            waiting = self._mempool.waiting()
        except Exception:
            scan()
            raise
        cursor = scan()
        if cursor.number >= cursor.tip:
            self._end_gone(waiting, more)
        self._record_new(waiting, more)
        return cursor

    def _record_new(self, waiting: frozenset[str], more: Callable[[], bool]) -> None:
        """What came since the last look first: of a process' first look, and of a flood, the rest is read bit by bit."""
        looks = self._looks
        fresh = waiting - looks.waiting - looks.unread
        wanted = [*fresh, *(looks.unread & waiting)]
        looks.waiting, looks.unread = waiting, set(wanted)
        for start in range(0, min(len(wanted), MOST_FETCHED), FETCHED_AT_ONCE):
            if start and not more():
                return
            batch = wanted[start : start + FETCHED_AT_ONCE]
            self._record(batch)
            looks.unread.difference_update(batch)

    def _record(self, txids: Sequence[str]) -> None:
        transfers = self._mempool.transfers_of(txids)
        contracts = self._matcher.contracts()
        watched = self._matcher.ours(transfers)
        for transfer in transfers:
            payee = watched.get(transfer.recipient)
            if payee is None or payee.tenant is None or not self._matcher.bookable(transfer, contracts):
                continue
            coin = self._matcher.native() if transfer.contract is None else contracts[transfer.contract]
            found = self._deposits.glimpse(self._network, coin, transfer, payee)
            self._looks.txids[found] = transfer.txid

    def _end_gone(self, waiting: Collection[str], more: Callable[[], bool]) -> None:
        """End what is neither waiting nor in a block. `waiting` is older than the last block that was scanned."""
        after: Work | None = None
        still: dict[str, str] = {}
        while True:
            works = self._store.open_work("glimpse", self._network.id, after=after, limit=_OPEN_AT_ONCE)
            # What waited when it was last read, and waits now, needs no read.
            known = {work.id: self._looks.txids.get(work.id, "") for work in works}
            still |= {key: txid for key, txid in known.items() if txid in waiting}
            unknown = [key for key, txid in known.items() if txid not in waiting]
            for found in self._store.get_many([(Deposit, {"id": key}) for key in unknown]):
                awaited = isinstance(found, Deposit) and found.status == "pending" and found.block_number is None
                if awaited and self._judge(found, found.txid in waiting):
                    still[found.id] = found.txid
            if len(works) < _OPEN_AT_ONCE or not more():
                break
            after = works[-1]
        self._looks.txids = still

    def _judge(self, deposit: Deposit, waits: bool) -> bool:
        """Note that it is missing, or waits again; end it when it was missing for too long. Whether all is well with it."""
        now = self._clock.now_ms()
        if waits and deposit.missing_since is None:
            return True
        if not waits and deposit.missing_since is not None:
            if now - deposit.missing_since >= GONE_MS:
                log.info("%s: %s is neither waiting nor in a block any more", self._network.id, deposit.id)
                self._deposits.vanish(self._network, deposit.id)
            return False
        noted = replace(deposit, missing_since=None if waits else now, version=deposit.version + 1)
        try:
            self._store.commit([Save(noted)])
        except Conflict:
            log.info("%s: %s has changed meanwhile", self._network.id, deposit.id)
            return False
        return waits
