"""Webhook endpoints of the merchant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, choice, flag, text, time
from chalicelib.api.models import Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.webhooks.endpoints import MAX_OVERLAP, OVERLAP_SECONDS, EndpointStatus, WebhookEndpoint
from chalicelib.domain.webhooks.events import EVENT_NAMES
from chalicelib.usecases.webhooks.views import endpoint_view

if TYPE_CHECKING:
    from chalicelib.usecases.base.creation import Creation
    from chalicelib.usecases.webhooks.endpoints import Shown

_URL = Field(
    description="https, a public host, no user name and no fragment.", examples=["https://shop.example/hook"],
    json_schema_extra={"type": "string", "format": "uri", "maxLength": 2048},
)  # fmt: skip
_EVENTS = Field(
    description="Names of events, or `*` for all.", examples=[["invoice.completed"]],
    json_schema_extra={"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["*", *EVENT_NAMES]}},
)  # fmt: skip
_SECRET = Field(
    description="16 to 256 printable characters; `whsec_` must be followed by base64. Made by the service when none is given.",
    examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    json_schema_extra={"type": ["string", "null"], "minLength": 16, "maxLength": 256},
)


WEBHOOKS = Listing(
    "webhooks",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was registered.").known_as("created_at"),
        text("id", lambda r, _: r.id, "The endpoint's id.", sortable=False),
        text("url", lambda r, _: r.url, "Where it is told."),
        choice("status", lambda r, _: r.status, ("active", "paused", "disabled"), "Whether it is told anything."),
        flag("enabled", lambda r, _: r.status == "active", "Whether `status` is `active`."),
    ),
    order="asc",
)


class WebhookCreate(Request):
    """What the three must look like is the use case's to say."""

    url: Annotated[Any, _URL]
    events: Annotated[Any, _EVENTS]
    secret: Annotated[Any, _SECRET] = None

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return _problems(ctx, {name: sent[name] for name in ("url", "events", "secret") if name in sent})


class WebhookUpdate(Request):
    """What is left out stays. The secret changes by rotation alone."""

    selecting = frozenset()

    url: Annotated[Any, _URL] = None
    events: Annotated[Any, _EVENTS] = None
    status: Literal["active", "disabled", "paused"] | None = Field(
        default=None, description="`paused`: what happens is kept and sent later. `disabled`: nothing is kept.", examples=["active"]
    )
    enabled: bool | None = Field(default=None, description="Another way to write `active` or `disabled`.", examples=[True])

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        enabled, status = sent.get("enabled"), sent.get("status")
        if enabled is None or status is None or wrong & {"enabled", "status"} or enabled == (status == "active"):
            return []
        return [FieldProblem("enabled", enabled, ("contradicts status: send one of the two",))]

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return _problems(ctx, {name: sent[name] for name in ("url", "events") if sent.get(name) is not None})

    def wants(self) -> EndpointStatus | None:
        if self.status is not None or self.enabled is None:
            return self.status
        return "active" if self.enabled else "disabled"


class SecretRotate(Request):
    """How the old secret ends."""

    overlap: Annotated[int, Field(ge=0, le=MAX_OVERLAP)] = Field(
        default=OVERLAP_SECONDS, description="Seconds for which the secret of before signs as well.", examples=[OVERLAP_SECONDS]
    )
    secret: Annotated[Any, _SECRET] = None

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        return _problems(ctx, {"secret": sent.get("secret")})


def _problems(ctx: Ctx, sent: Mapping[str, Any]) -> list[FieldProblem]:
    return ctx.services.webhooks.problems(sent)


def _views(ctx: Ctx, hooks: Sequence[WebhookEndpoint]) -> list[dict[str, Any]]:
    turns = ctx.services.webhooks.turns(hooks)
    return [endpoint_view(hook, ctx.now_ms, turn) for hook, turn in zip(hooks, turns, strict=True)]


