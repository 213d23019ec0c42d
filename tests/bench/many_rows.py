"""Very many rows of one partition that are made when they are looked at: what a query costs with a million of them is measured
with the real code and the local stack's tables, and no memory is needed for them.

The rows lie behind each other in the order of their range keys. Real rows may lie before them and behind them, and none between.
A `restore` of the stack takes them away. `Table.scan` would make them all: do not scan.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table

from infra.local.repairs.dynamodb import LOCK, rows_of
from infra.local.repairs.rows import Key, Ordered, Partition, Rows, native

_KEPT = 50_000
"""Rows that are kept after they were made: a bench asks for the same ones again."""
ItemOf = Callable[[int], Item]


class _Keys:
    """A sorted list of keys, of which `count` in the middle are made by `key_of`."""

    def __init__(self, count: int, key_of: Callable[[int], Key], before: list[Key], after: list[Key]) -> None:
        self.count, self.key_of, self.before, self.after = count, key_of, before, after
        self.last: tuple[Key | None, int] = (None, 0)

    def __len__(self) -> int:
        return len(self.before) + self.count + len(self.after)

    def __getitem__(self, place: int) -> Key:
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        if place < len(self.before):
            return self.before[place]
        place -= len(self.before)
        if place >= self.count:
            return self.after[place - self.count]
        key = self.key_of(place)
        self.last = (key, place)
        return key

    def __iter__(self) -> Iterator[Key]:
        return (self[place] for place in range(len(self)))

    def insert(self, place: int, key: Key) -> None:
        """As `bisect.insort` does it."""
        if place <= len(self.before):
            self.before.insert(place, key)
        elif place >= len(self.before) + self.count:
            self.after.insert(place - len(self.before) - self.count, key)
        else:
            raise ValueError(f"{key} would lie between the rows that are made")

    def __delitem__(self, place: int) -> None:
        if place < len(self.before):
            del self.before[place]
        else:
            del self.after[place - len(self.before) - self.count]


class _Items(dict[Key, Item]):
    """Items by key: those that are not kept are made."""

    def __init__(self, make: Callable[[Key], Item]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, key: Key) -> Item:
        return self.make(key)


class _Many(Ordered):
    """`Ordered` with `count` items that are made."""

    __slots__ = ("_item_of",)

    def __init__(self, count: int, item_of: ItemOf, key_of: Callable[[int], Key], real: Ordered | None) -> None:
        self._item_of = item_of
        first = key_of(0)
        kept = real.keys if real is not None else []
        split = bisect_left(kept, first)
        keys = _Keys(count, key_of, kept[:split], kept[split:])
        self.keys, self.items = keys, _Items(self._made)  # type: ignore[assignment]
        self.items.update(real.items if real is not None else {})

    def _made(self, key: Key) -> Item:
        keys: Any = self.keys
        if keys.last[0] == key:  # a query takes them one after the other
            return self._item_of(keys.last[1])
        place = bisect_left(keys, key) - len(keys.before)
        if not 0 <= place < keys.count or keys.key_of(place) != key:
            raise KeyError(key)
        return self._item_of(place)


class _Partition(Partition):
    def __init__(self, rows: Rows, hash_key: DynamoType, many: _Many) -> None:
        super().__init__(rows, hash_key)
        self.many = many

    def __missing__(self, range_key: DynamoType) -> Item:
        return self.many._made((native(range_key),))

    def get(self, range_key: DynamoType, default: Any = None) -> Any:  # type: ignore[override]
        try:
            return self[range_key]
        except KeyError:
            return default


def lay(store: Any, raw: Any, count: int, vary: Callable[[int], dict[str, str | int]]) -> None:
    """Let there be `count` rows like `raw` (an item of `store.models`), the n-th with the attributes `vary(n)`: its range key `sk`
    has to grow with n."""
    table, shape = _table(store, raw), {key: DynamoType(value) for key, value in raw.to_dynamodb_dict().items()}

    @lru_cache(maxsize=_KEPT)
    def item_of(n: int) -> Item:
        made: Any = Item.__new__(Item)
        changed = {key: DynamoType({"N": str(value)} if isinstance(value, int) else {"S": value}) for key, value in vary(n).items()}
        made.attrs = {**shape, **changed}
        made.hash_key, made.range_key = made.attrs["pk"], made.attrs["sk"]
        return made  # type: ignore[no-any-return]

    with LOCK:
        if count == 0:
            return
        rows, first = rows_of(table), item_of(0)
        here = rows.partitions.get(native(first.hash_key))
        many = _Many(count, item_of, lru_cache(maxsize=_KEPT)(lambda n: (native(item_of(n).attrs["sk"]),)), here)
        before = dict(rows.get(first.hash_key) or {})
        rows.partitions[native(first.hash_key)] = many
        partition = _Partition(rows, first.hash_key, many)
        dict.update(partition, before)
        dict.__setitem__(rows, first.hash_key, partition)
        for index in rows._index_specs():
            entry = rows._index_entry(index, first.hash_key, first.range_key, first)
            if entry is not None:
                _list(rows, index, entry[1], count, item_of)


def put(store: Any, raw: Any) -> None:
    """Let there be this item of `store.models`."""
    with LOCK:
        item: Any = Item.__new__(Item)
        item.attrs = {key: DynamoType(value) for key, value in raw.to_dynamodb_dict().items()}
        item.hash_key, item.range_key = item.attrs["pk"], item.attrs["sk"]
        rows_of(_table(store, raw)).store(item.hash_key, item.range_key, item)


def _table(store: Any, raw: Any) -> Table:
    (account,) = dynamodb_backends
    return dynamodb_backends[account][store.models.connection.region].tables[raw.Meta.table_name]


def _list(rows: Rows, index: str, owner: Any, count: int, item_of: ItemOf) -> None:
    @lru_cache(maxsize=_KEPT)
    def key_of(n: int) -> Key:
        item = item_of(n)
        entry = rows._index_entry(index, item.hash_key, item.range_key, item)
        if entry is None:
            raise ValueError("all rows lie in the same indexes")
        return entry[2]

    rows.indexes[index][owner] = _Many(count, item_of, key_of, rows.indexes[index].get(owner))
