"""Webhook endpoints and deliveries."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chalicelib.api.records.base import CamelRecord, Time


class Webhook(CamelRecord):
    """An endpoint, without its secret."""

    id: str = Field(description="Names the endpoint.", examples=["wh_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    url: str = Field(description="Where events are sent.", examples=["https://shop.example/hook"])
    events: list[str] = Field(description="What it is told of; `*` is all.", examples=[["invoice.completed"]])
    status: Literal["active", "paused", "disabled"] = Field(
        description="What a paused one is to be told is kept and sent later; for a disabled one nothing is kept.",
        examples=["active"],
    )
    enabled: bool = Field(description="Whether `status` is `active`.")
    disabled_reason: str | None = Field(default=None, description="Why it was disabled.", examples=["it answered 410 Gone"])
    disabled_at: Time | None = Field(default=None, description="When it was disabled.")
    failing_since: Time | None = Field(
        default=None, description="Nothing that it was sent since then has succeeded. Absent while it is well."
    )
    failures: int | None = Field(
        default=None,
        description="Attempts that failed since the last one that succeeded. Absent while there is none.",
        examples=[3],
    )
    rests_until: Time | None = Field(
        default=None,
        description="Nothing is sent to it before: it answered 429 or 503 with `Retry-After`. Absent while it does not rest.",
    )
    previous_secret_until: Time | None = Field(default=None, description="Until when the secret of before signs as well.")
    created_at: Time


class NewWebhook(Webhook):
    """An endpoint with its secret, shown this once."""

    secret: str = Field(description="Signs what is sent.", examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])


class Attempt(CamelRecord):
    """One try to deliver."""

    at: Time = Field(description="When it was made.")
    response_status: int | None = Field(default=None, description="Absent where no answer came.", examples=[503])
    response_body: str | None = Field(
        default=None, description="Its first 1024 bytes, read as UTF-8; U+FFFD stands for what is none.", examples=["busy"]
    )
    duration_ms: int = Field(description="How long it took, in milliseconds.", examples=[120])
    error: str | None = Field(default=None, description="Why no answer came.", examples=["no connection in time"])
    next_attempt_at: Time | None = Field(default=None, description="When the next one was due after it. Absent after the last one.")


class DeliveryRequest(CamelRecord):
    """What is sent, without the signatures: each attempt has its own, of the time at which it was made."""

    url: str | None = Field(
        description="Where it goes now. Null where the endpoint was deleted.", examples=["https://shop.example/hook"]
    )
    headers: dict[str, str] = Field(
        description="The headers that are the same in every attempt.", examples=[{"webhook-id": "evt_01jd2w3x4y5z6a7b8c9d0e1f2g"}]
    )
    body: str | None = Field(
        description="The text whose UTF-8 bytes are sent and signed. Null where the event is forgotten, and for a key without "
        "`events:read`.",
        examples=['{"id":"evt_01jd2w3x4y5z6a7b8c9d0e1f2g","event":"invoice.completed"}'],
    )


class Delivery(CamelRecord):
    """One event for one endpoint."""

    id: str = Field(description="Names the delivery.", examples=["dlv_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    webhook_id: str = Field(description="The endpoint.", examples=["wh_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    event_id: str = Field(description="The event.", examples=["evt_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    event: str = Field(description="The event's name.", examples=["invoice.completed"])
    status: Literal["pending", "delivered", "dead", "cancelled"] = Field(
        description="`dead`: every retry failed. `cancelled`: the endpoint was deleted or disabled meanwhile, or answered 410.",
        examples=["delivered"],
    )
    reason: str | None = Field(default=None, description="Why it is dead or cancelled.", examples=["9 attempts failed"])
    attempts: list[Attempt] = Field(description="Oldest first.")
    last_response_status: int | None = Field(default=None, description="Of the last attempt, where an answer came.", examples=[200])
    next_attempt_at: Time | None = Field(
        default=None,
        description="While it is pending, and waits for nothing else. Not before the end of its endpoint's rest (`restsUntil`).",
    )
    held: bool | None = Field(default=None, description="True while it waits for its paused endpoint to go on.")
    waits_for_earlier: bool | None = Field(
        default=None, description="True while an earlier event of its object is not answered yet."
    )
    redelivered_as: str | None = Field(
        default=None,
        description="The latest delivery of the same event that was asked for after this one had ended.",
        examples=["dlv_0fepzs2jg9hk5m3n1r6tvwxy8z"],
    )
    redelivery_of: str | None = Field(
        default=None,
        description="The delivery of the same event that was the latest before this one was asked for.",
        examples=["dlv_01jd2w3x4y5z6a7b8c9d0e1f2g"],
    )
    redelivery_id: str | None = Field(
        default=None,
        description="The job that made it, where the events of a time were sent again.",
        examples=["rdl_01jd2w3x4y5z6a7b8c9d0e1f2g"],
    )
    created_at: Time
    finished_at: Time | None = Field(default=None, description="When it stopped being pending.")
    request: DeliveryRequest | None = Field(default=None, description="What is sent. Only of one delivery, with `request=true`.")


class Redelivery(CamelRecord):
    """A job that sends an endpoint the events of a time again."""

    id: str = Field(description="Names the job.", examples=["rdl_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    webhook_id: str = Field(description="The endpoint.", examples=["wh_01jd2w3x4y5z6a7b8c9d0e1f2g"])
    from_: Time = Field(alias="from", description="Events of this time and later.")
    to: Time = Field(description="Events before this time.")
    which: Literal["missed", "all"] = Field(description="Whether what was delivered is sent again, too.", examples=["missed"])
    events: list[str] = Field(description="Names of events; `*` is all.", examples=[["invoice.completed"]])
    status: Literal["running", "done", "cancelled"] = Field(description="How far it is.", examples=["running"])
    reason: str | None = Field(default=None, description="Why it was cancelled.", examples=["the endpoint was deleted"])
    looked: int = Field(description="Events of that time that were looked at, of all names.", examples=[250])
    made: int = Field(description="Deliveries that were made.", examples=[12])
    skipped: int = Field(description="Events for the endpoint that needed none: delivered already, or waiting.", examples=[88])
    created_at: Time
    finished_at: Time | None = Field(default=None, description="When it was done or cancelled.")


class TestEvent(CamelRecord):
    """What the event `webhook.test` is about."""

    webhook_id: str = Field(description="The endpoint that is tested.", examples=["wh_01jd2w3x4y5z6a7b8c9d0e1f2g"])
