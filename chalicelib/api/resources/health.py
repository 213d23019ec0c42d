"""Whether the service answers, and whether a key works."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import endpoint
from chalicelib.usecases.views import iso


@endpoint("GET", "/health", family="object", level="public", summary="Whether the service answers")
def health(ctx: Ctx) -> Answer:
    return Answer({"status": "ok", "timestamp": iso(ctx.now_ms)})


@endpoint("GET", "/auth/test", family="envelope", summary="Which key this is, what it may do and how much is left of its limits")
def auth_test(ctx: Ctx) -> Answer:
    usage = ctx.usage
    left = {} if usage is None else {"remaining": usage.remaining, "reset_at": iso(usage.reset_at * 1000)}
    key = ctx.key
    return Answer(
        {
            "authenticated": True,
            "key_id": key.id,
            "name": key.name,
            "type": "test" if key.realm == "test" else "production",
            "level": key.level,
            "permissions": list(key.permissions),
            "rate_limits": left,
        }
    )
