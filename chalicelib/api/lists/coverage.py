"""What a list that can miss archived records says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chalicelib.domain.times import iso

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx


def covered(ctx: Ctx) -> dict[str, Any]:
    """`covers_from`, for the pagination; nothing where this deployment has never archived anything. Raises Unavailable."""
    if ctx.services.settings.archive_after_days is None:
        return {}
    since = ctx.services.archive_coverage.since_ms(ctx.realm)
    return {"covers_from": iso(since)[:10]} if since else {}
