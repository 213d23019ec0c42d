"""A batch with a bad message, on the real queues: the good ones are done once and gone, and the bad one comes back alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import boto3
import pytest

from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Emit
from chalicelib.wiring import services
from infra.local.queues import Consumer, consumers
from tests.support.receiver import Receiver
from tests.support.stack import Stack
from tests.support.webhooks import a_row, an_event, lose_messages

TELLING = ("relay", "deliver", "deliver_slow")
ROWS = [f"out_{n}" for n in range(10)]
BAD = ROWS[3]


class Ten:
    """Ten outbox rows of a merchant with an endpoint, and a message for each. One can not be read until `mend`."""

    def __init__(self, stack: Stack, receiver: Receiver) -> None:
        self.stack, self.receiver = stack, receiver
        made = stack.call("POST", "/v1/webhooks", stack.keys["client_test"], json={"url": receiver.url(), "events": ["*"]})
        assert made.status == 201, made.body
        (hook,) = services().store.every(WebhookEndpoint)
        now = services().clock.now_ms()
        for n, row in enumerate(ROWS):
            services().store.commit([Emit(a_row(an_event(f"evt_{n}", tenant=hook.tenant, at=now), id=row, at=now))])
        self._dynamo, self._table = boto3.client("dynamodb"), services().settings.table("work")
        items = self._dynamo.scan(TableName=self._table)["Items"]
        (self._row,) = [item for item in items if item.get("id") == {"S": BAD} and "packed" in item]
        self._dynamo.put_item(TableName=self._table, Item={**self._row, "packed": {"B": b"nonsense"}})
        lose_messages(services(), "relay")
        self.send(*(json.dumps({"id": row}) for row in ROWS))

    def mend(self) -> None:
        self._dynamo.put_item(TableName=self._table, Item=self._row)

    @property
    def relay(self) -> Consumer:
        return next(each for each in consumers(self.stack.app) if each.name == "relay")

    def send(self, *bodies: str) -> None:
        sqs = boto3.client("sqs")
        url = sqs.get_queue_url(QueueName=services().settings.queue("relay"))["QueueUrl"]
        sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)])

    def left(self) -> list[str]:
        return [json.loads(str(message.body))["id"] for message in self.relay.queue()._messages]

    def told(self) -> Counter[str]:
        """How often the receiver got each event."""
        return Counter(request.headers["webhook-id"] for request in self.receiver.received)


@pytest.fixture
def ten(stack: Stack) -> Iterator[Ten]:
    with Receiver() as receiver:
        yield Ten(stack, receiver)


GOOD = Counter(f"evt_{n}" for n in range(10) if n != 3)
ALL = Counter(f"evt_{n}" for n in range(10))


def test_one_bad_message_brings_no_good_one_back(ten: Ten) -> None:
    done = ten.stack.drain(only=TELLING, failures="count", rounds=1, batch=10)
    assert [name for name, _ in done.failures] == ["relay"]
    assert "reports 1 of 10 messages" in str(done.failures[0][1])
    assert (done.calls["relay"], ten.left(), ten.told()) == (1, [BAD], GOOD)

    ten.mend()
    assert ten.stack.drain(only=TELLING, batch=10).settled
    assert (ten.left(), ten.told()) == ([], ALL)
    assert list(services().store.every(OutboxRow)) == []


def test_a_bad_message_alone_ends_in_the_dead_letters(ten: Ten) -> None:
    done = ten.stack.drain(only=TELLING, failures="count", batch=10)
    assert done.settled and ten.left() == []
    dead = [json.loads(str(message.body)) for message in ten.relay.queue().dead_letter_queue._messages]  # type: ignore[union-attr]
    assert dead == [{"id": BAD}]
    assert ten.told() == GOOD
    assert [row.id for row in _readable(ten)] == [BAD], "its work stays open"


def _readable(ten: Ten) -> list[OutboxRow]:
    ten.mend()
    return list(services().store.every(OutboxRow))


def test_a_batch_that_comes_twice_is_done_once(ten: Ten) -> None:
    messages = ten.relay.receive()
    assert len(messages) == 10
    (bad,) = [message.id for message in messages if BAD in str(message.body)]
    assert [ten.relay.call(messages) for _ in range(2)] == [{bad}, {bad}]
    assert ten.stack.drain(only=("deliver", "deliver_slow"), batch=10).settled
    assert ten.told() == GOOD
    assert len(list(services().store.every(EventRecord))) == 9


def test_a_batch_of_nothing_but_bad_ones_raises(ten: Ten) -> None:
    lose_messages(services(), "relay")
    ten.send("nonsense", "[]", '{"id": null}')
    messages = ten.relay.receive()
    with pytest.raises(Failures, match="all 3 messages failed"):
        ten.relay.call(messages)


def test_before_the_operator_has_set_the_mapping_housekeeping_finds_what_failed(ten: Ten) -> None:
    """Lambda ignores the answer then, and deletes the bad message with the good ones. Lost messages of deliveries and scans:
    test_webhook_delivery.py, test_backlog.py."""
    messages = ten.relay.receive()
    assert len(ten.relay.call(messages)) == 1
    ten.relay.delete(messages)
    ten.mend()
    assert ten.stack.drain(only=(*TELLING, "housekeeping")).settled
    assert ten.told() == GOOD, "its message could still be on its way"
    services().clock.shift_ms += 16_000
    assert ten.stack.drain(only=(*TELLING, "housekeeping")).settled
    assert ten.told() == ALL
