"""The activity record that a changing request begins with: the key as it is now, the route, and the object that was named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chalicelib.domain.ids import new_id
from chalicelib.domain.merchants.activity import KEPT_SECONDS, PREFIX, Activity, operators_of

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx

_NAMING = ("invoice_id", "id", "coin", "network")
"""Fields of a body that name the object of a change, where the path has none."""
MOST_CHARACTERS = 200


def record_of(ctx: Ctx, arguments: Sequence[Any]) -> Activity:
    """The record of a request that may change something, as its handler begins. `arguments` are its body and query."""
    key, route = ctx.key, ctx.route
    return Activity(
        id=new_id(PREFIX, ctx.now_ms),
        tenant=operators_of(ctx.realm) if route.level == "admin" else ctx.tenant,
        key_id=key.id,
        key_name=key.name,
        key_prefix=key.prefix,
        method=route.method,
        route=route.path,
        request_id=ctx.request_id,
        created_at=ctx.now_ms,
        ttl=ctx.now_ms // 1000 + KEPT_SECONDS,
        object_id=_object(ctx, arguments),
    )


def _object(ctx: Ctx, arguments: Sequence[Any]) -> str | None:
    named = next(iter(ctx.path.values()), None)
    if named is None and not ctx.route.creates and ctx.route.body is not None:
        named = next((str(value) for name in _NAMING if (value := getattr(arguments[0], name, None)) is not None), None)
    return named[:MOST_CHARACTERS] if named else None
