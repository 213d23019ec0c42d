"""Pages of a partition or of an index, and how many entries it has: DynamoDB's Query, without pynamodb's wrapping.

docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html. A query stops at 1 MB, so more than one may be needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chalicelib.usecases.ports.store import Counted, Span

Call = Callable[[str, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Where:
    """A partition of a table (`index` None) or of an index: the attributes that make its key, and the partition's own."""

    table: str
    index: str | None
    pk: str
    sk: str
    partition: str


def read(
    call: Call, where: Where, limit: int, after: str | None, newest_first: bool, span: Span
) -> tuple[list[dict[str, Any]], bool]:
    """Up to `limit` items behind the sort key `after`, and whether there are more. Raises what `call` raises."""
    request = _request(where, after, newest_first, span)
    if request is None or limit <= 0:
        return [], False
    items: list[dict[str, Any]] = []
    wanted = limit + 1  # one to see whether there are more
    while True:
        answer = call("Query", {**request, "Limit": wanted - len(items)})
        items += answer["Items"]
        start = answer.get("LastEvaluatedKey")
        if start is None or len(items) >= wanted:
            break
        request["ExclusiveStartKey"] = start
    return items[:limit], len(items) > limit


def count(call: Call, where: Where, most: int, after: str | None, newest_first: bool, span: Span) -> Counted:
    """How many entries lie behind `after`, up to `most`. Raises what `call` raises.

    The items stay in DynamoDB: what is paid is reading them, 4 KB half a unit.
    """
    request = _request(where, after, newest_first, span)
    if request is None or most <= 0:
        return Counted(0, None)
    request["Select"] = "COUNT"
    found, last = 0, None
    while found < most:
        answer = call("Query", {**request, "Limit": most - found})
        found += answer["Count"]
        start = answer.get("LastEvaluatedKey")
        last = None if start is None else start[where.sk]["S"]
        if start is None:
            break
        request["ExclusiveStartKey"] = start
    return Counted(found, last)


def _request(where: Where, after: str | None, newest_first: bool, span: Span) -> dict[str, Any] | None:
    """The query, but for its Limit; None where nothing can fit, which DynamoDB calls an error."""
    low, high = span.low, span.high
    if after is not None and newest_first:
        # The last text before `after`, in the order of UTF-8 bytes.
        before = f"{after[:-1]}{chr(ord(after[-1]) - 1)}\U0010ffff"
        high = before if high is None else min(before, high)
    elif after is not None:
        low = f"{after}\x01" if low is None else max(f"{after}\x01", low)
    if low is not None and high is not None and low > high:
        return None
    names, values = {"#p": where.pk}, {":p": {"S": where.partition}}
    condition = "#p = :p"
    if low is not None or high is not None:
        names["#s"] = where.sk
        condition += (
            " AND #s BETWEEN :l AND :h"
            if low is not None and high is not None
            else (" AND #s >= :l" if low is not None else " AND #s <= :h")
        )
        values |= {name: {"S": value} for name, value in ((":l", low), (":h", high)) if value is not None}
    request: dict[str, Any] = {
        "TableName": where.table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ScanIndexForward": not newest_first,
        "ConsistentRead": where.index is None,
    }
    if where.index is not None:
        request["IndexName"] = where.index
    return request
