"""Updates that only set, remove and add go a short way through moto: it leaves behind and answers what moto's own way does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import assume, given
from hypothesis import strategies as st
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from infra.local import repairs
from infra.local.aws import isolate_environment
from infra.local.repairs import simple_updates

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
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "listed")],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "lists",
                    "KeySchema": [{"AttributeName": "listed", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


def ask(dynamodb: Any, item: dict[str, Any] | None, request: dict[str, Any], together: bool) -> tuple[Any, Any]:
    """What is answered, or refused, and what is stored then. `together`: by a transaction."""
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    dynamodb.delete_item(TableName="t", Key=key)
    if item is not None:
        dynamodb.put_item(TableName="t", Item={**key, **item})
    request = {"TableName": "t", "Key": key} | request
    try:
        if together:
            told: Any = dynamodb.transact_write_items(TransactItems=[{"Update": request}]) and None
        else:
            told = dynamodb.update_item(**request).get("Attributes")
    except ClientError as error:
        told = error.response["Error"], error.response.get("Item"), error.response.get("CancellationReasons")
    return told, dynamodb.get_item(TableName="t", Key=key).get("Item")


def both_ways(dynamodb: Any, item: dict[str, Any] | None, request: dict[str, Any], together: bool = False) -> tuple[Any, Any, bool]:
    """The outcome, which is the same on both ways, and whether the short way was taken."""
    taken: list[bool] = []
    updated = simple_updates._updated

    def watched(*asked: Any) -> Any:
        found = updated(*asked)
        taken.append(found is not None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simple_updates, "_updated", watched)
        short = ask(dynamodb, item, request, together)
        patch.setattr(simple_updates, "_updated", lambda *_: None)
        patch.setattr(simple_updates, "_answer", lambda _: None)
        assert ask(dynamodb, item, request, together) == short
    return *short, any(taken)


numbers = st.one_of(st.integers(-(10**20), 10**20), st.decimals(-1000, 1000, places=3)).map(lambda n: {"N": str(n)})
texts = st.text(max_size=5).map(lambda text: {"S": text})
values = st.one_of(
    numbers, texts, st.just({"BOOL": True}), st.just({"NULL": True}), st.lists(texts, max_size=2).map(lambda v: {"L": v})
)
NAMES = ("n_1", "n_2", "n_3", "text")


@given(
    item=st.none() | st.dictionaries(st.sampled_from(NAMES), values),
    sets=st.dictionaries(st.sampled_from(NAMES), values),
    adds=st.dictionaries(st.sampled_from(NAMES), numbers),
    removed=st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
    returned=st.sampled_from(("NONE", "ALL_NEW", "ALL_OLD", "UPDATED_NEW")),
    condition=st.sampled_from((None, COUNTED, "attribute_not_exists(n_2)")),
    named=st.booleans(),
    together=st.booleans(),
)
def test_it_is_what_moto_makes_of_it(
    dynamodb: Any,
    item: Any,
    sets: Any,
    adds: Any,
    removed: list[str],
    returned: str,
    condition: str | None,
    named: bool,
    together: bool,
) -> None:
    assume(sets or adds or removed)  # DynamoDB refuses an expression without a clause, moto stops at it
    assume(condition != COUNTED or "N" in (item or {}).get("n_1", {"N": ""}))  # moto stops at a text that is compared with a number
    mark = "#" if named else ""
    parts = [", ".join(f"{mark}{name} {sign}:{sign and 's'}{name}" for name in found) for found, sign in ((sets, "= "), (adds, ""))]
    parts.insert(1, ", ".join(f"{mark}{name}" for name in removed))
    request: dict[str, Any] = {
        "UpdateExpression": " ".join(f"{word} {part}" for word, part in zip(("SET", "REMOVE", "ADD"), parts, strict=True) if part),
        "ExpressionAttributeValues": {f":s{name}": value for name, value in sets.items()} | {f":{n}": v for n, v in adds.items()},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if not request["ExpressionAttributeValues"]:
        del request["ExpressionAttributeValues"]
    if named:
        request["ExpressionAttributeNames"] = {f"#{name}": name for name in {*sets, *adds, *removed}}
    if condition is not None:
        request["ConditionExpression"] = condition
        request["ExpressionAttributeValues"] = (
            request.get("ExpressionAttributeValues", {}) | {":most": {"N": "100"}} if ":most" in condition else {}
        )
    both_ways(dynamodb, item, request if together else request | {"ReturnValues": returned}, together)


ONE = {":v": {"N": "1"}}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("item", [None, {"n_1": {"N": "2"}, "name": {"S": "x"}}], ids=["new", "known"])
def test_sums_take_the_short_way(dynamodb: Any, item: dict[str, Any] | None, together: bool) -> None:
    request = {
        "UpdateExpression": "SET #0 = :0, #1 = :1 ADD #2 :v, #3 :v",
        "ExpressionAttributeNames": {"#0": "name", "#1": "date", "#2": "n_1", "#3": "n_2"},
        "ExpressionAttributeValues": {**ONE, ":0": {"S": "y"}, ":1": {"M": {"a": {"N": "1"}}}},
    }
    _, stored, taken = both_ways(dynamodb, item, request, together)
    assert taken
    assert (stored["n_1"], stored["n_2"]) == ({"N": "3" if item else "1"}, {"N": "1"})
    assert (stored["name"], stored["date"]) == ({"S": "y"}, {"M": {"a": {"N": "1"}}})


@pytest.mark.parametrize("together", [False, True])
def test_a_record_over_its_version_before_takes_the_short_way(dynamodb: Any, together: bool) -> None:
    request = {
        "UpdateExpression": "SET #0 = :0, #1 = :1, #2 = :2 REMOVE #3, #4",
        "ConditionExpression": "#0 = :before",
        "ExpressionAttributeNames": {"#0": "version", "#1": "listed", "#2": "name", "#3": "gone", "#4": "never"},
        "ExpressionAttributeValues": {":before": {"N": "1"}, ":0": {"N": "2"}, ":1": {"S": "l"}, ":2": {"S": "y"}},
    }
    before = {"version": {"N": "1"}, "name": {"S": "x"}, "gone": {"S": "z"}, "unknown": {"S": "stays"}}
    _, stored, taken = both_ways(dynamodb, before, request, together)
    assert taken
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    assert stored == {**key, "version": {"N": "2"}, "name": {"S": "y"}, "listed": {"S": "l"}, "unknown": {"S": "stays"}}
    assert dynamodb.scan(TableName="t", IndexName="lists")["Count"] == 1


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


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("item", "request_"),
    [
        ({"n_1": {"N": "3"}}, {"ConditionExpression": COUNTED, "ExpressionAttributeValues": {**ONE, ":most": {"N": "3"}}}),
        ({}, {"UpdateExpression": "ADD n_1 :v REMOVE name"}),
        ({}, {"UpdateExpression": "REMOVE n_1 ADD n_1 :v"}),
        ({}, {"UpdateExpression": "SET listed = :v"}),
        ({}, {"UpdateExpression": "SET listed = :v", "ExpressionAttributeValues": {":v": {"S": ""}}}),
        ({}, {"UpdateExpression": "SET n_1 = n_2 + :v"}),
        ({}, {"UpdateExpression": "SET n_1 = :v ADD n_1 :v"}),
        ({}, {"UpdateExpression": "ADD n_1 :v, n_1 :v"}),
        ({}, {"UpdateExpression": "ADD n_1 :v SET n_2 = :v, n_3"}),
        ({}, {"UpdateExpression": "ADD date :v"}),
        ({}, {"UpdateExpression": "ADD pk :v"}),
        ({}, {"UpdateExpression": "SET n.a = :v"}),
        ({}, {"ExpressionAttributeValues": {":v": {"NS": ["1"]}}}),
        ({}, {"ExpressionAttributeValues": {":v": {"N": "one"}}}),
        ({"n_1": {"S": "text"}}, {}),
        ({"long": {"S": "x" * 320_000}}, {}),
        ({}, {"TableName": "none"}),
        ({}, {"Key": {"pk": {"S": "a"}}}),
    ],
    ids=lambda given: str(given)[:80],
)
def test_what_is_anything_else_or_refused_takes_motos_own_way(
    dynamodb: Any, item: dict[str, Any] | None, request_: dict[str, Any], together: bool
) -> None:
    request = {"UpdateExpression": "ADD n_1 :v", "ExpressionAttributeValues": ONE, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    *_, taken = both_ways(dynamodb, item, request | request_, together)
    assert not taken


@pytest.mark.parametrize(
    "unused", [{"ExpressionAttributeValues": {**ONE, ":x": {"N": "1"}}}, {"ExpressionAttributeNames": {"#x": "x"}}]
)
def test_names_and_values_that_nothing_uses_are_refused(dynamodb: Any, unused: dict[str, Any]) -> None:
    request = {"UpdateExpression": "ADD n_1 :v", "ExpressionAttributeValues": ONE}
    (error, *_), _, taken = both_ways(dynamodb, {}, request | unused)
    assert not taken
    assert error["Code"] == "ValidationException"


def test_it_is_installed_once() -> None:
    repairs.install()
    before = DynamoHandler.update_item
    repairs.install()
    assert DynamoHandler.update_item is before


@pytest.mark.parametrize("added", ["0.000", "1.500", "-0", "0", "-2.50"])
@pytest.mark.parametrize("item", [None, {"n_1": {"N": "0.500"}}, {"n_1": {"N": "2"}}], ids=["new", "fraction", "whole"])
def test_a_sum_is_written_as_motos(dynamodb: Any, item: dict[str, Any] | None, added: str) -> None:
    request = {"UpdateExpression": "ADD n_1 :v", "ExpressionAttributeValues": {":v": {"N": added}}}
    assert both_ways(dynamodb, item, request)[2]
