"""Events of the merchant, delivered to a webhook or not."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, Shortcut, choice, text, time, whole
from chalicelib.api.lists.common import by_id
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.ids import first_id
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.events import EVENT_NAMES
from chalicelib.usecases.webhooks.events import event_view, told_event


def _of_object(sent: str, _: Catalogue) -> Sequence[str]:
    """The index knows objects in lower case, which all their names are in."""
    return (sent,) if sent == sent.lower() else ()


EVENTS = Listing(
    "events",
    (
        time("timestamp", lambda r, _: r.at, "When it happened.").known_as("createdAt", "created_at").indexed("time"),
        choice("event", lambda r, _: r.name, (*EVENT_NAMES, "webhook.test"), "The event's name.").taking_several(),
        text(
            "objectId",
            lambda r, _: r.object_id,
            "What it is about: the id of an invoice, a withdrawal or a transaction; of a balance network and coin.",
            sortable=False,
            examples=("inv_01jc9w3zj8q2m4k6n8r0t2v4x6", "ethereum:usdt"),
        ).indexed("object", _of_object),
        whole("sequence", lambda r, _: r.sequence, "Its place among the events of that object."),
        text("id", lambda r, _: r.id, "The event's id.", sortable=False),
    ),
    shortcuts=(
        Shortcut("from", "timestamp", "gte", "From this moment, or the beginning of this day (UTC), on."),
        Shortcut("to", "timestamp", "lte", "Until this moment, or the end of this day (UTC)."),
    ),
    kind=EventRecord,
    family="evt",
    indexes=frozenset({"object"}),
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
    """Newest first; `order=asc` gives the order in which things happened. `objectId` is looked up: what happened to one invoice
    costs the same however many events there are. `event` takes one name or several (repeated, with commas, or `event[in]`); it
    and `sequence` look through at most 10,000 events in one request, and a cursor goes on. An `objectId` or `id` that is not the
    merchant's finds nothing.
    """
    found, pagination = EVENTS.page(ctx, query)
    return Answer([event_view(event) for event in found], pagination)


@endpoint("GET", "/events/{id}", family="envelope", permission="events:read", answer="event.Event", summary="One event")
def get_event(ctx: Ctx) -> Answer:
    """As it was told, for 30 days: `data` is the public record as it was at that moment, not as it is now. An id that never was, or
    another merchant's, is NOT_FOUND."""
    return Answer(event_view(told_event(ctx.services.store, ctx.tenant, ctx.param("id"))))
