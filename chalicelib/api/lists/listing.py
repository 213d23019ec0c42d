"""A list's declaration, and the page that answers a query about it.

A filter that an index or the order of keys can answer is read from there, and then a page costs the same however long the list is:
its keys, its records, and one count. A record with a key of its own is read by it. Any other filter reads candidates, the newest
10,000 at most in one request, fewer where records are large (`most`); then `total` is the number found among them, `total_capped`
is true, and the cursor goes on where it stopped. To be sorted by anything but time, a list must fit that number. Reading more than
a thousand counts as several requests of the key (`api/lists/meter.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chalicelib.api.lists import cursors
from chalicelib.api.lists.fields import Condition, Interval, ListField
from chalicelib.api.lists.meter import Meter
from chalicelib.api.lists.query import DEEPEST, Order, PageQuery, Shortcut, query_model
from chalicelib.api.lists.sources import Indexed, Partition, Source, Together
from chalicelib.api.lists.walking import Entries, behind, counted, everything, looked_through
from chalicelib.domain.errors import InvalidParameter
from chalicelib.usecases.ports.store import Listed, Span

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx

Pagination = dict[str, Any]
Found = tuple[list[Any], Pagination]
Where = Callable[[Any], bool]
Find = Callable[["Ctx", Any], Sequence[Any] | None]
"""All records of the caller's list that have a value in a field, got by their keys; None where keys can not tell."""
_MOST_LISTS = 12
"""Values of one filter that are looked up in an index each; with more of them candidates are looked through."""


def _tenant(ctx: Ctx) -> dict[str, str]:
    return {"tenant": ctx.tenant}


