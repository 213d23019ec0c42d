"""The merchant's balance of each coin."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import ListField, Listing, amount, coin, network, text
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.routes import endpoint


def _units(name: str, description: str) -> ListField:
    def read(shown: Any, _: Any) -> Decimal | None:
        return None if shown[name] is None else Decimal(str(shown[name]))

    return amount(name, read, description)


BALANCES = Listing(
    "balances",
    (
        network(lambda r, _: r["network"]),
        coin(lambda r, _: r["coin"]),
        text("symbol", lambda r, _: r["symbol"], "The coin's symbol."),
        _units("balance", "Everything that is credited, in coin units."),
        _units("available", "What can be paid out."),
        _units("frozen", "What is reserved by withdrawals."),
        _units("held", "What waits for the operator's release."),
        _units("pending", "What is seen and not credited yet."),
        _units("balanceUSD", "What `balance` is worth; none without a fresh rate."),
    ),
    bare=True,
)


@endpoint(
    "GET", "/balances", family="envelope", permission="balances:read", query=BALANCES, answer="list[balances.Balance]",
    summary="Every coin that the merchant ever held",
)  # fmt: skip
def get_balances(ctx: Ctx, query: PageQuery) -> Answer:
    """All of them unless `limit` or `page` is sent, in the order of the catalogue unless sorted. Withdrawals take from `available`;
    what came from the grey list is in `held`."""
    shown = [ctx.views.balance(balance) for balance in ctx.services.balances(ctx.tenant)]
    order = {slug: place for place, slug in enumerate(ctx.catalogue.networks)}
    return Answer(BALANCES.array(ctx, query, sorted(shown, key=lambda b: (order[b["network"]], b["coin"]))))
