"""The side of SQS and EventBridge that AWS plays by itself: what an app's schedules and consumers are, the events that they
get, and how a message is received and put away.

Reads moto's queues directly: on AWS these calls are made by Lambda, not by us, so they are no part of what a fault test
counts or breaks.
Event formats: AWS Lambda developer guide, "Using Lambda with Amazon SQS"; EventBridge user guide, "Scheduled events".
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from chalice.app import Chalice, ScheduledEventConfig, ScheduleExpression, SQSEventConfig
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sqs.models import Message, Queue, sqs_backends

from infra.local import recursion
from infra.local.aws import REGION
from infra.local.gateway import context
from infra.local.repairs.sqs import LOCK

SECONDS = 60.0
"""How long a handler is told that it may take."""
Handler = Callable[[dict[str, Any], Any], Any]


@dataclass(frozen=True, slots=True)
class Schedule:
    """`seconds` is its period on AWS."""

    name: str
    handler: Handler
    seconds: float

    def fire(self) -> None:
        """Call the handler as EventBridge would. Raises what it raises."""
        event = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": DEFAULT_ACCOUNT_ID,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "resources": [f"arn:aws:events:{REGION}:{DEFAULT_ACCOUNT_ID}:rule/{self.name}"],
            "detail": {},
        }
        self.handler(event, context(self.name, SECONDS))


@dataclass(frozen=True, slots=True)
class Consumer:
    name: str
    queue_name: str
    batch_size: int
    handler: Handler

    def receive(self, limit: int | None = None, *, newest_first: bool = False) -> list[Message]:
        """At most a batch of messages that are due, now invisible. Those received too often go to the dead-letter queue."""
        with LOCK:
            queue = self.queue()
            due = _due(queue)
            if newest_first:
                due.reverse()
            received: list[Message] = []
            for message in due:
                if len(received) == min(self.batch_size, limit or self.batch_size):
                    break
                if _spent(queue, message):
                    queue._messages.remove(message)
                    queue._pending_messages.discard(message)
                    queue.dead_letter_queue.add_message(message)  # type: ignore[union-attr]  # _spent looked
                    continue
                queue._pending_messages.add(message)
                message.mark_received(visibility_timeout=int(queue.visibility_timeout))  # type: ignore[attr-defined]
                received.append(message)
            return received

    def call(self, messages: Iterable[Message]) -> set[str]:
        """Give the messages to the handler, as Lambda does; ids of those that it reports as failed.

        Raises what it raises; RecursiveInvocation where Lambda would not call it (`recursion.py`); and ValueError where it reports
        what is no message of the batch. Of an id that is empty or missing Lambda says that it takes the whole batch for failed;
        here whatever it was not given is a fault of ours.
        """
        queue, messages = self.queue(), list(messages)
        event = {"Records": [_record(queue, message) for message in messages]}
        with recursion.invoked(messages):
            answer = self.handler(event, context(self.name, SECONDS))
        failures = (answer.get("batchItemFailures") or []) if isinstance(answer, dict) else []
        failed = {failure.get("itemIdentifier") for failure in failures}
        if unknown := failed - {message.id for message in messages}:
            raise ValueError(f"{self.name} reports {sorted(map(str, unknown))}, which it was not given")
        return failed

    def delete(self, messages: Iterable[Message]) -> None:
        with LOCK:
            for message in messages:
                self.queue().delete_message(str(message.receipt_handle))

    def release(self, messages: Iterable[Message]) -> None:
        """Make the messages visible now, as if their time of invisibility had passed."""
        with LOCK:
            for message in messages:
                message.visible_at = 0.0
                self.queue()._pending_messages.discard(message)

    def hurry(self) -> None:
        """Make delayed messages due, as if the delay had passed."""
        with LOCK:
            for message in self.queue()._messages:
                message.delayed_until = 0.0

    def waiting(self) -> int:
        """Messages that could be received now, groups aside."""
        with LOCK:
            return len(self.queue().messages)

    def queue(self) -> Queue:
        return sqs_backends[DEFAULT_ACCOUNT_ID][REGION].get_queue(self.queue_name)


@dataclass(frozen=True, slots=True)
class Sources:
    """What starts functions: the sources of an app, or the rules and mappings of a deployment."""

    schedules: Sequence[Schedule]
    consumers: Sequence[Consumer]


def schedules(app: Chalice) -> list[Schedule]:
    """The app's schedules, in the order of their definition."""
    return [
        Schedule(c.name, app.handler_map[c.name], period(c.schedule_expression))
        for c in app.event_sources
        if isinstance(c, ScheduledEventConfig)
    ]


def period(expression: ScheduleExpression | str) -> float:
    """Seconds of a rate, as EventBridge reads it. Raises ValueError for what is none."""
    text = expression if isinstance(expression, str) else expression.to_string()
    found = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", text)
    if found is None:
        raise ValueError(f"{text} is no rate")
    return int(found[1]) * {"minute": 60.0, "hour": 3_600.0, "day": 86_400.0}[found[2]]


def consumers(app: Chalice) -> list[Consumer]:
    """The app's consumers of queues, in the order of their definition."""
    return [
        Consumer(c.name, c.queue or str(c.queue_arn).rsplit(":", 1)[1], c.batch_size, app.handler_map[c.name])
        for c in app.event_sources
        if isinstance(c, SQSEventConfig)
    ]


def _due(queue: Queue) -> list[Message]:
    """Messages to give out, oldest first; of a FIFO queue the first of each group that nobody is at work on."""
    if not queue._messages:
        return []
    due = queue.messages
    if not queue.fifo_queue:
        return due
    visible = {id(message) for message in due}
    first: dict[str | None, Message] = {}
    for message in queue._messages:
        first.setdefault(message.group_id, message)
    return [message for message in first.values() if id(message) in visible]


def _spent(queue: Queue, message: Message) -> bool:
    policy = queue.redrive_policy if queue.dead_letter_queue is not None else None
    return bool(policy) and message.approximate_receive_count >= int(policy["maxReceiveCount"])  # type: ignore[index]


def _record(queue: Queue, message: Message) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": str(message.approximate_receive_count),
        "SentTimestamp": str(message.sent_timestamp),
        "SenderId": message.sender_id,
        "ApproximateFirstReceiveTimestamp": str(message.approximate_first_receive_timestamp or int(time.time() * 1000)),
    }
    for name, value in (
        ("MessageGroupId", message.group_id),
        ("MessageDeduplicationId", message.deduplication_id),
        ("SequenceNumber", message.sequence_number),
    ):
        if value is not None:
            attributes[name] = value
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": attributes,
        "messageAttributes": {
            name: {
                "stringValue": value["StringValue"],
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": value["DataType"],
            }
            for name, value in message.message_attributes.items()
        },
        "md5OfBody": message.body_md5,
        "eventSource": "aws:sqs",
        "eventSourceARN": queue.queue_arn,
        "awsRegion": REGION,
    }
