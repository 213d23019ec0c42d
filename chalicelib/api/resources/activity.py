"""Who did what: the changing requests of the merchant's keys, of the last year."""

from __future__ import annotations

from typing import Any

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, Shortcut, choice, hash_text, text, time
from chalicelib.api.lists.common import of_realms
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import environment, first_id, tenant_id
from chalicelib.domain.merchants.activity import PREFIX, Activity, operators_of
from chalicelib.domain.times import iso
from chalicelib.usecases.base.views import without_none

ACTIVITY = Listing(
    "activity",
    (
        time("created_at", lambda r, _: r.created_at, "When the request came.").known_as("createdAt").indexed("time"),
        hash_text("key_id", lambda r, _: r.key_id, "The key that asked.").indexed("key"),
        hash_text("object_id", lambda r, _: r.object_id, "What the request was about.").indexed("object"),
        hash_text("made_id", lambda r, _: r.made_id, "What it made of that or for that.").indexed("made"),
        choice("method", lambda r, _: r.method, ("POST", "PUT", "DELETE"), "The request's method.").taking_several(),
        text("route", lambda r, _: r.route, "The request's path.", sortable=False, examples=("/invoices/{id}",)),
        choice(
            "type",
            lambda r, _: environment(r.realm),
            ("production", "test"),
            "Without it, that of the key that asks. A production key may ask for `test`.",
        ).indexed("tenant"),
        text("request_id", lambda r, _: r.request_id, "X-Request-Id of the answer.", sortable=False),
    ),
    shortcuts=(
        Shortcut("from", "created_at", "gte", "From this moment, or the beginning of this day (UTC), on."),
        Shortcut("to", "created_at", "lte", "Until this moment, or the end of this day (UTC)."),
    ),
    kind=Activity,
    family="act",
    indexes=frozenset({"key", "object", "made"}),
    position=lambda ms: first_id(PREFIX, ms),
)


@endpoint(
    "GET", "/activity", family="envelope", permission="keys:read", query=ACTIVITY, answer="list[activity.Activity]",
    summary="Which key changed what, newest first",
)  # fmt: skip
def list_activity(ctx: Ctx, query: ListQuery) -> Answer:
    """One record for each request that changed something, kept a year. It is stored in one transaction with the change: a request
    that was refused, repeated under its `Idempotency-Key`, or changed nothing, has none. Its body is not in it. `key_id`,
    `object_id`, `made_id` and `created_at` are looked up; other filters look through at most 10,000 records in one request, and a
    cursor goes on. A production key lists what its merchant's test keys did with `type=test`. A key of the level admin also sees
    what any admin key did on the operator's routes; other keys do not see those.
    """
    tenants: list[str] = []
    for realm in of_realms(ctx, query):
        tenants.append(tenant_id(ctx.key.merchant, realm))
        if ctx.key.level == "admin":
            tenants.append(operators_of(realm))
    found, pagination = ACTIVITY.page(ctx, query, tenants=tenants)
    return Answer([_view(record) for record in found], pagination)


def _view(record: Activity) -> dict[str, Any]:
    return without_none(
        {
            "id": record.id,
            "created_at": iso(record.created_at),
            "key_id": record.key_id,
            "key_name": record.key_name,
            "key_prefix": record.key_prefix,
            "type": environment(record.realm),
            "method": record.method,
            "route": record.route,
            "object_id": record.object_id,
            "made_id": record.made_id,
            "request_id": record.request_id,
            "outcome": record.outcome,
        }
    )
