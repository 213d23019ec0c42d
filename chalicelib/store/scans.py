"""All records of some kinds, by one scan of each table: a scan reads, and is billed for, the whole table, whatever it looks for.

docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html#Scan.FilterExpression
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any

from chalicelib.domain.work import OutboxRow
from chalicelib.store.models import Models
from chalicelib.store.schema import ONE_ITEM_ROWS, prefix_of, where_is

Call = Callable[[str, dict[str, Any]], dict[str, Any]]


def every_of(models: Models, call: Call, kinds: Collection[type]) -> dict[type, list[Any]]:
    """The records of each of `kinds`, strongly consistent one by one. Raises what `call` raises, and LookupError for one that lies
    at another's place."""
    tables: dict[str, dict[str, type]] = defaultdict(dict)
    for kind in kinds:
        tables[models.table(where_is(kind).table)][prefix_of(kind)] = kind
        if kind is OutboxRow:
            tables[models.table(where_is(kind).table)][f"{ONE_ITEM_ROWS}#"] = kind
    found: dict[type, list[Any]] = {kind: [] for kind in kinds}
    for table, by_prefix in tables.items():
        for item in items(call, table):
            kind_there = by_prefix.get(f"{item['pk']['S'].split('#', 1)[0]}#")
            if kind_there is not None:
                found[kind_there].append(models.record(kind_there, models.of(kind_there).from_raw_data(item)))
    return found


def items(call: Call, table: str) -> Iterator[dict[str, Any]]:
    """All items of a table, each strongly consistent. Raises what `call` raises."""
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        answer = call("Scan", request)
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
