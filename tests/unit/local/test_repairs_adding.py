"""An update that only adds numbers goes a short way through moto: it leaves behind and answers what moto's own way does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from infra.local import repairs
from infra.local.aws import isolate_environment
from infra.local.repairs import adding

COUNTED = "attribute_exists(pk) AND (attribute_not_exists(n_1) OR n_1 < :most)"


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    isolate_environment()
    repairs.install()
    with mock_aws():
        client = boto3.client("dynamodb")
        client.create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


def ask(dynamodb: Any, item: dict[str, Any] | None, request: dict[str, Any]) -> tuple[Any, Any]:
    """What is answered, or refused, and what is stored then."""
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    dynamodb.delete_item(TableName="t", Key=key)
    if item is not None:
        dynamodb.put_item(TableName="t", Item={**key, **item})
    try:
        answer = dynamodb.update_item(**{"TableName": "t", "Key": key} | request)
        told: Any = answer.get("Attributes")
    except ClientError as error:
        told = error.response["Error"], error.response.get("Item")
    return told, dynamodb.get_item(TableName="t", Key=key).get("Item")


def both_ways(dynamodb: Any, item: dict[str, Any] | None, request: dict[str, Any]) -> tuple[Any, Any, bool]:
    """The outcome, which is the same on both ways, and whether the short way was taken."""
    taken: list[bool] = []
    added = adding._added

    def watched(handler: Any) -> Any:
        found = added(handler)
        taken.append(found is not None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adding, "_added", watched)
        short = ask(dynamodb, item, request)
        patch.setattr(adding, "_added", lambda _: None)
        assert ask(dynamodb, item, request) == short
    return *short, any(taken)


numbers = st.one_of(st.integers(-(10**20), 10**20), st.decimals(-1000, 1000, places=3)).map(lambda n: {"N": str(n)})
attributes = st.one_of(numbers, st.text(max_size=5).map(lambda t: {"S": t}), st.just({"BOOL": True}))


@given(
    item=st.none() | st.dictionaries(st.sampled_from(("n_1", "n_2", "limit_1", "text")), attributes),
    added=st.dictionaries(st.sampled_from(("n_1", "n_2", "n_3")), numbers, min_size=1),
    returned=st.sampled_from(("NONE", "ALL_NEW", "ALL_OLD", "UPDATED_NEW")),
    condition=st.sampled_from((None, COUNTED, "attribute_not_exists(n_2)")),
)
def test_it_is_what_moto_makes_of_it(
    dynamodb: Any, item: dict[str, Any] | None, added: dict[str, Any], returned: str, condition: str | None
) -> None:
    values = {f":v_{name}": value for name, value in added.items()}
    request: dict[str, Any] = {"ReturnValues": returned, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    request["UpdateExpression"] = "ADD " + ", ".join(f"{name} :v_{name}" for name in added)
    if condition is not None:
        request["ConditionExpression"] = condition
        values |= {":most": {"N": "100"}} if ":most" in condition else {}
    both_ways(dynamodb, item, request | {"ExpressionAttributeValues": values})


ONE = {":v": {"N": "1"}}


def test_a_counter_takes_the_short_way(dynamodb: Any) -> None:
    request = {
        "UpdateExpression": "ADD n_1 :v, n_2 :v",
        "ConditionExpression": COUNTED,
        "ExpressionAttributeValues": {**ONE, ":most": {"N": "3"}},
        "ReturnValues": "ALL_NEW",
    }
    told, stored, taken = both_ways(dynamodb, {"n_1": {"N": "2"}, "name": {"S": "x"}}, request)
    assert taken
    assert told == stored
    assert (stored["n_1"], stored["n_2"], stored["name"]) == ({"N": "3"}, {"N": "1"}, {"S": "x"})


@pytest.mark.parametrize(
    ("item", "request_"),
    [
        ({"n_1": {"N": "3"}}, {"ConditionExpression": COUNTED, "ExpressionAttributeValues": {**ONE, ":most": {"N": "3"}}}),
        ({}, {"UpdateExpression": "ADD n_1 :v SET name = :v"}),
        ({}, {"UpdateExpression": "ADD n_1 :v, n_1 :v"}),
        ({}, {"UpdateExpression": "ADD date :v"}),
        ({}, {"UpdateExpression": "ADD pk :v"}),
        ({}, {"UpdateExpression": "ADD #n :v", "ExpressionAttributeNames": {"#n": "n_1"}}),
        ({}, {"ExpressionAttributeValues": {":v": {"NS": ["1"]}}}),
        ({}, {"ExpressionAttributeValues": {":v": {"N": "one"}}}),
        ({}, {"ExpressionAttributeValues": {**ONE, ":unused": {"N": "1"}}}),
        ({"n_1": {"S": "text"}}, {}),
        ({"long": {"S": "x" * 1000}}, {}),
        (None, {}),
        ({}, {"TableName": "none"}),
        ({}, {"Key": {"pk": {"S": "a"}}}),
    ],
    ids=str,
)
def test_what_is_anything_else_or_refused_takes_motos_own_way(
    dynamodb: Any, item: dict[str, Any] | None, request_: dict[str, Any]
) -> None:
    request = {"UpdateExpression": "ADD n_1 :v", "ExpressionAttributeValues": ONE, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    *_, taken = both_ways(dynamodb, item, request | request_)
    assert not taken


def test_it_is_installed_once() -> None:
    repairs.install()
    before = DynamoHandler.update_item
    repairs.install()
    assert DynamoHandler.update_item is before
