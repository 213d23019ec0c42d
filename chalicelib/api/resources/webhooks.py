"""Webhook endpoints of the merchant."""

from __future__ import annotations

from typing import Any

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import Request
from chalicelib.api.routes import endpoint
from chalicelib.usecases.webhooks import endpoint_view


class WebhookCreate(Request):
    """What the three must look like is the use case's to say: it names everything that is wrong at once."""

    url: Any
    events: Any
    secret: Any = None


@endpoint(
    "POST", "/webhooks", family="envelope", permission="webhooks:write", rate_class="webhooks", body=WebhookCreate, status=201,
    creates=True, summary="Be told of events",
)  # fmt: skip
def create_webhook(ctx: Ctx, body: WebhookCreate) -> Answer:
    """The secret is in this answer and in none after it."""
    answer = ctx.once(lambda made: {**endpoint_view(made), "secret": made.secret})
    ctx.services.webhooks.register(ctx.tenant, body.url, body.events, body.secret, also=answer.also)
    return answer.answer


@endpoint("GET", "/webhooks", family="envelope", permission="webhooks:read", rate_class="webhooks", summary="All endpoints")
def list_webhooks(ctx: Ctx) -> Answer:
    return Answer([endpoint_view(found) for found in ctx.services.webhooks.list(ctx.tenant)])


@endpoint("GET", "/webhooks/{id}", family="envelope", permission="webhooks:read", rate_class="webhooks", summary="One endpoint")
def get_webhook(ctx: Ctx) -> Answer:
    return Answer(endpoint_view(ctx.services.webhooks.get(ctx.tenant, ctx.param("id"))))


@endpoint(
    "DELETE", "/webhooks/{id}", family="envelope", permission="webhooks:write", rate_class="webhooks", summary="Be told no more"
)
def delete_webhook(ctx: Ctx) -> Answer:
    return Answer(endpoint_view(ctx.services.webhooks.delete(ctx.tenant, ctx.param("id"))))
