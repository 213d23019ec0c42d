"""Creations: a use case prepares the transaction that makes something new, and its caller commits it.

Methods called `creating`, `ordering`, `adding` and the like give one. The HTTP edge commits it together with the stored answer of
an Idempotency-Key (`chalicelib.api.idempotency`); every other caller commits it alone (`run`, or the plain `create`, `order`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from chalicelib.usecases.base.retries import TRIES, until_settled
from chalicelib.usecases.ports.changes import Change, Conflict
from chalicelib.usecases.ports.store import Store

T = TypeVar("T")


def decide_again(conflict: Conflict) -> NoReturn:
    """What a Conflict means unless the use case knows better: another worker was first. Raises `conflict`."""
    raise conflict


def nothing_else(_: object) -> None:
    """For a creation that is complete once it is committed."""


@dataclass(frozen=True, slots=True)
class Prepared(Generic[T]):
    """One try: what is `made`, and the changes that store it, decided by what is stored now. Nothing is committed yet.

    `on_conflict` reads a Conflict of the commit. It raises one of the service's errors or the Conflict, or returns what an earlier
    try of ours has stored after all.
    """

    made: T
    changes: Sequence[Change]
    on_conflict: Callable[[Conflict], T] = decide_again


@dataclass(frozen=True, slots=True)
class Creation(Generic[T]):
    """Something new that is not stored yet.

    `prepare` reads and decides, afresh for each try. `after` follows the commit: it wakes queues, for instance. After a Conflict
    it is tried again, `tries` times in all (`until_settled`).
    """

    store: Store
    prepare: Callable[[], Prepared[T]]
    after: Callable[[T], object] = nothing_else
    tries: int = TRIES

    def commit(self, prepared: Prepared[T], more: Sequence[Change] = ()) -> T:
        """Commit one try, and `more` in the same transaction; what is stored by then. Raises Conflict, Unavailable, and what
        `on_conflict` raises."""
        changes = [*prepared.changes, *more]
        try:
            if changes:
                self.store.commit(changes)
        except Conflict as conflict:
            return prepared.on_conflict(conflict)
        return prepared.made

    def run(self) -> T:
        """Commit it by itself, for a caller that stores no answer. Raises what `prepare`, `commit` and `after` raise."""
        made = until_settled(lambda: self.commit(self.prepare()), self.tries)
        self.after(made)
        return made
