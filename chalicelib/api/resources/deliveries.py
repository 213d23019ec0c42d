"""Deliveries to the merchant's webhooks, and redelivery: of one event, and of all in a time range."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, flag, text, time, whole
from chalicelib.api.lists.fields import Condition, Interval, instant
from chalicelib.api.models import Query, Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import first_id, place_in_time
from chalicelib.domain.webhooks.deliveries import LISTED_STATUSES, Delivery
from chalicelib.domain.webhooks.events import EVENT_NAMES, names_problem
from chalicelib.domain.webhooks.redelivery import RedeliveryJob
from chalicelib.usecases.ports.store import Listed
from chalicelib.usecases.webhooks.redelivery import Wanted
from chalicelib.usecases.webhooks.views import as_it_goes, delivery_view, redelivery_view, request_view

_AROUND_MS = 300_000
"""Around the time that a job ran, for clocks that differ, and for a page that is done when somebody cancels the job."""


def _with_id(ctx: Ctx, id: str) -> list[Delivery]:
    found = ctx.services.store.get(Delivery, tenant=ctx.tenant, id=id)
    return [] if found is None or found.endpoint_id != ctx.param("id") else [found]


def _of_event(ctx: Ctx, id: str) -> list[Delivery] | None:
    return ctx.services.delivery_reads.of_event(ctx.tenant, ctx.param("id"), id)


DELIVERIES = Listing(
    "deliveries",
    (
        time("createdAt", lambda r, _: r.created_at, "When the delivery was made.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The delivery's id.", sortable=False),
        choice(
            "status", lambda r, _: r.status, ("pending", "delivered", "dead", "cancelled"), "What became of it."
        ).indexed("status", lambda value, _: (value,) if value in LISTED_STATUSES else None),
        choice("event", lambda r, _: r.event_name, (*EVENT_NAMES, "webhook.test"), "The event's name."),
        text("eventId", lambda r, _: r.event_id, "The event's id.", sortable=False),
        whole("lastResponseStatus", lambda r, _: r.attempts[-1].status if r.attempts else None, "What the receiver answered last."),
        time(
            "nextAttemptAt",
            lambda r, _: r.due_at if r.status == "pending" and not r.parked else None,
            "When it is due again; that its endpoint rests (`restsUntil`) does not count here.",
        ),
        time("finishedAt", lambda r, _: r.finished_at, "When it was delivered or given up."),
        flag("held", lambda r, _: r.held, "Whether it waits for its paused endpoint to go on."),
        flag("waitsForEarlier", lambda r, _: r.behind is not None, "Whether it waits for an earlier event of its object."),
        text("redeliveryId", lambda r, _: r.job_id, "The job that made it.", sortable=False),
    ),
    family="dlv",
    by="endpoint",
    owner=lambda ctx: f"{ctx.tenant}#{ctx.param('id')}",
    indexes=frozenset({"status"}),
    position=lambda ms: place_in_time(ms, ""),
    place=lambda r: place_in_time(r.created_at, r.id),
    keyed={"id": _with_id, "eventId": _of_event},
    most=1_000,  # up to nine answers of a KiB are in each: 14 KB
)  # fmt: skip


def _while_it_ran(ctx: Ctx, query: ListQuery) -> list[Condition]:
    """When the deliveries of the job that `query` asks for were made; nothing where it asks for none, or that is not known."""
    asked = [c.value for c in query.conditions if c.field.name == "redeliveryId" and c.operator == "eq"]
    job = ctx.services.store.get(RedeliveryJob, tenant=ctx.tenant, id=asked[0]) if asked else None
    if job is None:
        return []
    made = DELIVERIES.condition("createdAt", None)
    since = replace(made, operator="gte", value=Interval(job.created_at - _AROUND_MS, job.created_at))
    if job.finished_at is None:
        return [since]
    return [since, replace(made, operator="lt", value=Interval(job.finished_at + _AROUND_MS, job.finished_at + _AROUND_MS))]


REDELIVERIES = Listing(
    "redeliveries",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was asked for.").known_as("created_at").indexed("time"),
        choice("status", lambda r, _: r.status, ("running", "done", "cancelled"), "How far it is."),
        text("id", lambda r, _: r.id, "The job's id.", sortable=False),
    ),
    family="rdl",
    by="endpoint",
    position=lambda ms: first_id("rdl", ms),
)


def _moment(value: Any) -> Any:
    """Milliseconds since 1970 of a time that was sent; of a day, its beginning."""
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "must be a string")
    try:
        return instant(value).low
    except ValueError as error:
        raise PydanticCustomError("constraint", "{text}", {"text": str(error)}) from None


def _moment_or_none(value: Any) -> Any:
    return None if value is None else _moment(value)


def _names(value: Any) -> Any:
    wrong = None if value is None else names_problem(value)
    if wrong is not None:
        raise PydanticCustomError("constraint", "{text}", {"text": wrong})
    return None if value is None else list(dict.fromkeys(value))


_TIME = {"type": "string", "format": "date-time"}


class Redeliver(Request):
    """Which events are sent again."""

    from_: Annotated[int, BeforeValidator(_moment), WithJsonSchema({**_TIME, "examples": ["2026-05-31T12:00:00Z"]})] = Field(
        alias="from",
        description="Events of this time and later: ISO 8601, UTC where no offset is given; a day is its beginning. "
        "Events are kept for 30 days: an earlier time counts as that.",
    )
    to: Annotated[
        int | None,
        BeforeValidator(_moment_or_none),
        WithJsonSchema({"type": ["string", "null"], "format": "date-time", "examples": ["2026-05-31T18:00:00Z"]}),
    ] = Field(default=None, description="Events before this time; now without it. A time in the future counts as now.")
    events: Annotated[
        list[str] | None,
        BeforeValidator(_names),
        WithJsonSchema({"type": ["array", "null"], "minItems": 1, "items": {"type": "string", "enum": ["*", *EVENT_NAMES]}}),
    ] = Field(default=None, description="These alone of what the webhook subscribes to; all of it without.")
    which: Literal["missed", "all"] = Field(
        default="missed", description="`missed`: what was never delivered and is not waiting. `all`: what was delivered, too."
    )


@endpoint(
    "POST", "/webhooks/{id}/test", family="envelope", permission="webhooks:write", rate_class="webhooks", status=201,
    creates=True, answer="webhooks.Delivery", summary="Send an endpoint a test event",
    shows={"event": "webhook.test", "status": "pending", "attempts": []},
)  # fmt: skip
def test_webhook(ctx: Ctx) -> Answer:
    """The event `webhook.test`, for this endpoint alone whatever it subscribed to, signed and retried as every other. A disabled
    endpoint is `VALIDATION_ERROR`, and so is a paused one: a test that waits tests nothing. While the endpoint rests
    (`restsUntil`), it is sent at the end of that."""
    return ctx.create(ctx.services.test_events.creating(ctx.tenant, ctx.param("id")), lambda sent: delivery_view(sent.shown))


@endpoint(
    "GET", "/webhooks/{id}/deliveries", family="envelope", permission="webhooks:read", rate_class="webhooks", query=DELIVERIES,
    answer="list[webhooks.Delivery]", summary="What an endpoint was sent, newest first",
)  # fmt: skip
def list_deliveries(ctx: Ctx, query: ListQuery) -> Answer:
    """Deliveries of the last 30 days. One that was made a moment ago may not be in the list yet. `createdAt`, `eventId`, `id`, and
    `status` where it is `dead` or `cancelled`, are looked up, and `redeliveryId` among what was made while that job ran. Other
    filters look through at most 1,000 deliveries in a request: the cursor goes on, also behind a page that is short or empty. To be
    sorted by anything but time, no more than 1,000 may be left."""
    hook, turn = ctx.services.webhooks.with_turn(ctx.tenant, ctx.param("id"))
    whole = Listed("dlv", "endpoint", ctx.tenant, hook.id)
    found, pagination = DELIVERIES.page(ctx, query, also=_while_it_ran(ctx, query), whole=whole)
    return Answer([delivery_view(as_it_goes(delivery, hook, turn)) for delivery in found], pagination)


class DeliveryQuery(Query):
    request: bool = Field(default=False, description="Show what is sent, too.", examples=[True])


@endpoint(
    "GET", "/webhooks/deliveries/{id}", family="envelope", permission="webhooks:read", rate_class="webhooks", query=DeliveryQuery,
    answer="webhooks.Delivery", summary="One delivery, with every attempt",
)  # fmt: skip
def get_delivery(ctx: Ctx, query: DeliveryQuery) -> Answer:
    """As it is now, for 30 days; also where the endpoint was deleted meanwhile. With `request=true` the answer has `request`: the
    bytes of every attempt are the same. Its `body` takes the permission `events:read`, too."""
    found = ctx.services.delivery_reads.shown(ctx.tenant, ctx.param("id"))
    record = delivery_view(found)
    if query.request:
        event, hook = ctx.services.delivery_reads.request_of(found)
        record["request"] = request_view(found, hook, event if "events:read" in ctx.key.permissions else None)
    return Answer(record)


@endpoint(
    "POST", "/webhooks/deliveries/{id}/redeliver", family="envelope", permission="webhooks:write", rate_class="webhooks",
    status=201, creates=True, answer="webhooks.Delivery", summary="Send an event once more",
    shows={"status": "pending", "attempts": []},
)  # fmt: skip
def redeliver(ctx: Ctx) -> Answer:
    """The same bytes under the same `webhook-id`, in a new delivery with all its retries. A delivery that still waits for a retry
    is sent now instead, or when its endpoint's rest is over (`restsUntil`), which is not cut short. 404 where the endpoint was
    deleted, `VALIDATION_ERROR` where it is disabled; where it is paused the new delivery is `held`.
    """
    return ctx.create(ctx.services.redelivery.redelivering(ctx.tenant, ctx.param("id")), lambda sent: delivery_view(sent.shown))


@endpoint(
    "POST", "/webhooks/{id}/redeliver", family="envelope", permission="webhooks:write", rate_class="webhooks", body=Redeliver,
    status=201, creates=True, answer="webhooks.Redelivery", summary="Send the events of a time again",
    shows={"status": "running", "looked": 0, "made": 0, "skipped": 0},
)  # fmt: skip
def redeliver_time(ctx: Ctx, body: Redeliver) -> Answer:
    """A job goes through the merchant's events from `from` up to, but without, `to`, and makes a delivery of each one that the
    endpoint subscribes to now, with all retries, under the same `webhook-id`. Events are kept for 30 days: the answer shows which
    time that leaves.

    `missed` (unless asked otherwise) is what this endpoint was never sent with success: no delivery was made, since it was disabled
    or not registered yet, or the latest one ended `dead` or `cancelled`. With `all`, what was delivered is sent again, too. What is
    still waiting is left to its own way by both. Test events are not sent again.

    One job runs per endpoint at a time, and 24 are begun in 24 hours: another one is `VALIDATION_ERROR`, and so is a disabled
    endpoint. For a paused one the deliveries are made and held. A job ends, `cancelled`, when its endpoint is deleted or disabled.
    """
    wanted = Wanted(body.from_, body.to, body.which, None if body.events is None else tuple(body.events))
    return ctx.create(ctx.services.redelivery.ordering(ctx.tenant, ctx.param("id"), wanted), redelivery_view)


@endpoint(
    "GET", "/webhooks/{id}/redeliveries", family="envelope", permission="webhooks:read", rate_class="webhooks", query=REDELIVERIES,
    answer="list[webhooks.Redelivery]", summary="Jobs that sent an endpoint events again, newest first",
)  # fmt: skip
def list_redeliveries(ctx: Ctx, query: ListQuery) -> Answer:
    """Of the last 30 days. One that was made a moment ago may not be in the list yet."""
    hook = ctx.services.webhooks.get(ctx.tenant, ctx.param("id"))
    found, pagination = REDELIVERIES.page(ctx, query, whole=Listed("rdl", "endpoint", ctx.tenant, hook.id))
    return Answer([redelivery_view(job) for job in found], pagination)


@endpoint(
    "GET", "/webhooks/redeliveries/{id}", family="envelope", permission="webhooks:read", rate_class="webhooks",
    answer="webhooks.Redelivery", summary="How far a job that sends events again is",
)  # fmt: skip
def get_redelivery(ctx: Ctx) -> Answer:
    """For 30 days. The counts grow by pages of 100 events."""
    return Answer(redelivery_view(ctx.services.redelivery.job(ctx.tenant, ctx.param("id"))))


@endpoint(
    "DELETE", "/webhooks/redeliveries/{id}", family="envelope", permission="webhooks:write", rate_class="webhooks",
    answer="webhooks.Redelivery", summary="Stop a job that sends events again",
)  # fmt: skip
def cancel_redelivery(ctx: Ctx) -> Answer:
    """Nothing more is made behind the page of 100 events that is being made; what was made is sent. A job that has ended stays as
    it is, and is the answer."""
    return Answer(redelivery_view(ctx.services.redelivery.cancel(ctx.tenant, ctx.param("id"))))
