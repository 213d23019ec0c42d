"""`usecases.ports.queues.Queues` on SQS. Messages are wake-up calls only: all open work is in the store."""

from __future__ import annotations

import json
import logging
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.domain.ids import NetworkId, new_id
from chalicelib.domain.work import Command
from chalicelib.settings import DEAD_DELIVERIES, Settings
from chalicelib.usecases.base import message_chains
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable

log = logging.getLogger(__name__)

AHEAD = "ahead"
"""The attribute of a message that says how many of its chain came before it (`usecases/base/message_chains.py`); the first has
none."""


class SqsQueues:
    def __init__(self, settings: Settings, client: Any, clock: Clock) -> None:
        self._settings, self._client, self._clock = settings, client, clock
        self._urls: dict[str, str] = {}

    def kick(self, outbox_id: str, group: str | None = None) -> None:
        """Ask for an outbox row to be told now. Never raises: the row is committed, and the sweep finds it.

        `group` is the row's merchant, so that other merchants' rows do not wait for it: the queue is a fair one, as in `wake`.
        """
        try:
            self._send("relay", {"id": outbox_id}, **({"MessageGroupId": group} if group else {}))
        except Unavailable:
            log.warning("no message for outbox row %s: the sweep tells it", outbox_id)

    def send(self, command: Command) -> None:
        """Raises Unavailable."""
        # Asking again must always reach the queue: a deduplication id of its own for every message, never one of the content.
        extra = {"MessageGroupId": command.group, "MessageDeduplicationId": new_id("msg", self._clock.now_ms())}
        self._send(f"{command.queue}.fifo", command.body, **extra)

    def wake(self, tenant: str, endpoint_id: str, delay_seconds: int = 0, *, failing: bool = False, held: bool = False) -> None:
        """Ask for the due deliveries of a webhook endpoint to be sent, after `delay_seconds` (at most 900). Raises Unavailable.

        The group makes the queue a fair one: a merchant with many messages in it delays no merchant with few.
        docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
        """
        body = {"tenant": tenant, "endpoint": endpoint_id, **({"held": "yes"} if held else {})}
        name = "deliveries-slow" if failing else "deliveries"
        self._send(name, body, DelaySeconds=delay_seconds, MessageGroupId=tenant)

    def redeliver(self, tenant: str, job_id: str) -> None:
        """Ask for a job of redelivery to go on. Never raises: the job is open work, and the sweep finds it.

        One group for all of them: they take long, and then the queue hands out the outbox's messages first, whose groups are their
        merchants; one without a group counts as an owner of its own.
        docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html
        """
        try:
            self._send("relay", {"tenant": tenant, "redelivery": job_id}, MessageGroupId="redelivery")
        except Unavailable:
            log.warning("no message for redelivery %s: the sweep brings it", job_id)

    def bury(self, delivery_id: str, tenant: str) -> None:
        """Send a given-up delivery to a queue of its own: no fault of a function, so no alarm. Raises Unavailable."""
        self._send(DEAD_DELIVERIES, {"id": delivery_id, "tenant": tenant})

    def scan(self, network: NetworkId, name: str) -> None:
        """Ask for a range of a backlog to be scanned. Raises Unavailable."""
        self._send("scans", {"network": network, "range": name})

    def _send(self, name: str, body: dict[str, str], **extra: Any) -> None:
        try:
            if name not in self._urls:
                self._urls[name] = self._client.get_queue_url(QueueName=self._settings.queue(name))["QueueUrl"]
            if ahead := message_chains.before():
                extra["MessageAttributes"] = {AHEAD: {"DataType": "Number", "StringValue": str(ahead)}}
            self._client.send_message(QueueUrl=self._urls[name], MessageBody=json.dumps(body), **extra)
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(f"the queue {name} did not answer") from error
