"""API keys in the table `tenants`, and the counters of their requests. The only module that knows these items.

Letting a request in costs one call: a conditional UpdateItem that reads the key, checks it and counts, all at once, so
that the limits hold exactly however many requests come together. A refused request is not counted, whatever it lacks: who has
got hold of a key that is bound to an address must not be able to use up its limits from elsewhere. So the condition holds all of
it. DynamoDB knows no ranges of addresses: the condition says which list the key was thought to have, which the address lies in.
That is none until the process has seen another one, so only a list's first request here costs a second call. Windows are fixed;
each span of each window has a counter of its own (`n_minute_29400000`), so that a new span begins without a further call.

Items: `key#<sha256>` / `-` holds the key as it is enforced, its limits and its counters. The record that is listed and changed
lies beside it (`schema.py`); a change writes both in one transaction (`Enforce`), so the next request is checked by it.

The demo's keys are published: one caller could use up a key's limit for the whole world. There the counters are those of the key
and of the caller (`n_minute_s17_29400000`), who is one of a bounded number that addresses are spread over.
docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.domain.ids import REALMS, Realm
from chalicelib.domain.merchants.merchants import ApiKey
from chalicelib.usecases.merchants.access import (
    ANYTHING,
    CLASS_WINDOWS,
    WINDOW_SECONDS,
    Admission,
    Asked,
    RateClass,
    Usage,
    Weighed,
    Window,
    alive,
    class_window,
    limits_of,
    may_come_from,
    source_number,
)
from chalicelib.usecases.ports.failures import Unavailable

_WINDOWS = tuple(Window(name, seconds, 0) for name, seconds in WINDOW_SECONDS.items())
_SECONDS = {window.name: window.seconds for window in (*_WINDOWS, *CLASS_WINDOWS.values())}
_COUNTER = re.compile(r"n_([a-z]+)_(?:s[0-9]+_)?([0-9]+)", re.ASCII)
_CONFLICT_TRIES = 5
_MOST_LISTS = 1_000  # that a process remembers; afterwards it begins anew
_STALE = 8  # counters of past spans that may pile up before a call is spent on removing them

_log = logging.getLogger(__name__)

Item = dict[str, dict[str, Any]]


class Access:
    """`usecases.merchants.access.Gate` on DynamoDB. `client` is any botocore DynamoDB client, `table` the name of `tenants`.

    Keys of other realms than `realms` are not let in, whatever the table holds. `by_source`: each caller has a key's limits by
    himself.
    """

    def __init__(self, client: Any, table: str, realms: Sequence[Realm] = REALMS, by_source: bool = False) -> None:
        self._client = client
        self._table = table
        self._realms = realms
        self._by_source = by_source
        self._lists: dict[str, tuple[str, ...]] = {}
        """The IP lists of keys that have one, by hash, as they were last seen."""

    def admit(
        self, key_hash: str, realm: Realm, rate_class: RateClass, now_ms: int, asked: Asked = ANYTHING, requests: int = 1
    ) -> Admission | None:
        """Count one request of the key, unless it is revoked, expired, at a limit, or not what is `asked`. None: there is no such.
        One that is as much work as several counts as so many `requests`, of which the last may go beyond a limit.

        `realm` is the one that the key's text names: it decides which windows the class has. Raises Unavailable.
        """
        if realm not in self._realms:
            return None
        extra = class_window(rate_class, realm)
        who = f"s{source_number(asked.client or '', now_ms)}_" if self._by_source else ""
        names = {w.name: _counter(w, now_ms, who) for w in (*_WINDOWS, *([extra] if extra else []))}
        values: Item = {":requests": _number(requests), ":now": _number(now_ms)}
        request = self._counting(key_hash, names, extra, asked, values)
        thought = self._lists.get(key_hash, ())
        if asked.client is None or not may_come_from(thought, asked.client):
            thought = ()
        for _ in range(_CONFLICT_TRIES):
            if asked.client is not None:
                values[":addresses"] = _attribute(thought)
            try:
                answer = self._update(request)
            except ClientError as error:
                response: dict[str, Any] = dict(error.response)
                if response["Error"]["Code"] != "ConditionalCheckFailedException":
                    raise Unavailable("the key store did not answer") from error
                if not response.get("Item"):
                    return None
                refused = _refusal(response["Item"], extra, now_ms, who)
                real = refused.key.ip_whitelist
                if asked.client is None or real == thought or not may_come_from(real, asked.client):
                    return refused
                thought = self._remember(key_hash, real)
                continue
            except BotoCoreError as error:
                raise Unavailable("the key store did not answer") from error
            item: Item = answer["Attributes"]
            self._tidy(key_hash, item, now_ms)
            return Admission(_key(item), _least(_usages(item, extra, now_ms, who)))
        raise Unavailable("the key is being changed by too many at once")

    def _counting(
        self, key_hash: str, names: Mapping[str, str], extra: Window | None, asked: Asked, values: Item
    ) -> dict[str, Any]:
        """The update that counts a request in the counters `names` (by window), on the condition that the key lets it in. Puts what
        it compares with in `values`."""
        limits = {name: f"l_{name}" for name in names}
        if extra is not None:
            limits[extra.name] = ":limit"
            values[":limit"] = _number(extra.limit)
        usable = [
            "attribute_exists(pk)",
            "attribute_not_exists(revoked_at)",
            "attribute_not_exists(suspended_at)",
            "(attribute_not_exists(expires_at) OR expires_at > :now)",
        ]
        room = [f"(attribute_not_exists({counter}) OR {counter} < {limits[name]})" for name, counter in names.items()]
        fits = _fitting(asked, values)
        request: dict[str, Any] = {
            "TableName": self._table,
            "Key": _place(key_hash),
            "UpdateExpression": "ADD " + ", ".join(f"{counter} :requests" for counter in names.values()),
            "ConditionExpression": " AND ".join(usable + fits + room),
            "ExpressionAttributeValues": values,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        reserved = {"level": asked.level, "realm": asked.realm, "permissions": asked.permission}
        names_used = {f"#{name}": name for name, wanted in reserved.items() if wanted is not None}
        if names_used:
            request["ExpressionAttributeNames"] = names_used
        return request

    def weigh(self, key: ApiKey, weight: int, now_ms: int) -> Weighed:
        """Count a request that `admit` let in at `now_ms` as `weight` requests in the minute window of its live key, and never as
        more than the window holds: one more conditional update. Where it does not fit, a third takes back what `admit` counted.

        Raises Unavailable.
        """
        minute = limits_of(key)[0]
        extra = min(weight, minute.limit) - 1
        counter = _counter(minute, now_ms, "")
        request: dict[str, Any] = {
            "TableName": self._table,
            "Key": _place(key.hash),
            "UpdateExpression": f"ADD {counter} :extra",
            "ConditionExpression": f"attribute_exists(pk) AND {counter} <= :room",
            "ExpressionAttributeValues": {":extra": _number(extra), ":room": _number(minute.limit - extra)},
            "ReturnValues": "ALL_NEW",
        }
        try:
            item: Item = self._update(request)["Attributes"]
            return Weighed(_least(_usages(item, None, now_ms, "")))
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise Unavailable("the key store did not answer") from error
        except BotoCoreError as error:
            raise Unavailable("the key store did not answer") from error
        counters = [_counter(window, now_ms, "") for window in _WINDOWS]
        back = {
            "TableName": self._table,
            "Key": _place(key.hash),
            "UpdateExpression": "ADD " + ", ".join(f"{each} :back" for each in counters),
            "ConditionExpression": "attribute_exists(pk)",
            "ExpressionAttributeValues": {":back": _number(-1)},
            "ReturnValues": "ALL_NEW",
        }
        try:
            item = self._update(back)["Attributes"]
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key store did not answer") from error
        usages = _usages(item, None, now_ms, "")
        return Weighed(next(usage for usage in usages if usage.window.name == minute.name), refused=True)

    def _remember(self, key_hash: str, ranges: tuple[str, ...]) -> tuple[str, ...]:
        if len(self._lists) >= _MOST_LISTS:
            self._lists.clear()
        self._lists[key_hash] = ranges
        return ranges

    def _update(self, request: dict[str, Any]) -> Any:
        """UpdateItem, again where it came upon the transaction that is just changing the key: botocore does not try that again."""
        for attempt in range(_CONFLICT_TRIES):
            try:
                return self._client.update_item(**request)
            except ClientError as error:
                if error.response["Error"]["Code"] != "TransactionConflictException":
                    raise
                time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - spreads retries, guards nothing
        return self._client.update_item(**request)

    def _tidy(self, key_hash: str, item: Item, now_ms: int) -> None:
        """Remove counters of spans that are over, once a few have piled up. Two minutes are left for clocks that are behind."""
        over = now_ms // 1000 - 120
        stale = []
        for name in item:
            counter = _COUNTER.fullmatch(name)
            if counter is not None and (int(counter[2]) + 1) * _SECONDS.get(counter[1], over) < over:
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

    def last_used(self, key_hashes: Sequence[str]) -> dict[str, int]:
        """The time of each key's (at most 100) last admitted request, in milliseconds since 1970, to the minute: the counters
        are no more exact. A key without any is left out. Raises Unavailable."""
        if not key_hashes:
            return {}
        keys = [_place(key_hash) for key_hash in key_hashes]
        try:
            answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": keys}})
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key store did not answer") from error
        minutes = {
            item["hash"]["S"]: [int(name.rpartition("_")[2]) for name in item if name.startswith("n_minute_")]
            for item in answer["Responses"].get(self._table, [])
        }
        return {key_hash: max(found) * 60_000 for key_hash, found in minutes.items() if found}


def enforcing(table: str, key: ApiKey) -> tuple[Literal["put", "update"], dict[str, Any]]:
    """The part of a transaction after which `admit` goes by `key`: a new item, or the changed fields of one that stays, since
    its counters stay."""
    record = {f.name: getattr(key, f.name) for f in fields(key)}
    attributes: Item = {name: _attribute(value) for name, value in record.items() if value is not None}
    attributes |= {f"l_{window.name}": _number(window.limit) for window in limits_of(key)}
    if key.version == 1:
        return "put", {
            "TableName": table,
            "Item": {**_place(key.hash), **attributes},
            "ConditionExpression": "attribute_not_exists(pk)",
        }
    gone = [name for name, value in record.items() if value is None]
    names = {f"#{name}": name for name in (*attributes, *gone)}
    sets = "SET " + ", ".join(f"#{name} = :{name}" for name in attributes)
    removes = " REMOVE " + ", ".join(f"#{name}" for name in gone) if gone else ""
    return "update", {
        "TableName": table,
        "Key": _place(key.hash),
        "UpdateExpression": sets + removes,
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {f":{name}": value for name, value in attributes.items()},
    }


def _fitting(asked: Asked, values: Item) -> list[str]:
    """The condition that `asked` demands. Puts the compared values into `values`."""
    fits = []
    for name, wanted in (("level", asked.level), ("realm", asked.realm)):
        if wanted is not None:
            values[f":{name}"] = {"S": wanted}
            fits.append(f"#{name} = :{name}")
    if asked.permission is not None:
        values[":permission"] = {"S": asked.permission}
        fits.append("contains(#permissions, :permission)")
    if asked.client is not None:
        fits.append("ip_whitelist = :addresses")
    return fits


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


def _counter(window: Window, now_ms: int, who: str) -> str:
    """The attribute that counts the span of `window` that `now_ms` (milliseconds since 1970) lies in; of one caller, `who`."""
    return f"n_{window.name}_{who}{now_ms // 1000 // window.seconds}"


def _usages(item: Item, extra: Window | None, now_ms: int, who: str) -> list[Usage]:
    """How each window stands, by the limits that are stored: they are what the condition compared with."""
    windows = [Window(name, seconds, _read(item[f"l_{name}"])) for name, seconds in WINDOW_SECONDS.items()]
    usages = []
    for window in (*windows, *([extra] if extra else [])):
        counter = _counter(window, now_ms, who)
        count = _read(item[counter]) if counter in item else 0
        usages.append(Usage(window, max(0, window.limit - count), (now_ms // 1000 // window.seconds + 1) * window.seconds))
    return usages


def _least(usages: list[Usage]) -> Usage:
    """The window with the least left; of equals, the one that stays longest."""
    return min(usages, key=lambda usage: (usage.remaining, -usage.reset_at))


def _refusal(item: Item, extra: Window | None, now_ms: int, who: str) -> Admission:
    """Why a key that is there was not counted: no longer usable, or at a limit (of several, the one that frees last)."""
    key, usages = _key(item), _usages(item, extra, now_ms, who)
    full = [usage for usage in usages if not usage.remaining] or usages
    exhausted = max(full, key=lambda usage: usage.reset_at) if alive(key, now_ms) else None
    return Admission(key, _least(usages), exhausted)
