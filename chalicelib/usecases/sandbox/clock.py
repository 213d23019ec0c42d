"""The sandbox's clock: its lead over the machines' clock, set by developers. `usecases.base.clock` tells which clock applies."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from chalicelib.domain.chain import SandboxClock
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.store import Store

REMEMBERED_SECONDS = 5.0
"""How long a process may not have heard of an advance that another one made. The pollers look before every run."""
MOST_AT_ONCE = 31_536_000
MOST_IN_ALL = 10 * MOST_AT_ONCE
"""Seconds: a year a call, ten years in all."""


class SandboxTime:
    """The test realm's lead over the machines' clock: one record, which the process remembers for a few seconds."""

    def __init__(self, store: Store, most_seconds: int = MOST_IN_ALL) -> None:
        self._store, self._most = store, most_seconds
        self._known: tuple[float, int] | None = None
        self._lock = threading.Lock()

    def ahead_ms(self) -> int:
        """The lead in milliseconds, at most `REMEMBERED_SECONDS` old. Raises Unavailable."""
        known = self._known
        if known is None or time.monotonic() - known[0] > REMEMBERED_SECONDS:
            return self.look()
        return known[1]

    def look(self) -> int:
        """The lead in milliseconds, read now."""
        found = self._store.get(SandboxClock, id="test")
        return self._remember(0 if found is None else found.ahead_ms)

    def _remember(self, ahead_ms: int) -> int:
        with self._lock:
            self._known = (time.monotonic(), ahead_ms)
        return ahead_ms

    def begin(self, seconds_behind: int) -> None:
        """Let an empty sandbox begin in the past, so that what it is filled with has a history. Raises Conflict, Unavailable."""
        self._store.commit([Save(SandboxClock("test", -1000 * seconds_behind))])
        self._remember(-1000 * seconds_behind)

    def advance(self, seconds: int) -> SandboxClock:
        """Move the test realm's time forward, for everybody in it. Two at once add up. Raises BusinessRule, Unavailable."""
        return self.advancing(seconds).run()

    def advancing(self, seconds: int) -> Creation[SandboxClock]:
        """What `advance` commits."""

        def prepare() -> Prepared[SandboxClock]:
            before = self._store.get(SandboxClock, id="test") or SandboxClock("test", 0, version=0)
            after = replace(next_version(before), ahead_ms=before.ahead_ms + seconds * 1000)
            if after.ahead_ms > self._most * 1000:
                left = max(0, self._most - before.ahead_ms // 1000)
                raise BusinessRule("advance", f"the sandbox's clock can be moved by {self._most} seconds in all; {left} are left")
            return Prepared(after, [Save(after)])

        return Creation(self._store, prepare, lambda moved: self._remember(moved.ahead_ms))
