"""Ceilings of the index pools: raised ahead of need, and recorded outside the tables before an index below them is given out.

1. *Outside first.* The new ceiling is recorded, then stored in the pool's row. A crash in between leaves a record above the row.
2. *A record above the row is believed.* Either a process died there, or the tables are older than the record: restored to an
   earlier second, or made anew. Indexes below the record may have been given out by a row that is gone, so the pool goes on at the
   record. That skips 75,000 indexes at most where a process only died; a pool has two thousand million.
3. *The record never falls.* What is written is above everything that was read of row and record. The record knows no conditional
   write, so a writer that slept may still put an older number there: restoring reads the highest that was ever written
   (`CeilingRecords.highest`), and the next run writes the row's again.
4. *The row has versions enough.* It is changed only as it was read; a request takes indexes only below its ceiling.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from chalicelib.domain.addresses.addresses import Xpub
from chalicelib.domain.addresses.index_pools import LEAST_LEFT, IndexPool, pool_name
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import Realm
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.ceilings import CeilingRecords
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


class IndexCeilings:
    """The ceilings of one deployment's pools. For housekeeping and the operator's commands: no request may raise one."""

    def __init__(self, store: Store, records: CeilingRecords, pools: Sequence[str]) -> None:
        self._store, self._records, self._pools = store, records, tuple(pools)

    def keep(self, realm: Realm) -> None:
        """Raise the ceilings of a realm's pools where too little is left below them; open the pools that have no ceiling yet.

        Twice, and two at once, are safe. One pool's failure does not stop the others. Raises Failures, Unavailable.
        """
        names = [pool_name(realm, pool) for pool in self._pools if self._store.get(Xpub, realm=realm, pool=pool) is not None]
        recorded = self._records.read(names) if names else {}
        with Each("index pools") as each:
            for name in names:
                each.take(name, partial(self._kept, name, recorded.get(name, 0)))

    def _kept(self, name: str, recorded: int) -> None:
        first = True

        def decide() -> None:
            nonlocal first
            before, again, first = self._store.index_pool(name), not first, False
            pool = before or IndexPool()
            if pool.closed:
                return  # `restore` opens it
            if recorded > (pool.ceiling or 0):
                log.error(
                    "ALARM %s: its row ends at %s, the recorded ceiling is %d: it goes on there", name, pool.ceiling, recorded
                )
                pool = pool.skipped_to(recorded)
            elif pool.ceiling is not None and pool.left >= LEAST_LEFT:
                if recorded < pool.ceiling and not again:
                    log.warning("%s: the recorded ceiling was %d, and is %d again", name, recorded, pool.ceiling)
                    self._records.write(name, pool.ceiling)
                return
            self._raise(name, before, pool, recorded)

        until_settled(decide)

    def _raise(self, name: str, before: IndexPool | None, pool: IndexPool, recorded: int) -> None:
        after = pool.raised(recorded)
        if after.ceiling is not None and after.ceiling > recorded:
            self._records.write(name, after.ceiling)
        self._store.change_index_pool(name, before, after)

    def recorded(self, realm: Realm, pool: str) -> int | None:
        """The index below which addresses of a pool may have been given out, by the record outside the tables. Raises
        Unavailable."""
        return self._records.highest(pool_name(realm, pool))

    def reopen(self, realm: Realm, pool: str, at: int) -> int:
        """Let a pool go on at `at` or above, a closed one never below its record; its next index. It never goes back. Raises
        Unavailable."""
        name = pool_name(realm, pool)
        recorded = self._records.highest(name) or 0

        def decide() -> int:
            before = self._store.index_pool(name)
            pool = before or IndexPool()
            if not pool.closed and pool.count >= at:
                return pool.count
            first = max(at, recorded) if pool.closed else at
            self._raise(name, before, replace(pool, count=first, begins=first), recorded)
            return first

        return until_settled(decide)

    def put_back(self, realm: Realm, since: int, below: int | None = None) -> dict[str, int]:
        """After a point-in-time restore, known since `since`: let each pool go on above every index that may have been given
        out; returns that index by pool. The same again changes nothing.

        `below` stands for a record that is lost. Raises BusinessRule where a pool has neither; Unavailable.
        """
        found: dict[str, int] = {}
        for pool in self._pools:
            name = pool_name(realm, pool)
            if self._store.get(Xpub, realm=realm, pool=pool) is None:
                continue
            recorded = self._records.highest(name)
            at = max(recorded or 0, below or 0)

            def decide(name: str = name, at: int = at, recorded: int | None = recorded) -> int | None:
                before = self._store.index_pool(name)
                pool = before or IndexPool()
                if pool.closed:
                    return None
                if pool.reopened >= since:
                    return pool.begins
                if recorded is None and below is None:
                    raise BusinessRule("below", f"{name} has no recorded ceiling: say below which index addresses were given out")
                opened = replace(pool.skipped_to(at), reopened=since)
                self._raise(name, before, opened, recorded or 0)
                return opened.begins

            begins = until_settled(decide)
            if begins is not None:
                found[pool] = begins
        return found
