"""How the due sweep reads: each lane of open work has a part of a search's time, so that none waits for another. Pure but for the
clock."""

from __future__ import annotations

import random
from collections.abc import Iterator

from chalicelib.domain.work import LANES
from chalicelib.usecases.ports.clock import Clock

GRACE_MS = 60_000
"""How long a message may be on its way before it is taken for lost."""
KNOWN_MS = 150_000
"""What is overdue by less than this is searched by itself: it is found in one of the next runs after its grace, though one be late,
whatever backlog there is."""


def lanes_in_turn(clock: Clock, end: int) -> Iterator[tuple[str, int]]:
    """All lanes, in any order, each with the time until when it may be read: its part of what is left until `end` (ms since
    1970)."""
    lanes = [str(lane) for lane in range(LANES)]
    random.shuffle(lanes)
    for done, lane in enumerate(lanes):
        now = clock.now_ms()
        yield lane, now + max(0, end - now) // (LANES - done)
