"""The store: records by key and in lists, changed in one transaction. `store/dynamo.py` fits it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from chalicelib.domain.addresses.index_pools import Indexes, IndexPool
    from chalicelib.domain.catalogue.catalogue import Catalogue
    from chalicelib.domain.ids import Realm
    from chalicelib.domain.work import Work, WorkKind
    from chalicelib.usecases.ports.changes import Change

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """`next` starts the following page; None at the end."""

    items: list[R]
    next: str | None


@dataclass(frozen=True, slots=True)
class Listed:
    """One list in order of time: an `owner`'s records of a `family`, or those with one value.

    `store/indexes.py::INDEXES` says which families there are and what each can be looked up `by`.
    """

    family: str
    by: str
    owner: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Sort keys from `low` to `high`, both included; None is open."""

    low: str | None = None
    high: str | None = None


EVERYWHERE = Span()


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of a list: its `position` in the list, and the key of its record."""

    position: str
    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Places:
    """`more`: there was more than was asked for."""

    places: list[Place]
    more: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """`last` is the position of the last one counted where the count stopped before the end; else None."""

    count: int
    last: str | None


class Store(Protocol):
    """Records by their type and key fields; see `store/schema.py` for which fields make each key."""

    def get(self, kind: type[R], /, **key: str) -> R | None:
        """One record, strongly consistent, or None."""
        ...

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        """Records by type and key, in the order asked, None where there is none. Strongly consistent, 100 keys a round trip."""
        ...

    def page(
        self,
        kind: type[R],
        /,
        *,
        limit: int,
        after: str | None = None,
        newest_first: bool = False,
        span: Span = EVERYWHERE,
        known_only: bool = False,
        **partition: str,
    ) -> Page[R]:
        """The records of one partition in the order of their sort keys (for ids: of creation), without archived ones.

        With `known_only` one in a form that only a newer version knows is left out, with an alarm; else TooNew is raised.
        """
        ...

    def places(
        self, listed: Listed, /, *, limit: int, after: str | None = None, newest_first: bool = False, span: Span = EVERYWHERE
    ) -> Places:
        """Up to `limit` entries of a list behind the position `after`. A change is seen in lists a moment after its commit."""
        ...

    def at(self, places: Sequence[Place], /, *, known_only: bool = False) -> list[Any]:
        """The records at these places, None where one is gone. Strongly consistent, 100 a round trip. `known_only` as in `page`:
        None for what is left out."""
        ...

    def count(
        self,
        where: Listed | tuple[type[Any], Mapping[str, str]],
        /,
        *,
        most: int,
        after: str | None = None,
        newest_first: bool = False,
        span: Span = EVERYWHERE,
    ) -> Counted:
        """How many entries a list, or a partition of records, has behind `after`. Stops at `most`, and returns the position."""
        ...

    def named(self, name: str, /) -> list[str]:
        """The ids of the archived records that are found by a name. Strongly consistent."""
        ...

    def whole(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[bool]:
        """Which of these records lie in the table with all that they have; the others are archived, or there are none. Strongly
        consistent."""
        ...

    def kept(self, name: str, /) -> list[Any]:
        """All records of one of the archive's objects, as they were when they left the tables. Raises NotKept."""
        ...

    def commit(self, changes: Sequence[Change], /) -> None:
        """All of `changes`, or none. Raises Conflict."""
        ...

    def put_all(self, records: Sequence[Any], /) -> None:
        """Store `records` one by one, whatever lies in their places, whole: for records that any worker makes the same of something
        else that is stored, and that are never saved. A newer version's is no exception: what it adds to such a record follows from
        what the record is made of, which keeps what a version does not know; so this version's record lacks nothing that another
        may rest on. Half the price of `commit`, 25 a round trip, where a condition on each would be a round trip each; where it
        fails, some may be stored."""
        ...

    def remove(self, kind: type[Any], /, **key: str) -> bool:
        """Remove one record by itself, at half the price of `commit`; whether it was there. Where the answer to a first try was
        lost, it says that it was not."""
        ...

    def open(self, work: Work, /) -> None:
        """Open one obligation by itself, at half the price of `commit`; one that is open already stays as it is."""
        ...

    def close_all(self, works: Sequence[Work], /) -> None:
        """Close obligations one by one, whether they are open or not, many a round trip. Where this fails some may be closed."""
        ...

    def close(self, work: Work, /) -> None:
        """Close one obligation by itself, at half the price of `commit`, whether it is open or not."""
        ...

    def open_work(
        self, kind: WorkKind, lane: str, *, upto: str | None = None, after: Work | None = None, limit: int = 100
    ) -> list[Work]:
        """Open obligations of a lane in order, behind `after`, those whose `order` is at most `upto`. Strongly consistent."""
        ...

    def work_by_time(
        self, kind: WorkKind, lane: str, /, *, limit: int, span: Span = EVERYWHERE, after: str | None = None
    ) -> Page[Work]:
        """Open obligations of a kind that is kept by time as well (`domain.work.time_lane`), whatever their own lanes: one of
        the eight lanes of time, in order. `span` and `after` are of the form order, then "#", then id. Seen a moment after
        the commit."""
        ...

    def reserve_indexes(self, pool: str, count: int) -> Indexes:
        """Take up to `count` fresh address indexes out of `pool` for good, none of them at or above its ceiling. One conditional
        write. Raises Exhausted."""
        ...

    def indexes_taken(self, pool: str) -> int:
        """How many indexes were taken out of `pool`, and with that the next one."""
        ...

    def index_pool(self, pool: str) -> IndexPool | None:
        """The counter row of `pool` as it is now; None where there is none."""
        ...

    def change_index_pool(self, pool: str, before: IndexPool | None, after: IndexPool) -> None:
        """Put `after` in the place of `before`, as it was read: for housekeeping and restores. Raises Conflict."""
        ...

    def every(self, kind: type[R], /) -> Iterator[R]:
        """All records of a kind, by a scan: for the operator's checks, never on a request's path."""
        ...

    def every_of(self, kinds: Collection[type], /) -> Mapping[type, list[Any]]:
        """All records of these kinds, by one scan of each of their tables: for the operator's checks."""
        ...

    def sweep(
        self, kind: type[R], /, *, limit: int, after: str | None = None, segment: tuple[int, int] | None = None,
        consistent: bool = False, unarchived: bool = False, **beginning: str,
    ) -> Page[R]:  # fmt: skip
        """One step through the whole table of a kind: of the next `limit` items those whose key begins with these fields.
        `segment` (n, of so many): through that part of the table alone, which has its keys by their hashes. `consistent`: misses
        nothing that was there when it began, and costs twice as much. `unarchived`: without archived ones, which are not read.

        For schedules, never on a request's path. `next` is None at the table's end. A record that is new may be missed this time.
        """
        ...

    def every_work(self) -> Iterator[Work]:
        """All open obligations, by a scan: for the operator's checks."""
        ...

    def catalogue(self, realm: Realm, fresh: bool = False) -> Catalogue:
        """Networks and coins of a realm; at most 30 seconds old, or `fresh` as they are now."""
        ...
