"""One event of the merchant."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import endpoint
from chalicelib.usecases.webhooks.views import event_view


@endpoint("GET", "/events/{id}", family="envelope", permission="events:read", answer="event.Event", summary="One event")
def get_event(ctx: Ctx) -> Answer:
    """As it was told, for 30 days: `data` is the public record as it was at that moment, not as it is now. An id that never was, or
    another merchant's, is NOT_FOUND."""
    return Answer(event_view(ctx.services.webhooks.event(ctx.tenant, ctx.param("id"))))
