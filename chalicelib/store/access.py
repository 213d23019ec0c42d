"""API keys in the table `tenants`, and the counting of their requests. The only module that writes these items.

Letting a request in costs one call: a conditional UpdateItem that reads the key, checks it and counts, all at once, so
that the limits hold exactly however many requests come together. A refused request is not counted. Windows are fixed;
each span of each window has a counter of its own (`n_minute_29400000`), so that a new span begins without a further call.

Items: `key#<sha256>` / `-` holds the key, its limits and its counters; `keys#<merchant>` / `<key id>` lists a merchant's keys.
docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
"""

from __future__ import annotations

import logging
from dataclasses import fields
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.domain.ids import MerchantId, Realm
from chalicelib.domain.merchants import ApiKey
from chalicelib.usecases.access import (
    CLASS_WINDOWS,
    WINDOW_SECONDS,
    Admission,
    RateClass,
    Usage,
    Window,
    alive,
    class_window,
    limits_of,
)
from chalicelib.usecases.changes import Conflict, Save
from chalicelib.usecases.ports import Unavailable

_MERCHANT_KEYS = 500  # keys listed of one merchant, at most
_WINDOWS = tuple(Window(name, seconds, 0) for name, seconds in WINDOW_SECONDS.items())
_SECONDS = {f"n_{window.name}": window.seconds for window in (*_WINDOWS, *CLASS_WINDOWS.values())}
_STALE = 8  # counters of past spans that may pile up before a call is spent on removing them

_log = logging.getLogger(__name__)

Item = dict[str, dict[str, Any]]


