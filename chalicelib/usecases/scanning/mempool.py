"""Mempool transactions: payments to us before they are in a block (bitcoin and litecoin).

A mempool transaction is news and never money: the deposit is pending without a block, its invoice counts it as seen, and nothing
is credited or completed by it. The block decides: the scan finds the same movement there under the same id, recorded here or not.
So the mempool may be read in part: the block tells the rest.

A deposit of the mempool has an obligation until it is in a block. Where its transaction is neither waiting nor in any block scanned
since, it was replaced, double-spent or dropped. The outputs that it spends tell the first two: once another transaction spends one
of them, waiting or in a block, the deposit is orphaned at once. A restarted node, or another provider, lacks a part of the mempool:
a transaction that only stays away is orphaned after `GONE_MS`. Should it come back, or be mined after all, it is pending again.

An output that was in no block itself is not remembered: a node that does not know it now may have lost it, which proves nothing.

Payments to the operator's own wallets are left to their blocks: nobody is told of them, and change of our own payments is no news.

A mempool may be full, and a node slow: the ids of waiting transactions are read before the blocks, and the transactions after all
crediting (`read`), with a time of its own. The next polls read what there was no time for, some of it beside new ones. A process
that starts anew begins at a random place, so that no transaction is always the last.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Cursor, Transfer, Unmined
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Work
from chalicelib.usecases.base.fairness import AT_LEAST, MOST_TO_ONE, in_turn, shared_out
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import Mempool
from chalicelib.usecases.scanning.matching import Matcher

log = logging.getLogger(__name__)

MOST_FETCHED = 2_000
"""Transactions that one poll asks the node for."""
FETCHED_AT_ONCE = 20
"""Each may be a hundred kilobytes, and more as the node tells it."""
NEW_TO_OLD = 3
"""Batches of new transactions for each batch of those that there was no time for before."""
GONE_MS = 10 * 60 * 1000
"""How long a payment may be seen nowhere before it counts as gone."""
_OPEN_AT_ONCE = 1_000
_MOST_ASKED = 400
"""Outputs that one look asks for: payments that are missed at the same moment are few."""
_ASKED_AT_ONCE = 40


@dataclass
class Looks:
    """The mempool transactions that this process has read, per network. A new process reads them again, and finds what it knows."""

    waiting: frozenset[str] = frozenset()
    """The mempool when it was last looked into."""
    unread: list[str] = field(default_factory=list)
    """Transactions of it that there was no time for, the longest known first."""
    txids: dict[str, str] = field(default_factory=dict)
    """The mempool transactions of pending deposits, by deposit."""


class MempoolScan:
    def __init__(self, context: NetworkContext, mempool: Mempool, deposits: Deposits, looks: Looks) -> None:
        self._context, self._network, self._store, self._clock = context, context.network, context.store, context.clock
        self._mempool, self._deposits, self._looks = mempool, deposits, looks
        self._matcher = Matcher(context)
        self._seen: tuple[frozenset[str], Cursor] | None = None

    def look(self, scan: Callable[[], Cursor | None]) -> Cursor | None:
        """List the mempool, then let `scan` pass the blocks to the tip; its cursor. `read` records what was listed, unless there is
        none.

        In this order: a transaction that left the mempool is in a block that `scan` passes, or gone. Raises Unavailable, and what
        `scan` raises; a mempool that can not be read does not stop the scan.
        """
        self._seen = None
        try:
            waiting = self._mempool.waiting()
        except Exception:
            scan()
            raise
        cursor = scan()
        if cursor is not None:
            self._seen = waiting, cursor
        return cursor

    def read(self, recording: Callable[[], bool], ending: Callable[[], bool] | None) -> None:
        """Record new mempool transactions within the time of `recording`, and end those that are gone within the time of
        `ending`: a flood of the one leaves time for the other. None: the poll ends them. Raises Failures."""
        if self._seen is None:
            return
        (waiting, cursor), self._seen = self._seen, None
        # A replacement is recorded before the replaced one goes: to its invoice it is one payment, not none.
        known = dict(self._looks.txids)
        with Each(f"{self._network.id}: first sight") as each:
            each.take("what is new", partial(self._record_new, waiting, cursor.tip, recording))
            if ending is not None and cursor.number >= cursor.tip:
                each.take("what is gone", partial(self._end_gone, waiting, known, cursor.tip, ending))

    def _record_new(self, waiting: frozenset[str], tip: int, more: Callable[[], bool]) -> None:
        """New transactions first: of a process' first look, and of a flood, the rest is read in parts."""
        looks = self._looks
        fresh = list(waiting - looks.waiting)
        random.shuffle(fresh)
        older = [txid for txid in looks.unread if txid in waiting]
        looks.waiting, looks.unread = waiting, [*older, *fresh]
        wanted = _mixed(fresh, older)[:MOST_FETCHED]
        with Each(f"{self._network.id}: new in the mempool") as each:
            for start in range(0, len(wanted), FETCHED_AT_ONCE):
                if start and not more():
                    return
                some = wanted[start : start + FETCHED_AT_ONCE]
                # A batch that can not be read, or told, must not be the first one of every poll.
                looks.unread = [*_without(looks.unread, some), *some]
                each.take(f"from {start}", partial(self._record, some, waiting, tip, more))

    def _record(self, txids: Sequence[str], waiting: Collection[str], tip: int, more: Callable[[], bool]) -> None:
        """Of what waits for one address a few are told, and the rest is left to its block. Without time the rest stays unread."""
        found = {each.txid: each for each in self._mempool.transactions(txids)}
        transfers = [transfer for each in found.values() for transfer in each.transfers]
        contracts = self._matcher.contracts()
        watched = self._matcher.ours(transfers)
        mine = [t for t in transfers if t.recipient in watched and self._matcher.bookable(t, contracts)]
        mine = in_turn(mine, lambda t: t.recipient)
        mine, _ = shared_out(mine, lambda t: t.recipient, MOST_TO_ONE)
        # Payments that this process recorded in a look that ended early come last.
        mine.sort(key=lambda t: deposit_id(self._network.id, t.txid, t.position) in self._looks.txids)
        with Each(f"{self._network.id}: glimpses") as each:
            for place, transfer in enumerate(mine):
                payee = watched[transfer.recipient]
                if payee.tenant is None:
                    continue
                if place >= AT_LEAST and not more():
                    # The rest of it is told first by the next poll.
                    self._looks.unread = [*txids, *_without(self._looks.unread, txids)]
                    return
                coin = self._context.native() if transfer.contract is None else contracts[transfer.contract]
                waits = _settled(found[transfer.txid], waiting)
                each.take(f"{transfer.txid} {transfer.position}", partial(self._detect, coin, transfer, payee, waits, tip))
        self._looks.unread = _without(self._looks.unread, txids)

    def _detect(self, coin: Coin, transfer: Transfer, payee: Watched, waits: Unmined, tip: int) -> None:
        self._looks.txids[self._deposits.detect_unmined(self._network, coin, transfer, payee, waits, tip)] = transfer.txid

    def _end_gone(self, waiting: Collection[str], looked: dict[str, str], tip: int, more: Callable[[], bool]) -> None:
        """End what is neither waiting nor in a block. `waiting` is older than the last block that was scanned.

        `looked` has the transactions of those, by deposit, that were well when they were read before.
        """
        after: Work | None = None
        still: dict[str, str] = {}
        asked = 0
        while True:
            works = self._store.open_work("glimpse", self._network.id, after=after, limit=_OPEN_AT_ONCE)
            # A transaction that waited when it was last read, and waits now, needs no read.
            known = {work.id: looked.get(work.id, "") for work in works}
            still |= {key: txid for key, txid in known.items() if txid in waiting}
            unknown = [key for key, txid in known.items() if txid not in waiting]
            found = [d for d in known_of(self._store, [(Deposit, {"id": key}) for key in unknown]) if isinstance(d, Deposit)]
            found = [d for d in found if d.status == "pending" and d.block_number is None]
            spends = {d.txid: d.spends for d in found if d.spends and d.txid not in waiting}
            if self._looks.unread:
                spends = {}  # what took its place may be among them, and pay the same invoice: time decides
            ousted = self._ousted(spends, _MOST_ASKED - asked)
            asked += sum(map(len, spends.values()))
            found.sort(key=lambda d: d.txid not in ousted and d.txid not in waiting and self._waited_for(d))
            with Each(f"{self._network.id}: glimpses") as each:
                for place, deposit in enumerate(found):
                    if place >= AT_LEAST and not more():
                        break
                    gone = deposit.txid in ousted
                    each.take(deposit.id, partial(self._end, deposit, gone, deposit.txid in waiting, still, tip))
            if len(works) < _OPEN_AT_ONCE or not more():
                break
            after = works[-1]
        self._looks.txids = still

    def _ousted(self, spends: dict[str, tuple[str, ...]], most: int) -> set[str]:
        """Those transactions whose place another one has taken. A node that can not tell ends none of them: time does."""
        ousted: set[str] = set()
        batch: dict[str, tuple[str, ...]] = {}
        try:
            for txid, outpoints in spends.items():
                if most < len(outpoints):
                    break
                most -= len(outpoints)
                if batch and sum(map(len, batch.values())) + len(outpoints) > _ASKED_AT_ONCE:
                    ousted |= self._mempool.ousted(batch)
                    batch = {}
                batch[txid] = outpoints
            if batch:
                ousted |= self._mempool.ousted(batch)
        except Unavailable as error:
            log.warning("%s: what became of payments is not known: %s", self._network.id, error)
        return ousted

    def _end(self, deposit: Deposit, ousted: bool, waits: bool, still: dict[str, str], tip: int) -> None:
        """End what is gone; note in `still` what is well."""
        if ousted:
            log.info("%s: another transaction spends what %s spent", self._network.id, deposit.id)
            self._deposits.vanish(self._network, deposit.id, tip)
        elif self._look_at(deposit, waits, tip):
            still[deposit.id] = deposit.txid

    def _waited_for(self, deposit: Deposit) -> bool:
        """Whether it is known to be missing, and not for too long yet: nothing is to be done about it now."""
        return deposit.missing_since is not None and self._clock.now_ms() - deposit.missing_since < GONE_MS

    def _look_at(self, deposit: Deposit, waits: bool, tip: int) -> bool:
        """Note that it is missing, or waits again; end it when it was missing for too long. Whether all is well with it."""
        now = self._clock.now_ms()
        if waits and deposit.missing_since is None:
            return True
        if not waits and deposit.missing_since is not None:
            if now - deposit.missing_since >= GONE_MS:
                log.info("%s: %s is neither waiting nor in a block any more", self._network.id, deposit.id)
                self._deposits.vanish(self._network, deposit.id, tip)
            return False
        noted = replace(next_version(deposit), missing_since=None if waits else now)
        try:
            self._store.commit([Save(noted)])
        except Conflict:
            log.info("%s: %s has changed meanwhile", self._network.id, deposit.id)
            return False
        return waits


def _mixed(fresh: Sequence[str], older: Sequence[str]) -> list[str]:
    """Batches of both, `NEW_TO_OLD` of what is new for one of the rest: a flood must not keep that unread for ever."""
    step = NEW_TO_OLD * FETCHED_AT_ONCE
    mixed: list[str] = []
    for turn in range(max(-(-len(fresh) // step), -(-len(older) // FETCHED_AT_ONCE))):
        mixed += fresh[turn * step : (turn + 1) * step]
        mixed += older[turn * FETCHED_AT_ONCE : (turn + 1) * FETCHED_AT_ONCE]
    return mixed


def _without(txids: Sequence[str], some: Sequence[str]) -> list[str]:
    left_out = set(some)
    return [txid for txid in txids if txid not in left_out]


def _settled(waits: Unmined, waiting: Collection[str]) -> Unmined:
    """`waits` with those outputs alone that were in a block when it was seen `waiting`."""
    return waits._replace(spends=tuple(each for each in waits.spends if each.split(":")[0] not in waiting))
