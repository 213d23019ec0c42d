"""The due sweep's search for first deliveries that are late, by lookouts (`lookouts.py`). Touches work only.

Each line of a lookout is looked into once in a run: whether anything lies there that was due a minute ago. Then all lookouts of the
line that were read are closed. Where something is late, a single one takes their place before, for what was looked for now: so
whatever an endpoint's receiver does, it has one for all that is late, and those of the last minutes.

Two searches, each with time of its own. The lookouts of the last minutes come first: they are as many as there were endpoints with
events, whatever was left undone before, so that a lost first delivery is found as soon as ever. Then older ones, those first that
have waited longest: none stays where it was read, so the next run goes on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from chalicelib.domain.webhooks.deliveries import line_parts
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.base.fairness import in_turn
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.due_search_time import GRACE_MS, KNOWN_MS, lanes_in_turn
from chalicelib.usecases.webhooks.lookouts import LATE_MS, lookout_work

log = logging.getLogger(__name__)

RECENT_MS = 3_000
LOOKOUTS_MS = 4_000
"""How long the search for recent lookouts may take, and how long both together."""
LONG_MS = 600_000
"""For so long a lookout may wait for its turn, where there are too many, before somebody has to know."""
PAGE = 200
AT_ONCE = 8
Search = Callable[[], object]
Together = Callable[[Sequence[Search]], object]


class LateLines:
    """For one run. `together` runs searches at the same time."""

    def __init__(self, store: Store, clock: Clock, together: Together) -> None:
        self._store, self._clock, self._together = store, clock, together
        self._late: dict[str, bool] = {}

    @property
    def found(self) -> list[str]:
        """The endpoints (`deliveries.line_of`) with late first deliveries, as far as was searched."""
        return [line for line, late in self._late.items() if late]

    def search(self) -> None:
        """Raises Failures: a lane that could not be read leaves the others searched, and its lookouts stay."""
        start = self._clock.now_ms()
        known, latest = time_order(start - KNOWN_MS), time_order(start - GRACE_MS)
        with Each("lookouts") as each:
            for lane, until in lanes_in_turn(self._clock, start + RECENT_MS):
                recent = Work("lookout", lane, known, "~")  # behind all lines of that time
                each.take(f"recent ones of lane {lane}", partial(self._lane, lane, recent, latest, until, start))
            for lane, until in lanes_in_turn(self._clock, start + LOOKOUTS_MS):
                each.take(f"older ones of lane {lane}", partial(self._lane, lane, None, known, until, start))

    def _lane(self, lane: str, after: Work | None, upto: str, until: int, start: int) -> None:
        """Look after the lookouts of a lane behind `after`, those whose `order` is at most `upto`, in order, as time suffices."""
        waits = ""
        while self._clock.now_ms() < until:
            page = self._store.open_work("lookout", lane, after=after, upto=upto, limit=PAGE)
            self._look(dict.fromkeys(work.id for work in page if work.id not in self._late), until, start)
            left = [work for work in page if work.id not in self._late]
            self._store.close_all([work for work in page if work.id in self._late and not self._kept(work, start)])
            if not left and len(page) < PAGE:
                return
            after, waits = page[-1], (left or page[-1:])[0].order
        log.warning("lookouts of lane %s were not kept in time: the next run goes on there", lane)
        if waits and waits < time_order(start - LONG_MS):
            log.error("ALARM the sweep of webhook deliveries did not come to the end of lane %s in its time", lane)

    def _kept(self, work: Work, start: int) -> bool:
        """Whether a lookout of a line that was looked into is the one that it has again."""
        return self._late[work.id] and work == _again(work.id, start)

    def _look(self, lines: Iterable[str], until: int, start: int) -> None:
        """Look into lines by `until`: those of one merchant do not stand before those of others."""
        fair = in_turn(list(lines), lambda line: line_parts(line)[0])
        search = partial(self._look_at, iter(fair), until, start)
        if fair:
            self._together([search] * min(AT_ONCE, len(fair)))

    def _look_at(self, lines: Iterator[str], until: int, start: int) -> None:
        """Note whether anything is late in a line, one after the other of those that nobody else took. One where it is has a
        lookout again, before that is noted."""
        latest = time_order(start - GRACE_MS + LATE_MS)
        for line in lines:
            if self._clock.now_ms() >= until:
                return
            # What came since has a lookout of its own: so those of an endpoint that is never idle end as well.
            late = bool(self._store.open_work("delivery", line, upto=latest, limit=1))
            if late:
                self._store.open(_again(line, start))
            self._late[line] = late


def _again(line: str, start: int) -> Work:
    """The lookout for all that was looked for in a run that began then: the next run has it among recent ones."""
    return lookout_work(line, start - GRACE_MS)
