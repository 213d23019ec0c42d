"""The whole service on DynamoDB Local, which isolates transactions as the real one does: moto runs one request after the other.

Queues and keys stay moto's. One service for the session; every test has a merchant and a network of its own, and at its end the
books of all of them must be whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, TypeVar

import boto3
import botocore.client
import pytest
from botocore.exceptions import ClientError

from chalicelib import wiring
from chalicelib.domain.ids import new_id, tenant_id
from chalicelib.domain.merchants.merchants import Merchant, MerchantId
from chalicelib.encoding.public_keys import checksum_case
from chalicelib.store import unheard
from chalicelib.usecases.deposits import crediting
from chalicelib.usecases.merchants.access import issue_key
from chalicelib.usecases.ports.changes import FEW_ITEMS, Enforce, Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local import queues
from infra.local.aws import LocalAws, Snapshot
from infra.local.gateway import context
from infra.local.nodes import DynamoDbLocal
from infra.local.pump import Drained
from tests.support.shop import Shop
from tests.support.stack import Stack, first_stack

ENDPOINT = "AWS_ENDPOINT_URL_DYNAMODB"
KEYS = 5
"""Of each merchant: one alone may not ask for 200 withdrawals an hour."""
ROUNDS = 1
"""Of a poll, the relay and the payouts, in this order: what one leaves the next one finds."""
T = TypeVar("T")
numbers = count(1)


class Crowd(Shop):
    """A merchant of its own with several keys, and many who ask at once."""

    def __init__(self, stack: Stack, network: str) -> None:
        number, now = next(numbers), services().clock.now_ms()
        self.merchant = MerchantId(new_id("mch", now))
        services().store.commit([Save(Merchant(self.merchant, f"Crowd {number}", now))])
        self.tenant = tenant_id(self.merchant, "test")
        self.keys = [self.new_key() for _ in range(KEYS)]
        stack.keys[f"crowd {number}"] = self.keys[0]
        self.payees = [checksum_case(f"{number:030x}{n:010x}") for n in (1, 2)]
        """Nobody else pays them: what they have is what this merchant paid. The chains outlast a test, as the tables do."""
        super().__init__(stack, f"crowd {number}", network)

    def new_key(self, rate_limit: int | None = None) -> str:
        """Another key of the merchant, which may ask `rate_limit` times a minute."""
        now = services().clock.now_ms()
        key, plain = issue_key(
            merchant=self.merchant, realm="test", level="client", name="crowd", permissions=["full"], now_ms=now,
            rate_limit=rate_limit,
        )  # fmt: skip
        services().store.commit([Save(key), Enforce(key)])
        return plain

    def turn(self, *more: str, failures: Any = "raise") -> Drained:
        """What `drain` would find to have changed it looks for in moto's tables: so many rounds are enough here."""
        for _ in range(ROUNDS):
            done = self.stack.drain(
                only=(f"poll_{self.network}", "relay", "payout", *more), failures=failures, hurry=True, rounds=1
            )
        return done

    def mine(self, count: int | None = None) -> None:
        """As many as a payment waits for on its network, unless told otherwise."""
        super().mine(count or self.realm_network().confirmations)

    def pay_out(self, withdrawal: str) -> None:
        """What one message to the payout function does, as its Lambda is called."""
        self.message("payout", tenant=self.record(withdrawal).tenant, id=withdrawal)

    def message(self, function: str, **body: str) -> None:
        """What one message to a function does, as its Lambda is called."""
        (consumer,) = (c for c in queues.consumers(self.stack.app) if c.name == function)
        record = {
            "messageId": "m",
            "receiptHandle": "r",
            "body": json.dumps(body),
            "attributes": {},
            "eventSourceARN": "arn:aws:sqs:x:1:y",
        }
        consumer.handler({"Records": [record]}, context(function, 60))

    def poll(self) -> None:
        (schedule,) = (s for s in queues.schedules(self.stack.app) if s.name == f"poll_{self.network}")
        schedule.fire()


def at_once(acts: Sequence[Callable[[], T]], threads: int = 32) -> list[T | BaseException]:
    """What each of them answered or raised, in order."""

    def taken(act: Callable[[], T]) -> T | BaseException:
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - what it was is asserted on
            return error

    with ThreadPoolExecutor(min(threads, len(acts))) as pool:
        return list(pool.map(taken, acts))


def _copy_tables(url: str) -> None:
    """Make the tables that the template made at moto."""
    here = boto3.client("dynamodb")
    there = boto3.client("dynamodb", endpoint_url=url)
    for name in here.list_tables()["TableNames"]:
        made = here.describe_table(TableName=name)["Table"]
        indexes = [{k: i[k] for k in ("IndexName", "KeySchema", "Projection")} for i in made.get("GlobalSecondaryIndexes", [])]
        there.create_table(
            TableName=name,
            AttributeDefinitions=made["AttributeDefinitions"],
            KeySchema=made["KeySchema"],
            BillingMode="PAY_PER_REQUEST",
            **({"GlobalSecondaryIndexes": indexes} if indexes else {}),  # type: ignore[arg-type]
        )


@pytest.fixture(scope="session")
def crowded(running_aws: LocalAws) -> Iterator[tuple[Stack, Snapshot, str]]:
    with DynamoDbLocal() as dynamodb:
        with running_aws.active():
            running_aws.reset_data()
            _copy_tables(dynamodb.url)
            os.environ[ENDPOINT] = dynamodb.url
            try:
                stack = first_stack(running_aws)
                yielded = stack, running_aws.snapshot(), dynamodb.url
            finally:
                del os.environ[ENDPOINT]
                wiring.forget()
        yield yielded


def _tell_of_failed_conditions(patch: pytest.MonkeyPatch) -> None:
    """Let a single write whose condition fails tell the item, where that is asked for, as DynamoDB does since June 2023.

    DynamoDB Local of 2020 tells it of transactions alone. By the item a key at its limit is told from one that does not exist, so
    without it each refusal of a valid key would read 401.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html#DDB-UpdateItem-request-ReturnValuesOnConditionCheckFailure
    """
    real = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Any) -> Any:
        try:
            return real(client, operation, parameters)
        except ClientError as error:
            failed = error.response["Error"]["Code"] == "ConditionalCheckFailedException"
            if failed and parameters.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD":
                place = parameters.get("Key") or {name: parameters["Item"][name] for name in ("pk", "sk")}
                found = real(client, "GetItem", {"TableName": parameters["TableName"], "Key": place, "ConsistentRead": True})
                if "Item" in found:
                    error.response["Item"] = found["Item"]  # type: ignore[typeddict-unknown-key]
            raise

    patch.setattr(botocore.client.BaseClient, "_make_api_call", call)


@pytest.fixture
def on_dynamodb(crowded: tuple[Stack, Snapshot, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    stack, fresh, url = crowded
    # Within DynamoDB Local's own bound: events go by the outbox, and the expiry is left to the clock.
    monkeypatch.setattr(unheard, "MOST_DIRECT", FEW_ITEMS)
    monkeypatch.setattr(crediting, "ended_early", lambda before, after: (after, []))
    _tell_of_failed_conditions(monkeypatch)
    with stack.aws.active():
        os.environ[ENDPOINT] = url
        try:
            stack.restore(fresh)  # keys and queues: what is in the tables stays
            yield stack
            assert audit(services().store) == []
        finally:
            del os.environ[ENDPOINT]
            wiring.forget()
