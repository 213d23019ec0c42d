"""The direct way to moto's DynamoDB: every answer and every refusal is the one that comes over botocore's HTTP."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ParamValidationError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.responses import DynamoHandler
from moto.sqs.models import sqs_backends

from infra.local.aws import REGION, LocalAws
from infra.local.repairs import direct
from tests.support import moto_faults
from tests.support.moto_faults import TABLE, add, item, key, missing, put

Call = tuple[str, dict[str, Any]]


class Colour(enum.StrEnum):
    RED = "red"


def _of(operation: str, **arguments: Any) -> Call:
    return operation, {"TableName": TABLE, **arguments}


def _transaction(*items: dict[str, Any], **more: Any) -> Call:
    return "TransactWriteItems", {"TransactItems": list(items), **more}


def _failing(**more: Any) -> dict[str, Any]:
    condition = {"ConditionExpression": "n = :n", "ExpressionAttributeValues": {":n": {"N": "7"}}, **more}
    return {"ConditionCheck": {"TableName": TABLE, "Key": key("a"), **condition}}


NESTED = {
    "n": {"N": "5"},
    "text": {"S": "ü"},
    "empty": {"S": ""},
    "yes": {"BOOL": True},
    "nothing": {"NULL": True},
    "list": {"L": [{"S": "x"}, {"M": {"deep": {"N": "1"}}}]},
    "map": {"M": {"a": {"L": []}}},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "list_pk": {"S": "l"},
    "list_sk": {"S": "1"},
}
CALLS: tuple[Call, ...] = (
    _of("PutItem", Item=item("a", **NESTED), ReturnConsumedCapacity="TOTAL"),
    _of("PutItem", Item=item("b", list_pk={"S": "l"}, list_sk={"S": "2"}), ReturnValues="ALL_OLD"),
    _of("PutItem", Item=item("b", n={"N": "1"}), ReturnValues="ALL_OLD"),
    _of("GetItem", Key=key("a"), ConsistentRead=True, ReturnConsumedCapacity="TOTAL"),
    _of("GetItem", Key=key("nobody")),
    _of("GetItem", Key=key("a"), ProjectionExpression="n, #m.a", ExpressionAttributeNames={"#m": "map"}),
    _of("Query", KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "p"}}, Limit=1),
    _of("Query", IndexName="listing", KeyConditionExpression="list_pk = :p", ExpressionAttributeValues={":p": {"S": "l"}}),
    _of("Query", KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "p"}}, Select="COUNT"),
    _of("Query", KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "p"}}, ExclusiveStartKey=key("a")),
    _of("Scan", FilterExpression="attribute_exists(n)", ReturnConsumedCapacity="TOTAL"),
    _of("Scan", Limit=1),
    _of("UpdateItem", **{k: v for k, v in add("a", "3")["Update"].items() if k != "TableName"}, ReturnValues="ALL_NEW"),
    _of("UpdateItem", **{k: v for k, v in add("c", "3")["Update"].items() if k != "TableName"}, ReturnValues="UPDATED_NEW"),
    _of("DeleteItem", Key=key("c"), ReturnValues="ALL_OLD"),
    _of("DeleteItem", Key=key("c"), ReturnValues="ALL_OLD"),
    _transaction(put("d"), add("a", "1"), ClientRequestToken="one", ReturnConsumedCapacity="TOTAL"),
    _transaction(put("d"), add("a", "1"), ClientRequestToken="one", ReturnConsumedCapacity="TOTAL"),
    ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": TABLE, "Key": key(sk)}} for sk in ("a", "nobody", "d")]}),
    ("BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key("a"), key("nobody"), key("d")], "ConsistentRead": True}}}),
    ("BatchWriteItem", {"RequestItems": {TABLE: [{"PutRequest": {"Item": item("e")}}, {"DeleteRequest": {"Key": key("d")}}]}}),
    # Binary values and enums of texts take the usual way; what they leave behind is read directly.
    _of("PutItem", Item=item("bytes", raw={"B": b"\x00\xff"}, raws={"BS": [b"1", b"2"]})),
    _of("GetItem", Key=key("bytes")),
    _of("PutItem", Item=item("colour", colour={"S": Colour.RED})),
    _of("GetItem", Key=key("colour")),
    # Refusals.
    _of("PutItem", Item=item("a"), ConditionExpression="attribute_not_exists(pk)"),
    _of("PutItem", Item=item("a"), ConditionExpression="attribute_not_exists(pk)", ReturnValuesOnConditionCheckFailure="ALL_OLD"),
    _of("UpdateItem", **{k: v for k, v in add("a", "3", ConditionExpression="n < :a")["Update"].items() if k != "TableName"}),
    _of("UpdateItem", Key=key("a"), UpdateExpression="ADD text :a", ExpressionAttributeValues={":a": {"N": "1"}}),
    _of("UpdateItem", Key=key("a"), UpdateExpression="SETT n = 1"),
    _of("UpdateItem", Key=key("a"), UpdateExpression="REMOVE n", ExpressionAttributeNames={"#unused": "n"}),
    _of("DeleteItem", Key=key("a"), ConditionExpression="attribute_not_exists(pk)"),
    _transaction(put("f"), missing("nobody")),
    _transaction(put("f"), _failing(ReturnValuesOnConditionCheckFailure="ALL_OLD"), missing("nobody")),
    _transaction(put("f"), put("f")),
    _transaction(put("g"), ClientRequestToken="one"),
    _transaction(*(put(f"many{n}") for n in range(101))),
    _of("PutItem", Item={"pk": {"S": "p"}}),
    _of("PutItem", Item=item("")),
    _of("PutItem", Item=item("n", n={"N": "1" * 39})),
    _of("PutItem", Item=item("n", n={"N": "one"})),
    _of("PutItem", Item=item("n", list_pk={"N": "1"}, list_sk={"S": "1"})),
    _of("PutItem", Item=item("big", big={"S": "x" * 410_000})),
    _of("GetItem", Key={"pk": {"S": "p"}}),
    _of("GetItem", Key={**key("a"), "more": {"S": "x"}}),
    _of("Query", KeyConditionExpression="sk = :p", ExpressionAttributeValues={":p": {"S": "p"}}),
    _of("Scan", FilterExpression="nonsense("),
    ("GetItem", {"TableName": "elsewhere", "Key": key("a")}),
    ("BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key("a"), key("a")]}}}),
    # What botocore itself refuses.
    _of("GetItem"),
    _of("GetItem", Key=key("a"), Wrong=True),
    _of("GetItem", Key="a"),
    _of("PutItem", Item=item("n", n={"N": 1})),
    _of("PutItem", Item=item("n", n={"X": "1"})),
    _of("Scan", Limit=0),
    _of("Scan", Limit=True),
    ("BatchGetItem", {"RequestItems": {}}),
)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        answer = call()
    except ClientError as error:
        return type(error).__name__, {k: v for k, v in error.response.items() if k != "ResponseMetadata"}, str(error)
    except (ParamValidationError, ValueError, KeyError, TypeError) as error:
        return type(error).__name__, str(error)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    return {k: v for k, v in answer.items() if k != "ResponseMetadata"}


def _outcomes(client: Any) -> list[Any]:
    moto_faults.database()
    return [_outcome(partial(client._make_api_call, *call)) for call in CALLS]


def test_both_ways_answer_alike(aws: LocalAws) -> None:
    client = moto_faults.database()
    directly = _outcomes(client)
    aws.reset_data()
    direct.end()
    usually = _outcomes(client)
    direct.begin(REGION)
    for call, here, there in zip(CALLS, directly, usually, strict=True):
        assert here == there, call


def test_nothing_of_a_call_goes_over_http(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in is quick as long as our own calls take the direct way."""
    from chalicelib.domain.work import Work
    from chalicelib.usecases.ports.changes import Close, Open
    from chalicelib.wiring import services

    store, work = services().store, Work("deposit", "lane", "1", "id")
    monkeypatch.setattr(BaseClient, "_make_request", lambda *_: pytest.fail("by HTTP"))
    store.commit([Open(work)])
    assert list(store.every_work()) == store.open_work("deposit", "lane") == [work]
    store.commit([Close(work)])
    assert list(store.every_work()) == []


