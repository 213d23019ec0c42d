"""Lookouts: how a first delivery is found whose message was lost, without an entry in the index of time.

Almost every delivery succeeds at its first attempt, a moment after it is made, by a message that is sent as the outbox row
goes. So its own entry in the index, put and removed, is paid for in vain. A lookout is one obligation for all deliveries that an
endpoint gets within `PERIOD_MS`: the schedule looks into the endpoint's lane a minute after that, once, and wakes it where one of
them is still there (`late_deliveries.py`). That is within two and a half minutes, as by the index. What waits longer, or was
started, is in the index as ever: an attempt that failed or was interrupted, a parked delivery that is due again.

A lookout is kept before the outbox row of its deliveries goes. A function that dies in between leaves the row, which is told again.
Parcels are opened as the row goes, behind their lookout: within the minute that a function has at most, and the schedule looks a
minute after the lookout's time at the earliest. The endpoints of single invoices get too few deliveries for a lookout to be worth
it. Touches work only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from chalicelib.domain.work import Work, lane_of, time_order
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

PERIOD_MS = 30_000
LATE_MS = 1_000
"""How much later than a lookout's time a delivery of its period may be due: clocks of two relays differ (`earlier_rows.py`)."""
REMEMBERED = 20_000


def lookout_work(line: str, until: int) -> Work:
    """Open work: look for the deliveries of a lane (`deliveries.line_of`) that are made before `until`, in ms since 1970."""
    return Work("lookout", lane_of(line), time_order(until), line)


class Lookouts:
    """What it remembers is of one process: which lookouts it has opened. Safe to share between threads.

    The schedule closes one a minute after its period at the earliest, so that one opened in this period is there.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._until: dict[str, int] = {}
        self._lock = threading.Lock()

    def keep(self, lines: Iterable[str]) -> None:
        """Have all deliveries looked for that these lanes have by now. Raises Unavailable; some may be kept then."""
        until = (self._clock.now_ms() // PERIOD_MS + 1) * PERIOD_MS
        for line in lines:
            if self._until.get(line) == until:
                continue
            self._store.open(lookout_work(line, until))
            with self._lock:
                if len(self._until) >= REMEMBERED:
                    self._until.clear()
                self._until[line] = until
