"""When the local stack may rest: nobody asks it anything, and no work is open that goes on by itself.

A simulated chain has its blocks by the clock, whether they are read or not (`chalicelib/chains/sandbox`), so a poll that comes
later reads what earlier ones would have read. While the stack rests, schedules fire every `REST_SECONDS`, more often than the
deployed minute; queues are fed as always. Any request ends the rest before it is answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from infra.local.aws import REGION
from infra.local.repairs.dynamodb import LOCK, rows_of

REST_AFTER = 20.0
"""Seconds without a request. Whoever waits at the checkout page, or for a test's condition, asks more often."""
REST_SECONDS = 20.0
"""How often schedules fire at rest: what is new then is one reading, also for whoever ends the rest."""
GIVEN_UP_AFTER = 600.0
"""Seconds without a request after which the stack rests, whatever is open: what is stuck would keep it awake for good."""
PATIENT = frozenset((
    "expiry", "refund", "delivery", "approval", "collectable", "settled", "moved", "coinmoved", "staked", "givenup", "drain",
    "stray", "lookout",
))  # fmt: skip
"""Kinds of open work that wait for a time, for a person, or for nothing at all. A message wakes the delivery that is due."""


class Pace:
    """Whether the stack rests. `open_kinds` tells the kinds of open work. Safe for threads."""

    def __init__(self, open_kinds: Callable[[], set[str]], clock: Callable[[], float] = time.monotonic) -> None:
        self._open_kinds, self._clock = open_kinds, clock
        self._asked = clock()

    def asked(self) -> None:
        """Note a request: the rest is over."""
        self._asked = self._clock()

    def rests(self) -> bool:
        """Whether schedules may wait."""
        idle = self._clock() - self._asked
        return idle >= GIVEN_UP_AFTER or (idle >= REST_AFTER and self._open_kinds() <= PATIENT)


def open_kinds(table: str) -> set[str]:
    """The kinds of open work in this table of the running AWS: what its partition keys begin with."""
    with LOCK:
        rows = rows_of(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables[table])
        return {str(key).partition("#")[0] for key in rows.partitions}
