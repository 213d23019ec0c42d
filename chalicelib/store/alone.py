"""A transaction of one record, written plainly: it costs half of what DynamoDB bills for a transaction of one item.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling

A transaction's token lets a try behind a lost answer find its own work done. A plain write has none: where the condition fails
behind a lost answer, the stored item says whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable

KINDS = ("Turn",)
"""Records that are often saved by themselves, and by few workers: the lease of an endpoint is, twice for each of its batches."""
BUSY = ("TransactionConflictException", "ThrottlingException", "ProvisionedThroughputExceededException")


class Occupied(Exception):
    """Another transaction changes the item, or the table is throttled; nothing is known about the condition."""


def saved(plan: Any) -> bool:
    """Save the one record of `plan`, where it is no more than that; False where it needs a transaction.

    Raises Conflict, Occupied, Unavailable, botocore's errors.
    """
    checks, deletes, puts, updates = plan.owners
    if checks or deletes or updates or len(puts) != 1 or not _may_be_plain(puts[0]):
        return False
    (request,) = plan.transaction._put_items
    asked = {name: value for name, value in request.items() if name != "ReturnValuesOnConditionCheckFailure"}
    client = plan.models.connection.client
    try:
        client._make_api_call("PutItem", asked)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ConditionalCheckFailedException":
            if not _is_ours(client, asked, error):
                raise Conflict(puts[0]) from error
        elif code in BUSY:
            raise Occupied from error
        else:
            raise Unavailable("the store did not answer") from error
    return True


def removed(call: Callable[[str, dict[str, Any]], dict[str, Any]], table: str, key: tuple[str, str]) -> bool:
    """Remove an item; whether it was there. Raises what `call` raises."""
    pk, sk = key
    answer = call("DeleteItem", {"TableName": table, "Key": {"pk": {"S": pk}, "sk": {"S": sk}}, "ReturnValues": "ALL_OLD"})
    return "Attributes" in answer


def _may_be_plain(change: object) -> bool:
    return isinstance(change, Save) and type(change.record).__name__ in KINDS


def _is_ours(client: Any, asked: dict[str, Any], error: ClientError) -> bool:
    """Whether an earlier try, whose answer was lost, stored the very item."""
    if not error.response.get("ResponseMetadata", {}).get("RetryAttempts"):
        return False
    key = {name: asked["Item"][name] for name in ("pk", "sk")}
    try:
        found = client._make_api_call("GetItem", {"TableName": asked["TableName"], "Key": key, "ConsistentRead": True})
    except ClientError as unread:
        raise Unavailable("the store did not answer") from unread
    return bool(found.get("Item") == asked["Item"])
