"""Open outbox rows with earlier events of the same objects: the relay tells them first. Touches work only.

Two relays at once, a lost message, or a failure on the earlier row would else make the later event's delivery first, and it would
be sent before the earlier one's exists. All rows of a merchant lie in one lane, and their ids say what they tell of
(`domain.work.outbox_id`): one consistent query finds the rows that matter, and only those are read. Nothing is read for an
object's first event, nor where this process told the one before, nor where no endpoint is told.

A row that can not be told holds up later ones for `HOLD_MS`, never for ever. So does one in a form that only a newer version
knows: that one tells it, late where it takes longer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.row_order import Object, before_it, numbers_in
from chalicelib.domain.work import OutboxRow, Work, lane_of, object_tag, tags_in, time_order
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

HOLD_MS = 600_000
"""How long a row that can not be told holds up later events of its objects, from its first failure in a process on."""
WINDOW_MS = 86_400_000
"""A row that is open for longer holds up nothing more, in whatever process."""
SLACK_MS = 60_000
"""How much later than a row the time of an earlier one may be: times are taken before commits, by clocks that differ."""
LOOK = 5_000
"""Open rows of a lane that are looked at, about 20 for a read unit, 5 where a row is one item."""
READ, MOST = 60, 50
"""Rows that are read, and told, before one. Where there are more, it waits: they have messages of their own, and the sweep."""
YOUNG_MS = 2_000
"""The message of a row so young is on its way, or another worker is at it."""
PAUSES, PAUSE_SECONDS = 4, 0.05
"""How often and how long a young row is waited for: what two workers tell is paid for twice."""
SKEW_MS = 50
"""A delivery sorts so much later where another process told the event before, whose clock may be ahead."""
AHEAD_MS = 200
"""How far ahead of the clock it may sort at most: what is due within `EARLY_MS` is sent now."""
REMEMBERED = 20_000

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Earlier:
    """`rows` are told before a row, in this order. Where they are not `all`, the row itself waits."""

    rows: Sequence[OutboxRow] = ()
    all: bool = True


@dataclass(frozen=True, slots=True)
class _Told:
    """The highest event number of an object that this process told, and the latest time of its deliveries."""

    number: int
    at: int


class EarlierRows:
    """`pause` waits so many seconds. What it remembers is of one process, and only saves reads. Safe to share between threads."""

    def __init__(self, store: Store, clock: Clock, pause: Callable[[float], object] = time.sleep) -> None:
        self._store, self._clock, self._pause = store, clock, pause
        self._told: dict[Object, _Told] = {}
        self._failing: dict[str, int] = {}
        self._lock = threading.Lock()

    def of(self, row: OutboxRow) -> Earlier:
        """The open rows that go before `row`. Raises Unavailable, and TooNew where one of them waits for a newer version."""
        if row.tenant is None or self._in_turn(row):
            return Earlier()
        found = self._found(row)
        for _ in range(PAUSES):
            if not any(abs(self._clock.now_ms() - one.at) < YOUNG_MS for one in found.rows):
                break
            self._pause(PAUSE_SECONDS)
            if self._in_turn(row):  # another thread told them
                return Earlier()
            found = self._found(row)
        return found

    def failed(self, row: OutboxRow) -> bool:
        """Note that `row` can not be told; whether it holds up later ones still."""
        return self._holds_up(row.id)

    def _holds_up(self, id: str) -> bool:
        now = self._clock.now_ms()
        with self._lock:
            since = self._failing.get(id, now)
            _remember(self._failing, id, since)
        return now - since < HOLD_MS

    def times(self, events: Sequence[Event], now: int) -> dict[str, int]:
        """When the deliveries of each event are made, by its id: those of an object in the order of its events. Near `now`."""
        found: dict[str, int] = {}
        last: dict[Object, _Told] = {}
        for event in sorted(events, key=lambda one: one.sequence):
            of = Object(event.tenant, event.object_id)
            before = last.get(of) or self._told.get(of)
            at = now if of in last or self._follows(of, event.sequence) else now + SKEW_MS
            if before is not None and before.number < event.sequence:
                at = min(max(at, before.at + 1), now + AHEAD_MS)
            found[event.id], last[of] = at, _Told(event.sequence, at)
        return found

    def told(self, row: OutboxRow, deliveries: Sequence[Delivery]) -> None:
        """Remember that `row` is told: `deliveries` are stored. Without any it was told whatever goes before it, and says nothing
        about that."""
        if not deliveries and not self._in_turn(row):
            return
        made = {one.id: 0 for one in row.events}
        for delivery in deliveries:
            made[delivery.event_id] = max(made[delivery.event_id], delivery.created_at)
        with self._lock:
            self._failing.pop(row.id, None)
            for event in row.events:
                of = Object(event.tenant, event.object_id)
                before = self._told.get(of, _Told(0, 0))
                _remember(self._told, of, _Told(max(before.number, event.sequence), max(before.at, made[event.id])))

    def _in_turn(self, row: OutboxRow) -> bool:
        """Whether this process told the event before each of the row's."""
        return all(self._follows(of, number) for of, number in numbers_in(row).items())

    def _follows(self, of: Object, number: int) -> bool:
        """Whether this process told the event before, or there is none."""
        before = self._told.get(of)
        return number <= 1 or (before is not None and before.number >= number - 1)

    def _found(self, row: OutboxRow) -> Earlier:
        open = self._open(row)
        sharing = _sharing({object_tag(event) for event in row.events}, open, row.id)
        if len(sharing) <= READ and not before_it(row, self._read(sharing)):
            return Earlier()
        # What goes before those goes first as well, whatever objects connect it.
        tags, ids = set[str](), list[str]()
        while len(ids) < len(sharing):
            ids = sharing
            tags.update(*map(tags_in, ids))
            sharing = _sharing(tags, open, row.id)
        first = before_it(row, self._read(ids[:READ]))
        return Earlier(first[:MOST], len(ids) <= READ and len(first) <= MOST)

    def _read(self, ids: Sequence[str]) -> list[OutboxRow]:
        """The rows of these ids. One that its place may not hold is never told, so that it holds up nothing. Raises TooNew for one
        that holds up later ones still."""
        found = dict(zip(ids, each_of(self._store, [(OutboxRow, {"id": id}) for id in ids]) if ids else (), strict=True))
        for id, row in found.items():
            if isinstance(row, TooNew) and self._holds_up(id):
                raise row
        return [row for id, row in found.items() if isinstance(row, OutboxRow) and row.id == id and not row.is_forged]

    def _open(self, row: OutboxRow) -> list[Work]:
        """The open rows of its merchant's lane that may be earlier."""
        lane, since, until = lane_of(str(row.tenant)), self._clock.now_ms() - WINDOW_MS, row.at + SLACK_MS
        if until <= since:
            return []
        oldest = Work("outbox", lane, time_order(since), "")
        found = self._store.open_work("outbox", lane, after=oldest, upto=time_order(until), limit=LOOK)
        if len(found) == LOOK and all(work.id != row.id for work in found):
            log.warning("over %d outbox rows are open in lane %s: %s may be told before earlier ones", LOOK, lane, row.id)
        return found


def _sharing(tags: AbstractSet[str], open: Sequence[Work], but: str) -> list[str]:
    """The ids of the rows that tell of one of these objects, the oldest first."""
    return [work.id for work in open if work.id != but and not tags.isdisjoint(tags_in(work.id))]


def _remember(known: dict[K, V], key: K, value: V) -> None:
    """Store it as the newest; the oldest is forgotten where they are too many."""
    known.pop(key, None)
    known[key] = value
    if len(known) > REMEMBERED:
        known.pop(next(iter(known)), None)
