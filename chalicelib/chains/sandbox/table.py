"""The table `sandbox` in DynamoDB: keyed JSON documents, and writes that hold only while a network's head is unchanged.

Knows nothing of chains. docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.usecases.ports.failures import Unavailable

Key = tuple[str, str]
MOST_CHANGES = 9
"""Items that one write takes beside the head: ten in all."""
_BUSY = ("TransactionConflict", "TransactionConflictException", "TransactionInProgressException")


class Contended(Exception):
    """Another writer changed the head first, or is changing it: nothing was written. Read again and decide again."""


@dataclass(frozen=True, slots=True)
class Put:
    key: Key
    doc: Any
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    key: Key


@dataclass(frozen=True, slots=True)
class Item:
    key: Key
    doc: Any
    version: int
    expires: int | None


class SandboxTable:
    """`client` is a botocore DynamoDB client (pynamodb's `connection.client` will do), `name` the table's name."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    def get(self, key: Key) -> Item | None:
        """One item, strongly consistent. Raises Unavailable."""
        raw = self._call("get_item", Key=_key(key), ConsistentRead=True).get("Item")
        return None if raw is None else _item(raw)

    def get_together(self, keys: Sequence[Key]) -> list[Item | None]:
        """Items as they were at one moment. Raises Unavailable."""
        wanted = [{"Get": {"TableName": self._name, "Key": _key(key)}} for key in keys]
        for attempt in range(8):
            try:
                answer = self._call("transact_get_items", plain=True, TransactItems=wanted)
            except Contended:
                pause(attempt)
                continue
            return [_item(entry["Item"]) if "Item" in entry else None for entry in answer["Responses"]]
        raise Unavailable("the sandbox is being written to by too many at once")

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """Up to a hundred items, each strongly consistent, not of one moment. Raises Unavailable."""
        found: dict[Key, Item] = {}
        wanted = [_key(key) for key in keys]
        for attempt in range(8):
            if not wanted:
                return [found.get(key) for key in keys]
            request = {self._name: {"Keys": wanted, "ConsistentRead": True}}
            answer = self._call("batch_get_item", plain=True, RequestItems=request)
            for item in map(_item, answer["Responses"].get(self._name, [])):
                found[item.key] = item
            wanted = answer.get("UnprocessedKeys", {}).get(self._name, {}).get("Keys", [])
            if wanted:
                pause(attempt)
        raise Unavailable("the sandbox's table did not answer")

    def query(
        self, partition: str, first: str, last: str, *, newest_first: bool = False, page: int | None = None
    ) -> Iterator[Item]:
        """Items of a partition whose sort keys are from `first` to `last`, both included. Raises Unavailable."""
        if first > last:
            return  # DynamoDB refuses to look between them
        request: dict[str, Any] = {
            "KeyConditionExpression": "pk = :p AND sk BETWEEN :f AND :l",
            "ExpressionAttributeValues": {":p": {"S": partition}, ":f": {"S": first}, ":l": {"S": last}},
            "ConsistentRead": True,
            "ScanIndexForward": not newest_first,
        }
        if page is not None:
            request["Limit"] = page
        while True:
            answer = self._call("query", **request)
            yield from map(_item, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def write(self, head: Key, version: int, new_head: Any | None, changes: Sequence[Put | Delete]) -> None:
        """All of `changes`, provided that the item `head` still has `version` (0: is not there). Raises Contended, Unavailable.

        `new_head` becomes its document with the next version; None leaves it as it is. At most `MOST_CHANGES` changes.
        """
        if len(changes) > MOST_CHANGES:
            raise ValueError(f"{len(changes)} changes in one write; at most {MOST_CHANGES}")
        guard: dict[str, Any] = {"TableName": self._name, "ConditionExpression": "attribute_not_exists(pk)"}
        if version:
            guard["ConditionExpression"] = "v = :v"
            guard["ExpressionAttributeValues"] = {":v": {"N": str(version)}}
        if new_head is None:
            first = {"ConditionCheck": {**guard, "Key": _key(head)}}
        else:
            first = {"Put": {**guard, "Item": {**_key(head), "v": {"N": str(version + 1)}, "doc": {"S": _text(new_head)}}}}
        self._call("transact_write_items", plain=True, TransactItems=[first, *map(self._change, changes)])

    def _change(self, change: Put | Delete) -> dict[str, Any]:
        if isinstance(change, Delete):
            return {"Delete": {"TableName": self._name, "Key": _key(change.key)}}
        item: dict[str, Any] = {**_key(change.key), "doc": {"S": _text(change.doc)}}
        if change.expires is not None:
            item["expires"] = {"N": str(change.expires)}
        return {"Put": {"TableName": self._name, "Item": item}}

    def _call(self, operation: str, plain: bool = False, **arguments: Any) -> dict[str, Any]:
        if not plain:
            arguments["TableName"] = self._name
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**arguments)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            reasons = {reason.get("Code") for reason in error.response.get("CancellationReasons", [])}
            if code in _BUSY or (code == "TransactionCanceledException" and reasons & {"ConditionalCheckFailed", *_BUSY}):
                raise Contended from error
            raise Unavailable("the sandbox's table did not answer") from error
        except BotoCoreError as error:
            raise Unavailable("the sandbox's table did not answer") from error
        return answer


def pause(attempt: int) -> None:
    """Wait for a short random time, so that writers in conflict do not meet again."""
    time.sleep(random.uniform(0, min(0.4, 0.004 * 2**attempt)))  # noqa: S311 - spreads retries, guards nothing


def _key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def _text(doc: Any) -> str:
    return json.dumps(doc, separators=(",", ":"))


def _item(raw: dict[str, Any]) -> Item:
    expires = int(raw["expires"]["N"]) if "expires" in raw else None
    return Item((raw["pk"]["S"], raw["sk"]["S"]), json.loads(raw["doc"]["S"]), int(raw["v"]["N"]) if "v" in raw else 0, expires)
