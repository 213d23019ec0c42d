"""Rows of one moto table, kept in key order, so that a query costs its page and not the table.

Takes the place of the plain dictionary in `moto.dynamodb.models.table.Table.items` and looks the same to moto: a mapping of
hash key to item, or to a mapping of range key to item. Beside it, the keys of every partition and of every global secondary
index are kept sorted. Items in here are never changed in place (`repairs.dynamodb` sees to it), so a reference is a snapshot.
Not safe for threads: whoever calls holds `repairs.dynamodb.LOCK`.
"""

from __future__ import annotations

import base64
import copy
import itertools
from bisect import bisect_left, bisect_right, insort
from typing import Any

from moto.dynamodb.exceptions import InvalidAttributeTypeError, MockValidationException
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import RESULT_SIZE_LIMIT, Table

Key = tuple[Any, ...]
NO_RANGE = ""
"""Stands for the range key where a table or an index has none, so that all keys have one form."""

_generations = itertools.count(1)
_latest = [0]


def latest() -> int:
    """Another number after every change of any row of any table."""
    return _latest[0]


def _next_generation() -> int:
    _latest[0] = next(_generations)
    return _latest[0]


def native(value: DynamoType) -> Any:
    """A key attribute as Python sorts it: strings by code point (the order of UTF-8 bytes), numbers by value, bytes by byte."""
    return base64.b64decode(value.value) if value.is_binary() and isinstance(value.value, str) else value.cast_value


def weight(item: Item) -> int:
    """`item.size()` of an item that lies in a table: it is never changed there, so it is weighed once."""
    known: int | None = item.__dict__.get("weight")
    if known is None:
        known = item.__dict__["weight"] = item.size()
    return known


def _first(key: Key) -> Any:
    return key[0]


def _begin(keys: list[Key], value: Any) -> int:
    return 0


def _below(keys: list[Key], value: Any) -> int:
    return bisect_left(keys, value, key=_first)


def _upto(keys: list[Key], value: Any) -> int:
    return bisect_right(keys, value, key=_first)


def _end(keys: list[Key], value: Any) -> int:
    return len(keys)


_BOUNDS = {
    **dict.fromkeys(("=", "EQ"), (_below, _upto)),
    **dict.fromkeys(("<", "LT"), (_begin, _below)),
    **dict.fromkeys(("<=", "LE"), (_begin, _upto)),
    **dict.fromkeys((">", "GT"), (_upto, _end)),
    **dict.fromkeys((">=", "GE"), (_below, _end)),
}
"""The first and the past-the-last place of the keys that fit a comparison with one value."""


class Ordered:
    """Items of one hash key, of the table or of an index, in the order of their range keys."""

    __slots__ = ("items", "keys")

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.items: dict[Key, Item] = {}

    def put(self, key: Key, item: Item) -> None:
        if key not in self.items:
            insort(self.keys, key)
        self.items[key] = item

    def drop(self, key: Key) -> None:
        del self.items[key]
        del self.keys[bisect_left(self.keys, key)]

    def copy(self) -> Ordered:
        other = Ordered()
        other.keys, other.items = self.keys.copy(), self.items.copy()
        return other

    def span(self, comparison: str | None, values: list[Any]) -> tuple[int, int]:
        """First and past-the-last place of the keys whose range key fits a key condition."""
        keys = self.keys
        match comparison, values:
            case None, _:
                return 0, len(keys)
            case "BETWEEN", [low, high]:
                return bisect_left(keys, low, key=_first), bisect_right(keys, high, key=_first)
            case "BEGINS_WITH", [prefix]:
                start = bisect_left(keys, prefix, key=_first)
                return start, bisect_left(keys, True, lo=start, key=lambda key: not key[0].startswith(prefix))
            case str(), [value] if comparison in _BOUNDS:
                first, past = _BOUNDS[comparison]
                return first(keys, value), past(keys, value)
        raise MockValidationException(f"Unsupported key condition: {comparison} with {len(values)} values")


class Partition(dict[DynamoType, Item]):
    """The items of one hash key, as moto reads and writes them: `table.items[hash_key][range_key]`."""

    def __init__(self, rows: Rows, hash_key: DynamoType) -> None:
        super().__init__()
        self.rows = rows
        self.hash_key = hash_key

    def __setitem__(self, range_key: DynamoType, item: Item) -> None:
        self.rows.store(self.hash_key, range_key, item)

    def pop(self, range_key: DynamoType) -> Item:  # type: ignore[override]
        item = self[range_key]
        self.rows.discard(self.hash_key, range_key)
        return item