def test_messages_are_answered_and_refused_alike(aws: LocalAws) -> None:
    client = boto3.client("sqs", region_name=REGION)
    plain = client.create_queue(QueueName="plain")["QueueUrl"]
    ordered = client.create_queue(QueueName="ordered.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    number = {"MessageAttributes": {"ahead": {"DataType": "Number", "StringValue": "3"}}}
    raw = {"MessageAttributes": {"raw": {"DataType": "Binary", "BinaryValue": b"1"}}}
    calls: tuple[Call, ...] = (
        ("GetQueueUrl", {"QueueName": "plain"}),
        (
            "SendMessage",
            {"QueueUrl": plain, "MessageBody": "a", "DelaySeconds": 3, "MessageGroupId": "g", **number},
        ),
        ("SendMessage", {"QueueUrl": ordered, "MessageBody": "b", "MessageGroupId": "g", "MessageDeduplicationId": "one"}),
        ("SendMessage", {"QueueUrl": ordered, "MessageBody": "b"}),
        ("SendMessage", {"QueueUrl": plain, "MessageBody": "c", "DelaySeconds": 901}),
        (
            "SendMessage",
            {"QueueUrl": plain, "MessageBody": "d", **raw},
        ),
        ("SendMessage", {"QueueUrl": plain, "MessageBody": "x" * 2_000_000}),
        ("SendMessage", {"QueueUrl": plain + "-none", "MessageBody": "e"}),
        ("GetQueueUrl", {"QueueName": "none"}),
        ("SendMessage", {"QueueUrl": plain}),
    )

    def told() -> list[Any]:
        answers = [_outcome(partial(client._make_api_call, *call)) for call in calls]
        for answer in answers:
            if isinstance(answer, dict):  # each message has a number of its own
                answer.pop("MessageId", None)
                answer.pop("SequenceNumber", None)
        return answers

    def held() -> list[Any]:
        queues = sqs_backends[DEFAULT_ACCOUNT_ID][REGION].queues
        found = [(m.body, m.group_id, m.message_attributes) for name in ("plain", "ordered.fifo") for m in queues[name]._messages]
        for name in ("plain", "ordered.fifo"):
            queues[name]._messages.clear()
        return found

    directly, sent = told(), held()
    direct.end()
    usually, sent_usually = told(), held()
    direct.begin(REGION)
    assert directly == usually
    assert sent == sent_usually
    assert len(sent) == 3


def test_an_answer_is_the_callers_own(aws: LocalAws) -> None:
    client = moto_faults.database()
    client.put_item(TableName=TABLE, Item=item("a", **NESTED))
    read = client.get_item(TableName=TABLE, Key=key("a"))["Item"]
    read["texts"]["SS"].append("mine")
    read["map"]["M"]["a"]["L"].append({"S": "mine"})
    read["n"]["N"] = "mine"
    assert client.get_item(TableName=TABLE, Key=key("a"))["Item"] == {**key("a"), **NESTED}


def test_arguments_stay_the_callers_own(aws: LocalAws) -> None:
    client = moto_faults.database()
    mine = item("a", texts={"SS": ["a"]}, map={"M": {"x": {"L": [{"S": "a"}]}}})
    client.put_item(TableName=TABLE, Item=mine)
    mine["texts"]["SS"].append("later")
    mine["map"]["M"]["x"]["L"][0]["S"] = "later"
    assert client.get_item(TableName=TABLE, Key=key("a"))["Item"]["texts"] == {"SS": ["a"]}
    assert client.get_item(TableName=TABLE, Key=key("a"))["Item"]["map"] == {"M": {"x": {"L": [{"S": "a"}]}}}


def test_before_call_is_told_and_may_answer(aws: LocalAws) -> None:
    client = moto_faults.database()
    told: list[str] = []

    def refuse(model: Any, **_: Any) -> Any:
        told.append(model.name)
        return AWSResponse("http://x", 400, {}, None), {"Error": {"Code": "ThrottlingException", "Message": ""}}

    client.meta.events.register("before-call", refuse, unique_id="refuse")
    with pytest.raises(ClientError, match="ThrottlingException"):
        client.put_item(TableName=TABLE, Item=item("a"))
    client.meta.events.unregister("before-call", unique_id="refuse")
    assert told == ["PutItem"]
    assert "Item" not in client.get_item(TableName=TABLE, Key=key("a"))


def test_a_parked_aws_is_not_asked_directly(running_aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_aws.active():
        client = moto_faults.database()
    handled: list[Any] = []
    monkeypatch.setattr(DynamoHandler, "get_item", handled.append)
    monkeypatch.setattr(client._endpoint, "make_request", lambda *_: (_ for _ in ()).throw(ConnectionError("outside")))
    with pytest.raises(ConnectionError, match="outside"):
        client.get_item(TableName=TABLE, Key=key("a"))
    assert handled == []


def test_threads_that_call_first_at_once_meet_no_unfinished_check(aws: LocalAws) -> None:
    """Shapes contain each other: a check that refers to itself must not be seen before it is there."""
    shape = boto3.client("dynamodb", region_name=REGION).meta.service_model.operation_model("TransactWriteItems").input_shape
    sent = {"TransactItems": [{"Put": {"TableName": TABLE, "Item": item("a", **NESTED)}}]}
    known, interval = dict(direct._readers), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for _ in range(50):
                direct._readers.clear()
                read = [threads.submit(lambda: direct._reader(shape)(sent)) for _ in range(4)]
                assert [each.result() for each in read] == [sent] * 4
    finally:
        sys.setswitchinterval(interval)
        direct._readers.update(known)