@dataclass(frozen=True)
class Listing:
    """One list. `fields` are its filters and sort fields, `shortcuts` published names for some of them.

    Stored lists have a `kind`, a `family`, or both: records of `kind` that lie in the partition `partition` gives, their ids in
    order of time; indexes of `family` (`store/indexes.py::INDEXES`), of which `by` has the whole list of `owner`, and of those
    `beside` it, whose entries are listed with it. `position` is the least position of a time in milliseconds, `place` a record's
    own. `visible` hides records that are in no index of the whole list. `keyed` are fields by whose value records are got directly.
    `most` is how many candidates one request looks through, and how many can be sorted, where not 10,000.
    A list in memory has none of these and is handed to `over` or `array`; `bare` is one that is answered as an array. `order` is
    the one without `order` in the query: newest first, and that of the catalogue for arrays.
    """

    name: str
    fields: tuple[ListField, ...]
    shortcuts: tuple[Shortcut, ...] = ()
    kind: type[Any] | None = None
    partition: Callable[[Ctx], Mapping[str, str]] = _tenant
    family: str | None = None
    by: str = "time"
    owner: Callable[[Ctx], str] = lambda ctx: ctx.tenant
    beside: Callable[[Ctx], Sequence[str]] = lambda _: ()
    indexes: frozenset[str] = frozenset()
    position: Callable[[int], str] | None = None
    visible: Where | None = None
    keyed: Mapping[str, Find] = field(default_factory=dict)
    place: Callable[[Any], str] = lambda r: str(r.id)
    bare: bool = False
    order: Order | None = None
    most: int | None = None

    @cached_property
    def model(self) -> type[Any]:
        """The query model, made at first use."""
        name = f"{self.name.title().replace('-', '').replace(' ', '')}Query"
        return query_model(
            name, self.fields, self.shortcuts, cursor=not self.bare, order=self.order or ("asc" if self.bare else "desc")
        )

    def condition(self, field: str, value: Any) -> Condition:
        """The condition that a field is `value`: for a value from the path."""
        return Condition(next(f for f in self.fields if f.name == field), "eq", value)

    def page(
        self,
        ctx: Ctx,
        query: Any,
        *,
        also: Sequence[Condition] = (),
        where: Where | None = None,
        whole: Listed | None = None,
        tenants: Sequence[str] | None = None,
    ) -> Found:
        """The records that the query asks for, and the pagination. `also` and `where` are conditions of the route's own, `whole`
        is the list that the route means where that is not all of the caller's. `tenants` are those whose records are read in
        place of the caller's; all of them hold to `where`, and to conditions on a field that is looked up by "tenant".

        Raises InvalidParameter (too deep, a cursor of another list, too many to sort), Unavailable.
        """
        cursor = self._start(query)
        order = query.order if cursor is None else cursor.order
        conditions = [*query.conditions, *also]
        sort = self._sort(query, cursor)

        def fits(record: Any) -> bool:
            # What an index told is looked at again: it may be a moment behind the record.
            return (
                record is not None and all(c.holds(record, ctx.catalogue) for c in conditions) and (where is None or where(record))
            )

        direct = self._direct(ctx, conditions)
        if direct is not None:
            entries = [(at, r) for at, r in direct if fits(r) and (self.visible is None or self.visible(r))]
            return self._sorted(ctx, query, sort, order, cursor, entries)
        source = self._source(ctx, conditions, whole, tenants, newest_first=order == "desc")
        if source is None:
            return [], pagination(query, [], total=0, more=False, cursor=cursor)
        groups = isinstance(source, Indexed)
        untold = [c for c in conditions if not (self._in_span(c) or (groups and self._lookups(ctx, c) is not None))]
        if tenants is not None:
            untold, where = [c for c in untold if c.field.by != "tenant"], None
        if sort is not None:
            return self._sorted(ctx, query, sort, order, cursor, everything(source, fits, sort.name, self.most))
        if cursor is not None:
            page = behind(source, fits, cursor.position, query.size, self.most)
        elif untold or where is not None:
            page = looked_through(source, fits, query.page, query.size, self.most)
        else:
            page = counted(source, fits, query.page, query.size)
        return [record for _, record in page.entries], self._described(query, page, cursor, order)

    def over(self, ctx: Ctx, query: Any, records: Iterable[Any], *, position: Callable[[Any], str] = lambda r: r.id) -> Found:
        """The same page of records that are all in memory; `position` sorts them by time and tells them apart. Raises
        InvalidParameter."""
        cursor = self._start(query)
        order = query.order if cursor is None else cursor.order
        entries = [(position(record), record) for record in self._fitting(ctx, query, records)]
        return self._sorted(ctx, query, self._sort(query, cursor), order, cursor, entries)

    def array(self, ctx: Ctx, query: Any, records: Iterable[Any]) -> list[Any]:
        """A bare array: all matching records, a page of them only on request; in the given order unless sorted."""
        _check_depth(query)
        found = self._fitting(ctx, query, records)
        sort = query.sorted_by
        if sort is not None:
            found.sort(key=lambda record: _sortable(sort.read(record, ctx.catalogue)))
        if query.order == "desc":
            found.reverse()
        return found[(query.page - 1) * query.size : query.page * query.size] if query.limited else found

    def _fitting(self, ctx: Ctx, query: Any, records: Iterable[Any]) -> list[Any]:
        conditions = query.conditions
        return [record for record in records if all(c.holds(record, ctx.catalogue) for c in conditions)]

    def _start(self, query: Any) -> cursors.Cursor | None:
        """The cursor that was sent. Raises InvalidParameter for one of another list or order, and for a page that is too deep."""
        _check_depth(query)
        sent = getattr(query, "cursor", None)
        if sent is None:
            return None
        cursor = cursors.opened(self.name, sent)
        for name, was in (("sort", cursor.sort), ("order", cursor.order)):
            now = getattr(query, name, None)
            if name == "sort" and now is not None:
                now = self._sort_name(query.sorts[now])
            if name in query.model_fields_set and now != was:
                raise InvalidParameter.one(name, now, "must stay what it was when the cursor was given")
        return cursor

    def _sort_name(self, field: ListField) -> str:
        return "" if field.by == "time" else field.name

    def _sort(self, query: Any, cursor: cursors.Cursor | None) -> ListField | None:
        """The field to sort by, None for the list's own order."""
        if cursor is not None:
            return next((f for f in self.fields if f.name == cursor.sort), None) if cursor.sort else None
        field: ListField | None = query.sorted_by
        return None if field is None or field.by == "time" else field

    def _direct(self, ctx: Ctx, conditions: Sequence[Condition]) -> list[tuple[str, Any]] | None:
        """What a condition on a field with keys of its own leaves, by position; None where there is none."""
        for condition in conditions:
            find = self.keyed.get(condition.field.name)
            values = condition.value if condition.operator == "in" else (condition.value,)
            if find is None or condition.operator not in ("eq", "in") or len(values) > _MOST_LISTS:
                continue
            found = [find(ctx, value) for value in values]
            if None not in found:
                return list({self.place(record): record for some in found for record in some or ()}.items())
        return None

    def _source(
        self,
        ctx: Ctx,
        conditions: Sequence[Condition],
        whole: Listed | None,
        tenants: Sequence[str] | None,
        newest_first: bool,
    ) -> Source | None:
        """Where candidates are read from; None where nothing can fit."""
        span = self._span(conditions)
        owners = self._owners(ctx) if tenants is None else tenants
        groups = self._groups(ctx, conditions, owners)
        if span is None or any(not group for group in groups):
            return None
        store, meter = ctx.services.store, Meter(ctx.charge)
        if groups:
            return Indexed(store, groups, newest_first, span, meter)
        wholes = [] if whole is None else [whole]
        if whole is None and self.family is not None and self.by in self.indexes:
            wholes = [Listed(self.family, self.by, owner) for owner in owners]
        if self.kind is None:
            if not wholes:
                raise LookupError(f"{self.name} is stored nowhere")
            return Indexed(store, [wholes], newest_first, span, meter)
        whole = wholes[0] if wholes else None
        read = [
            Partition(store, self.kind, fields, newest_first, span, meter, whole, self.visible)
            for fields in ([self.partition(ctx)] if tenants is None else [{"tenant": tenant} for tenant in tenants])
        ]
        return (read[0] if len(read) == 1 else Together(read, newest_first)) if read else None

    def _span(self, conditions: Sequence[Condition]) -> Span | None:
        """The range of keys that conditions on the time leave; None where it is empty."""
        low: int | None = None
        high: int | None = None
        for condition in conditions:
            value = condition.value
            if not self._in_span(condition):
                continue
            if condition.operator in ("eq", "gte", "gt"):
                least = value.high if condition.operator == "gt" else value.low
                low = least if low is None else max(low, least)
            if condition.operator in ("eq", "lte", "lt"):
                end = value.low if condition.operator == "lt" else value.high
                high = end if high is None else min(high, end)
        if high is not None and (high <= 0 or (low is not None and low >= high)):
            return None
        at = self.position
        return Span() if at is None else Span(None if low is None else at(low), None if high is None else at(high))

    def _in_span(self, condition: Condition) -> bool:
        told = condition.field.by == "time" and isinstance(condition.value, Interval) and condition.operator != "ne"
        return told and self.position is not None

    def _groups(self, ctx: Ctx, conditions: Sequence[Condition], owners: Sequence[str]) -> list[list[Listed]]:
        """For each index that conditions name, the lists in it that they allow."""
        allowed: dict[str, list[str]] = {}
        for condition in conditions:
            wanted = self._lookups(ctx, condition)
            if wanted is not None:
                by = str(condition.field.by)
                allowed[by] = wanted if by not in allowed else [value for value in allowed[by] if value in wanted]
        return [[Listed(str(self.family), by, o, v) for v in values for o in owners] for by, values in sorted(allowed.items())]

    def _owners(self, ctx: Ctx) -> list[str]:
        return [self.owner(ctx), *self.beside(ctx)]

    def _lookups(self, ctx: Ctx, condition: Condition) -> list[str] | None:
        """The values of an index that a condition asks for; None where it asks for something else."""
        by = condition.field.by
        if by is None or by == self.by or by not in self.indexes or condition.operator not in ("eq", "in"):
            return None
        values = condition.value if condition.operator == "in" else (condition.value,)
        found: dict[str, None] = {}
        for value in values:
            partitions = condition.field.partitions(value, ctx.catalogue)
            if partitions is None:
                return None
            found |= dict.fromkeys(partition.lower() for partition in partitions)
        return list(found) if len(found) <= _MOST_LISTS else None

    def _described(self, query: Any, page: Entries, cursor: cursors.Cursor | None, order: str) -> Pagination:
        following = None if page.resume is None or not page.more else self._sealed(query, None, order, page.resume)
        return pagination(
            query, page.entries, total=page.total, more=page.more, cursor=cursor, following=following, capped=page.capped
        )

    def _sealed(self, query: Any, sort: ListField | None, order: str, position: str, value: Any = None) -> str | None:
        if self.bare:
            return None
        return cursors.sealed(self.name, cursors.Cursor("" if sort is None else sort.name, order, position, value))

    def _sorted(
        self,
        ctx: Ctx,
        query: Any,
        sort: ListField | None,
        order: str,
        cursor: cursors.Cursor | None,
        entries: list[tuple[str, Any]],
    ) -> Found:
        """A page of entries that are all here, in the order of a field, and of their positions where that is the same."""
        keyed = [(_sortable(None if sort is None else sort.read(record, ctx.catalogue)), at, record) for at, record in entries]
        keyed.sort(key=lambda row: row[:2], reverse=order == "desc")
        first = (query.page - 1) * query.size
        if cursor is not None:
            here = (_restored(cursor.value, keyed), cursor.position)
            ahead = [row[:2] > here if order == "asc" else row[:2] < here for row in keyed]
            first = ahead.index(True) if True in ahead else len(keyed)
        chosen = keyed[first : first + query.size]
        more = len(keyed) > first + query.size
        following = self._sealed(query, sort, order, chosen[-1][1], _plain(chosen[-1][0])) if more and chosen else None
        total = None if cursor is not None else len(keyed)
        found = [record for _, _, record in chosen]
        return found, pagination(query, found, total=total, more=more, cursor=cursor, following=following)