class Rows(dict[DynamoType, Any]):
    """All items of one table. `generation` names the content: it is new after every change and comes back with a restored one."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        self.generation = _next_generation()
        self.partitions: dict[Any, Ordered] = {}
        self.indexes: dict[str, dict[Any, Ordered]] = {}
        self._entries: dict[Key, list[tuple[str, Any, Key]]] = {}
        self._specs: dict[str, tuple[str, str | None]] = {}
        self._specs_of: Any = None

    def __missing__(self, hash_key: DynamoType) -> Any:
        # A defaultdict would keep an empty partition for every key that was ever asked for.
        return Partition(self, hash_key)

    def __setitem__(self, hash_key: DynamoType, item: Item) -> None:
        self.store(hash_key, None, item)

    def pop(self, hash_key: DynamoType) -> Item:  # type: ignore[override]
        item = dict.__getitem__(self, hash_key)
        self.discard(hash_key, None)
        return item  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        other = Rows(self.table)
        for item in self.all():
            other.store(item.hash_key, item.range_key, copy.deepcopy(item))
        return other

    def peek(self, hash_key: DynamoType, range_key: DynamoType | None) -> Item | None:
        partition = self.get(hash_key)
        if partition is None or range_key is None:
            return partition
        return partition.get(range_key)  # type: ignore[no-any-return]

    def store(self, hash_key: DynamoType, range_key: DynamoType | None, item: Item) -> None:
        """Put `item` in the place of what is there. Raises InvalidAttributeTypeError for an index key of another type."""
        entries = [entry for name in self._index_specs() if (entry := self._index_entry(name, hash_key, range_key, item))]
        self._unlist(hash_key, range_key)
        self.swap(hash_key, range_key, item)
        hash_native, key = native(hash_key), self._range(range_key)
        self.partitions.setdefault(hash_native, Ordered()).put((key,), item)
        for name, index_hash, index_key in entries:
            self.indexes[name].setdefault(index_hash, Ordered()).put(index_key, item)
        if entries:
            self._entries[hash_native, key] = entries

    def swap(self, hash_key: DynamoType, range_key: DynamoType | None, item: Item) -> None:
        """Put `item` under its key without touching the order: for a copy that `store` or another `swap` soon replaces."""
        self.generation = _next_generation()
        if range_key is None:
            dict.__setitem__(self, hash_key, item)
            return
        partition = self.get(hash_key)
        if partition is None:
            partition = Partition(self, hash_key)
            dict.__setitem__(self, hash_key, partition)
        dict.__setitem__(partition, range_key, item)

    def discard(self, hash_key: DynamoType, range_key: DynamoType | None) -> None:
        if self.peek(hash_key, range_key) is None:
            return
        self.generation = _next_generation()
        self._unlist(hash_key, range_key)
        if range_key is None:
            dict.__delitem__(self, hash_key)
            return
        partition = dict.__getitem__(self, hash_key)
        dict.__delitem__(partition, range_key)
        if not partition:
            dict.__delitem__(self, hash_key)

    def put_back(self, hash_key: DynamoType, range_key: DynamoType | None, before: Item | None) -> None:
        """Undo: the item that `peek` gave earlier, or nothing, is there again."""
        if before is None:
            self.discard(hash_key, range_key)
        else:
            self.store(hash_key, range_key, before)

    def all(self) -> list[Item]:
        """Every item, by hash key and then by range key."""
        return [self.partitions[h].items[key] for h in sorted(self.partitions) for key in self.partitions[h].keys]

    def select(
        self, index: str | None, hash_key: DynamoType, comparison: str | None, values: list[DynamoType],
        *, start: dict[str, Any] | None, forward: bool, limit: int | None,
    ) -> tuple[list[Item], bool]:  # fmt: skip
        """One page of a query, and whether it stopped before the end: at `limit` items, as DynamoDB does, or at 1 MB.

        `start` is the ExclusiveStartKey. Source: DynamoDB API reference, Query, `Limit` and `LastEvaluatedKey`.
        """
        if index is not None:
            self._index_specs()
        ordered = (self.partitions if index is None else self.indexes[index]).get(native(hash_key))
        if ordered is None:
            return [], False
        low, high = ordered.span(comparison, [native(value) for value in values])
        if start is not None:
            position = self._start_key(index, start)
            if forward:
                low = max(low, bisect_right(ordered.keys, position))
            else:
                high = min(high, bisect_left(ordered.keys, position))
        page: list[Item] = []
        size, keys = 0, self.keys_only(index)
        for place in range(low, high) if forward else range(high - 1, low - 1, -1):
            item = ordered.items[ordered.keys[place]]
            size += weight(item) if keys is None else sum(len(name) + item.attrs[name].size() for name in keys)
            if page and size > RESULT_SIZE_LIMIT:
                return page, True
            page.append(item)
            if len(page) == limit:
                return page, True
        return page, False

    def scan(self, start: dict[str, Any] | None, limit: int | None) -> tuple[list[Item], bool]:
        """One page of a scan behind `start`, and whether more follows: `limit` items, or 1 MB."""
        items, first = self.all(), 0
        if start is not None:
            position = tuple(native(DynamoType(start[name])) for name in self.table.table_key_attrs)
            first = bisect_right(items, position, key=lambda item: (native(item.hash_key), *self._range_of(item)))
        page: list[Item] = []
        size = 0
        for item in itertools.islice(items, first, None):
            if len(page) == limit or size + weight(item) > RESULT_SIZE_LIMIT:
                return page, True
            page.append(item)
            size += weight(item)
        return page, False

    def _range_of(self, item: Item) -> tuple[Any, ...]:
        return () if item.range_key is None else (native(item.range_key),)

    def keys_only(self, index: str | None) -> list[str] | None:
        """The attributes of an index that holds keys alone; what a query reads of it are these. None: it reads whole items."""
        if index is None or self.table.get_index(index).projection.get("ProjectionType") != "KEYS_ONLY":
            return None
        names = (self.table.hash_key_attr, self.table.range_key_attr, *self._specs[index])
        return sorted({name for name in names if name is not None})

    def freeze(self) -> tuple[Any, ...]:
        """A copy of the structure (not of the items) for `thaw`."""
        self._index_specs()
        return (
            self.generation,
            {key: dict(value) if isinstance(value, Partition) else value for key, value in self.items()},
            {key: value.copy() for key, value in self.partitions.items()},
            {name: {key: value.copy() for key, value in index.items()} for name, index in self.indexes.items()},
            dict(self._entries),
        )

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        """Make the content what it was at `freeze`. Costs nothing where nothing changed since."""
        generation, content, partitions, indexes, entries = frozen
        if generation == self.generation:
            return
        dict.clear(self)
        for hash_key, value in content.items():
            if isinstance(value, dict):
                partition = Partition(self, hash_key)
                dict.update(partition, value)
                dict.__setitem__(self, hash_key, partition)
            else:
                dict.__setitem__(self, hash_key, value)
        self.partitions = {key: value.copy() for key, value in partitions.items()}
        self.indexes = {name: {key: value.copy() for key, value in index.items()} for name, index in indexes.items()}
        self._entries = dict(entries)
        self.generation = generation
        if indexes.keys() != self._specs.keys():
            self._specs_of = None

    def _range(self, range_key: DynamoType | None) -> Any:
        return NO_RANGE if range_key is None else native(range_key)

    def _unlist(self, hash_key: DynamoType, range_key: DynamoType | None) -> None:
        hash_native, key = native(hash_key), self._range(range_key)
        ordered = self.partitions.get(hash_native)
        if ordered is not None and (key,) in ordered.items:
            ordered.drop((key,))
            if not ordered.keys:
                del self.partitions[hash_native]
        for name, index_hash, index_key in self._entries.pop((hash_native, key), ()):
            self.indexes[name][index_hash].drop(index_key)
            if not self.indexes[name][index_hash].keys:
                del self.indexes[name][index_hash]

    def _index_specs(self) -> dict[str, tuple[str, str | None]]:
        """Hash and range attribute of each global index; builds the order of those that are new to this table."""
        if self._specs_of is self.table.global_indexes:
            return self._specs
        self._specs_of, self._specs, self.indexes, self._entries = self.table.global_indexes, {}, {}, {}
        for index in self.table.global_indexes:
            hashes = [k["AttributeName"] for k in index.schema if k["KeyType"] == "HASH"]
            ranges = [k["AttributeName"] for k in index.schema if k["KeyType"] == "RANGE"]
            if len(hashes) == 1 and len(ranges) <= 1:
                self._specs[index.name] = (hashes[0], ranges[0] if ranges else None)
                self.indexes[index.name] = {}
        for item in self.all():
            self.store(item.hash_key, item.range_key, item)
        return self._specs

    def serves(self, index: str) -> bool:
        """Whether queries on this index can be answered here: a global one with one hash key and at most one range key."""
        return index in self._index_specs()

    def _index_entry(
        self, name: str, hash_key: DynamoType, range_key: DynamoType | None, item: Item
    ) -> tuple[str, Any, Key] | None:
        hash_attr, range_attr = self._specs[name]
        parts: list[Any] = []
        for attribute in (hash_attr, range_attr):
            if attribute is None:
                parts.append(NO_RANGE)
                continue
            value = item.attrs.get(attribute)
            if value is None:
                return None
            self._check_type(attribute, value)
            parts.append(native(value))
        return name, parts[0], (parts[1], native(hash_key), self._range(range_key))

    def _check_type(self, attribute: str, value: DynamoType) -> None:
        expected = next(a["AttributeType"] for a in self.table.attr if a["AttributeName"] == attribute)
        if value.type != expected:
            raise InvalidAttributeTypeError(attribute, expected, value.type)

    def _start_key(self, index: str | None, start: dict[str, Any]) -> Key:
        attributes = [self.table.range_key_attr]
        if index is not None:
            attributes = [self._specs[index][1], self.table.hash_key_attr, self.table.range_key_attr]
        missing = [a for a in attributes if a is not None and a not in start]
        if missing:
            raise MockValidationException(
                "The provided starting key is invalid: The provided key element does not match the schema"
            )
        return tuple(NO_RANGE if a is None else native(DynamoType(start[a])) for a in attributes)
