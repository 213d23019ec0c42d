"""The templates that bring the tables' indexes from what stands to what the template says, one index of a table at a time.

DynamoDB makes or removes one global secondary index per UpdateTable, and CloudFormation makes one such call per update of a stack:
with more, the update fails and is rolled back. A new index comes before an old one goes, so that no query is without one.
CloudFormation does not wait until a new index is filled, and the table takes no other change before.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-dynamodb-table.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTable.html
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from botocore.exceptions import ClientError

from infra.commands.common import CanNot

_STEP = 10.0  # seconds
_STEPS = 2160  # six hours


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index: its keys as (attribute, HASH or RANGE), and its projection as JSON."""

    name: str
    keys: tuple[tuple[str, str], ...]
    projection: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A table that stands."""

    indexes: tuple[Index, ...]
    types: Mapping[str, str]
    """The types of its keys' attributes."""
    busy: str | None
    """What of it is not done yet."""


def steps(text: str, stage: str, standing: Callable[[str], Standing | None]) -> list[str]:
    """The templates to send, one after the other; the last is `text`. `standing` looks a table up by its name."""
    ways = {logical: way for logical, properties in _tables(text).items() if (way := _way_of(properties, stage, standing))}
    longest = max(map(len, ways.values()), default=1)
    return [_with(text, {logical: way[min(n, len(way) - 1)] for logical, way in ways.items()}) for n in range(longest - 1)] + [text]


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


def table_of(dynamodb: Any, name: str) -> Standing | None:
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
    return Standing(tuple(map(_index, indexes)), types, busy)


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


def table_names(text: str, stage: str) -> list[str]:
    """The names of the template's tables on a stage."""
    return [_name(properties, stage) for properties in _tables(text).values()]


def _way_of(properties: yaml.MappingNode, stage: str, standing: Callable[[str], Standing | None]) -> list[dict[str, Any]]:
    """A table's properties to replace, step by step; nothing where it does not stand or has what it is to have."""
    table = standing(_name(properties, stage))
    if table is None:
        return []
    wanted = [_index(each) for each in _plain(_of(properties, "GlobalSecondaryIndexes")) or []]
    types = {**table.types, **{a["AttributeName"]: a["AttributeType"] for a in _plain(_of(properties, "AttributeDefinitions"))}}
    own = [key["AttributeName"] for key in _plain(_of(properties, "KeySchema"))]
    return [_properties(indexes, own, types) for indexes in way(table.indexes, wanted)]


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
        ],
    }


def _with(text: str, changed: Mapping[str, Mapping[str, Any]]) -> str:
    """The template with these properties of tables in the place of its own."""
    document = yaml.compose(text, Loader=_LOADER)
    for logical, resource in _pairs(_of(document, "Resources")):
        if logical in changed:
            properties = _of(resource, "Properties")
            kept = [(key, value) for key, value in properties.value if key.value not in changed[logical]]
            new = yaml.compose(json.dumps({name: value for name, value in changed[logical].items() if value}), Loader=_LOADER)
            properties.value = [*kept, *new.value]
    return str(yaml.serialize(document))


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.lru_cache(maxsize=2)
def _tables(text: str) -> dict[str, yaml.MappingNode]:
    """The properties of the template's tables, by logical id."""
    resources = _pairs(_of(yaml.compose(text, Loader=_LOADER), "Resources"))
    return {name: _of(r, "Properties") for name, r in resources if _of(r, "Type").value == "AWS::DynamoDB::Table"}


def _name(properties: yaml.MappingNode, stage: str) -> str:
    return str(_of(properties, "TableName").value).replace("${Stage}", stage)


def _pairs(node: Any) -> Iterator[tuple[str, Any]]:
    return ((str(key.value), value) for key, value in node.value)


def _of(node: Any, name: str) -> Any:
    return next((value for key, value in _pairs(node) if key == name), None)


def _plain(node: Any) -> Any:
    """A node without functions of CloudFormation, as Python has it."""
    return None if node is None else yaml.safe_load(yaml.serialize(node))


def _index(found: Mapping[str, Any]) -> Index:
    keys = tuple((key["AttributeName"], key["KeyType"]) for key in found["KeySchema"])
    kept = {**found["Projection"]}
    if "NonKeyAttributes" in kept:
        kept["NonKeyAttributes"] = sorted(kept["NonKeyAttributes"])
    return Index(found["IndexName"], keys, json.dumps(kept, sort_keys=True))
