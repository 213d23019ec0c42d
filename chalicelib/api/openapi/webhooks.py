"""Webhook requests to merchants' endpoints, one entry for each event."""

from __future__ import annotations

import copy

from pydantic import BaseModel

from chalicelib.api.openapi.schemas import Schema, ref
from chalicelib.api.records.balances import Balance
from chalicelib.api.records.base import HASH
from chalicelib.api.records.invoices import Invoice
from chalicelib.api.records.refunds import PayoutLink, Refund
from chalicelib.api.records.transactions import Transaction
from chalicelib.api.records.webhooks import TestEvent, Webhook
from chalicelib.api.records.withdrawals import Withdrawal
from chalicelib.domain.webhooks.endpoints import TEST_EVENT
from chalicelib.domain.webhooks.events import EVENT_NAMES

_RECORDS: dict[str, type[BaseModel]] = {
    "transaction": Transaction,
    "withdrawal": Withdrawal,
    "balance": Balance,
    "invoice": Invoice,
    "refund": Refund,
    "payout_link": PayoutLink,
    "webhook": Webhook,
    TEST_EVENT: TestEvent,
}
"""`data` is the public record of the object that the event is about, by the event's name or the first part of it."""
_CHANGES = frozenset(
    {
        "transaction.detected", "transaction.confirmed", "transaction.orphaned",
        "withdrawal.status_changed", "withdrawal.completed",
        "invoice.partial", "invoice.confirming", "invoice.completed", "invoice.expired", "invoice.reverted",
        "invoice.cancelled",
        "webhook.disabled",
    }
)  # fmt: skip
"""Events that tell of another status."""
_SOMETIMES = frozenset({("transaction.detected", "previous_status")})
"""What is there only now and then: a payment that is seen for the first time had no status before."""
_ID: Schema = {"type": "string", "examples": ["evt_01jd2w3x4y5z6a7b8c9d0e1f2g"]}
_TX_ID: Schema = {"type": "string", "description": "The transaction's hash on the chain: the same as `hash`.", "examples": [HASH]}
_WORDS = {
    "transaction.detected": "A payment was seen in a block, on bitcoin and litecoin in the mempool; or again, after it fell out",
    "transaction.confirmed": "A payment has its confirmations; credited unless `flags` say `held`, `below_minimum` or `set_aside`",
    "transaction.orphaned": "A payment fell out of the chain, or out of the mempool",
    "withdrawal.created": "A withdrawal was made",
    "withdrawal.status_changed": "A withdrawal has another status: each change is told",
    "withdrawal.completed": "A withdrawal is confirmed on the chain",
    "balance.updated": "What is available of a coin has changed; it may be negative after a reorganisation",
    "invoice.created": "An invoice was made",
    "invoice.partial": "Something was paid, and not enough",
    "invoice.confirming": "Enough was seen; confirmations are missing",
    "invoice.completed": "Enough is confirmed, or is in a block of an invoice under autoConfirmThreshold",
    "invoice.expired": "Time is over and not enough was paid",
    "invoice.late_payment": "A payment came after the invoice had expired or was cancelled; it is credited all the same",
    "invoice.reverted": "A payment was taken back, and the invoice has the status that the remaining ones give",
    "invoice.cancelled": "The merchant cancelled it (`DELETE /v1/invoices/{id}`): no payment completes it any more",
    "refund.created": "A refund was made, and its amount is frozen",
    "refund.claimed": "An address was named on the page of a refund; its withdrawal is ordered",
    "refund.completed": "A refund is paid, and confirmed on the chain",
    "refund.failed": "A refund could not be paid; the money is available again",
    "refund.expired": "Nobody used the link of a refund; the money is available again",
    "refund.cancelled": "A refund was cancelled; the money is available again",
    "payout_link.created": "A payout link was made, and its amount is frozen",
    "payout_link.claimed": "An address was named on the page of a payout link; its withdrawal is ordered",
    "payout_link.completed": "A payout link is paid, and confirmed on the chain",
    "payout_link.failed": "A payout link could not be paid; the money is available again",
    "payout_link.expired": "Nobody used a payout link; the money is available again",
    "payout_link.cancelled": "A payout link was cancelled; the money is available again",
    "webhook.failing": "Five attempts in a row failed at an endpoint; its owner's others are told. `url` is without its query",
    "webhook.disabled": "The service turned an endpoint off; its owner's others are told. `url` is without its query",
    TEST_EVENT: "A test that was asked for (`POST /v1/webhooks/{id}/test`); its endpoint alone is told",
}
SIGNATURES: list[Schema] = [
    {
        "name": "x-gateway-signature",
        "in": "header",
        "required": True,
        "description": "`sha256=` and the HMAC-SHA256, in hex, of the body's exact bytes with the endpoint's secret.",
        "schema": {"type": "string", "pattern": "^sha256=[0-9a-f]{64}$"},
    },
    {"name": "webhook-id", "in": "header", "required": True, "description": "The event's id.", "schema": {"type": "string"}},
    {
        "name": "webhook-timestamp",
        "in": "header",
        "required": True,
        "description": "When this attempt was made, in seconds since 1970.",
        "schema": {"type": "string"},
    },
    {
        "name": "webhook-signature",
        "in": "header",
        "required": True,
        "description": "That of Standard Webhooks; two while a rotated secret is still valid.",
        "schema": {"type": "string"},
    },
    {
        "name": "x-gateway-signature-previous",
        "in": "header",
        "required": False,
        "description": "The same as `x-gateway-signature` with the secret of before, while a rotated secret is still valid.",
        "schema": {"type": "string", "pattern": "^sha256=[0-9a-f]{64}$"},
    },
    {
        "name": "x-gateway-event",
        "in": "header",
        "required": True,
        "description": "The event's name, as in the body. Not signed: to sort by before the body is read.",
        "schema": {"type": "string"},
    },
    {
        "name": "x-gateway-delivery",
        "in": "header",
        "required": True,
        "description": "The delivery's id (`GET /v1/webhooks/deliveries/{id}`). Not signed.",
        "schema": {"type": "string"},
    },
]


