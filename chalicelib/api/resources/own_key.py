"""The key of a request itself: which it is, what it may do, and what is left of its limits."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import environment
from chalicelib.domain.times import iso


@endpoint(
    "GET", "/auth/test", family="envelope", answer="health.AuthTest",
    summary="Which key this is, what it may do and how much is left of its limits",
)  # fmt: skip
def auth_test(ctx: Ctx) -> Answer:
    """Every key may ask this, whatever its permissions. It counts as a request."""
    key, usage = ctx.key, ctx.usage
    if usage is None:
        raise LookupError("a request with a key was counted")
    return Answer(
        {
            "authenticated": True,
            "key_id": key.id,
            "name": key.name,
            "type": environment(key.realm),
            "level": key.level,
            "permissions": list(key.permissions),
            "rate_limits": {"remaining": usage.remaining, "reset_at": iso(usage.reset_at * 1000)},
        }
    )
