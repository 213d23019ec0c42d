"""Whose time it is. The machine's clock judges keys, rate limits, idempotency, queues and webhooks, in both realms. What belongs
to a realm (invoices, withdrawals, deposits, chains) lives in the realm's time: the live realm's is the machine's, and the test
realm's is as far ahead of it as developers have moved it (`SandboxClock`).

A use case that serves both realms is handed a `RealmClock`, which asks on whose behalf it is at work: the edge and the workers
say so with `in_realm`. Where nobody says, it is the machine's time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from chalicelib.domain.chain import SandboxClock
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import Realm
from chalicelib.usecases.addresses import Also, nothing_more
from chalicelib.usecases.changes import Save
from chalicelib.usecases.ports import Clock, Store
from chalicelib.usecases.trying import until_settled

REMEMBERED_SECONDS = 5.0
"""How long a process may not have heard of an advance that another one made. The pollers look before every run."""
MOST_AT_ONCE = 31_536_000
MOST_IN_ALL = 10 * MOST_AT_ONCE
"""Seconds: a year a call, ten years in all."""

_realm: ContextVar[Realm | None] = ContextVar("realm", default=None)


@contextmanager
def in_realm(realm: Realm) -> Iterator[None]:
    """What is done inside is done for `realm`."""
    token = _realm.set(realm)
    try:
        yield
    finally:
        _realm.reset(token)


class RealmClock:
    """The port Clock. `realm` None: the one that is at work, see `in_realm`. `ahead_ms` says how far the test realm is ahead."""

    def __init__(self, machine: Clock, ahead_ms: Callable[[], int], realm: Realm | None = None) -> None:
        self._machine, self._ahead_ms, self._fixed = machine, ahead_ms, realm

    def now_ms(self) -> int:
        realm = _realm.get() if self._fixed is None else self._fixed
        return self._machine.now_ms() + (self._ahead_ms() if realm == "test" else 0)


class SandboxTime:
    """How far the test realm is ahead of the machines: one record, which the process remembers for a few seconds."""

    def __init__(self, store: Store, most_seconds: int = MOST_IN_ALL) -> None:
        self._store, self._most = store, most_seconds
        self._known: tuple[float, int] | None = None
        self._lock = threading.Lock()

    def ahead_ms(self) -> int:
        """Milliseconds, at most `REMEMBERED_SECONDS` old. Raises Unavailable."""
        known = self._known
        if known is None or time.monotonic() - known[0] > REMEMBERED_SECONDS:
            return self.look()
        return known[1]

    def look(self) -> int:
        """The same, read now."""
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

    def advance(self, seconds: int, also: Also = nothing_more) -> SandboxClock:
        """Move the test realm's time forward, for everybody in it. Two at once add up. Raises BusinessRule, Unavailable."""

        def decide() -> SandboxClock:
            before = self._store.get(SandboxClock, id="test") or SandboxClock("test", 0, version=0)
            after = replace(before, ahead_ms=before.ahead_ms + seconds * 1000, version=before.version + 1)
            if after.ahead_ms > self._most * 1000:
                left = max(0, self._most - before.ahead_ms // 1000)
                raise BusinessRule("advance", f"the sandbox's clock can be moved by {self._most} seconds in all; {left} are left")
            self._store.commit([Save(after), *also(after)])
            return after

        after = until_settled(decide)
        self._remember(after.ahead_ms)
        return after
