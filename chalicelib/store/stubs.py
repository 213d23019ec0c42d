"""Stubs: what lies in the table in the place of an archived record.

A stub has the record's key and version, the name of the archive's object, and the few fields that `schema.Kind.stub` names; no
attribute of an index, so it is in no list. Its version is that of the record it stands for, so every condition on the record holds,
or fails, as if the record lay there: `Save` of the next version replaces the stub by the whole record, `Still` passes, and a
second `Stub` fails by the attribute `archive`.
"""

from __future__ import annotations

from typing import Any

from chalicelib.store.models import ARCHIVE, Models
from chalicelib.store.schema import key_of, name_key, where_is
from chalicelib.usecases.ports.changes import DeleteEmpty, Name, Stub

_NUMBERS = ("units", "pending", "held", "small", "aside")


def stub_put(models: Models, change: Stub) -> dict[str, Any]:
    """The part of a transaction that puts a stub in its record's place. Raises LookupError for a kind that has none."""
    record = change.record
    where = where_is(type(record))
    if where.stub is None:
        raise LookupError(f"no {type(record).__name__} is archived")
    texts = {name: getattr(record, name) for name in where.stub}
    item = {"pk": where.pk(record), "sk": where.sk(record), ARCHIVE: change.kept_in, **texts}
    version = {"N": str(record.version)}
    return {
        "TableName": models.table(where.table),
        "Item": {**{name: {"S": text} for name, text in item.items() if text is not None}, "version": version},
        "ConditionExpression": "#v = :v AND attribute_not_exists(#a)",
        "ExpressionAttributeNames": {"#v": "version", "#a": ARCHIVE},
        "ExpressionAttributeValues": {":v": version},
    }


def name_put(models: Models, change: Name) -> dict[str, Any]:
    pk, sk = name_key(change.name, change.id)
    return {"TableName": models.table("records"), "Item": {"pk": {"S": pk}, "sk": {"S": sk}}}


def empty_delete(models: Models, change: DeleteEmpty) -> dict[str, Any]:
    """A number that nobody has moved is not in the row."""
    where, balance = where_is(type(change.balance)), change.balance
    pk, sk = key_of(type(balance), {"network": balance.network, "address": balance.address, "asset": balance.asset})
    return {
        "TableName": models.table(where.table),
        "Key": {"pk": {"S": pk}, "sk": {"S": sk}},
        "ConditionExpression": " AND ".join(f"(attribute_not_exists(#{name}) OR #{name} = :zero)" for name in _NUMBERS),
        "ExpressionAttributeNames": {f"#{name}": name for name in _NUMBERS},
        "ExpressionAttributeValues": {":zero": {"N": "0"}},
    }
