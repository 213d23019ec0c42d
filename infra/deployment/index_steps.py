"""The templates that bring the tables' indexes from what stands to what the template says, one index of a table at a time.

DynamoDB makes or removes one global secondary index per UpdateTable, and CloudFormation makes one such call per update of a stack:
with more, the update fails and is rolled back. A new index comes before an old one goes, so that no query is without one.
CloudFormation does not wait until a new index is filled, and the table takes no other change before.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-dynamodb-table.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTable.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from infra.commands.common import CanNot
from infra.deployment.template_nodes import named, of, plain, properties_of, replaced, resources, type_of

_STEP = 10.0  # seconds
_STEPS = 2160  # six hours


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index: its keys as (attribute, HASH or RANGE), and its projection as JSON."""

    name: str
    keys: tuple[tuple[str, str], ...]
    projection: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table that stands."""

    indexes: tuple[Index, ...]
    types: Mapping[str, str]
    """The types of its keys' attributes."""
    busy: str | None
    """What of it is not done yet."""
    protected: bool = False
    """Whether it is protected from deletion."""
    key: str | None = None
    """ARN of the key that encrypts it."""


def steps(text: str, stage: str, standing: Callable[[str], Table | None]) -> list[str]:
    """The templates to send, one after the other; the last is `text`. `standing` looks a table up by its name."""
    ways = {logical: way for logical, properties in _tables(text).items() if (way := _way_of(properties, stage, standing))}
    longest = max(map(len, ways.values()), default=1)
    return [replaced(text, {logical: way[min(n, len(way) - 1)] for logical, way in ways.items()}) for n in range(longest - 1)] + [
        text
    ]


def keeping(text: str, stage: str, standing: Callable[[str], Table | None]) -> str:
    """The template, with the indexes that its tables have beside: those whose names it does not have.

    Raises CanNot for one that has other keys there, or another projection: it would have to go before it comes anew.
    """
    changed = {}
    for logical, properties in _tables(text).items():
        name = named(of(properties, "TableName"), stage)
        table, wanted = standing(name), _indexes(properties)
        names = {index.name for index in wanted}
        if other := sorted(index.name for index in (table.indexes if table else ()) if index.name in names and index not in wanted):
            raise CanNot(
                f"the index {', '.join(other)} of {name} stands with other keys, or another projection, than this checkout's"
                f" template gives it: functions that run would be without it while it is made anew. Give the changed one a new name"
            )
        if table and (beside := [index for index in table.indexes if index.name not in names]):
            changed[logical] = _changed(properties, [*wanted, *beside], table)
    return replaced(text, changed) if changed else text


def way(before: Sequence[Index], after: Sequence[Index]) -> list[list[Index]]:
    """What a table has after each step from `before` to `after`; the last is `after`. One index comes or goes in each."""
    now, found = list(before), []
    names, wanted = {index.name for index in before}, {index.name: index for index in after}
    for index in after:
        if index.name not in names:
            now = [*now, index]
            found.append(now)
    for index in before:
        if wanted.get(index.name) != index:
            now = [each for each in now if each.name != index.name]
            found.append(now)
    for index in after:
        if index not in now:
            now = [*now, index]
            found.append(now)
    return found


