"""What the merchant has of each coin."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import endpoint


@endpoint(
    "GET", "/balances", family="envelope", permission="balances:read", answer="list[balances.Balance]",
    summary="Every coin that the merchant ever held",
)  # fmt: skip
def get_balances(ctx: Ctx) -> Answer:
    shown = [ctx.views.balance(balance) for balance in ctx.services.balances(ctx.tenant)]
    order = {slug: place for place, slug in enumerate(ctx.catalogue.networks)}
    return Answer(sorted(shown, key=lambda b: (order[b["network"]], b["coin"])))
