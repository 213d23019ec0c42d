"""What moto does wrong, as small scenes that each return a fact. Run as a program, they run on moto as it is installed, and the
facts come out as JSON; a test calls the same functions on the repaired one. So a fact that is right in both means that the
repair is no longer needed.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.serialize import XFormedAttributePicker
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table
from moto.sqs.models import Message, sqs_backends

TABLE = "faults"
DIGITS_38 = "1234567890123456789012345678.9012345678"


def database() -> Any:
    """A client, with the table of the scenes: keys `pk` and `sk`, an index `listing` on `list_pk` and `list_sk`."""
    client = boto3.client("dynamodb", region_name="eu-central-1")
    names = ("pk", "sk", "list_pk", "list_sk")
    with suppress(client.exceptions.ResourceNotFoundException):
        client.delete_table(TableName=TABLE)
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in names],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "listing",
                "KeySchema": [{"AttributeName": "list_pk", "KeyType": "HASH"}, {"AttributeName": "list_sk", "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    return client


def key(sk: str, pk: str = "p") -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def item(sk: str, pk: str = "p", **attributes: dict[str, Any]) -> dict[str, Any]:
    return {**key(sk, pk), **attributes}


def put(sk: str, pk: str = "p", **attributes: dict[str, Any]) -> dict[str, Any]:
    """One Put of a transaction."""
    return {"Put": {"TableName": TABLE, "Item": item(sk, pk, **attributes)}}


def missing(sk: str, pk: str = "p") -> dict[str, Any]:
    """A ConditionCheck of a transaction: that the item is there."""
    return {"ConditionCheck": {"TableName": TABLE, "Key": key(sk, pk), "ConditionExpression": "attribute_exists(pk)"}}


def write_beside_a_failing_transaction_stays() -> bool:
    client = database()
    original = DynamoDBBackend.put_item
    threads: list[threading.Thread] = []

    def put_item(self: DynamoDBBackend, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not threads:
            threads.append(threading.Thread(target=client.put_item, kwargs={"TableName": TABLE, "Item": item("beside")}))
            threads[0].start()
            threads[0].join(0.5)
        return result

    with patch.object(DynamoDBBackend, "put_item", put_item):
        with suppress(client.exceptions.TransactionCanceledException):
            client.transact_write_items(TransactItems=[put("mine"), missing("nobody")])
        threads[0].join()
    return "Item" in client.get_item(TableName=TABLE, Key=key("beside"))


def tables_copied_by_a_transaction() -> int:
    client = database()
    copied = []
    original = copy.deepcopy

    def deepcopy(thing: Any, memo: Any = None) -> Any:
        if isinstance(thing, Table):
            copied.append(thing)
        return original(thing, memo)

    with patch.object(copy, "deepcopy", deepcopy):
        client.transact_write_items(TransactItems=[put("a"), put("b")])
    return len(copied)


def whole_table_sorted_by_a_query() -> int:
    client = database()
    client.put_item(TableName=TABLE, Item=item("a", list_pk={"S": "l"}, list_sk={"S": "1"}))
    calls = []
    original = Table.all_items

    def all_items(self: Table) -> Any:
        calls.append(self)
        return original(self)

    with patch.object(Table, "all_items", all_items):
        query(client, "pk = :p", {":p": {"S": "p"}})
        query(client, "list_pk = :p", {":p": {"S": "l"}}, IndexName="listing")
    return len(calls)


def query(client: Any, condition: str, values: dict[str, Any], **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.query(
        TableName=TABLE, KeyConditionExpression=condition, ExpressionAttributeValues=values, **options
    )
    return answer


def key_after_a_full_page() -> bool:
    client = database()
    client.put_item(TableName=TABLE, Item=item("a"))
    return "LastEvaluatedKey" in query(client, "pk = :p", {":p": {"S": "p"}}, Limit=1)


def names_asked_for_by_an_answer() -> int:
    client = database()
    client.put_item(TableName=TABLE, Item=item("a", **{f"a{n}": {"S": "x"} for n in range(20)}))
    calls = []
    original = XFormedAttributePicker.__call__

    def call(self: Any, *args: Any) -> Any:
        calls.append(1)
        return original(self, *args)

    with patch.object(XFormedAttributePicker, "__call__", call):
        client.get_item(TableName=TABLE, Key=key("a"))
    return len(calls)


def weighings_of_an_item() -> int:
    client = database()
    calls = []
    original = DynamoType.size

    def size(self: DynamoType) -> int:
        calls.append(1)
        return original(self)

    with patch.object(DynamoType, "size", size):
        client.put_item(TableName=TABLE, Item=item("a", **{f"a{n}": {"S": "x"} for n in range(20)}))
    return len(calls)


def items_kept_for_ever() -> int:
    client = database()
    before = len(Item.instances_tracked)  # type: ignore[attr-defined]
    client.put_item(TableName=TABLE, Item=item("a"))
    client.delete_item(TableName=TABLE, Key=key("a"))
    return len(Item.instances_tracked) - before  # type: ignore[attr-defined]


def half_of_a_failed_update_stays() -> bool:
    client = database()
    client.put_item(TableName=TABLE, Item=item("a"))
    with suppress(ClientError):
        client.update_item(
            TableName=TABLE,
            Key=key("a"),
            UpdateExpression="SET little = :s, lots = :l",
            ExpressionAttributeValues={":s": {"S": "half"}, ":l": {"S": "x" * 410_000}},
        )
    return "little" in client.get_item(TableName=TABLE, Key=key("a"))["Item"]


def counted_twice_with_one_token() -> str:
    client = database()
    client.put_item(TableName=TABLE, Item=item("a", n={"N": "0"}))
    for _ in range(2):
        client.transact_write_items(ClientRequestToken="token", TransactItems=[add("a", "1")])
    return number(client, "a")


def add(sk: str, amount: str, **more: Any) -> dict[str, Any]:
    """An Update of a transaction that adds to `n`."""
    update = {
        "TableName": TABLE,
        "Key": key(sk),
        "UpdateExpression": "ADD n :a",
        "ExpressionAttributeValues": {":a": {"N": amount}},
        **more,
    }
    return {"Update": update}


def number(client: Any, sk: str) -> str:
    return str(client.get_item(TableName=TABLE, Key=key(sk))["Item"]["n"]["N"])


def sum_of_38_digits() -> str:
    client = database()
    client.put_item(TableName=TABLE, Item=item("a", n={"N": DIGITS_38}))
    client.transact_write_items(TransactItems=[add("a", "0.0000000001")])
    return number(client, "a")


def number_of_39_digits_is_stored() -> bool:
    client = database()
    try:
        client.put_item(TableName=TABLE, Item=item("a", n={"N": "1" * 39}))
    except ClientError:
        return False
    return True


def sum_with_an_exponent() -> str:
    client = database()
    client.put_item(TableName=TABLE, Item=item("a", n={"N": "1E+2"}))
    try:
        client.transact_write_items(TransactItems=[add("a", "1")])
    except (ClientError, ValueError) as error:
        return type(error).__name__
    return number(client, "a")


class _Watched(list[Message]):
    """Messages that let something happen when they have all been looked at."""

    def __init__(self, messages: list[Message], at_the_end: Callable[[], None]) -> None:
        super().__init__(messages)
        self.at_the_end = at_the_end

    def __iter__(self) -> Iterator[Message]:
        yield from super().__iter__()
        self.at_the_end()


def message_sent_beside_a_deletion_stays() -> bool:
    client = boto3.client("sqs", region_name="eu-central-1")
    url = client.create_queue(QueueName="faults")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="first")
    handle = client.receive_message(QueueUrl=url)["Messages"][0]["ReceiptHandle"]
    sender = threading.Thread(target=client.send_message, kwargs={"QueueUrl": url, "MessageBody": "second"})

    def send() -> None:
        if sender.ident is None:
            sender.start()
            sender.join(0.5)

    queue = sqs_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].queues["faults"]
    queue._messages = _Watched(queue._messages, send)
    client.delete_message(QueueUrl=url, ReceiptHandle=handle)
    sender.join()
    left = [message.body for message in list.__iter__(queue._messages)]
    client.delete_queue(QueueUrl=url)
    return left == ["second"]


SCENES: tuple[Callable[[], Any], ...] = (
    write_beside_a_failing_transaction_stays,
    tables_copied_by_a_transaction,
    whole_table_sorted_by_a_query,
    key_after_a_full_page,
    names_asked_for_by_an_answer,
    weighings_of_an_item,
    items_kept_for_ever,
    half_of_a_failed_update_stays,
    counted_twice_with_one_token,
    sum_of_38_digits,
    number_of_39_digits_is_stored,
    sum_with_an_exponent,
    message_sent_beside_a_deletion_stays,
)

if __name__ == "__main__":
    with mock_aws():
        print(json.dumps({scene.__name__: scene() for scene in SCENES}))
