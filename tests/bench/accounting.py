"""What calls of AWS cost: how many there are, the CPU time they take outside moto, and the request units DynamoDB would bill.

moto bills every call half a unit, so units are computed here from the sizes of the real items, by AWS's rules:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html (sizes)
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html (units)
A write costs a unit for each KB of the item before or after it, whichever is larger, twice that in a transaction. An index holds
keys alone: to put an item in or to take it out costs a unit, to move it two, and to leave it where it is nothing.
A condition on an item that is not written is counted like a write of it. A read costs half a unit for each 4 KB, one when
consistent; a query is charged for the sum of its items. Refused calls count too.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.core.botocore_stubber import BotocoreStubber

from chalicelib.store.indexes import INDEXES, Index

Send = Callable[[BaseClient, str, dict[str, Any]], Any]


@dataclass
class Account:
    """`seconds` of CPU in botocore alone; `reads` and `writes` in request units by table, where `units` was asked for."""

    calls: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    moto: float = 0.0
    sent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    indexed: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """The units of `writes` that are rows of indexes, by table, index and partition key."""


@contextmanager
def accounted(*, units: bool = False) -> Iterator[Account]:
    """Account for the calls that are made inside, in whatever threads. `units` slows them down: do not time then.

    What is timed is botocore's usual way, as in the deployed service; units are counted on whichever way is in force.
    """
    account, own, lock = Account(), threading.local(), threading.RLock()  # to charge for a call is to make one
    # Asked now, and not when this module is loaded: the local stack installs a way of its own (infra/local/repairs/direct.py).
    installed, stubbed = BaseClient._make_api_call, BotocoreStubber.__call__
    passed_on: Send = installed if units else getattr(installed, "usual", installed)

    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.thread_time()
        try:
            return stubbed(self, *args, **kwargs)
        finally:
            spent = time.thread_time() - began
            own.moto = getattr(own, "moto", 0.0) + spent
            with lock:
                account.moto += spent

    def send(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        if getattr(_looks, "now", False):
            return passed_on(self, operation, sent)
        service = self.meta.service_model.service_name
        with lock:
            account.calls[f"{service}:{operation}"] += 1
            account.sent.append((service, operation, sent))
        before = _written(operation, sent) if units and service == "dynamodb" else []
        olds = [_stored(passed_on, table, key) for table, key in before]
        began, other = time.thread_time(), getattr(own, "moto", 0.0)
        found: Any = None
        try:
            found = passed_on(self, operation, sent)
            return found
        finally:
            spent = time.thread_time() - began - (getattr(own, "moto", 0.0) - other)
            with lock:
                account.seconds += spent
                if units and service == "dynamodb":
                    changed = [(table, old, _stored(passed_on, table, key)) for (table, key), old in zip(before, olds, strict=True)]
                    seen = _unfiltered(passed_on, sent) if operation == "Scan" and found is not None else found
                    _charge(account, operation, sent, changed, seen)

    BaseClient._make_api_call, BotocoreStubber.__call__ = send, answer  # type: ignore[method-assign]
    try:
        yield account
    finally:
        BaseClient._make_api_call, BotocoreStubber.__call__ = installed, stubbed  # type: ignore[method-assign]


def again(sent: list[tuple[str, str, dict[str, Any]]]) -> float:
    """The same calls by bare botocore clients: their CPU seconds outside moto. A transaction with its token is answered as done."""
    bare = [_clients.get(service) or _clients.setdefault(service, boto3.client(service)) for service, _, _ in sent]
    with accounted() as account:
        began = time.thread_time()
        for client, (_, operation, arguments) in zip(bare, sent, strict=True):
            with suppress(ClientError):  # what was refused then is refused again
                client._make_api_call(operation, arguments)
        return time.thread_time() - began - account.moto


def _charge(account: Account, operation: str, sent: dict[str, Any], changed: list[Any], found: Any) -> None:
    """Charge for one call. `changed`: the table of each item that it writes, the item before it and after it."""
    twice = 2 if operation == "TransactWriteItems" else 1
    for table, old, item in changed:
        largest = max(_size(old), _size(item), 1)
        account.writes[table] += twice * math.ceil(largest / 1024)
        for index in {index for index in INDEXES.values() if table.endswith(f"-{index.table}")}:
            moved = _entries(index, old) ^ _entries(index, item)
            account.writes[table] += len(moved)
            account.indexed.update((table, index.name, key) for key, _ in moved)
    if changed or found is None:
        return
    if operation == "GetItem":
        _read(account, sent["TableName"], [found.get("Item")], sent)
    elif operation == "BatchGetItem":
        for table, wanted in sent["RequestItems"].items():
            items = found["Responses"].get(table, [])
            absent = [None] * (len(wanted["Keys"]) - len(items))
            for item in [*items, *absent]:
                _read(account, table, [item], wanted)
    elif operation == "TransactGetItems":
        for wanted, answer in zip(sent["TransactItems"], found["Responses"], strict=True):
            for _ in range(2):  # a read in a transaction costs two
                _read(account, wanted["Get"]["TableName"], [answer.get("Item")], {"ConsistentRead": True})
    elif operation in ("Query", "Scan"):
        # What is only counted is read all the same: keys, of which none is longer than this.
        counted = [{"pk": {"S": "x" * 180}}] * (found["Count"] if sent.get("Select") == "COUNT" else 0)
        _read(account, sent["TableName"], found.get("Items", counted), sent)
    else:
        raise ValueError(f"what {operation} costs is not known here")


def _entries(index: Index, item: dict[str, Any] | None) -> set[tuple[str, str]]:
    """Where an item lies in an index: in one place, or in none."""
    if item is None or index.pk not in item or index.sk not in item:
        return set()
    return {(item[index.pk]["S"], item[index.sk]["S"])}


def _read(account: Account, table: str, items: list[Any], how: dict[str, Any]) -> None:
    quarters = max(1, math.ceil(sum(map(_size, items)) / 4096))
    account.reads[table] += quarters * (1.0 if how.get("ConsistentRead") else 0.5)  # type: ignore[assignment]


def _written(operation: str, sent: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Table and key of every item that a call writes, or sets a condition on in a transaction."""
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        return [(sent["TableName"], _key(sent))]
    if operation == "TransactWriteItems":
        bodies = [body for part in sent["TransactItems"] for body in part.values()]
        return [(body["TableName"], _key(body)) for body in bodies]
    if operation == "BatchWriteItem":
        requests = sent["RequestItems"].items()
        return [(table, _key(body)) for table, asked in requests for request in asked for body in request.values()]
    return []


