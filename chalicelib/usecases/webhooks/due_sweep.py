"""The due sweep, once a minute: endpoints with due deliveries that no message brings. Touches webhooks, work and queues only.

Messages of SQS wait fifteen minutes at most. A delivery that waits longer is found here in the minute before it is due, by the
index of work in the order of time, and gets a message with exactly the delay that is left. That obligation is stored anyway, with
the change that causes it, so nothing more has to be made, paid for, or removed for a long wait. A one-time schedule of EventBridge
would be a second place for the same fact, with quotas and rights of its own.

Four searches, one after the other, each with a time of its own, of which every lane has a part. So none of them waits for another,
and one that fails leaves the others running:

- Deliveries due soon or just now. Their number is bounded by what can be sent in two and a half minutes, whatever backlog there is:
  so a lost message is replaced within two and a half minutes.
- Deliveries overdue for longer: a backlog, or deliveries that were due while nothing ran here. It goes on where the run before
  stopped. All of them are seen in one minute, and one more for each 100,000 rows or so (`BEHIND_MS` at 60 ms for a thousand). So
  long a delivery behind the backlog of others may wait for its message.
- Endpoints that are paused no more, and have parked deliveries still (`unheld_sweep.py`).
- Endpoints with a lookout: first deliveries that were due a minute ago, which are in no index (`late_deliveries.py`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.deliveries import due_of
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Page, Span, Store
from chalicelib.usecases.webhooks.due_messages import DueMessages
from chalicelib.usecases.webhooks.due_search_time import GRACE_MS, KNOWN_MS, lanes_in_turn
from chalicelib.usecases.webhooks.late_deliveries import LateLines, Together
from chalicelib.usecases.webhooks.unheld_sweep import UnheldSweep

log = logging.getLogger(__name__)

AHEAD_MS = 90_000
"""How far ahead of its time a long wait is brought: until the next run, and somewhat beyond."""
COMING_MS = 8_000
BEHIND_MS = 6_000
"""How long these searches may take to read, of the function's minute."""
ASK_MS = 6_000
"""How long the messages of one of them may take."""
LATE_ASK_MS = 3_000
"""The same of late first deliveries."""
PAGE = 1_000


class DueSweep:
    """`together` runs searches at the same time; None: one after the other."""

    def __init__(self, store: Store, queues: Queues, clock: Clock, together: Together | None = None) -> None:
        self._store, self._queues, self._clock = store, queues, clock
        self._together = together or (lambda searches: [search() for search in searches])
        self._unheld = UnheldSweep(store, clock)

    def run(self) -> int:
        """Ask for due deliveries; the number of messages sent. Raises Failures; the next run does the rest."""
        messages = DueMessages(self._store, self._queues, self._clock)
        late = LateLines(self._store, self._clock, self._together)
        with Each("due webhook deliveries") as each:
            each.take("due soon", partial(self._coming, messages))
            each.take("overdue for longer", partial(self._behind, messages))
            each.take("parked", partial(self._unheld.run, messages))
            each.take("lookouts", late.search)
            each.take("late", lambda: messages.ask(dict.fromkeys(late.found, (self._clock.now_ms(),)), LATE_ASK_MS))
        return messages.sent

    def _coming(self, messages: DueMessages) -> None:
        """Deliveries that are due soon and left to the schedule, and those overdue since the last runs."""
        start = self._clock.now_ms()
        span = Span(time_order(start - KNOWN_MS), f"{time_order(start + AHEAD_MS)}#~")
        times: dict[str, set[int]] = {}
        for lane, until in lanes_in_turn(self._clock, start + COMING_MS):
            more: str | None = None
            for page in self._pages(lane, span, until):
                more = page.next
                for work in page.items:
                    read = _read(work)
                    if read is None:
                        continue
                    at, scheduled = read
                    left = at - start
                    if left <= -GRACE_MS:
                        times.setdefault(work.lane, set()).add(start)
                    elif scheduled:
                        times.setdefault(work.lane, set()).add(start + max(0, math.ceil(left / 1000)) * 1000)
            if more is not None:
                log.error("ALARM the sweep of webhook deliveries did not come to the end of lane %s in its time", lane)
        messages.ask(times, ASK_MS)

    def _behind(self, messages: DueMessages) -> None:
        """Deliveries that have been overdue for longer, a part of them in each run."""
        start = self._clock.now_ms()
        before = self._store.get(SweepCursor, id="deliveries") or SweepCursor("deliveries", version=0)
        span = Span(None, f"{time_order(start - KNOWN_MS)}#~")
        places, lines = list(before.places), set[str]()
        for lane, until in lanes_in_turn(self._clock, start + BEHIND_MS):
            for page in self._pages(lane, span, until, before.places[int(lane)] or None):
                lines.update(work.lane for work in page.items)
                places[int(lane)] = page.next or ""
        with Each("overdue webhook deliveries") as each:
            each.take("messages", lambda: messages.ask(dict.fromkeys(lines, (start,)), ASK_MS))
            after = replace(next_version(before), places=tuple(places))
            if after.places != before.places:
                each.take("where the next run goes on", lambda: self._store.commit([Save(after)]))

    def _pages(self, lane: str, span: Span, until: int, after: str | None = None) -> Iterator[Page[Work]]:
        """Pages of a lane, one at least, and none started after `until`."""
        while True:
            page = self._store.work_by_time("delivery", lane, limit=PAGE, span=span, after=after)
            yield page
            after = page.next
            if after is None or self._clock.now_ms() >= until:
                return


def _read(work: Work) -> tuple[int, bool] | None:
    """When a row is due, and whether it is left to the schedule; None, with an alarm, for one that is none of ours."""
    try:
        return int(work.order), due_of(work.id).scheduled
    except ValueError:
        log.error("ALARM the delivery work %r is none that was ever written here: it is left out", work)
        return None
