"""Whether the store answers. The probe is rare: `/health` needs no key, so its cost must not grow with the number of requests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from chalicelib.usecases.ports.failures import Unavailable

FRESH_SECONDS = 5.0

log = logging.getLogger(__name__)


class Probe(Protocol):
    """One quick read of the store."""

    def ask(self) -> None:
        """Return once every table has answered. Raises Unavailable, within a few seconds at most."""
        ...


class StoreHealth:
    """Reads the store once in `FRESH_SECONDS` per process, whatever the outcome. Safe for threads."""

    def __init__(self, probe: Probe, seconds: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asked_at: float | None = None
        self._answers = False

    def answers(self) -> bool:
        """Whether the store answered the last probe, made now or less than `FRESH_SECONDS` ago."""
        with self._lock:  # a caller during a probe waits for its outcome, which takes seconds at most
            now = self._seconds()
            if self._asked_at is None or now - self._asked_at >= FRESH_SECONDS:
                self._asked_at = now
                self._answers = self._ask()
            return self._answers

    def _ask(self) -> bool:
        try:
            self._probe.ask()
        except Unavailable:
            log.warning("the store did not answer a health check", exc_info=True)
            return False
        return True
