"""The daily limit of new addresses for one merchant, by UTC day.

Each key has its limits, and a merchant may have a hundred keys: ten million addresses a day, which are watched for ever, and at
which all merchants' index pool would end within months. Counting costs ordinary merchants nothing: a process counts a merchant's
addresses of the day only after each hundred that it has made for it, those that were not counted before, ten thousand at most. So
the bound is passed by a hundred for each process at work.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId, first_id
from chalicelib.domain.withdrawals.limits import DAY_MS
from chalicelib.usecases.ports.store import Span, Store

log = logging.getLogger(__name__)

STEP = 100
COUNTED_AT_ONCE = 10_000
SETTLED_MS = 10_000
"""Younger addresses are counted the next time: a request that was given its id earlier may commit after one with a later id."""
_REMEMBERED = 10_000


@dataclass(slots=True)
class _Day:
    """The count of a merchant's day in this process: `total` were made before `since` (ms since 1970), and from there to
    `after`."""

    day: int
    since: int
    made: int = 0
    total: int = 0
    after: str | None = None
    told: bool = False


class DailyAddresses:
    """`most` in a day for each merchant and realm; 0 for any number. Safe for threads."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most = store, most
        self._days: dict[TenantId, _Day] = {}
        self._lock = threading.Lock()

    def demand_room(self, tenant: TenantId, now: int) -> None:
        """Check for room for one more address at `now` (ms since 1970). Raises BusinessRule where the merchant has made too
        many, Unavailable."""
        if not self._most:
            return
        with self._lock:
            known = self._known(tenant, now // DAY_MS)
            known.made += 1
            if known.made % STEP == 0 and known.total < self._most:
                self._count(tenant, known, now)
            if known.total < self._most:
                return
            if not known.told:
                known.told = True
                log.error("ALARM %s has made %d addresses today: it gets no more until tomorrow", tenant, known.total)
        raise BusinessRule("network", f"at most {self._most} addresses may be made in a day (UTC)")

    def _known(self, tenant: TenantId, day: int) -> _Day:
        known = self._days.get(tenant)
        if known is None or known.day != day:
            if len(self._days) >= _REMEMBERED:
                self._days.clear()
            known = self._days[tenant] = _Day(day, day * DAY_MS)
        return known

    def _count(self, tenant: TenantId, known: _Day, now: int) -> None:
        upto = max(known.since, now - SETTLED_MS)
        span = Span(first_id("addr", known.since), first_id("addr", upto))
        found = self._store.count((Address, {"tenant": tenant}), most=COUNTED_AT_ONCE, after=known.after, span=span)
        known.total, known.after = known.total + found.count, found.last
        if found.last is None:
            known.since = upto
