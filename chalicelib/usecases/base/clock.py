"""Whose time it is. The machine's clock judges keys, rate limits, idempotency, queues and webhooks, in both realms. What belongs
to a realm (invoices, withdrawals, deposits, chains) lives in the realm's time: the live realm's is the machine's, and the test
realm's is as far ahead of it as developers have moved it (`usecases.sandbox.clock`).

A use case that serves both realms is handed a `RealmClock`, which asks on whose behalf it is at work: the edge and the workers
say so with `in_realm`. Where nobody says, it is the machine's time.
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
