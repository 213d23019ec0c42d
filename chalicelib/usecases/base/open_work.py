"""Iterates all open work of a lane, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.ports.store import Store

PAGE = 200


def pages_of(store: Store, kind: WorkKind, lane: str, *, upto: str | None = None) -> Iterator[list[Work]]:
    """Open obligations of a lane in order, page by page. Work that is closed meanwhile does not disturb the order. Raises
    Unavailable."""
    after: Work | None = None
    while True:
        page = store.open_work(kind, lane, upto=upto, after=after, limit=PAGE)
        if page:
            yield page
        if len(page) < PAGE:
            return
        after = page[-1]


def is_open(store: Store, work: Work) -> bool:
    """Whether an obligation is still open. Raises Unavailable."""
    return work in store.open_work(work.kind, work.lane, upto=work.order, after=replace(work, id=""))
