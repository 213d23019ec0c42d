"""The activity record of the request under way: the store puts it into the transaction of the change.

The edge says who is asking (`recording`), and the first commit of that request takes the record along (`committed`). So there is no
change without its record, and a refused request leaves none. A commit that is not the change which was asked for is made `aside`.
A change outside of our transactions is recorded by itself (`alone`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

from chalicelib.usecases.ports.changes import Change, Conflict, Save

if TYPE_CHECKING:
    from chalicelib.domain.merchants.activity import Activity
    from chalicelib.usecases.ports.store import Store

Commit = Callable[[Sequence[Change]], None]


class _Pending:
    """`record` as the request began, until it is stored, then None; `made` is the id of what this try makes."""

    def __init__(self, record: Activity) -> None:
        self.record: Activity | None = record
        self.made: str | None = None

    def finished(self) -> Activity | None:
        """The record with what the request makes: its object where the path names none."""
        if self.record is None or self.made in (None, self.record.object_id):
            return self.record
        if self.record.object_id is None:
            return replace(self.record, object_id=self.made)
        return replace(self.record, made_id=self.made)


_pending: ContextVar[_Pending | None] = ContextVar("activity", default=None)


@contextmanager
def recording(record: Activity) -> Iterator[None]:
    """The first commit inside stores `record`, too."""
    token = _pending.set(_Pending(record))
    try:
        yield
    finally:
        _pending.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """Commits inside are not the change that the request asks for, and take no record along."""
    token = _pending.set(None)
    try:
        yield
    finally:
        _pending.reset(token)


def made(id: str) -> None:
    """Note the id of what the request makes, before it is committed. A second try may make another."""
    pending = _pending.get()
    if pending is not None:
        pending.made = id


def committed(commit: Commit, changes: Sequence[Change]) -> None:
    """`commit` the changes, and with them the record of the request where it is not stored yet. Raises what `commit` raises."""
    pending = _pending.get()
    record = None if pending is None else pending.finished()
    if pending is None or record is None:
        commit(changes)
        return
    save = Save(record)
    try:
        commit([*changes, save])
    except Conflict as conflict:
        if conflict.change is not save:
            raise
        # A commit of this request whose answer was lost has stored it.
        commit(changes)
    pending.record = None


def alone(store: Store) -> None:
    """Store the record by itself, after a change that lies outside of our transactions. Raises Unavailable."""
    pending = _pending.get()
    if pending is not None and pending.record is not None:
        pending.record = replace(pending.record, outcome="noted")
        store.commit([])
