"""The due sweep, once a minute: endpoints with due deliveries that no message brings. Touches webhooks, work and queues only.

Messages of SQS wait fifteen minutes at most. A delivery that waits longer is found here in the minute before it is due, by the
index of work in the order of time, and gets a message with exactly the delay that is left. That obligation is stored anyway, with
the change that causes it, so nothing more has to be made, paid for, or removed for a long wait. A one-time schedule of EventBridge
would be a second place for the same fact, with quotas and rights of its own.

Four searches, each with a time of its own, of which every lane has a part. So none of them waits for another:

- Deliveries due soon or just now. Their number is bounded by what can be sent in two and a half minutes, whatever backlog there is:
  so a lost message is replaced within two and a half minutes.
- Deliveries overdue for longer: a backlog, or deliveries that were due while nothing ran here. It goes on where the run before
  stopped. All of them are seen in one minute, and one more for each 100,000 rows or so (`BEHIND_MS` at 60 ms for a thousand). So
  long a delivery behind the backlog of others may wait for its message.
- Endpoints that are paused no more, and have parked deliveries still. Each has an obligation of its own, so that the parked
  deliveries of paused endpoints are never read.
- Endpoints with a lookout (`usecases/webhooks/lookouts.py`): first deliveries that were due a minute ago. They are in no index.
"""

from __future__ import annotations

import logging
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.deliveries import due_of, line_parts
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.domain.work import HELD, LANES, Work, time_order
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.changes import Absent, Change, Close, Conflict, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Page, Span, Store
from chalicelib.usecases.webhooks.lookouts import LATE_MS

log = logging.getLogger(__name__)

AHEAD_MS = 90_000
"""How far ahead of its time a long wait is brought: until the next run, and somewhat beyond."""
GRACE_MS = 60_000
"""How long a message may be on its way before it is taken for lost."""
KNOWN_MS = 150_000
"""The first search finds deliveries overdue by less than this: in one of the next runs after their grace, though one be late."""
COMING_MS = 8_000
BEHIND_MS = 6_000
UNHELD_MS = 5_000
LOOKOUTS_MS = 4_000
"""How long each look may take to read, of the function's minute."""
LONG_MS = 600_000
"""For so long a lookout may wait for its turn, where there are too many, before somebody has to know."""
ASK_MS = 6_000
"""How long the messages of a look may take."""
PAGE = 1_000
LOOKS_AT_ONCE = 8
Look = Callable[[], dict[str, bool]]


