"""What the merchant was told, whether a webhook heard it or not."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, text, time, whole
from chalicelib.api.lists.common import by_id
from chalicelib.api.routes import endpoint
from chalicelib.domain.events import EVENT_NAMES
from chalicelib.domain.ids import first_id
from chalicelib.domain.webhooks import EventRecord
from chalicelib.usecases.webhook_views import event_view

EVENTS = Listing(
    "events",
    (
        time("timestamp", lambda r, _: r.at, "When it happened.").known_as("createdAt", "created_at").indexed("time"),
        choice("event", lambda r, _: r.name, (*EVENT_NAMES, "webhook.test"), "The event's name."),
        text("objectId", lambda r, _: r.object_id, "What it is about: an invoice, a withdrawal, a transaction.", sortable=False),
        whole("sequence", lambda r, _: r.sequence, "Its place among the events of that object."),
        text("id", lambda r, _: r.id, "The event's id.", sortable=False),
    ),
    kind=EventRecord,
    position=lambda ms: first_id("evt", ms),
    keyed={"id": by_id(EventRecord)},
)


@endpoint(
    "GET",
    "/events",
    family="envelope",
    permission="events:read",
    query=EVENTS,
    answer="list[event.Event]",
    summary="Events of the last 30 days, newest first",
)
def list_events(ctx: Ctx, query: ListQuery) -> Answer:
    """`objectId` and `event` look through at most 10,000 events in one request; a cursor goes on."""
    found, pagination = EVENTS.page(ctx, query)
    return Answer([event_view(event) for event in found], pagination)
