"""Redeliveries: jobs that send an endpoint the events of a time range again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, text, time
from chalicelib.api.lists.fields import instant
from chalicelib.api.models import Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import first_id
from chalicelib.domain.webhooks.events import EVENT_NAMES, names_problem
from chalicelib.usecases.ports.store import Listed
from chalicelib.usecases.webhooks.redelivery import Wanted
from chalicelib.usecases.webhooks.views import redelivery_view

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

    One job runs per endpoint at a time, and 24 are started in 24 hours: another one is `VALIDATION_ERROR`, and so is a disabled
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
