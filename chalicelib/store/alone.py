"""Records written plainly, without a transaction: that costs half of what DynamoDB bills for one of one item.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling

A transaction's token lets a try behind a lost answer find its own work done. A plain write has none: where the condition fails
behind a lost answer, the stored item says whose it is.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.store.newer import attributes_after
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable, Unstorable

KINDS = ("Turn", "DepositBlock", "LogClaim")
"""Records that are often saved by themselves, and by few workers: the lease of an endpoint is, twice for each of its batches, the
row of a block, once, and the claim of a transaction's logs, once."""
_MANY = 25  # items in one BatchWriteItem
_TRIES = 6
_Call = Callable[[str, dict[str, Any]], dict[str, Any]]
REFUSED = "ConditionalCheckFailedException"
BUSY = ("TransactionConflictException", "ThrottlingException", "ProvisionedThroughputExceededException")


class Occupied(Exception):
    """Another transaction changes the item, or the table is throttled; nothing is known about the condition."""


def saved(plan: Any) -> bool:
    """Save the one record of `plan`, where it is no more than that; False where it needs a transaction.

    Raises Conflict, Occupied, Unavailable, Unstorable, botocore's errors.
    """
    checks, deletes, puts, updates = plan.owners
    if checks or deletes or len(puts) + len(updates) != 1 or not _may_be_plain(*puts, *updates):
        return False
    (request,) = plan.transaction._put_items or plan.transaction._update_items
    asked = {name: value for name, value in request.items() if name != "ReturnValuesOnConditionCheckFailure"}
    client = plan.models.connection.client
    try:
        client._make_api_call("PutItem" if puts else "UpdateItem", asked)
    except ClientError as error:
        code = _code(error)
        if code == REFUSED:
            if not _is_ours(client, asked, error):
                raise Conflict((*puts, *updates)[0]) from error
        elif code in BUSY:
            raise Occupied from error
        elif code == "ValidationException":
            raise Unstorable(str(error)[:300]) from error
        else:
            raise Unavailable("the store did not answer") from error
    return True


def write_all(call: _Call, left: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Put and remove items of these tables, whatever lies in their places; 25 a round trip. Raises Unavailable where the tables
    take none of a round trip `_TRIES` times in turn, and what `call` raises; some may be stored then.

    BatchWriteItem answers with what it did not write, to be sent again after a pause that grows.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
    """
    idle = 0
    while left:
        request: dict[str, list[Any]] = {}
        for table, one in left[:_MANY]:
            request.setdefault(table, []).append(one)
        answer = call("BatchWriteItem", {"RequestItems": request})
        unwritten = [(table, one) for table, many in answer.get("UnprocessedItems", {}).items() for one in many]
        idle = idle + 1 if len(unwritten) == len(left[:_MANY]) else 0
        if idle == _TRIES:
            raise Unavailable("the tables are throttled")
        left = [*unwritten, *left[_MANY:]]
        if unwritten:
            time.sleep(random.uniform(0.01, 0.02 * 2**idle))  # noqa: S311 - spreads retries, guards nothing


def put_new(call: _Call, table: str, item: dict[str, Any]) -> None:
    """Put an item where there is none; what is there stays. A put that is refused costs what one that is not would have.
    Raises what `call` raises.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html#write-operation-consumption
    """
    try:
        call("PutItem", {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"})
    except Unavailable as error:
        if not (isinstance(error.__cause__, ClientError) and _code(error.__cause__) == REFUSED):
            raise


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def removed(call: _Call, table: str, key: tuple[str, str]) -> bool:
    """Remove an item; whether it was there. Raises what `call` raises."""
    answer = call("DeleteItem", {"TableName": table, "Key": key_as_sent(*key), "ReturnValues": "ALL_OLD"})
    return "Attributes" in answer


def key_as_sent(pk: str, sk: str) -> dict[str, dict[str, str]]:
    """A key in DynamoDB's JSON."""
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def _may_be_plain(change: object) -> bool:
    return isinstance(change, Save) and type(change.record).__name__ in KINDS


def _is_ours(client: Any, asked: dict[str, Any], error: ClientError) -> bool:
    """Whether an earlier try, whose answer was lost, stored the very item."""
    if not error.response.get("ResponseMetadata", {}).get("RetryAttempts"):
        return False
    stored = attributes_after(asked) if "Key" in asked else asked["Item"]
    key = asked.get("Key") or {name: stored[name] for name in ("pk", "sk")}
    try:
        found = client._make_api_call("GetItem", {"TableName": asked["TableName"], "Key": key, "ConsistentRead": True})
    except ClientError as unread:
        raise Unavailable("the store did not answer") from unread
    item = found.get("Item", {})
    return all(item.get(name) == value for name, value in stored.items())
