"""A short way through moto (5.2) for an update that only adds numbers to attributes of an item that is there.

Each request of the API is counted by such an update. moto copies the item four times for it, checks and walks through the
expression's tree, and writes the item out twice to tell what has changed: 1.4 of a request's 2.3 ms. What is anything else, and
what is refused, takes moto's own way.
"""

from __future__ import annotations

import copy
import re
from functools import lru_cache, wraps
from typing import Any

from moto.dynamodb.comparisons import create_condition_expression_parser
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords
from moto.dynamodb.responses import DynamoHandler, DynamoResult, validate_attributes_used

from infra.local.repairs.dynamodb import rows_of

_DONE = "_gateway_adding"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_ADDS = re.compile(rf"ADD\s+{_NAME}\s+:{_NAME}(?:\s*,\s*{_NAME}\s+:{_NAME})*")
_ADD = re.compile(rf"({_NAME})\s+(:{_NAME})")
_ASKED = {
    *("TableName", "Key", "UpdateExpression", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"),
    *("ReturnValues", "ReturnValuesOnConditionCheckFailure"),
}
_ANSWERED = ("NONE", "ALL_NEW")
_MOST = 100
"""Attributes of an item: one with so few short ones is far from DynamoDB's limit of 400 KB, and nobody has to count."""
_SHORT = 50_000


def repair_adding() -> None:
    """Let such updates go the short way. May be called any number of times."""
    usual = DynamoHandler.update_item
    if getattr(usual, _DONE, False):
        return

    @wraps(usual)
    def update_item(self: Any) -> Any:
        return _added(self) or usual(self)

    setattr(update_item, _DONE, True)
    DynamoHandler.update_item = update_item  # type: ignore[method-assign]


@lru_cache(maxsize=1000)
def _adds(expression: str) -> dict[str, str] | None:
    """By attribute, the name of the number that `expression` adds; None where it does anything else, names one twice, or names one
    by a word that DynamoDB keeps for itself."""
    if _ADDS.fullmatch(expression.strip()) is None:
        return None
    pairs = _ADD.findall(expression.strip()[len("ADD") :])
    names = {name.upper() for name, _ in pairs}
    fits = len(names) == len(pairs) and names.isdisjoint(ReservedKeywords.get_reserved_keywords())
    return dict(pairs) if fits else None


def _added(handler: Any) -> Any:
    """The answer after the update was made; None where nothing was done, since it is not for the short way."""
    body = handler.body
    adds = _adds(body.get("UpdateExpression") or "")
    given = body.get("ExpressionAttributeValues") or {}
    if adds is None or not _ASKED.issuperset(body) or body.get("ReturnValues", "NONE") not in _ANSWERED:
        return None
    if not all(isinstance(given.get(value), dict) and given[value].keys() == {"N"} for value in adds.values()):
        return None
    backend, name, key = handler.dynamodb_backend, body["TableName"], body["Key"]
    table = backend.tables.get(name)
    if table is None or set(key) != set(table.table_key_attrs) or set(adds) & set(table.attribute_keys):
        return None
    rows = rows_of(table)
    hash_key, range_key = backend.get_keys_value(table, key)
    item = rows.peek(hash_key, range_key)
    if item is None or not _small(item) or not all(_is_number(item.attrs.get(attribute)) for attribute in adds):
        return None
    table._validate_item_types(given)
    if not _holds(handler, item, adds, given):
        return None
    after = copy.deepcopy(item)
    for attribute, value in adds.items():
        more = DynamoType(given[value])
        # Not by the dict's own way, which counts the bytes of the whole item for each attribute.
        dict.__setitem__(after.attrs, attribute, after.attrs[attribute] + more if attribute in after.attrs else more)
    rows.store(hash_key, range_key, after)
    answer = {"ConsumedCapacity": {"TableName": name, "CapacityUnits": 0.5}}
    return DynamoResult(answer if body.get("ReturnValues") != "ALL_NEW" else {**after.to_json(), **answer})


def _holds(handler: Any, item: Any, adds: dict[str, str], given: dict[str, Any]) -> bool:
    """Whether the update's condition holds of `item`. Names and values that nothing uses are refused, as moto does it."""
    names = handler.body.get("ExpressionAttributeNames") or {}
    condition = create_condition_expression_parser(handler.body.get("ConditionExpression"), names, given)
    found = condition.parse()
    validate_attributes_used(names, condition.expr_attr_names_found)
    validate_attributes_used(given, [*condition.expr_attr_values_found, *adds.values()], "Values")
    return bool(found.expr(item))


def _small(item: Any) -> bool:
    return len(item.attrs) < _MOST and all(type(v.value) is not str or len(v.value) < _SHORT // _MOST for v in item.attrs.values())


def _is_number(value: Any) -> bool:
    return value is None or value.type == "N"
