"""The fixtures themselves: that a test starts from the same data whatever ran before, quickly, and can have a moto of its own."""

from __future__ import annotations

import time
from typing import Any

import boto3
import pytest
from chalice.app import Chalice
from moto import mock_aws

from chalicelib.settings import KEYS, QUEUES, TABLES
from infra.local.aws import LocalAws, start_aws
from tests.support.stack import Client, Stack

INVOICE = {"currency": "eth", "amount": "0.05", "externalId": "one"}


def test_aws_has_what_the_template_describes(aws: LocalAws) -> None:
    tables = set(boto3.client("dynamodb").list_tables()["TableNames"])
    queues = {url.rsplit("/", 1)[1] for url in boto3.client("sqs").list_queues()["QueueUrls"]}
    aliases = {alias["AliasName"] for alias in boto3.client("kms").list_aliases()["Aliases"]}
    assert {aws.settings.table(name) for name in TABLES} <= tables
    assert {aws.settings.queue(name) for name in QUEUES} <= queues
    assert {aws.settings.key_alias(name) for name in KEYS} <= aliases
    keys = {name: boto3.client("kms").describe_key(KeyId=aws.settings.key_alias(name))["KeyMetadata"]["KeySpec"] for name in KEYS}
    symmetric, signing = dict.fromkeys(("data", "webhooks"), "SYMMETRIC_DEFAULT"), "ECC_SECG_P256K1"
    assert keys == {**symmetric, "hot-live": signing, "hot-test": signing}


@pytest.mark.parametrize("turn", [1, 2])
def test_what_a_test_makes_is_gone_in_the_next(stack: Stack, turn: int) -> None:
    key = stack.keys["client_test"]
    assert stack.call("POST", "/v1/invoices", key, INVOICE).status == 201
    found = stack.call("GET", "/v1/invoices/getByExternalId", key, query={"externalId": "one"})
    assert (found.status, found.json["externalId"]) == (200, "one")
    assert found.headers["x-request-id"]


def test_a_snapshot_can_be_restored_many_times_quickly(stack: Stack) -> None:
    key = stack.keys["client_test"]
    made = stack.call("POST", "/v1/invoices", key, INVOICE).json
    token = stack.snapshot()
    restoring = []
    for _ in range(3):
        paid = {"address": made["address"], "network": made["network"], "coin": "eth", "amount": "0.05"}
        assert stack.call("POST", "/v1/sandbox/deposits", key, paid).status == 201
        assert stack.drain(only=["poll_ethereum"]).settled
        assert stack.call("GET", "/v1/invoices", key, query={"id": made["id"]}).json["status"] == "confirming"
        began = time.perf_counter()
        stack.restore(token)
        restoring.append(time.perf_counter() - began)
        assert stack.call("GET", "/v1/invoices", key, query={"id": made["id"]}).json["status"] == "pending"
    assert min(restoring) < 0.05


def test_a_call_becomes_the_gateways_event() -> None:
    app = Chalice("echo", configure_logs=False)

    @app.route("/v1/things", methods=["POST"])
    def things() -> Any:
        request: Any = app.current_request
        return request.to_original_event()

    query = [("a", "1"), ("a", "2"), ("b[gte]", "x y")]
    answer = Client(app).call("POST", "/v1/things", "k", {"n": 1}, {"X-Other": "o"}, source_ip="203.0.113.9", query=query)
    event = answer.json
    assert event["requestContext"]["identity"]["sourceIp"] == "203.0.113.9"
    assert event["multiValueQueryStringParameters"] == {"a": ["1", "2"], "b[gte]": ["x y"]}
    assert (event["body"], event["headers"]["Content-Type"]) == ('{"n": 1}', "application/json")
    assert (event["headers"]["X-Api-Key"], event["headers"]["X-Other"]) == ("k", "o")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


def test_another_moto_sees_nothing_of_a_parked_one(running_aws: LocalAws) -> None:
    with mock_aws():
        client = boto3.client("dynamodb")
        assert client.list_tables()["TableNames"] == []
        client.create_table(
            TableName=running_aws.settings.table("records"),
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        )
    with running_aws.active():
        described = boto3.client("dynamodb").describe_table(TableName=running_aws.settings.table("records"))["Table"]
        assert [key["AttributeName"] for key in described["KeySchema"]] == ["pk", "sk"]


def test_aws_runs_once_in_a_process(aws: LocalAws) -> None:
    with pytest.raises(RuntimeError, match="runs in this process already"):
        start_aws(aws.settings)
