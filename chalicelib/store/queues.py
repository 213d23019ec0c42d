"""`usecases.ports.queues.Queues` on SQS. Messages are wake-up calls only: all open work is in the store."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.domain.ids import NetworkId, network_parts, new_id
from chalicelib.domain.scanning.ticks import VERSION
from chalicelib.domain.work import Command
from chalicelib.settings import DEAD_DELIVERIES, Settings
from chalicelib.usecases.base import message_chains
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import COMPARISON_VERSION

log = logging.getLogger(__name__)

_AT_ONCE = 10
"""Messages of one SendMessageBatch."""


class SqsQueues:
    def __init__(self, settings: Settings, client: Any, clock: Clock) -> None:
        self._settings, self._client, self._clock = settings, client, clock
        self._urls: dict[str, str] = {}

    def kick(self, outbox_id: str, group: str | None = None) -> None:
        """Ask for an outbox row to be told now. Never raises: the row is committed, and the sweep finds it.

        `group` is the row's merchant, so that other merchants' rows do not wait for it: the queue is a fair one, as in `wake`.
        """
        try:
            if group is None:
                self._send("relay", {"id": outbox_id})
            else:
                self._send("relay", {"id": outbox_id, "tenant": group}, MessageGroupId=group)
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

    def tick(self, network: NetworkId, moments: Sequence[int], now: int) -> None:
        """Ask for ticks at these moments. Raises Unavailable, where some of them may be sent.

        A message is delayed by whole seconds, 900 at most, and ten are sent in one request:
        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
        """
        realm, slug = network_parts(network)
        entries = [
            {
                "Id": str(number),
                "MessageBody": json.dumps({"version": VERSION, "realm": realm, "network": slug, "at": at}),
                "DelaySeconds": min(900, max(0, round((at - now) / 1000))),
            }
            for number, at in enumerate(moments)
        ]
        try:
            url = self._url("ticks")
            for start in range(0, len(entries), _AT_ONCE):
                answer = self._client.send_message_batch(QueueUrl=url, Entries=entries[start : start + _AT_ONCE])
                if failed := answer.get("Failed"):
                    log.warning("%s: %d ticks were not taken", network, len(failed))
        except (BotoCoreError, ClientError) as error:
            raise Unavailable("the queue ticks did not answer") from error

    def compare(self, network: NetworkId) -> None:
        """Ask for the comparison of a network to go on. Raises Unavailable."""
        realm, slug = network_parts(network)
        self._send("comparisons", {"version": COMPARISON_VERSION, "realm": realm, "network": slug})

    def _url(self, name: str) -> str:
        if name not in self._urls:
            self._urls[name] = self._client.get_queue_url(QueueName=self._settings.queue(name))["QueueUrl"]
        return self._urls[name]

    def record(self, share: dict[str, str]) -> None:
        """Ask for a share of a crowded block's payments. Raises Unavailable."""
        self._send("record", share)

    def _send(self, name: str, body: dict[str, Any], **extra: Any) -> None:
        try:
            url = self._url(name)
            if ahead := message_chains.before():
                extra["MessageAttributes"] = {message_chains.AHEAD: {"DataType": "Number", "StringValue": str(ahead)}}
            self._client.send_message(QueueUrl=url, MessageBody=json.dumps(body), **extra)
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(f"the queue {name} did not answer") from error
