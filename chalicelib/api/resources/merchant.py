"""The caller's own merchant."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import NotFound
from chalicelib.domain.merchants import Merchant
from chalicelib.usecases.views import iso


@endpoint("GET", "/merchant", family="envelope", permission="merchant:read", summary="The merchant that the key belongs to")
def get_merchant(ctx: Ctx) -> Answer:
    merchant = ctx.services.store.get(Merchant, id=ctx.key.merchant)
    if merchant is None:
        raise NotFound("This key's merchant is not registered", {"id": ctx.key.merchant})
    return Answer(
        {
            "id": merchant.id,
            "name": merchant.name,
            "plan": merchant.plan,
            "environment": ctx.realm,
            "created_at": iso(merchant.created_at),
        }
    )
