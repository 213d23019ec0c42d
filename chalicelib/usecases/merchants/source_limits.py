"""Limits for requests without a valid key, by source and minute, in the memory of this process: counting makes no call.

Two counters a source. `keyless`: every request without a valid key, public pages included. `look_up`: reads of keys in the store,
counted before the read and taken back where the key is valid. So a flood of random keys costs `LIMIT` reads and no more. They are
two, so that many payers on public pages never keep a valid key of the same address (NAT) from being looked up. A key that was valid
from this source a moment ago is looked up whatever else comes from there: the store still decides about it.

Fixed minutes, from 1970 on. All counters of a minute go at once, when it is over or when they are too many. A Lambda process
handles one request at a time, so it never meets `MOST_SOURCES` sources in a minute; other processes count for themselves.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from chalicelib.usecases.merchants.access import Usage, Window, source_of

LIMIT = 600
"""Requests without a valid key, and looked-up keys that are not valid, of one source in one minute."""
MOST_SOURCES = 50_000
"""Sources that are told apart. One more, and the minute's counters begin anew: memory is bounded first."""
MOST_KEYS = 10_000
"""Pairs of key and source that are remembered as valid. One more, and the pair unused for longest is forgotten."""
REMEMBERED_MS = 600_000
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class LookUp:
    """A key that the store may be asked for, unless `exhausted` is the window that its source has used up."""

    key_hash: str
    source: str
    minute: int
    counted: bool
    exhausted: Usage | None = None


class SourceLimits:
    """The counters of one process. Safe for threads."""

    def __init__(self, limit: int = LIMIT, most_sources: int = MOST_SOURCES, most_keys: int = MOST_KEYS) -> None:
        self._window = Window("source", 60, limit)
        self._most_sources = most_sources
        self._most_keys = most_keys
        self._lock = threading.Lock()
        self._minute = 0
        self._keyless: dict[str, int] = {}
        self._look_ups: dict[str, int] = {}
        self._valid: OrderedDict[tuple[str, str], int] = OrderedDict()
        """When a key was valid from a source, in milliseconds since 1970; the last used at the end."""

    def keyless(self, address: str, now_ms: int) -> Usage | None:
        """Count a request without a valid key. The exhausted window where the source had all its requests before."""
        with self._lock:
            return self._count(self._keyless, source_of(address), now_ms)

    def look_up(self, key_hash: str, address: str, now_ms: int) -> LookUp:
        """Count a key before the store is asked for it; not one that was valid from this source in the last ten minutes."""
        source, minute = source_of(address), now_ms // _MINUTE_MS
        with self._lock:
            valid_at = self._valid.get((key_hash, source))
            if valid_at is not None and abs(now_ms - valid_at) < REMEMBERED_MS:
                return LookUp(key_hash, source, minute, False)
            return LookUp(key_hash, source, minute, True, self._count(self._look_ups, source, now_ms))

    def valid(self, look_up: LookUp, now_ms: int) -> None:
        """The store knows the key, and it may come from there: the look-up does not count."""
        with self._lock:
            known = (look_up.key_hash, look_up.source)
            self._valid[known] = now_ms
            self._valid.move_to_end(known)
            if len(self._valid) > self._most_keys:
                self._valid.popitem(last=False)
            if look_up.counted and look_up.minute == self._minute and self._look_ups.get(look_up.source, 0):
                self._look_ups[look_up.source] -= 1

    def invalid(self, look_up: LookUp, now_ms: int) -> Usage | None:
        """Count a request whose key is not valid from there as one without a key. The exhausted window, as of `keyless`."""
        with self._lock:
            self._valid.pop((look_up.key_hash, look_up.source), None)
            return self._count(self._keyless, look_up.source, now_ms)

    def _count(self, counts: dict[str, int], source: str, now_ms: int) -> Usage | None:
        minute = now_ms // _MINUTE_MS
        full = source not in counts and len(counts) >= self._most_sources
        if minute != self._minute or full:
            self._minute = minute
            self._keyless.clear()
            self._look_ups.clear()
        count = counts.get(source, 0)
        if count < self._window.limit:
            counts[source] = count + 1
            return None
        return Usage(self._window, 0, (minute + 1) * 60)
