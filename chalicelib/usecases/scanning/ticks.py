"""Ticks: who keeps a network busy, and the messages that look at it between two minute's polls.

The minute's poll of a busy network sends the ticks of that minute, and so does the request that makes a network busy. A tick sends
none: lost or doubled messages neither end nor multiply them. Dying between the record and its messages costs seconds: the next
poll sends its own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.scanning.ticks import LINKS_PART, NOTED_MS, WAIT_MS, Busy, TickLease, planned
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Work, WorkKind, time_order
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import TickQueue
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

_STUCK_MS = 24 * 60 * 60 * 1000
"""What is unconfirmed for so long is stuck: seconds do not matter to it."""
_STUCK_DEPTHS = 3
"""The same of deposits in blocks so many times as deep as credited ones: they wait for an operator, or for another node."""
_UNMINED_MS = 30 * 60 * 1000
"""A payment that waits in the mempool for longer costs its payer nothing so far, and may be replaced by another: it counts as an
ask, so that it keeps a network busy within the bound a day."""
_BY_TIME: tuple[WorkKind, ...] = ("sent", "bundle")
"""Payments on their way to confirmation, beside deposits, ordered by the time of their beginning, as `glimpse` is."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A network's record when this process last read it for an ask."""

    record: Busy
    at: int


class Ticks:
    """`clock` is the machine's. `most_ms`: how long asks alone may keep one network busy in a UTC day; None: there are no ticks."""

    def __init__(self, store: Store, clock: Clock, queue: TickQueue, most_ms: int | None) -> None:
        self._store, self._clock, self._queue, self._most_ms = store, clock, queue, most_ms
        self._seen: dict[tuple[NetworkId, int], _Seen] = {}  # by the bound of an ask: one that is refused hides no other

    def ask(self, network: Network, since: int, now: int, *, by_link: bool = False) -> None:
        """Keep a network busy on which somebody is expected to pay `since` then; `now` by the same clock, in milliseconds.
        `by_link`: a stranger made the invoice, by a payment link, and may make more.

        Never raises, and is no part of the request that asks: what is lost here costs seconds. One read of the store in twenty
        seconds and process at most, one more for payment links, and one write.
        """
        left = min(WAIT_MS, since + WAIT_MS - now)
        if self._most_ms is None or left <= 0 or network.status != "active":
            return
        try:
            self._ask(network, left, self._most_ms // LINKS_PART if by_link else self._most_ms)
        except (Unavailable, Conflict) as error:
            log.warning("%s: it is not noted that somebody waits: %s", network.id, error)

    def _ask(self, network: Network, left: int, most_ms: int) -> None:
        now = self._clock.now_ms()
        key = (network.id, most_ms)
        seen = self._seen.get(key)
        if seen is not None and (seen.record.asked_until + NOTED_MS > now + left or now - seen.at < NOTED_MS):
            return
        record = self._read(network.id)
        self._seen[key] = _Seen(record, now)
        after = record.asked(now + left, now, most_ms)
        if after is None:
            return
        self._store.commit([Save(after)])
        self._seen[key] = _Seen(after, now)
        self._tell(network, record, after, most_ms)
        if record.until <= now:
            self._send(network, now, now, after.until)

    def plan(self, network: Network, start: int, realm_now: int, cursor: Cursor | None) -> None:
        """Plan the ticks up to the next poll of a network, where it is busy, and send their messages. For the poll that
        began at `start`; `realm_now` by the clock of its realm, milliseconds. Raises Unavailable, Conflict."""
        if self._most_ms is None:
            return
        now = self._clock.now_ms()
        paying = self._paying(network, realm_now, cursor)
        waits = not paying and self._begun(network, "glimpse", realm_now - _STUCK_MS)
        if paying or (waits and self._begun(network, "glimpse", realm_now - _UNMINED_MS)):
            record = until_settled(lambda: self._note_paying(network.id, now))
        elif waits:
            record = until_settled(lambda: self._note_unmined(network, now))
        else:
            record = self._read(network.id)
        self._send(network, start, now, record.until)

    def _send(self, network: Network, start: int, now: int, until: int) -> None:
        moments = planned(network.family, start, now, until)
        if moments:
            self._queue.tick(network.id, moments, now)

    def _note_paying(self, network: NetworkId, now: int) -> Busy:
        after = self._read(network).paying(now)
        self._store.commit([Save(after)])
        return after

    def _note_unmined(self, network: Network, now: int) -> Busy:
        record = self._read(network.id)
        after = record.asked(now + WAIT_MS, now, self._most_ms or 0)
        if after is None:
            return record
        self._store.commit([Save(after)])
        self._tell(network, record, after, self._most_ms or 0)
        return after

    def _tell(self, network: Network, before: Busy, after: Busy, most_ms: int) -> None:
        """Say once that asks which may use `most_ms` a day keep the network busy no more. Dying before it is silent: no money
        rests on it."""
        at = after.asked_at
        if after.used_up(at, most_ms) and not before.used_up(at, most_ms):
            self._alarm("asks alone kept it busy for %.1f hours today, and do no more (%s)", network, most_ms)

    def _alarm(self, words: str, network: Network, most_ms: int) -> None:
        # On a simulated network nobody waits who has paid: nobody has to look.
        whose = "payment links have all that is theirs" if most_ms < (self._most_ms or 0) else "nobody has any left"
        log.warning(f"{'' if network.simulated else 'ALARM '}%s: {words}", network.id, most_ms / 3_600_000, whose)

    def _paying(self, network: Network, realm_now: int, cursor: Cursor | None) -> bool:
        """Whether payments are on their way to confirmation, those left out that only an operator or another node moves on."""
        if cursor is not None:
            low = max(0, cursor.number - _STUCK_DEPTHS * network.confirmations)
            deposits = Work("deposit", network.id, f"{low:015d}", "")
            if self._store.open_work("deposit", network.id, after=deposits, limit=1):
                return True
        return any(self._begun(network, kind, realm_now - _STUCK_MS) for kind in _BY_TIME)

    def _begun(self, network: Network, kind: WorkKind, since: int) -> bool:
        """Whether payments of a kind are open that began after `since`, by the realm's clock in milliseconds."""
        if network.family != "utxo" and kind != "sent":
            return False
        first = Work(kind, network.id, time_order(max(0, since)), "")
        return bool(self._store.open_work(kind, network.id, after=first, limit=1))

    def begin(self, network: NetworkId, at: int) -> TickLease | None:
        """The lease of the tick that was planned for `at`; None where it must not run. Raises Unavailable."""
        if self._most_ms is None:
            return None
        lease = self._store.get(TickLease, network=network) or TickLease(network)
        taken = lease.taken(at, self._clock.now_ms())
        if taken is None:
            return None
        try:
            self._store.commit([Save(taken)])
        except Conflict:
            return None
        return taken

    def end(self, lease: TickLease) -> None:
        """Let the next tick run. Raises Unavailable."""
        try:
            self._store.commit([Save(replace(next_version(lease), done=True))])
        except Conflict:
            log.warning("%s: a tick took so long that another one began", lease.network)

    def _read(self, network: NetworkId) -> Busy:
        return self._store.get(Busy, network=network) or Busy(network)
