"""What the merchant was told, whether a webhook heard it or not."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.paging import ListQuery, listed
from chalicelib.api.routes import endpoint
from chalicelib.domain.webhooks import EventRecord
from chalicelib.usecases.ports import Page
from chalicelib.usecases.webhooks import event_view


@endpoint(
    "GET",
    "/events",
    family="envelope",
    permission="events:read",
    query=ListQuery,
    summary="Events of the last 30 days, newest first",
)
def list_events(ctx: Ctx, query: ListQuery) -> Answer:
    def fetch(limit: int, after: str | None, newest_first: bool) -> Page[EventRecord]:
        return ctx.services.store.page(EventRecord, limit=limit, after=after, newest_first=newest_first, tenant=ctx.tenant)

    found, pagination = listed(query, fetch, lambda event: event.id)
    return Answer([event_view(event) for event in found], pagination)