class DueSweep:
    """`together` runs looks at the same time; None: one after the other."""

    def __init__(
        self,
        store: Store,
        queues: Queues,
        clock: Clock,
        together: Callable[[Sequence[Look]], list[dict[str, bool]]] | None = None,
    ) -> None:
        self._store, self._queues, self._clock = store, queues, clock
        self._together = together or (lambda looks: [look() for look in looks])

    def run(self) -> int:
        """Ask for due deliveries; the number of messages sent. Raises Unavailable; the next run does the rest."""
        return self._coming(self._unsent()) + self._behind() + self._unheld()

    def _coming(self, unsent: Iterable[str]) -> int:
        """Deliveries that are due soon and left to the schedule, and those overdue since the last runs; lines `unsent` too."""
        start = self._clock.now_ms()
        span = Span(time_order(start - KNOWN_MS), f"{time_order(start + AHEAD_MS)}#~")
        times: dict[str, set[int]] = {line: {start} for line in unsent}
        for lane, until in self._lanes(COMING_MS):
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
        return self._ask(times)

    def _behind(self) -> int:
        """Deliveries that have been overdue for longer, a part of them in each run."""
        start = self._clock.now_ms()
        before = self._store.get(SweepCursor, id="deliveries") or SweepCursor("deliveries", version=0)
        span = Span(None, f"{time_order(start - KNOWN_MS)}#~")
        places, lines = list(before.places), set[str]()
        for lane, until in self._lanes(BEHIND_MS):
            for page in self._pages(lane, span, until, before.places[int(lane)] or None):
                lines.update(work.lane for work in page.items)
                places[int(lane)] = page.next or ""
        asked = self._ask({line: {start} for line in lines})
        after = replace(next_version(before), places=tuple(places))
        if after.places != before.places:
            self._try([Save(after)])
        return asked

    def _unheld(self) -> int:
        """Wake endpoints that are paused no more, until they have no parked deliveries."""
        asked = 0
        for lane, until in self._lanes(UNHELD_MS):
            open: dict[str, list[Work]] = {}
            for works in pages_of(self._store, "unheld", lane):
                for work in works:
                    open.setdefault(work.id, []).append(work)
            lines = list(open)
            random.shuffle(lines)
            for line, endpoint in self._endpoints(lines).items():
                if self._clock.now_ms() >= until:
                    log.warning("not all endpoints of lane %s that go on were looked at: the next run looks at others", lane)
                    break
                asked += self._still_unheld(line, open[line], endpoint)
        return asked

    def _still_unheld(self, line: str, open: list[Work], endpoint: WebhookEndpoint | None) -> bool:
        """Close the obligation, unless parked deliveries are left. Deliveries are parked only for an endpoint that is stored as
        paused: while the endpoint stays as it was read, there are none."""
        tenant, id = line_parts(line)
        as_read = Absent(WebhookEndpoint, {"tenant": tenant, "id": id}) if endpoint is None else Still(endpoint)
        paused = endpoint is not None and endpoint.paused
        behind = Work("delivery", line, HELD, "")
        if paused or not self._store.open_work("delivery", line, after=behind, upto=f"{HELD}~", limit=1):
            for work in open:
                self._try([Close(work), as_read])
            return False
        self._queues.wake(tenant, id, failing=_failing(endpoint), held=True)
        return True

    def _unsent(self) -> list[str]:
        """Endpoints whose first deliveries, which are in no index, are still there a minute after their lookout's time."""
        start, unsent = self._clock.now_ms(), list[str]()
        for lane, until in self._lanes(LOOKOUTS_MS):
            open: dict[str, list[Work]] = {}
            for works in pages_of(self._store, "lookout", lane, upto=time_order(start - GRACE_MS)):
                for work in works:
                    open.setdefault(work.id, []).append(work)
            lines = list(open)
            random.shuffle(lines)
            parts = [lines[n::LOOKS_AT_ONCE] for n in range(min(LOOKS_AT_ONCE, len(lines)))]
            looks = [partial(self._overdue, {line: open[line] for line in part}, until) for part in parts]
            found = {line: late for part in (self._together(looks) if looks else ()) for line, late in part.items()}
            if left := open.keys() - found.keys():
                log.warning("%d lookouts of lane %s were not kept: the next run keeps others", len(left), lane)
                if any(int(open[line][0].order) < start - LONG_MS for line in left):
                    log.error("ALARM the sweep of webhook deliveries did not come to the end of lane %s in its time", lane)
            unsent += [line for line, late in found.items() if late]
            self._store.close_all([work for line, late in found.items() if not late for work in open[line]])
        return unsent

    def _overdue(self, open: Mapping[str, list[Work]], until: int) -> dict[str, bool]:
        """Whether lanes have deliveries still for which their lookouts are; of as many lanes as can be read by `until`."""
        found: dict[str, bool] = {}
        for line, lookouts in open.items():
            if self._clock.now_ms() >= until:
                break
            # What came since has a lookout of its own: so those of an endpoint that is never idle end as well.
            latest = max(int(work.order) for work in lookouts) + LATE_MS
            found[line] = bool(self._store.open_work("delivery", line, upto=time_order(latest), limit=1))
        return found

    def _lanes(self, ms: int) -> Iterator[tuple[str, int]]:
        """All lanes, in any order, each with the time until when it may be read: its part of what is left of `ms`."""
        end = self._clock.now_ms() + ms
        lanes = [str(lane) for lane in range(LANES)]
        random.shuffle(lanes)
        for done, lane in enumerate(lanes):
            now = self._clock.now_ms()
            yield lane, now + max(0, end - now) // (LANES - done)

    def _pages(self, lane: str, span: Span, until: int, after: str | None = None) -> Iterator[Page[Work]]:
        """Pages of a lane, one at least, and none begun after `until`."""
        while True:
            page = self._store.work_by_time("delivery", lane, limit=PAGE, span=span, after=after)
            yield page
            after = page.next
            if after is None or self._clock.now_ms() >= until:
                return

    def _endpoints(self, lines: Iterable[str]) -> dict[str, WebhookEndpoint | None]:
        owners = [(line, *line_parts(line)) for line in lines]
        found = self._store.get_many([(WebhookEndpoint, {"tenant": tenant, "id": id}) for _, tenant, id in owners])
        return {line: endpoint for (line, _, _), endpoint in zip(owners, found, strict=True)}

    def _ask(self, times: Mapping[str, Iterable[int]]) -> int:
        """Send a message for each time (ms since 1970) of each line; how many were sent. Round robin over tenants: where time does
        not suffice for all, the many of one tenant do not stand before the few of another."""
        until = self._clock.now_ms() + ASK_MS
        endpoints = self._endpoints(times)
        wanted = [(at, random.random(), line) for line, of_one in times.items() for at in of_one]  # noqa: S311 - guards nothing
        rounds, before = [], Counter[str]()
        for at, any_order, line in sorted(wanted):
            tenant, _ = line_parts(line)
            rounds.append((before[tenant], any_order, line, at))
            before[tenant] += 1
        asked, refused = 0, None
        for place, (_, _, line, at) in enumerate(sorted(rounds)):
            now = self._clock.now_ms()
            if now >= until:
                log.warning("%d messages for webhook endpoints were not sent in time", len(rounds) - place)
                break
            tenant, id = line_parts(line)
            try:
                self._queues.wake(tenant, id, max(0, math.ceil((at - now) / 1000)), failing=_failing(endpoints[line]))
                asked += 1
            except Unavailable as error:
                refused = error  # the other endpoints are asked for all the same
        if refused is not None:
            raise refused
        return asked

    def _try(self, changes: list[Change]) -> None:
        try:
            self._store.commit(changes)
        except Conflict:
            log.info("another run, or an endpoint's owner, was first")


def _read(work: Work) -> tuple[int, bool] | None:
    """When a row is due, and whether it is left to the schedule; None, with an alarm, for one that is none of ours."""
    try:
        return int(work.order), due_of(work.id).scheduled
    except ValueError:
        log.error("ALARM the delivery work %r is none that was ever written here: it is left out", work)
        return None


def _failing(endpoint: WebhookEndpoint | None) -> bool:
    return endpoint is not None and endpoint.failing_since is not None