def table_of(dynamodb: Any, name: str) -> Table | None:
    """A table as it stands, None where there is none. Raises botocore's ClientError."""
    try:
        found = dynamodb.describe_table(TableName=name)["Table"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise
    indexes = found.get("GlobalSecondaryIndexes") or []
    parts = [(f"table {name}", found["TableStatus"]), *((f"index {i['IndexName']} of {name}", i["IndexStatus"]) for i in indexes)]
    busy = next((f"the {part} is {state}" for part, state in parts if state != "ACTIVE"), None)
    types = {each["AttributeName"]: each["AttributeType"] for each in found["AttributeDefinitions"]}
    key = found.get("SSEDescription", {}).get("KMSMasterKeyArn")
    return Table(tuple(map(_index, indexes)), types, busy, bool(found.get("DeletionProtectionEnabled")), key)


def wait_for_tables(dynamodb: Any, names: Sequence[str], tell: Callable[[str], None], wait: Callable[[float], None]) -> None:
    """Wait until every index is filled or gone. Raises CanNot after six hours: a run later goes on."""
    told = ""
    for _ in range(_STEPS):
        found = (table_of(dynamodb, name) for name in names)
        busy = next((table.busy for table in found if table and table.busy), None)
        if busy is None:
            return
        if busy != told:
            tell(f"waiting: {busy}")
        told = busy
        wait(_STEP)
    raise CanNot(f"{told} for six hours now: run this again when it is ACTIVE")


def as_they_stand(text: str, tables: Mapping[str, Table]) -> str:
    """The template, with what these tables, by logical id, really have of what an update would change.

    An import takes the template's word for it: what is not there would never be made.
    """
    changed: dict[str, dict[str, Any]] = {}
    for logical, table in tables.items():
        own = [key["AttributeName"] for key in plain(of(_tables(text)[logical], "KeySchema"))]
        changed[logical] = _properties(table.indexes, own, table.types)
        if of(_tables(text)[logical], "DeletionProtectionEnabled") is not None:
            changed[logical]["DeletionProtectionEnabled"] = table.protected
    return replaced(text, changed)


def unprotected(text: str) -> str:
    """The template without protection of its tables, in which they are made.

    A protected table takes no DeleteTable, from CloudFormation neither: a stack that can not be made would be ROLLBACK_FAILED.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithTables.Basics.html (deletion protection)
    """
    return replaced(text, {name: {"DeletionProtectionEnabled": False} for name in _protected(text)})


def protected_names(text: str, stage: str) -> list[str]:
    """The names of the tables that hold money: a stage may protect them."""
    return [named(of(each, "TableName"), stage) for each in _protected(text).values()]


def _protected(text: str) -> dict[str, Any]:
    return {name: each for name, each in _tables(text).items() if of(each, "DeletionProtectionEnabled") is not None}


def table_names(text: str, stage: str) -> list[str]:
    """The names of the template's tables on a stage."""
    return [named(of(properties, "TableName"), stage) for properties in _tables(text).values()]


def wanted(text: str, stage: str) -> dict[str, list[Index]]:
    """The indexes of the template's tables on a stage, by the tables' names."""
    return {named(of(each, "TableName"), stage): _indexes(each) for each in _tables(text).values()}


def _indexes(properties: Any) -> list[Index]:
    return [_index(each) for each in plain(of(properties, "GlobalSecondaryIndexes")) or []]


def _tables(text: str) -> dict[str, Any]:
    """The properties of the template's tables, by logical id."""
    return {name: properties_of(each) for name, each in resources(text).items() if type_of(each) == "AWS::DynamoDB::Table"}


def _way_of(properties: Any, stage: str, standing: Callable[[str], Table | None]) -> list[dict[str, Any]]:
    """A table's properties to replace, step by step; nothing where it does not stand or has what it is to have."""
    table = standing(named(of(properties, "TableName"), stage))
    if table is None:
        return []
    return [_changed(properties, indexes, table) for indexes in way(table.indexes, _indexes(properties))]


def _changed(properties: Any, indexes: Sequence[Index], table: Table) -> dict[str, Any]:
    """A table's properties to replace, for it to have these indexes, which are the template's or stand."""
    types = {**table.types, **{a["AttributeName"]: a["AttributeType"] for a in plain(of(properties, "AttributeDefinitions"))}}
    own = [key["AttributeName"] for key in plain(of(properties, "KeySchema"))]
    return _properties(indexes, own, types)


def _properties(indexes: Sequence[Index], own: Sequence[str], types: Mapping[str, str]) -> dict[str, Any]:
    """The properties of a table that has these indexes. An attribute that no key names is refused by DynamoDB."""
    used = dict.fromkeys([*own, *(name for index in indexes for name, _ in index.keys)])
    return {
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": types[name]} for name in used],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index.name,
                "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in index.keys],
                "Projection": json.loads(index.projection),
            }
            for index in indexes
        ]
        or None,
    }


def _index(found: Mapping[str, Any]) -> Index:
    keys = tuple((key["AttributeName"], key["KeyType"]) for key in found["KeySchema"])
    kept = {**found["Projection"]}
    if "NonKeyAttributes" in kept:
        kept["NonKeyAttributes"] = sorted(kept["NonKeyAttributes"])
    return Index(found["IndexName"], keys, json.dumps(kept, sort_keys=True))
