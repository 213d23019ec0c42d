"""What the local AWS remembers is what it would have worked out."""

from __future__ import annotations

import json
from importlib import import_module

import boto3
import pytest
import yaml
from moto import mock_aws
from moto.core.base_backend import BackendDict
from moto.dynamodb.comparisons import ConditionExpressionParser, IncorrectOperandType
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends

from infra.deploy import TEMPLATE
from infra.local.repairs.cloudformation import repair_cloudformation
from infra.local.repairs.speed import repair_speed

_nodes = import_module("moto.dynamodb.parsing.ast_nodes")
_expressions = import_module("moto.dynamodb.parsing.expressions")
_validators = import_module("moto.dynamodb.parsing.validators")
NAMES = {"#a": "amount", "#v": "version"}


@pytest.mark.parametrize(
    "condition", ["attribute_not_exists(pk)", "#v = :v AND (attribute_exists(pk) OR NOT #a BETWEEN :x AND :y)", "size(#a) >= :x"]
)
def test_the_same_condition_with_other_values_is_another(condition: str) -> None:
    def parsed(value: str) -> str:
        values = {name: {"N": value} for name in (":v", ":x", ":y")}
        return repr(ConditionExpressionParser(condition, NAMES, values).parse())

    repair_speed()
    first, second, again = parsed("1"), parsed("2"), parsed("1")
    assert first == again
    assert ("2" in second) == (":" in condition)


SEVERAL = "#v = :v AND (NOT #a BETWEEN :x AND :y OR #a IN (:x, :v)) OR attribute_type(#a, :t) AND contains(#a, :y)"


def test_new_values_come_into_their_own_places() -> None:
    """Of the same types, into a copy of what was made before, which stays as it was; of others, into one of its own."""
    repair_speed()
    item = Item(DynamoType({"S": "a"}), None, {"amount": {"N": "4"}, "version": {"N": "7"}})

    def holds(v: str, x: str, y: str, t: str = "N", kind: str = "N") -> bool:
        values = {":v": {"N": v}, ":x": {kind: x}, ":y": {kind: y}, ":t": {"S": t}}
        parser = ConditionExpressionParser(SEVERAL, NAMES, values)
        made = parser.parse()
        assert sorted({*parser.expr_attr_values_found}) == sorted(values)
        return bool(made.expr(item))

    for _ in range(2):
        assert holds("7", "5", "6")
        assert not holds("7", "3", "6"), "it lies between, and is none of these"
        assert holds("7", "4", "6"), "it is one of these"
        assert not holds("8", "5", "6")
        assert not holds("7", "3", "6", t="S")
        assert not holds("8", "a", "b", kind="S")
    with pytest.raises(IncorrectOperandType):
        ConditionExpressionParser(
            SEVERAL,
            NAMES,
            {":v": {"N": "7"}, ":x": {"NULL": True}, ":y": {"N": "1"}, ":t": {"S": "N"}},  # type: ignore[dict-item]
        ).parse()
    assert holds("7", "5", "6")


def test_nonsense_is_refused_every_time() -> None:
    repair_speed()
    for _ in range(2):
        with pytest.raises(ValueError, match="Cannot parse"):
            ConditionExpressionParser("a = !", {}, {}).parse()


def test_an_update_that_is_used_again_does_what_it_did_the_first_time() -> None:
    """The tree of an update is remembered, and validating it puts values into a copy."""
    repair_speed()
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-central-1")
        keys = [{"AttributeName": "pk", "AttributeType": "S"}], [{"AttributeName": "pk", "KeyType": "HASH"}]
        client.create_table(TableName="t", AttributeDefinitions=keys[0], KeySchema=keys[1], BillingMode="PAY_PER_REQUEST")
        for row, units, name in (("a", "1", "x"), ("a", "2", "y"), ("b", "5", "z"), ("a", "-4", "w")):
            client.update_item(
                TableName="t", Key={"pk": {"S": row}}, UpdateExpression="SET #n = :n ADD #u :u",
                ExpressionAttributeNames={"#n": "name", "#u": "units"},
                ExpressionAttributeValues={":n": {"S": name}, ":u": {"N": units}},
            )  # fmt: skip
        found = {item["pk"]["S"]: (item["name"]["S"], item["units"]["N"]) for item in client.scan(TableName="t")["Items"]}
        assert found == {"a": ("w", "-1"), "b": ("z", "5")}
        with pytest.raises(client.exceptions.ClientError, match="ValidationException"):
            client.update_item(
                TableName="t", Key={"pk": {"S": "a"}}, UpdateExpression="SET #n = :n, #n = :n",
                ExpressionAttributeNames={"#n": "name"}, ExpressionAttributeValues={":n": {"S": "v"}},
            )  # fmt: skip


