"""From which day on lists have everything: what is older may be in the archive."""

from __future__ import annotations

import time
from collections.abc import Callable

from chalicelib.domain.archive.payments import SAID_MS, ArchiveRound
from chalicelib.domain.ids import Realm
from chalicelib.usecases.ports.store import Store


class Coverage:
    """Remembers the day for less time than a round waits after it has said a later one (`usecases/archive/rounds.py`): no list
    says a day from which something is missing already."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` in seconds."""
        self._store, self._clock = store, clock
        self._known: dict[Realm, tuple[float, int]] = {}

    def since_ms(self, realm: Realm) -> int:
        """The beginning of that day in UTC, milliseconds since 1970; 0 where nothing was ever archived. Raises Unavailable."""
        known, now = self._known.get(realm), self._clock()
        if known is None or (now - known[0]) * 1000 >= SAID_MS / 2:
            round_ = self._store.get(ArchiveRound, realm=realm)
            known = self._known[realm] = (now, 0 if round_ is None else round_.before)
        return known[1]
