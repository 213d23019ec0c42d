"""Sources of a list's entries, in the order of their keys: one partition of a table, or indexes.

Of an index only keys are read, and the records behind the page alone. Several values of one field are merged; what several
fields ask for is what their lists have in common. A record in a form that only a newer version of the service knows is left out,
with an alarm: one that is shown wrongly would be worse, and a merchant's whole list must not wait for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from chalicelib.api.lists.meter import Meter
from chalicelib.api.lists.query import DEEPEST
from chalicelib.usecases.ports.store import Listed, Place, Span, Store

_KEYS, _MOST_AT_ONCE = 1000, 6000
"""Keys of the first read while several lists are compared, and of later ones: what a query gives at once (1 MB)."""
MOST_KEYS = 2 * DEEPEST
"""Keys that one request looks at in all where several lists are compared."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Entries in order. `more`: there are some behind `resume`, or may be: fewer than requested, with `more`, means that one
    request may read no further."""

    entries: list[tuple[str, Any]]
    more: bool
    resume: str | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The number of entries passed over; the rest begins behind `last`, None when there is no rest."""

    count: int
    last: str | None
    capped: bool = False


class Source(Protocol):
    def read(self, after: str | None, limit: int) -> Chunk:
        """Up to `limit` entries behind `after`."""
        ...

    def skip(self, count: int) -> Skipped:
        """Pass over the first `count` entries."""
        ...

    def rest(self, after: str | None, most: int) -> Skipped:
        """The number of entries behind `after`, up to `most`."""
        ...


@dataclass(frozen=True, slots=True)
class Partition:
    """Records that lie in a partition of their own in order. `counted` is the index with their keys alone, where there is one:
    counting there reads a fifth of the bytes."""

    store: Store
    kind: type[Any]
    fields: Mapping[str, str]
    newest_first: bool
    span: Span
    meter: Meter
    counted: Listed | None = None
    visible: Callable[[Any], bool] | None = None
    """Which of the records are in the list: those that `counted` has."""

    def read(self, after: str | None, limit: int) -> Chunk:
        entries: list[tuple[str, Any]] = []
        # Where some records are hidden, only another one that is not says that there is more.
        wanted = limit if self.visible is None else limit + 1
        while True:
            page = self.store.page(
                self.kind,
                limit=wanted - len(entries),
                after=after,
                newest_first=self.newest_first,
                span=self.span,
                known_only=True,
                **self.fields,
            )
            self.meter.records(len(page.items))
            entries += [(record.id, record) for record in page.items if self.visible is None or self.visible(record)]
            after = page.next
            if len(entries) > limit:
                return Chunk(entries[:limit], True, entries[limit - 1][0])
            if after is None or len(entries) == wanted:
                return Chunk(entries, after is not None, after)

    def skip(self, count: int) -> Skipped:
        found = self.store.count(
            self.counted or (self.kind, self.fields), most=count, newest_first=self.newest_first, span=self.span
        )
        self._metered(found.count)
        return Skipped(found.count, found.last)

    def rest(self, after: str | None, most: int) -> Skipped:
        where = self.counted or (self.kind, self.fields)
        found = self.store.count(where, most=most, after=after, newest_first=self.newest_first, span=self.span)
        self._metered(found.count)
        return Skipped(found.count, found.last)

    def _metered(self, count: int) -> None:
        if self.counted is None:
            self.meter.keys(count)


@dataclass(frozen=True, slots=True)
class Together:
    """Several partitions as one list, in the order of their records' ids. They share no record, and none hides any."""

    parts: Sequence[Partition]
    newest_first: bool

    def read(self, after: str | None, limit: int) -> Chunk:
        chunks = [part.read(after, limit) for part in self.parts]
        merged = heapq.merge(*(chunk.entries for chunk in chunks), key=lambda entry: entry[0], reverse=self.newest_first)
        entries = list(islice(merged, limit))
        more = any(chunk.more for chunk in chunks) or sum(len(chunk.entries) for chunk in chunks) > len(entries)
        return Chunk(entries, more, entries[-1][0] if entries else after)

    def skip(self, count: int) -> Skipped:
        passed, last = 0, None
        while passed < count:
            chunk = self.read(last, min(count - passed, _KEYS))
            passed += len(chunk.entries)
            if not chunk.more:
                return Skipped(passed, None)
            last = chunk.resume
        return Skipped(passed, last)

    def rest(self, after: str | None, most: int) -> Skipped:
        found = sum(part.rest(after, most).count for part in self.parts)
        return Skipped(min(found, most), None)