_RESTS = "Tried again like every other failure. With `Retry-After` nothing is sent to this endpoint before, for 15 minutes at most."
_RETRY_AFTER: Schema = {
    "Retry-After": {
        "description": "Seconds, or a date. This delivery waits for so long at least, 10 hours at most; after any failure.",
        "schema": {"type": "string"},
    }
}


def models() -> list[type[BaseModel]]:
    """The records that events carry."""
    return list(_RECORDS.values())


def webhooks(schemas: Schema) -> Schema:
    """The section `webhooks` of the document. Puts the payloads into `schemas`."""
    section: Schema = {}
    for event in (*EVENT_NAMES, TEST_EVENT):
        name = "".join(part.capitalize() for part in event.replace("_", ".").split(".")) + "Event"
        schemas[name] = _payload(event, schemas)
        section[event] = {
            "post": {
                "operationId": f"on{name.removesuffix('Event')}",
                "summary": _WORDS[event],
                "tags": ["Webhooks"],
                "parameters": SIGNATURES,
                "requestBody": {"required": True, "content": {"application/json": {"schema": ref(name)}}},
                "responses": {
                    "2XX": {"description": "Taken. Anything else, or nothing within ten seconds, is tried again."},
                    "410": {"description": "The endpoint is disabled."},
                    **{status: {"description": _RESTS, "headers": _RETRY_AFTER} for status in ("429", "503")},
                },
            }
        }
    return section


def _payload(event: str, schemas: Schema) -> Schema:
    name = _RECORDS[event if event in _RECORDS else event.split(".", maxsplit=1)[0]].__name__
    data, more = ref(name), _beyond_the_record(event, schemas)
    if more:
        data = copy.deepcopy(schemas[name])
        data["properties"] |= more
        data["required"] = [*data.get("required", ()), *(name for name in more if (event, name) not in _SOMETIMES)]
    return {
        "type": "object",
        "description": f"{_WORDS[event]}.",
        "properties": {
            "id": {**_ID, "description": "The same event has the same id, however often it is sent."},
            "event": {"const": event, "description": "The event's name."},
            "data": data,
            "timestamp": schemas["Meta"]["properties"]["timestamp"],
            "sequence": {
                "type": "integer",
                "minimum": 1,
                "examples": [1],
                "description": "Counts the events of one object, from 1.",
            },
        },
        "required": ["id", "event", "data", "timestamp", "sequence"],
        "additionalProperties": False,
    }


def _or_null(field: Schema) -> Schema:
    """The schema of a field that the record leaves out and this event has as null."""
    kind = {name: value for name, value in field.items() if name not in ("description", "examples")}
    said = f"{field['description']} Null before the broadcast."
    return {"anyOf": [kind, {"type": "null"}], "description": said, "examples": field["examples"]}


def _beyond_the_record(event: str, schemas: Schema) -> Schema:
    """What the `data` of some events has beside the public record (decisions §10)."""
    more: Schema = {"txId": _TX_ID} if event.startswith("transaction.") else {}
    if event in _CHANGES:
        status = schemas[_RECORDS[event.split(".", maxsplit=1)[0]].__name__]["properties"]["status"]
        more["previous_status"] = {**status, "description": "The status before this change."}
    if event == "withdrawal.status_changed":
        more["transaction_hash"] = _or_null(schemas["Withdrawal"]["properties"]["transaction_hash"])
    return more
