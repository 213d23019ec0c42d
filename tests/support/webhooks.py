"""Tenants, endpoints and events for tests of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.domain.ids import TenantId
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint, event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.work import Command, OutboxRow
from chalicelib.wiring import Services

NOW = 1_767_323_045_006
"""2026-01-02T03:04:05.006Z"""
SHOP = TenantId("mch_shop:live")
OTHER = TenantId("mch_other:live")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def an_endpoint(
    id: str, *, tenant: TenantId = SHOP, url: str = "https://shop.example/hook", events: tuple[str, ...] = ("*",), at: int = NOW
) -> WebhookEndpoint:
    return WebhookEndpoint(tenant, id, url, events, SECRET, at)


def a_listener(tenant: TenantId = SHOP) -> Tally:
    """The count that says that a merchant has an endpoint: its events go by the outbox."""
    return Tally(tenant, "webhooks", 1)


def an_event(
    id: str = "evt_1",
    name: str = "invoice.completed",
    *,
    tenant: TenantId = SHOP,
    at: int = NOW,
    data: Mapping[str, Any] | None = None,
) -> Event:
    return Event(id, tenant, name, "inv_1", 1, at, data or {"id": "inv_1", "amount": "0.5"})


def an_event_record(id: str = "evt_1", name: str = "invoice.completed") -> EventRecord:
    return event_record(an_event(id, name), "2026-01-02T03:04:05.006Z", NOW)


def a_row(*events: Event, id: str = "out_1", at: int = NOW, commands: tuple[Command, ...] = ()) -> OutboxRow:
    return OutboxRow(id, at, events, commands)


def lose_messages(wired: Services, queue: str) -> None:
    """Take every message out of a queue, unread. Not by PurgeQueue: a queue takes one purge a minute."""
    sqs = wired.wiring.parts.client("sqs")
    url = sqs.get_queue_url(QueueName=wired.settings.queue(queue))["QueueUrl"]
    while taken := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        for message in taken:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