def test_an_update_that_was_taken_is_checked_again_with_other_names() -> None:
    repair_speed()
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-central-1")
        keys = [{"AttributeName": "pk", "AttributeType": "S"}], [{"AttributeName": "pk", "KeyType": "HASH"}]
        client.create_table(TableName="t", AttributeDefinitions=keys[0], KeySchema=keys[1], BillingMode="PAY_PER_REQUEST")

        def update(first: str, second: str) -> None:
            client.update_item(
                TableName="t", Key={"pk": {"S": "a"}}, UpdateExpression="SET #a = :v, #b = :v",
                ExpressionAttributeNames={"#a": first, "#b": second}, ExpressionAttributeValues={":v": {"S": "v"}},
            )  # fmt: skip

        update("x", "y")
        for wrong in (("x", "x"), ("x", "pk")):
            for _ in range(2):
                with pytest.raises(client.exceptions.ClientError, match="ValidationException"):
                    update(*wrong)
        update("x", "y")


def test_a_second_start_answers_as_the_first_did() -> None:
    repair_speed()
    for _ in range(3):
        with mock_aws():
            client = boto3.client("sqs", region_name="eu-central-1")
            assert "QueueUrls" not in client.list_queues()
            client.create_queue(QueueName="q")
            assert len(client.list_queues()["QueueUrls"]) == 1


@pytest.mark.parametrize("template", [TEMPLATE.read_text(), '{\t"Resources": {"Fn::Sub": "a"}}'])
def test_a_template_says_what_moto_itself_reads(template: str) -> None:
    # Imported here: they bring all of moto's services, which are read more quickly once they are repaired.
    from moto.cloudformation.models import Stack
    from moto.cloudformation.utils import yaml_tag_constructor

    repair_speed()
    repair_cloudformation()

    class Slow(yaml.Loader):
        pass

    yaml.add_multi_constructor("", yaml_tag_constructor, Loader=Slow)
    wanted = json.loads(template) if template.startswith("{\t") else yaml.load(template, Loader=Slow)  # noqa: S506 - as moto does
    assert wanted["Resources"]
    assert Stack.parse_template(template) == wanted


def test_services_in_use_are_told_apart() -> None:
    """Each is registered once, however often it is asked for."""
    repair_speed()
    with mock_aws():
        for _ in range(2):
            boto3.client("sqs", region_name="eu-central-1").list_queues()
            boto3.client("sns", region_name="eu-central-1").list_topics()
        used = [backends.service_name for backends in BackendDict._instances]  # type: ignore[misc]
        assert (used.count("sqs"), used.count("sns")) == (1, 1)
        assert sqs_backends != sns_backends


@pytest.mark.parametrize(
    ("value", "weighs"),
    [
        ({"S": ""}, 0),
        ({"S": "plain"}, 5),
        ({"S": "für 5 €"}, 10),
        ({"N": "-12.50"}, 6),
        ({"B": "AAEC"}, 4),
        ({"BOOL": True}, 1),
        ({"SS": ["a", "ü"]}, 3),
        ({"L": [{"S": "ab"}, {"N": "7"}]}, 3),
        ({"M": {"ä": {"S": "b"}}}, 3),
    ],
)
def test_a_value_weighs_what_moto_says(value: dict[str, object], weighs: int) -> None:
    """Bytes of UTF-8, of names too: what DynamoDB counts for its limit of 400 kB an item."""
    repair_speed()
    assert DynamoType(value).size() == weighs
    assert Item(DynamoType({"S": "a"}), None, {"größe": value}).size() == weighs + 7


def test_values_are_the_same_as_moto_says() -> None:
    repair_speed()
    text, number = DynamoType({"S": "1"}), DynamoType({"N": "1"})
    assert text == DynamoType({"S": "1"}) and hash(text) == hash(DynamoType({"S": "1"}))
    assert number == DynamoType({"N": "1.0"}) and hash(number) == hash(DynamoType({"N": "1.0"}))
    assert [text == number, number == text, text == DynamoType({"S": "1.0"})] == [False] * 3


def test_a_text_with_names_is_looked_through_once_and_its_copies_anew() -> None:
    """A copy's nodes are replaced when it is applied: what was found in the text is not what stands in the copy."""
    repair_speed()
    tree = _expressions.UpdateExpressionParser.make("SET #a = :b ADD #c :d")
    wanted = [_nodes.ExpressionAttributeName]
    found = tree.find_clauses(wanted)
    assert [clause.get_attribute_name_placeholder() for clause in found] == ["#a", "#c"]
    found.clear()
    assert len(tree.find_clauses(wanted)) == 2
    copy = _validators.deepcopy(tree)
    assert copy.find_clauses(wanted)[0] is not tree.find_clauses(wanted)[0]
    copy.children = []
    assert copy.find_clauses(wanted) == [] and len(tree.find_clauses(wanted)) == 2