def _key(body: dict[str, Any]) -> dict[str, Any]:
    return body["Key"] if "Key" in body else {name: body["Item"][name] for name in ("pk", "sk")}


_clients: dict[str, Any] = {}
_looks = threading.local()


def _stored(send: Send, table: str, key: dict[str, Any]) -> dict[str, Any] | None:
    """The item as it is now, by a call that is not accounted for."""
    client = _clients.get("dynamodb") or _clients.setdefault("dynamodb", boto3.client("dynamodb"))
    _looks.now = True  # whoever accounts outside this account leaves it out as well
    try:
        item: dict[str, Any] | None = send(client, "GetItem", {"TableName": table, "Key": key}).get("Item")
        return item
    finally:
        _looks.now = False


def _unfiltered(send: Send, sent: dict[str, Any]) -> Any:
    """What a scan reads, and is charged for, before its filter: by a call that is not accounted for.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html#Scan.FilterExpression"""
    client = _clients.get("dynamodb") or _clients.setdefault("dynamodb", boto3.client("dynamodb"))
    bare = {name: value for name, value in sent.items() if name not in ("FilterExpression", "ExpressionAttributeValues")}
    _looks.now = True
    try:
        return send(client, "Scan", bare)
    finally:
        _looks.now = False


def _size(item: dict[str, Any] | None) -> int:
    """Bytes of an item: its attributes' names and values."""
    return sum(len(name.encode()) + _value(value) for name, value in (item or {}).items())


def _value(value: dict[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return math.ceil(len(content.strip("-").replace(".", "").strip("0")) / 2) + 1
    if kind == "B":
        return len(content)
    if kind == "L":
        return 3 + sum(1 + _value(part) for part in content)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value(part) for name, part in content.items())
    if kind in ("SS", "NS", "BS"):
        return sum(_value({kind[0]: part}) for part in content)
    return 1