@endpoint(
    "POST", "/webhooks", family="envelope", permission="webhooks:write", rate_class="webhooks", body=WebhookCreate, status=201,
    creates=True, answer="webhooks.NewWebhook", summary="Be told of events",
)  # fmt: skip
def create_webhook(ctx: Ctx, body: WebhookCreate) -> Answer:
    """The secret is in this answer and in none after it. At most 20 endpoints. An answer under an `Idempotency-Key` is kept
    encrypted, and repeated to the same API key alone."""
    return _create(ctx, ctx.services.webhooks.registering(ctx.tenant, body.url, body.events, body.secret))


@endpoint(
    "GET", "/webhooks", family="envelope", permission="webhooks:read", rate_class="webhooks", query=WEBHOOKS,
    answer="list[webhooks.Webhook]", summary="All endpoints",
)  # fmt: skip
def list_webhooks(ctx: Ctx, query: ListQuery) -> Answer:
    """Oldest first, unless another order is asked for."""
    found, pagination = WEBHOOKS.over(ctx, query, ctx.services.webhooks.list(ctx.tenant))
    return Answer(_views(ctx, found), pagination)


@endpoint(
    "GET", "/webhooks/{id}", family="envelope", permission="webhooks:read", rate_class="webhooks", answer="webhooks.Webhook",
    summary="One endpoint",
)  # fmt: skip
def get_webhook(ctx: Ctx) -> Answer:
    """Without the secret, which is shown where it is made and nowhere else. `restsUntil` is there while the receiver has asked, by
    429 or 503 with `Retry-After`, to be left alone, 15 minutes at most."""
    hook, turn = ctx.services.webhooks.with_turn(ctx.tenant, ctx.param("id"))
    return Answer(endpoint_view(hook, ctx.now_ms, turn))


@endpoint(
    "PUT", "/webhooks/{id}", family="envelope", permission="webhooks:write", rate_class="webhooks", body=WebhookUpdate,
    answer="webhooks.Webhook", summary="Change an endpoint",
)  # fmt: skip
def update_webhook(ctx: Ctx, body: WebhookUpdate) -> Answer:
    """What is left out stays. While an endpoint is `paused`, what it is to be told is kept, and sent when it is `active` again.
    While it is `disabled` nothing is kept for it: events of that time are in `GET /events`. Another `url`, or being turned on, ends
    a rest (`restsUntil`)."""
    found = ctx.services.webhooks.update(ctx.tenant, ctx.param("id"), body.url, body.events, body.wants())
    return Answer(_views(ctx, [found])[0])


@endpoint(
    "DELETE", "/webhooks/{id}", family="envelope", permission="webhooks:write", rate_class="webhooks", answer="webhooks.Webhook",
    summary="Be told no more",
)  # fmt: skip
def delete_webhook(ctx: Ctx) -> Answer:
    """What it had still to be sent is cancelled. The answer is the endpoint as it was."""
    return Answer(_views(ctx, [ctx.services.webhooks.delete(ctx.tenant, ctx.param("id"))])[0])


@endpoint(
    "POST", "/webhooks/{id}/rotate-secret", family="envelope", permission="webhooks:write", rate_class="webhooks",
    body=SecretRotate, status=201, creates=True, answer="webhooks.NewWebhook", summary="Give an endpoint a new secret",
)  # fmt: skip
def rotate_webhook_secret(ctx: Ctx, body: SecretRotate) -> Answer:
    """The new secret is in this answer and in none after it. For `overlap` seconds (a day by default, a week at most)
    `webhook-signature` carries both signatures, `x-gateway-signature` the new secret's and `x-gateway-signature-previous` that of
    the secret before. A rotation during an overlap ends that overlap: two secrets sign at most.
    """
    return _create(ctx, ctx.services.webhooks.rotating_secret(ctx.tenant, ctx.param("id"), body.overlap, body.secret))


def _create(ctx: Ctx, creation: Creation[Shown]) -> Answer:
    def render(made: Shown) -> dict[str, Any]:
        return {**endpoint_view(made.endpoint, ctx.now_ms, made.turn), "secret": made.secret}

    return ctx.create(creation, render, secret=True)