class Access:
    """`usecases.access.Gate` on DynamoDB. `client` is any botocore DynamoDB client, `table` the name of `tenants`."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def admit(self, key_hash: str, realm: Realm, rate_class: RateClass, now_ms: int) -> Admission | None:
        """Count one request of the key, unless it is revoked, expired or at a limit; None when there is no such key.

        `realm` is the one that the key's text names: it decides which windows the class has. Raises Unavailable.
        """
        extra = class_window(rate_class, realm)
        names = {w.name: _counter(w, now_ms) for w in (*_WINDOWS, *([extra] if extra else []))}
        limits = {name: f"l_{name}" for name in names}
        values: Item = {":one": _number(1), ":now": _number(now_ms)}
        if extra is not None:
            limits[extra.name] = ":limit"
            values[":limit"] = _number(extra.limit)
        usable = [
            "attribute_exists(pk)",
            "attribute_not_exists(revoked_at)",
            "(attribute_not_exists(expires_at) OR expires_at > :now)",
        ]
        room = [f"(attribute_not_exists({counter}) OR {counter} < {limits[name]})" for name, counter in names.items()]
        try:
            answer = self._client.update_item(
                TableName=self._table,
                Key=_place(key_hash),
                UpdateExpression="ADD " + ", ".join(f"{counter} :one" for counter in names.values()),
                ConditionExpression=" AND ".join(usable + room),
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            response: dict[str, Any] = dict(error.response)
            if response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise Unavailable("the key store did not answer") from error
            return _refusal(response["Item"], extra, now_ms) if response.get("Item") else None
        except BotoCoreError as error:
            raise Unavailable("the key store did not answer") from error
        item: Item = answer["Attributes"]
        self._tidy(key_hash, item, now_ms)
        return Admission(_key(item), _least(_usages(item, extra, now_ms)))

    def _tidy(self, key_hash: str, item: Item, now_ms: int) -> None:
        """Remove counters of spans that are over, once a few have piled up. Two minutes are left for clocks that are behind."""
        over = now_ms // 1000 - 120
        stale = []
        for name in item:
            prefix, _, number = name.rpartition("_")
            if prefix in _SECONDS and (int(number) + 1) * _SECONDS[prefix] < over:
                stale.append(name)
        if len(stale) <= _STALE:
            return
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_place(key_hash),
                UpdateExpression="REMOVE " + ", ".join(stale),
                ConditionExpression="attribute_exists(pk)",
            )
        except (ClientError, BotoCoreError):
            # The request is let in and counted: it must not fail for tidying, which the next one does again.
            _log.warning("counters of past windows were not removed", exc_info=True)

    def save(self, key: ApiKey) -> None:
        """Store a new key, and its place in the merchant's list, or neither. Raises Conflict when it is there, Unavailable."""
        record = {f.name: getattr(key, f.name) for f in fields(key)}
        attributes = {name: _attribute(value) for name, value in record.items() if value is not None}
        limits = {f"l_{window.name}": _number(window.limit) for window in limits_of(key)}
        place = {"pk": {"S": f"keys#{key.merchant}"}, "sk": {"S": key.id}, "hash": {"S": key.hash}}
        puts = [{**_place(key.hash), **attributes, **limits}, place]
        try:
            self._client.transact_write_items(
                TransactItems=[
                    {"Put": {"TableName": self._table, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}}
                    for item in puts
                ]
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "TransactionCanceledException":
                raise Conflict(Save(key)) from error
            raise Unavailable("the key store did not answer") from error
        except BotoCoreError as error:
            raise Unavailable("the key store did not answer") from error

    def keys_of(self, merchant: MerchantId) -> list[ApiKey]:
        """Every key of a merchant, both realms, revoked ones too, oldest first. Raises Unavailable."""
        hashes = [item["hash"]["S"] for item in self._places(merchant)]
        return [key for key in map(self.load, hashes) if key is not None]

    def load(self, key_hash: str) -> ApiKey | None:
        """The key with that hash, strongly consistent, without counting anything. Raises Unavailable."""
        try:
            answer = self._client.get_item(TableName=self._table, Key=_place(key_hash), ConsistentRead=True)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key store did not answer") from error
        return _key(answer["Item"]) if "Item" in answer else None

    def revoke(self, merchant: MerchantId, key_id: str, now_ms: int) -> ApiKey | None:
        """Refuse the key from now on; one that was revoked before keeps its time. None: the merchant has no such key."""
        places = [item for item in self._places(merchant) if item["sk"]["S"] == key_id]
        if not places:
            return None
        try:
            answer = self._client.update_item(
                TableName=self._table,
                Key=_place(places[0]["hash"]["S"]),
                UpdateExpression="SET revoked_at = if_not_exists(revoked_at, :now) ADD version :one",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeValues={":now": _number(now_ms), ":one": _number(1)},
                ReturnValues="ALL_NEW",
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key store did not answer") from error
        return _key(answer["Attributes"])

    def _places(self, merchant: MerchantId) -> list[Item]:
        try:
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": f"keys#{merchant}"}},
                ConsistentRead=True,
                Limit=_MERCHANT_KEYS,
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key store did not answer") from error
        items: list[Item] = answer["Items"]
        return items


def _place(key_hash: str) -> Item:
    return {"pk": {"S": f"key#{key_hash}"}, "sk": {"S": "-"}}


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _attribute(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return _number(value)
        case tuple():
            return {"L": [{"S": text} for text in value]}
    return {"S": value}


def _read(attribute: dict[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            return int(value)
        case "L":
            return tuple(entry["S"] for entry in value)
    return value


def _key(item: Item) -> ApiKey:
    return ApiKey(**{f.name: _read(item[f.name]) for f in fields(ApiKey) if f.name in item})


def _counter(window: Window, now_ms: int) -> str:
    """The attribute that counts the span of `window` that `now_ms` (milliseconds since 1970) lies in."""
    return f"n_{window.name}_{now_ms // 1000 // window.seconds}"


def _usages(item: Item, extra: Window | None, now_ms: int) -> list[Usage]:
    """How each window stands, by the limits that are stored: they are what the condition compared with."""
    windows = [Window(name, seconds, _read(item[f"l_{name}"])) for name, seconds in WINDOW_SECONDS.items()]
    usages = []
    for window in (*windows, *([extra] if extra else [])):
        counter = _counter(window, now_ms)
        count = _read(item[counter]) if counter in item else 0
        usages.append(Usage(window, max(0, window.limit - count), (now_ms // 1000 // window.seconds + 1) * window.seconds))
    return usages


def _least(usages: list[Usage]) -> Usage:
    """The window with the least left; of equals, the one that stays longest."""
    return min(usages, key=lambda usage: (usage.remaining, -usage.reset_at))


def _refusal(item: Item, extra: Window | None, now_ms: int) -> Admission:
    """Why a key that is there was not counted: no longer usable, or at a limit (of several, the one that frees last)."""
    key, usages = _key(item), _usages(item, extra, now_ms)
    full = [usage for usage in usages if not usage.remaining] or usages
    exhausted = max(full, key=lambda usage: usage.reset_at) if alive(key, now_ms) else None
    return Admission(key, _least(usages), exhausted)
