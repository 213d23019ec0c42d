"""Clocks of the realms. The machine's clock times keys, rate limits, idempotency, queues and webhooks, in both realms. What
belongs to a realm (invoices, withdrawals, deposits, chains) lives in the realm's time: the live realm's is the machine's, and the
test realm's is as far ahead of it as developers have moved it (`usecases.sandbox.clock`).

A use case that serves both realms gets a `RealmClock`. The edge and the workers set its realm with `in_realm`; without a realm it
is the machine's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from chalicelib.domain.ids import Realm
from chalicelib.usecases.ports.clock import Clock

_realm: ContextVar[Realm | None] = ContextVar("realm", default=None)


@contextmanager
def in_realm(realm: Realm) -> Iterator[None]:
    """Run the block of the `with` statement for `realm`."""
    token = _realm.set(realm)
    try:
        yield
    finally:
        _realm.reset(token)


class RealmClock:
    """The port Clock. `realm` None: the realm set by `in_realm`. `ahead_ms` says how far the test realm is ahead."""

    def __init__(self, machine: Clock, ahead_ms: Callable[[], int], realm: Realm | None = None) -> None:
        self._machine, self._ahead_ms, self._fixed = machine, ahead_ms, realm

    def now_ms(self) -> int:
        realm = _realm.get() if self._fixed is None else self._fixed
        return self._machine.now_ms() + (self._ahead_ms() if realm == "test" else 0)
