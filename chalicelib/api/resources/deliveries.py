"""Deliveries to the merchant's webhooks: read, tested, and one of them sent again."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, flag, text, time, whole
from chalicelib.api.lists.fields import Condition, Interval
from chalicelib.api.models import Query
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import place_in_time
from chalicelib.domain.webhooks.deliveries import LISTED_STATUSES, Delivery
from chalicelib.domain.webhooks.events import EVENT_NAMES
from chalicelib.domain.webhooks.redelivery import RedeliveryJob
from chalicelib.usecases.ports.store import Listed
from chalicelib.usecases.webhooks.views import as_it_goes, delivery_view, request_view

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
