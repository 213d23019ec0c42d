"""Resets of the demo's data, and the requests meanwhile.

A reset announces itself, waits until every function has noticed, wipes, and fills anew. While it is at work nothing is changed
by requests, pollers and payouts; reads go on, and find less and then more. One that dies leaves its announcement: the next run
finds it and begins again, which is safe at any point, since wiping does not care what is left.
"""

from __future__ import annotations

import time
from dataclasses import replace

from chalicelib.domain.demo import DemoState
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.versions import next_version
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

REMEMBERED_SECONDS = 2.0


class DemoResets:
    """The announcement of resets. On stages other than the demo there is none, and nobody asks."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._known: tuple[float, bool] | None = None

    def busy(self) -> bool:
        """Whether a reset is at work, as far as this process has noticed. Raises Unavailable."""
        if self._known is None or time.monotonic() - self._known[0] > REMEMBERED_SECONDS:
            self._known = (time.monotonic(), self._state().started_at is not None)
        return self._known[1]

    def demand_rest(self) -> None:
        """Raise BusinessRule while a reset is at work."""
        if self.busy():
            raise BusinessRule("request", "the demo is being reset: try again in a few minutes")

    def begin(self) -> bool:
        """Announce a reset where one is due and no other run is at it; whether this caller shall do it. Raises Unavailable."""
        before, now = self._state(), self._clock.now_ms()
        if not before.due(now):
            return False
        try:
            self._store.commit([Save(replace(next_version(before), started_at=now))])
        except Conflict:
            return False
        self._known = None
        return True

    def end(self) -> None:
        """End the reset: the data is complete again. Raises Conflict, Unavailable."""
        before = self._state()
        after = replace(next_version(before), started_at=None, finished_at=self._clock.now_ms())
        self._store.commit([Save(after)])
        self._known = None

    def _state(self) -> DemoState:
        return self._store.get(DemoState, id="demo") or DemoState("demo", version=0)
