"""What SQS is sent, word for word: botocore's stub checks every parameter against the service's model, and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.stub import Stubber

from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.work import Command
from chalicelib.settings import Settings
from chalicelib.store.queues import SqsQueues
from chalicelib.usecases.base.message_chains import MOST, BoundedQueues, brought_by
from chalicelib.usecases.ports.failures import Unavailable
from tests.support.memory_store import HandClock
from tests.support.webhooks import OTHER, SHOP, a_row, an_event

SETTINGS = Settings(stage="test")


class Wire:
    """`expects` says what must be sent next."""

    def __init__(self) -> None:
        keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
        self.client = boto3.client("sqs", region_name="eu-central-1", **keys)
        self.queues = SqsQueues(SETTINGS, self.client, HandClock())
        self.stub = Stubber(self.client)

    def expects(self, queue: str, body: dict[str, str], **rest: Any) -> None:
        name = SETTINGS.queue(queue)
        url = f"https://sqs.eu-central-1.amazonaws.com/123456789012/{name}"
        self.stub.add_response("get_queue_url", {"QueueUrl": url}, {"QueueName": name})
        self.stub.add_response("send_message", {"MessageId": "1"}, {"QueueUrl": url, "MessageBody": json.dumps(body), **rest})

    def as_expected(self) -> bool:
        """To be asked where nothing is raised: the stub's own errors are those of a client that got no answer."""
        self.stub.assert_no_pending_responses()
        return True


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    with made.stub:
        yield made


@pytest.mark.parametrize(("failing", "queue"), [(False, "deliveries"), (True, "deliveries-slow")])
def test_an_endpoint_is_woken_in_its_tenants_group_in_the_queue_of_its_health(wire: Wire, failing: bool, queue: str) -> None:
    wire.expects(queue, {"tenant": "mch_1:live", "endpoint": "wh_1"}, DelaySeconds=37, MessageGroupId="mch_1:live")
    wire.queues.wake("mch_1:live", "wh_1", 37, failing=failing)
    assert wire.as_expected()


def test_what_was_put_aside_is_asked_for_and_at_once(wire: Wire) -> None:
    body = {"tenant": "mch_2:test", "endpoint": "wh_2", "held": "yes"}
    wire.expects("deliveries", body, DelaySeconds=0, MessageGroupId="mch_2:test")
    wire.queues.wake("mch_2:test", "wh_2", held=True)
    assert wire.as_expected()


def test_jobs_of_redelivery_are_one_group_among_messages_without_one(wire: Wire) -> None:
    wire.expects("relay", {"tenant": "mch_1:live", "redelivery": "rd_1"}, MessageGroupId="redelivery")
    wire.queues.redeliver("mch_1:live", "rd_1")
    wire.stub.add_response(
        "send_message", {"MessageId": "1"}, {"QueueUrl": wire.queues._urls["relay"], "MessageBody": '{"id": "out_1"}'}
    )
    wire.queues.kick("out_1")
    assert wire.as_expected()


@pytest.mark.parametrize("tenants", [(SHOP,), (SHOP, SHOP), (SHOP, OTHER), ()], ids=["one", "one twice", "two", "nobody"])
def test_an_outbox_rows_message_is_in_the_group_of_its_merchant(wire: Wire, tenants: tuple[TenantId, ...]) -> None:
    row = a_row(*(an_event(f"evt_{n}", tenant=tenant) for n, tenant in enumerate(tenants)))
    """And names that merchant, so that the relay reads who listens with the row."""
    if set(tenants) == {SHOP}:
        wire.expects("relay", {"id": row.id, "tenant": SHOP}, MessageGroupId=SHOP)
    else:
        wire.expects("relay", {"id": row.id})
    wire.queues.kick(row.id, row.tenant)
    assert wire.as_expected()


def test_who_is_woken_in_vain_hears_of_it_and_what_the_sweep_brings_does_not(wire: Wire) -> None:
    for _ in range(3):
        wire.stub.add_client_error("get_queue_url", "ServiceUnavailable")
    with pytest.raises(Unavailable):
        wire.queues.wake("mch_1:live", "wh_1")
    wire.queues.redeliver("mch_1:live", "rd_1")
    wire.queues.kick("out_1")
    assert wire.as_expected()


def test_a_message_says_how_many_of_its_chain_came_before_it(wire: Wire) -> None:
    said = {"ahead": {"DataType": "Number", "StringValue": "3"}}
    wire.expects("scans", {"network": "test:ethereum", "range": "r"}, MessageAttributes=said)
    with brought_by(3):
        wire.queues.scan(NetworkId("test:ethereum"), "r")
    assert wire.as_expected()


def test_ticks_are_sent_in_batches_with_their_delays(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    url = "https://sqs.eu-central-1.amazonaws.com/123456789012/gateway-test-ticks"
    now = 1_790_000_000_000
    moments = [now + seconds * 1_000 for seconds in range(2, 26, 2)]
    entries = [
        {
            "Id": str(number),
            "MessageBody": json.dumps({"version": 1, "realm": "live", "network": "bsc", "at": at}),
            "DelaySeconds": 2 + 2 * number,
        }
        for number, at in enumerate(moments)
    ]
    wire.stub.add_response("get_queue_url", {"QueueUrl": url}, {"QueueName": "gateway-test-ticks"})
    for some, failed in ((entries[:10], []), (entries[10:], [{"Id": "10", "SenderFault": False, "Code": "InternalError"}])):
        wire.stub.add_response("send_message_batch", {"Successful": [], "Failed": failed}, {"QueueUrl": url, "Entries": some})
    wire.queues.tick(NetworkId("live:bsc"), moments, now)
    assert wire.as_expected()
    assert "1 ticks were not taken" in caplog.text
    wire.stub.add_client_error("send_message_batch", "ServiceUnavailable")
    with pytest.raises(Unavailable):
        wire.queues.tick(NetworkId("live:bsc"), moments, now)


@pytest.mark.parametrize(("before", "sent"), [(0, 6), (MOST - 2, 6), (MOST - 1, 4), (MOST, 0), (MOST + 1, 0)])
def test_a_chain_ends_and_leaves_room_for_what_the_relay_sends(before: int, sent: int) -> None:
    inner = mock.Mock(spec=SqsQueues)
    queues = BoundedQueues(inner)
    with brought_by(before):
        queues.wake("mch_1:live", "wh_1", 5, failing=True, held=True)
        queues.send(Command("payouts", "live:ethereum", {}))
        queues.scan(NetworkId("live:ethereum"), "r")
        queues.tick(NetworkId("live:ethereum"), [5_000], 0)
        queues.kick("out_1", "mch_1:live")
        queues.redeliver("mch_1:live", "rd_1")
        queues.bury("dlv_1", "mch_1:live")  # nobody reads that one
    assert len(inner.method_calls) == sent + 1
    assert not sent or inner.method_calls[0] == mock.call.wake("mch_1:live", "wh_1", 5, failing=True, held=True)
