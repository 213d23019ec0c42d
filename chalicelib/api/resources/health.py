"""Health of the service."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import endpoint
from chalicelib.domain.times import iso


@endpoint(
    "GET", "/health", family="object", level="public", answer="health.Health", failure="health.Unwell",
    summary="Whether the service answers",
)  # fmt: skip
def health(ctx: Ctx) -> Answer:
    """Says that the service and its store answer, and what time it has; 500 with `status` `error` where the store does not.

    The store is asked at most every five seconds by each process, so an answer may be that old. A wrong key does no harm here.
    """
    if not ctx.services.health.answers():
        return Answer({"status": "error"}, status=500)
    return Answer({"status": "ok", "timestamp": iso(ctx.now_ms)})