def pagination(
    query: Any,
    found: Sequence[Any],
    *,
    total: int | None,
    more: bool,
    cursor: cursors.Cursor | None,
    following: str | None = None,
    capped: bool = False,
) -> Pagination:
    """What answers say of a page. Behind a cursor nothing is counted: `page`, `total` and `pages` are null. `capped`: there may be
    more than `total`, and nobody knows how many pages."""
    numbered = cursor is None and total is not None
    shown = {
        "page": query.page if numbered else None,
        "limit": query.size,
        "total": total if numbered else None,
        "pages": -(-total // query.size) if numbered and total is not None and not capped else None,
        "has_next": more,
        "has_prev": cursor is not None or query.page > 1,
        "next_cursor": following,
    }
    return shown | ({"total_capped": True} if capped else {})


def _check_depth(query: PageQuery) -> None:
    if query.page * query.size > DEEPEST and getattr(query, "cursor", None) is None:
        raise InvalidParameter.one("page", query.page, f"page * limit may be at most {DEEPEST}: use cursor beyond that")


def _sortable(value: Any) -> tuple[bool, Any]:
    """None comes last."""
    return (value is None, 0 if value is None else value)


def _plain(key: tuple[bool, Any]) -> Any:
    """The value of a sort key as a cursor keeps it."""
    missing, value = key
    return None if missing else (str(value) if isinstance(value, Decimal) else value)


def _restored(value: Any, keyed: Sequence[tuple[tuple[bool, Any], str, Any]]) -> tuple[bool, Any]:
    """The opposite of `_plain`, of the type that the list's own values have. Raises InvalidParameter for another one."""
    if value is None:
        return (True, 0)
    like = next((row[0][1] for row in keyed if not row[0][0]), value)
    if isinstance(like, Decimal) and isinstance(value, str):
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite():
            return (False, number)
    elif type(like) is type(value):
        return (False, value)
    raise InvalidParameter.one("cursor", None, "must be a next_cursor that this list gave")
