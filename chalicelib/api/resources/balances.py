"""The merchant's balance of each coin, and what it received of it per day."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field, create_model

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import ListField, Listing, amount, coin, network, text
from chalicelib.api.routes import endpoint

if TYPE_CHECKING:
    from chalicelib.domain.ledger import Balance

_MOST_DAYS = 31
"""As `domain.deposits.received` keeps."""


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


ReceivedDays = Annotated[
    int | None,
    Field(
        alias="receivedDays",
        ge=1,
        le=_MOST_DAYS,
        description="Show in `received` what came in on each of so many days, the last of which is today (UTC).",
        examples=[30],
    ),
]


class _BalancesQuery:
    """The query of the list, with the days that it shows."""

    @cached_property
    def model(self) -> type[Any]:
        """Made at first use, as a list's own."""
        made = cast(Any, create_model("BalancesQuery", __base__=BALANCES.model, received_days=(ReceivedDays, None)))
        made.names = (*BALANCES.model.names, "receivedDays")
        return cast(type[Any], made)


@endpoint(
    "GET", "/balances", family="envelope", permission="balances:read", query=_BalancesQuery(), answer="list[balances.Balance]",
    summary="Every coin that the merchant ever held",
)  # fmt: skip
def get_balances(ctx: Ctx, query: Any) -> Answer:
    """All of them unless `limit` or `page` is sent, in the order of the catalogue unless sorted. Withdrawals take from `available`;
    what came from the grey list is in `held`.

    With `receivedDays` each has `received`: payments by the day on which they could be used, whether an invoice asked for them or
    not. A payment that a reorganisation takes away is taken off its day.
    """
    shown = [_shown(ctx, balance, query.received_days) for balance in ctx.services.balances(ctx.tenant)]
    order = {slug: place for place, slug in enumerate(ctx.catalogue.networks)}
    return Answer(BALANCES.array(ctx, query, sorted(shown, key=lambda b: (order[b["network"]], b["coin"]))))


def _shown(ctx: Ctx, balance: Balance, days: int | None) -> dict[str, Any]:
    record = ctx.views.balance(balance)
    if days is None:
        return record
    from chalicelib.usecases.deposits.received_days import received

    today = ctx.services.clock_of(ctx.realm).now_ms()
    return record | {"received": received(balance, ctx.catalogue.coin_of(balance.asset), ctx.views, today, days)}
