"""Ways through a source to one page: counted where the keys suffice, read record by record where they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chalicelib.api.lists.query import DEEPEST
from chalicelib.api.lists.sources import Source
from chalicelib.domain.errors import InvalidParameter

Fits = Callable[[Any], bool]
_CHUNK = 500
_GENTLE = 100
"""Candidates of the first read behind a cursor: often the page is full with them."""


@dataclass(frozen=True, slots=True)
class Entries:
    """One page. The list continues behind `resume`; `total` is None where nothing was counted."""

    entries: list[tuple[str, Any]]
    more: bool
    resume: str | None
    total: int | None = None
    capped: bool = False


def counted(source: Source, fits: Fits, page: int, size: int) -> Entries:
    """A page of a source whose every entry matches: the entries before it and after it are only counted."""
    first, start = (page - 1) * size, None
    if first:
        passed = source.skip(first)
        if passed.last is None or passed.count < first:
            return Entries([], passed.capped, passed.last, min(passed.count, DEEPEST), passed.capped)
        start = passed.last
    chunk = source.read(start, size)
    total, capped = first + len(chunk.entries), False
    if chunk.more:
        rest = source.rest(chunk.resume, DEEPEST + 1 - total)
        total, capped = total + rest.count, rest.capped or total + rest.count > DEEPEST
    kept = [entry for entry in chunk.entries if fits(entry[1])]
    return Entries(kept, chunk.more, chunk.resume, min(total, DEEPEST), capped)


def looked_through(source: Source, fits: Fits, page: int, size: int, most: int | None = None) -> Entries:
    """A page of what fits among the first `most` candidates (DEEPEST of them unless told), all of which are looked at, to count."""
    most = most or DEEPEST
    first, end = (page - 1) * size, page * size
    chosen: list[tuple[str, Any]] = []
    total, seen, after = 0, 0, None
    while True:
        asked = min(_CHUNK, most - seen)
        chunk = source.read(after, asked)
        for entry in chunk.entries:
            if fits(entry[1]):
                if first <= total < end:
                    chosen.append(entry)
                total += 1
        seen, after = seen + len(chunk.entries), chunk.resume
        if not chunk.more or seen >= most or len(chunk.entries) < asked:
            break
    # Where nothing that fits was found behind the page, it goes on behind the last candidate: nobody has to look at them again.
    resume = chosen[-1][0] if chosen and total > end else after
    return Entries(chosen, total > end or chunk.more, resume, total, chunk.more)


def behind(source: Source, fits: Fits, position: str, size: int, most: int | None = None) -> Entries:
    """The page behind a position. At most `most` candidates are looked at; where they are not enough it is short, and goes on."""
    most = most or DEEPEST
    chosen: list[tuple[str, Any]] = []
    seen, after, step = 0, position, size
    while True:
        asked = min(step, most - seen)
        chunk = source.read(after, asked)
        for entry in chunk.entries:
            if fits(entry[1]):
                if len(chosen) == size:
                    return Entries(chosen, True, chosen[-1][0])
                chosen.append(entry)
        seen, after = seen + len(chunk.entries), chunk.resume or after
        if not chunk.more:
            return Entries(chosen, False, None)
        if seen == size == len(chosen):
            return Entries(chosen, True, after)  # every candidate fits: there is no need to look for one more
        if seen >= most or len(chunk.entries) < asked:
            return Entries(chosen, True, after)
        step = _GENTLE if step == size else _CHUNK


def everything(source: Source, fits: Fits, sort: str, most: int | None = None) -> list[tuple[str, Any]]:
    """All matching records. Raises InvalidParameter where there are too many candidates to be sorted."""
    most = most or DEEPEST
    found: list[tuple[str, Any]] = []
    seen, after = 0, None
    while True:
        asked = min(_CHUNK, most + 1 - seen)
        chunk = source.read(after, asked)
        found += [entry for entry in chunk.entries if fits(entry[1])]
        seen, after = seen + len(chunk.entries), chunk.resume
        if seen > most or (chunk.more and len(chunk.entries) < asked):
            words = f"can sort at most {most} entries: narrow the list by time or by another filter, or leave it in order of time"
            raise InvalidParameter.one("sort", sort, words)
        if not chunk.more:
            return found
