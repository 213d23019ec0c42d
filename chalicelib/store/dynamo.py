"""`usecases.ports.store.Store` on DynamoDB. Reads are strongly consistent, but for lists by index."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError
from pynamodb.connection import Connection
from pynamodb.exceptions import PynamoDBException, UpdateError

from chalicelib.domain.addresses.index_pools import Indexes, IndexPool
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
from chalicelib.domain.ids import Realm
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.work import OutboxRow, Work, WorkKind, as_one_item
from chalicelib.settings import AWS_CONNECTIONS, USER_AGENT, Settings
from chalicelib.store import alone, lists, scans
from chalicelib.store.indexes import INDEXES, listed_under
from chalicelib.store.models import ARCHIVE, Models
from chalicelib.store.schema import (
    ONE_ITEM_ROWS,
    beginning_of,
    key_of,
    kind_at,
    name_key,
    partition_of,
    prefix_of,
    where_is,
    work_at,
    work_key,
    work_partitions,
)
from chalicelib.store.unheard import OF, Heard, Listeners
from chalicelib.usecases.base import activity
from chalicelib.usecases.ports.changes import Change, Conflict, Emit
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Exhausted, TooNew, Unavailable
from chalicelib.usecases.ports.store import EVERYWHERE, Counted, Listed, Page, Place, Places, Span

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.rates import Rate, Rates
    from chalicelib.store.archive import Archived

R = TypeVar("R")

CATALOGUE_SECONDS = 30.0
"""For rates too."""
_BATCH = 100  # keys in one BatchGetItem
_BUSY_TRIES = 6


def _connection(region: str) -> Connection:
    connection = Connection(region=region, connect_timeout_seconds=3, read_timeout_seconds=10, max_pool_connections=AWS_CONNECTIONS)
    connection.session.set_default_client_config(Config(user_agent=USER_AGENT))
    connection.client  # noqa: B018 - made now: sessions are one for each thread, and the next one's would know nothing of it
    return connection


Kick = Callable[[str, str | None], None]


def _work(item: dict[str, Any]) -> Work:
    """The obligation that an item of the table `work` is. An outbox row of one item has it in its key alone."""
    if "lane" not in item:
        return work_at(item["pk"]["S"], item["sk"]["S"])
    order = item["order"]["S"] if "order" in item else ""  # empty texts are left out
    return Work(cast(WorkKind, item["work_kind"]["S"]), item["lane"]["S"], order, item["work_id"]["S"])


class DynamoStore:
    """The store of one stage. Safe to share between threads."""

    def __init__(
        self,
        settings: Settings,
        region: str,
        kick: Kick = lambda *_: None,
        archived: Callable[[], Archived] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`kick` gets the id and the tenant of every committed outbox row, so that its events are sent at once. `archived` is asked
        when the first stub is met. `clock` tells the machines' time."""
        self._kick = kick
        self._settings = settings
        self.models = Models(settings, _connection(region))
        self._archived = archived
        self._listeners = Listeners(lambda tenant: self.get(Tally, tenant=tenant, of=OF), clock)
        if archived is not None:
            self.models.whole = lambda *place: archived().record(*place)
        self._catalogues: dict[Realm, tuple[float, Catalogue]] = {}
        self._rates: tuple[float, Rates] | None = None

    def get(self, kind: type[R], /, **key: str) -> R | None:
        """One record, strongly consistent, or None. Raises Unavailable."""
        model = self.models.of(kind)
        item = self._item(model.Meta.table_name, key_of(kind, key))
        return None if item is None else cast(R, self.models.record(kind, model.from_raw_data(item)))

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        """Records by type and key, None where there is none; 100 keys a round trip, whatever their tables. Raises Unavailable."""
        return self._at([(kind, self.models.of(kind), *key_of(kind, dict(fields))) for kind, fields in wanted])

    def whole(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[bool]:
        """Which of these records are no stubs, and there; 100 keys a round trip. Raises Unavailable."""
        places = [(self.models.of(kind).Meta.table_name, *key_of(kind, dict(fields))) for kind, fields in wanted]
        found = self._items(set(places))
        return [place in found and ARCHIVE not in found[place] for place in places]

    def kept(self, name: str, /) -> list[Any]:
        """All records of one of the archive's objects. Raises Unavailable, NotKept."""
        if self._archived is None:
            raise LookupError("the archive is not read here")
        return self._archived().records(name)

    def _at(self, places: Sequence[tuple[type[Any], Any, str, str]], *, known_only: bool = False) -> list[Any]:
        found = self._items({(model.Meta.table_name, pk, sk) for _, model, pk, sk in places})
        read = self._known if known_only else self.models.record
        result = []
        for kind, model, pk, sk in places:
            raw = found.get((model.Meta.table_name, pk, sk))
            result.append(None if raw is None else read(kind, model.from_raw_data(raw)))
        return result

    def _known(self, kind: type, item: Any) -> Any:
        """The record of an item, None for one in a form that only a newer version knows: the alarm is told by then."""
        try:
            return self.models.record(kind, item)
        except TooNew:
            return None

    def _items(self, todo: set[tuple[str, str, str]]) -> dict[tuple[str, str, str], dict[str, Any]]:
        """The items at these tables and keys, as DynamoDB tells them."""
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        queue = sorted(todo)
        while queue:
            request: dict[str, Any] = {}
            for table, pk, sk in queue[:_BATCH]:
                entry = request.setdefault(table, {"ConsistentRead": True, "Keys": []})
                entry["Keys"].append({"pk": {"S": pk}, "sk": {"S": sk}})
            queue = queue[_BATCH:]
            answer = self._call("BatchGetItem", {"RequestItems": request})
            for table, items in answer.get("Responses", {}).items():
                for item in items:
                    found[table, item["pk"]["S"], item["sk"]["S"]] = item
            for table, left in answer.get("UnprocessedKeys", {}).items():
                queue.extend((table, key["pk"]["S"], key["sk"]["S"]) for key in left["Keys"])
            if answer.get("UnprocessedKeys"):
                time.sleep(random.uniform(0.02, 0.1))  # noqa: S311 - the table is throttled: let it breathe
        return found

    def page(
        self, kind: type[R], /, *, limit: int, after: str | None = None, newest_first: bool = False, span: Span = EVERYWHERE,
        known_only: bool = False, **partition: str,
    ) -> Page[R]:  # fmt: skip
        """Records of one partition in the order of their sort keys, without archived ones. `after` is the sort key to go on behind.
        With `known_only` also without those in a form that only a newer version knows. Raises Unavailable, TooNew."""
        place = where_is(kind)

        def by_index(family: str, owner: str) -> Page[R]:
            listed = Listed(family, "time", partition[owner])
            found = self.places(listed, limit=limit, after=after, newest_first=newest_first, span=span)
            known = [record for record in self.at(found.places, known_only=known_only) if record is not None]
            return Page(known, found.places[-1].position if found.more else None)

        if place.pages is not None:
            return by_index(*place.pages)
        model = self.models.of(kind)
        where = lists.Where(model.Meta.table_name, None, "pk", "sk", partition_of(kind, partition))
        items, more = lists.read(self._call, where, limit, after, newest_first, span)
        if place.without_stubs is not None and any(ARCHIVE in item for item in items):
            # Archived records are in no list, and there may be any number of them one after the other.
            return by_index(*place.without_stubs)
        read = self._known if known_only else self.models.record
        records = [record for item in items if (record := read(kind, model.from_raw_data(item))) is not None]
        return Page(records, items[-1]["sk"]["S"] if more and items else None)

    def places(
        self, listed: Listed, /, *, limit: int, after: str | None = None, newest_first: bool = False, span: Span = EVERYWHERE
    ) -> Places:
        """Up to `limit` entries of an index behind `after`. Eventually consistent, as every global index. Raises Unavailable."""
        where = self._index(listed)
        items, more = lists.read(self._call, where, limit, after, newest_first, span)
        return Places([Place(item[where.sk]["S"], item["pk"]["S"], item["sk"]["S"]) for item in items], more)

    def at(self, places: Sequence[Place], /, *, known_only: bool = False) -> list[Any]:
        """The records at these places, None where one is gone; 100 a round trip, strongly consistent. With `known_only` also for
        one in a form that only a newer version knows. Raises Unavailable, TooNew."""
        at = [(kind, self.models.of(kind), p.pk, p.sk) for p in places for kind in [kind_at(p.pk)]]
        return self._at(at, known_only=known_only)

    def count(
        self, where: Listed | tuple[type[Any], Mapping[str, str]], /, *, most: int, after: str | None = None,
        newest_first: bool = False, span: Span = EVERYWHERE,
    ) -> Counted:  # fmt: skip
        """Entries of an index, or records of a partition, behind `after`; no more than `most` are looked at. Raises Unavailable."""
        if isinstance(where, Listed):
            found = self._index(where)
        else:
            kind, fields = where
            table = self.models.of(kind).Meta.table_name
            found = lists.Where(table, None, "pk", "sk", partition_of(kind, dict(fields)))
        return lists.count(self._call, found, most, after, newest_first, span)

    def _index(self, listed: Listed) -> lists.Where:
        index = INDEXES[listed.family, listed.by]
        partition = listed_under(listed.family, listed.owner, listed.value)
        return lists.Where(self._settings.table(index.table), index.name, index.pk, index.sk, partition)

    def named(self, name: str, /) -> list[str]:
        """The ids of the archived records that are found by a name, strongly consistent. Raises Unavailable."""
        where = lists.Where(self.models.table("records"), None, "pk", "sk", name_key(name)[0])
        items, _ = lists.read(self._call, where, _BATCH, None, False, EVERYWHERE)
        return [item["sk"]["S"] for item in items]

    def commit(self, changes: Sequence[Change], /) -> None:
        """All of `changes`, or none, and with a request's first ones its activity record. Raises Conflict, Unavailable, Unstorable.

        A clash with another transaction on the same items (TransactionConflict) says nothing about the conditions: it is
        tried again a few times, then given up as Conflict(None).
        """
        activity.committed(self._commit, changes)

    def _commit(self, changes: Sequence[Change]) -> None:
        from chalicelib.store import commit as commits  # a function that only reads never loads it

        if self._settings.one_item_outbox:
            changes = [Emit(as_one_item(change.row)) if isinstance(change, Emit) else change for change in changes]
        token, direct, now_ms = str(uuid.uuid4()), self._listeners.direct(changes), self._listeners.now_ms()
        for attempt in range(_BUSY_TRIES):
            try:
                commits.write(self.models, changes, token, direct, now_ms)
            except commits.Busy:
                time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 - spreads retries, guards nothing
            except Heard as heard:
                if direct is not None and heard.for_seconds:
                    self._listeners.heard(direct.row.tenant, heard.for_seconds)
                token, direct = str(uuid.uuid4()), None  # another transaction than before
            except (PynamoDBException, BotoCoreError) as error:
                raise Unavailable("the store did not answer") from error
            else:
                self._listeners.saw(changes)
                for change in changes:
                    if isinstance(change, Emit) and change is not direct:
                        self._kick(change.row.id, change.row.tenant)
                return
        raise Conflict(None)

    def put_all(self, records: Sequence[Any], /) -> None:
        """Store `records` one by one, whatever lies in their places, whole: also what a newer version added there goes (see the
        port). 25 a round trip. Raises Unavailable; some may be stored."""
        items = [self.models.item(record) for record in records]
        alone.write_all(self._call, [(item.Meta.table_name, {"PutRequest": {"Item": item.serialize()}}) for item in items])

    def remove(self, kind: type[Any], /, **key: str) -> bool:
        """Remove one record by itself; whether it was there. Raises Unavailable."""
        return alone.removed(self._call, self.models.of(kind).Meta.table_name, key_of(kind, key))

    def open(self, work: Work, /) -> None:
        """Open one obligation by itself; one that is open already stays as it is, with what a newer version put there. Raises
        Unavailable."""
        from chalicelib.store.commit import work_item

        item = work_item(self.models, work)
        alone.put_new(self._call, item.Meta.table_name, item.serialize())

    def close_all(self, works: Sequence[Work], /) -> None:
        """Close obligations one by one, whether they are open or not; 25 a round trip. Raises Unavailable; some may be closed."""
        for work in works:
            self.models.demand_work(work)
        table = self.models.work.Meta.table_name
        alone.write_all(self._call, [(table, {"DeleteRequest": {"Key": alone.key_as_sent(*work_key(work))}}) for work in works])

    def close(self, work: Work, /) -> None:
        """Close one obligation by itself, whether it is open or not. Raises Unavailable, TooNew."""
        self.models.demand_work(work)
        alone.removed(self._call, self.models.work.Meta.table_name, work_key(work))

    def open_work(
        self, kind: WorkKind, lane: str, *, upto: str | None = None, after: Work | None = None, limit: int = 100
    ) -> list[Work]:
        """Open obligations of a lane in order, behind `after`, those whose `order` is at most `upto`. Raises Unavailable."""
        first = "" if after is None else f"{after.order}#{after.id}"
        # '~' sorts behind every character of an order and an id: `upto` itself is included, whatever its ids.
        span = (f"{first}!" if first else "!", f"{upto}#~" if upto is not None else "~")
        parts = [self._open_in(partition, span, limit) for partition in work_partitions(kind, lane)]
        if len(parts) == 1:
            return parts[0]
        return sorted((work for part in parts for work in part), key=lambda work: (work.order, work.id))[:limit]

    def _open_in(self, partition: str, span: tuple[str, str], limit: int) -> list[Work]:
        where = lists.Where(self.models.work.Meta.table_name, None, "pk", "sk", partition)
        items, _ = lists.read(self._call, where, limit, None, False, Span(*span))
        return [_work(item) for item in items]

    def work_by_time(
        self, kind: WorkKind, lane: str, /, *, limit: int, span: Span = EVERYWHERE, after: str | None = None
    ) -> Page[Work]:
        """Open obligations of a kind in the order of time, whatever their lanes. Eventually consistent. Raises Unavailable."""
        found = self.places(Listed(kind, "due", lane), limit=limit, after=after, span=span)
        works = [work_at(place.pk, place.sk) for place in found.places]
        return Page(works, found.places[-1].position if found.more else None)

    def reserve_indexes(self, pool: str, count: int) -> Indexes:
        """Take up to `count` fresh address indexes out of `pool` for good, none at or above its ceiling.

        The count may pass the ceiling by less than `count`: what is up there is never given out. A row without a ceiling gives
        out nothing. Raises Exhausted, Unavailable.
        """
        model = self.models.counter
        item = model(f"pool#{pool}", "-")
        try:
            item.update(actions=[model.count_.add(count)], condition=model.count_ < model.ceiling)
        except UpdateError as error:
            if error.cause_response_code == "ConditionalCheckFailedException":
                raise Exhausted(f"no address index of {pool} may be given out: it is being restored, or not raised") from None
            raise Unavailable("the store did not answer") from error
        except (PynamoDBException, BotoCoreError) as error:
            raise Unavailable("the store did not answer") from error
        taken, ceiling = int(item.count_), int(item.ceiling)
        return Indexes(taken - count, min(taken, ceiling), max(0, ceiling - taken))

    def indexes_taken(self, pool: str) -> int:
        """How many indexes were taken out of `pool`, and with that the next one. Raises Unavailable."""
        found = self.index_pool(pool)
        return 0 if found is None else found.count

    def index_pool(self, pool: str) -> IndexPool | None:
        """The counter row of `pool` as it is now; None where there is none. Raises Unavailable."""
        model = self.models.counter
        item = self._item(model.Meta.table_name, (f"pool#{pool}", "-"))
        if item is None:
            return None
        found = model.from_raw_data(item)
        ceiling = None if found.ceiling is None else int(found.ceiling)
        return IndexPool(int(found.count_), ceiling, int(found.begins or 0), int(found.reopened or 0))

    def change_index_pool(self, pool: str, before: IndexPool | None, after: IndexPool) -> None:
        """Put `after` in the place of `before`, as it was read. Raises Conflict, Unavailable."""
        # By hand: pynamodb has the whole row told back, which the rights to these rows alone do not allow.
        wanted = {"n": after.count, "ceiling": after.ceiling, "begins": after.begins, "reopened": after.reopened}
        values = {f":{name}": {"N": str(value)} for name, value in wanted.items() if value is not None}
        condition = "attribute_not_exists(pk)"
        if before is not None:
            values |= {":was": {"N": str(before.count)}}
            condition = "n = :was AND attribute_not_exists(ceiling)"
            if before.ceiling is not None:
                values |= {":below": {"N": str(before.ceiling)}}
                condition = "n = :was AND ceiling = :below"
        try:
            self._call(
                "UpdateItem",
                {
                    "TableName": self.models.counter.Meta.table_name,
                    "Key": {"pk": {"S": f"pool#{pool}"}, "sk": {"S": "-"}},
                    "UpdateExpression": "SET " + ", ".join(f"{n} = :{n}" for n, value in wanted.items() if value is not None),
                    "ConditionExpression": condition,
                    "ExpressionAttributeValues": values,
                },
            )
        except Unavailable as error:
            cause: Any = error.__cause__
            if getattr(cause, "response", {}).get("Error", {}).get("Code") == "ConditionalCheckFailedException":
                raise Conflict(None) from None
            raise

    def every(self, kind: type[R], /) -> Iterator[R]:
        """All records of a kind, by a scan of its table. Raises Unavailable."""
        model: Any = self.models.of(kind)
        try:
            there = model.pk.startswith(prefix_of(kind))
            if kind is OutboxRow:
                there |= model.pk.startswith(f"{ONE_ITEM_ROWS}#")
            for item in model.scan(there, consistent_read=True):
                yield self.models.record(kind, item)
        except (PynamoDBException, BotoCoreError) as error:
            raise Unavailable("the store did not answer") from error

    def every_of(self, kinds: Collection[type], /) -> Mapping[type, list[Any]]:
        """All records of these kinds, by one scan of each of their tables. Raises Unavailable."""
        return scans.every_of(self.models, self._call, kinds)

    def sweep(
        self, kind: type[R], /, *, limit: int, after: str | None = None, segment: tuple[int, int] | None = None,
        consistent: bool = False, unarchived: bool = False, **beginning: str,
    ) -> Page[R]:  # fmt: skip
        """One step through the table of a kind: of the next `limit` items behind `after` those whose keys begin with these fields.
        `segment` (n, of so many) is a part of it, as a parallel scan reads it. It is the same part each time, since an item's hash
        is: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html#Scan.ParallelScan

        Eventually consistent, unless `consistent` is asked.
        Items lie in the order of their partition keys' hashes, so that one that comes in between moves no
        other, and `after` may be gone meanwhile. With `unarchived` stubs are left out, and their objects are not read. Raises
        Unavailable.
        """
        model = self.models.of(kind)
        request: dict[str, Any] = {
            "TableName": model.Meta.table_name,
            "Limit": limit,
            "FilterExpression": "begins_with(pk, :b)",
            "ExpressionAttributeValues": {":b": {"S": beginning_of(kind, beginning)}},
        }
        if consistent:
            request["ConsistentRead"] = True
        if unarchived:
            request["FilterExpression"] += " AND attribute_not_exists(#a)"
            request["ExpressionAttributeNames"] = {"#a": ARCHIVE}
        if segment is not None:
            request["Segment"], request["TotalSegments"] = segment
        if after is not None:
            pk, _, sk = after.partition("\n")
            request["ExclusiveStartKey"] = {"pk": {"S": pk}, "sk": {"S": sk}}
        answer = self._call("Scan", request)
        last = answer.get("LastEvaluatedKey")
        records = [self.models.record(kind, model.from_raw_data(item)) for item in answer["Items"]]
        return Page(records, None if last is None else f"{last['pk']['S']}\n{last['sk']['S']}")

    def every_work(self) -> Iterator[Work]:
        """All open obligations, by a scan. Raises Unavailable."""
        for item in scans.items(self._call, self.models.work.Meta.table_name):
            if "lane" in item or item["pk"]["S"].startswith(f"{ONE_ITEM_ROWS}#"):
                yield _work(item)

    def catalogue(self, realm: Realm, fresh: bool = False) -> Catalogue:
        """Networks and coins of a realm, at most 30 seconds old, or `fresh` as they are now. Raises Unavailable."""
        known = self._catalogues.get(realm)
        now = time.monotonic()
        if fresh or known is None or now - known[0] > CATALOGUE_SECONDS:
            networks = self.page(Network, limit=100, id=f"{realm}:").items
            coins: list[Coin] = []
            after: str | None = None
            while True:
                page = self.page(Coin, limit=500, after=after, network=f"{realm}:")
                coins += page.items
                after = page.next
                if after is None:
                    break
            known = (now, Catalogue(realm, networks, coins, lambda: self.catalogue(realm, fresh=True)))
            self._catalogues[realm] = known
        return known[1]

    def rates(self) -> Rates:
        """The stored rates, those of the live realm; read at most 30 seconds ago. Raises Unavailable."""
        from chalicelib.domain.catalogue.rates import Rates

        known, now = self._rates, time.monotonic()
        if known is None or now - known[0] > CATALOGUE_SECONDS:
            known = (now, Rates(self.stored_rates()))
            self._rates = known
        return known[1]

    def stored_rates(self) -> list[Rate]:
        """The stored rates as they are now. Raises Unavailable."""
        from chalicelib.domain.catalogue.rates import Rate

        rates: list[Rate] = []
        after: str | None = None
        while True:
            page = self.page(Rate, limit=1000, after=after)
            rates += page.items
            after = page.next
            if after is None:
                return rates

    def forget_listeners(self) -> None:
        """The next events of each merchant ask afresh who listens."""
        self._listeners.forget()

    def forget_rates(self) -> None:
        """The next `rates` reads afresh."""
        self._rates = None

    def forget_catalogue(self) -> None:
        """The next `catalogue` reads afresh: for the caller that has just changed it."""
        self._catalogues.clear()

    def _item(self, table: str, key: tuple[str, str]) -> dict[str, Any] | None:
        """The item as it is now. Raises Unavailable."""
        found = self._call("GetItem", {"TableName": table, "Key": alone.key_as_sent(*key), "ConsistentRead": True})
        return cast("dict[str, Any] | None", found.get("Item"))

    def _call(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.models.connection.client._make_api_call(operation, arguments)
        except Exception as error:
            if isinstance(error, BotoCoreError) or hasattr(error, "response"):
                raise Unavailable("the store did not answer") from error
            raise
