"""Indexes that differ are made and removed one at a time: DynamoDB takes one of them per update, and CloudFormation sends one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from infra.commands.common import CanNot
from infra.deploy import TEMPLATE, create_stack
from infra.deployment import index_steps
from infra.deployment.index_steps import Index, Table, steps, table_of, wait_for_tables, way
from infra.deployment.stack import Stack
from infra.deployment.taken_away import Way
from infra.local import repairs
from tests.deploy.template_text import Loader

KEYS_ONLY = '{"ProjectionType": "KEYS_ONLY"}'


def index(name: str, key: str | None = None) -> Index:
    return Index(name, ((key or f"{name}_pk", "HASH"), ("sk", "RANGE")), KEYS_ONLY)


A, B, C, D = (index(name) for name in "abcd")


def test_new_ones_come_before_old_ones_go() -> None:
    assert way([A, B], [A, B]) == []
    assert way([A], [A, B]) == [[A, B]]
    assert way([A, B], [C, D]) == [[A, B, C], [A, B, C, D], [B, C, D], [C, D]]


def test_one_of_the_same_name_has_to_go_first() -> None:
    other = index("a", "another")
    assert way([A, B], [other, B]) == [[B], [B, other]]


def test_each_step_differs_by_one() -> None:
    for before, after in (([A, B], [C, D]), ([], [A, B, C]), ([A, B, C], []), ([A], [index("a", "x"), B])):
        now = list(before)
        for then in way(before, after):
            assert len(set(now) ^ set(then)) == 1
            now = then
        assert set(now) == set(after)


def properties(text: str, logical: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(text, Loader=Loader)["Resources"][logical]["Properties"]  # noqa: S506 - a SafeLoader
    return found


def test_the_template_goes_as_it_is_where_at_most_one_differs() -> None:
    text = TEMPLATE.read_text()
    assert steps(text, "prod", lambda name: None) == [text]
    assert len(index_steps.table_names(text, "prod")) > 8 and "gateway-prod-ledger" in index_steps.table_names(text, "prod")


def test_templates_between_change_indexes_alone() -> None:
    text = TEMPLATE.read_text()
    wanted = properties(text, "RecordsTable")
    count = len(wanted["GlobalSecondaryIndexes"])
    assert count > 1
    bare = Table((), {"pk": "S", "sk": "S"}, None)
    found = steps(text, "prod", lambda name: bare if name == "gateway-prod-records" else None)
    assert len(found) == count and found[-1] == text
    for n, each in enumerate(found[:-1]):
        has = properties(each, "RecordsTable")
        assert [i["IndexName"] for i in has["GlobalSecondaryIndexes"]] == [
            i["IndexName"] for i in wanted["GlobalSecondaryIndexes"][: n + 1]
        ]
        used = {key["AttributeName"] for part in (has, *has["GlobalSecondaryIndexes"]) for key in part["KeySchema"]}
        assert {a["AttributeName"] for a in has["AttributeDefinitions"]} == used, "DynamoDB refuses one that no key names"
        before, after = (yaml.load(t, Loader=Loader) for t in (each, text))  # noqa: S506 - a SafeLoader
        for whole in (before, after):
            for name in ("GlobalSecondaryIndexes", "AttributeDefinitions"):
                del whole["Resources"]["RecordsTable"]["Properties"][name]
        assert before == after


@pytest.fixture
def account() -> Iterator[None]:
    repairs.install()
    with mock_aws():
        yield


@pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
def test_a_standing_table_is_brought_to_the_template(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a cut: what stands says what is left to do."""
    create_stack("demo")
    dynamodb = boto3.client("dynamodb")
    stands = table_of(dynamodb, "gateway-demo-records")
    assert stands is not None and stands.busy is None
    assert steps(TEMPLATE.read_text(), "demo", lambda name: table_of(dynamodb, name)) == [TEMPLATE.read_text()]
    for name in [each.name for each in stands.indexes][:2]:
        dynamodb.update_table(TableName="gateway-demo-records", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}])
    sent: list[str] = []
    monkeypatch.setattr(Stack, "update", lambda self, text, given: sent.append(text))
    create_stack("demo")
    assert len(sent) == 2 and sent[-1] == TEMPLATE.read_text()
    assert len(properties(sent[0], "RecordsTable")["GlobalSecondaryIndexes"]) == len(stands.indexes) - 1


class Dynamo:
    """A table whose index is being filled, for `n` looks."""

    def __init__(self, n: int) -> None:
        self.left = n

    def describe_table(self, TableName: str) -> dict[str, Any]:
        self.left -= 1
        state = "CREATING" if self.left >= 0 else "ACTIVE"
        index = {"IndexName": "by_time", "IndexStatus": state, "KeySchema": [], "Projection": {}}
        return {"Table": {"TableStatus": "ACTIVE", "AttributeDefinitions": [], "GlobalSecondaryIndexes": [index]}}


def test_nobody_waits_hours_for_a_stack_that_is_not_his_any_more() -> None:
    def lost() -> None:
        raise CanNot("the lock was taken over")

    waited = list[float]()
    way = Way(Stack(None, None, "gateway-prod", waited.append, demand=lost), Dynamo(9**9), TEMPLATE.read_text(), "prod", print)  # type: ignore[arg-type]
    with pytest.raises(CanNot, match="the lock was taken over"):
        way.go({})
    assert waited == []


def test_the_next_step_waits_until_an_index_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    told, waited = list[str](), list[float]()
    wait_for_tables(Dynamo(3), ["gateway-prod-records"], told.append, waited.append)
    assert told == ["waiting: the index by_time of gateway-prod-records is CREATING"] and len(waited) == 3
    monkeypatch.setattr(index_steps, "_STEPS", 2)
    with pytest.raises(CanNot, match=r"by_time of gateway-prod-records is CREATING for six hours now: run this again"):
        wait_for_tables(Dynamo(9), ["gateway-prod-records"], told.append, waited.append)