@dataclass(frozen=True, slots=True)
class Indexed:
    """Entries that are in one list of every group: `groups` are alternatives by field, and no two of a group share an entry."""

    store: Store
    groups: Sequence[Sequence[Listed]]
    newest_first: bool
    span: Span
    meter: Meter

    @property
    def _only(self) -> Listed | None:
        return self.groups[0][0] if len(self.groups) == 1 and len(self.groups[0]) == 1 else None

    def read(self, after: str | None, limit: int) -> Chunk:
        only = self._only
        if only is not None:
            found = self.store.places(only, limit=limit, after=after, newest_first=self.newest_first, span=self.span)
            places, more = found.places, found.more
            resume = places[-1].position if places else after
        else:
            walk = self._walk(after, limit if len(self.groups) == 1 else _KEYS)
            places = list(islice(walk, limit + 1))
            more = len(places) > limit or walk.spent
            resume = places[limit - 1].position if len(places) > limit else walk.passed or after
            places = places[:limit]
        self.meter.records(len(places))
        records = self.store.at(places, known_only=True)
        return Chunk([(place.position, record) for place, record in zip(places, records, strict=True)], more, resume)

    def skip(self, count: int) -> Skipped:
        only = self._only
        if only is not None:
            found = self.store.count(only, most=count, newest_first=self.newest_first, span=self.span)
            return Skipped(found.count, found.last)
        walk, passed, last = self._walk(None, _KEYS), 0, None
        for place in walk:
            passed, last = passed + 1, place.position
            if passed == count:
                return Skipped(passed, last)
        return Skipped(passed, walk.passed if walk.spent else None, walk.spent)

    def rest(self, after: str | None, most: int) -> Skipped:
        if len(self.groups) == 1:
            total = 0
            for listed in self.groups[0]:
                total += self.store.count(
                    listed, most=most - total, after=after, newest_first=self.newest_first, span=self.span
                ).count
                if total >= most:
                    break
            return Skipped(total, None)
        walk, passed = self._walk(after, _KEYS), 0
        for _ in walk:
            passed += 1
            if passed == most:
                break
        return Skipped(passed, None, walk.spent)

    def _walk(self, after: str | None, first: int) -> _Walk:
        return _Walk(self, after, first + 1)


class _Spent(Exception):
    """One request has looked at as many keys as it may."""


@dataclass
class _Walk:
    """Goes through keys, MOST_KEYS at most: `spent` says that there would be more. `passed`: what comes next lies behind."""

    of: Indexed
    after: str | None
    first: int
    passed: str | None = None
    seen: int = 0
    spent: bool = False

    def __iter__(self) -> Iterator[Place]:
        try:
            yield from self._common()
        except _Spent:
            self.spent = True

    def _common(self) -> Iterator[Place]:
        furthest = min if self.of.newest_first else max
        streams = [self._merged(group) for group in self.of.groups]
        heads = [next(stream, None) for stream in streams]
        while True:
            present = [head for head in heads if head is not None]
            if len(present) < len(heads):
                return
            # The list that is furthest on has nothing before its head: neither have all of them in common.
            last = furthest(head.position for head in present)
            behind = [head.position for head in present if head.position != last]
            if behind:
                self.passed = furthest(behind)
                heads = [
                    next(stream, None) if head.position != last else head for stream, head in zip(streams, present, strict=True)
                ]
            else:
                self.passed = last
                yield present[0]
                heads = [next(stream, None) for stream in streams]

    def _merged(self, group: Sequence[Listed]) -> Iterator[Place]:
        streams = [self._stream(listed) for listed in group]
        return heapq.merge(*streams, key=lambda place: place.position, reverse=self.of.newest_first)

    def _stream(self, listed: Listed) -> Iterator[Place]:
        after, size, begun = self.after, self.first, False
        while True:
            # Every list is read once: so the heads are compared, and whoever goes on begins further on.
            if begun and self.seen >= MOST_KEYS:
                raise _Spent
            begun = True
            found = self.of.store.places(listed, limit=size, after=after, newest_first=self.of.newest_first, span=self.of.span)
            self.seen += len(found.places)
            self.of.meter.keys(len(found.places))
            yield from found.places
            if not found.more:
                return
            after, size = found.places[-1].position, min(max(_KEYS, 4 * size), _MOST_AT_ONCE)
