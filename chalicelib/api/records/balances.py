"""Answers about the merchant's balances."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.addresses import Slug
from chalicelib.api.records.base import CamelRecord, Money, Time, Usd


class ReceivedDay(CamelRecord):
    """What came in on one day (UTC)."""

    day: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="A day.", examples=["2026-05-31"])]
    amount: Money
    amount_usd: Annotated[
        Usd | None,
        Field(
            alias="amountUSD",
            description="Its worth when it came in; where no rate was known then, its worth now. Null without either.",
        ),
    ]


class Received(CamelRecord):
    """Payments by the day on which they could be used, the oldest day first; days without any are left out."""

    since: Annotated[
        Time | None,
        Field(description="What came before is counted nowhere. Null where nothing was received since figures are kept."),
    ]
    days: Annotated[list[ReceivedDay], Field(description="The days on which something came in.")]


class Balance(CamelRecord):
    """What the merchant has of one coin. `balance` = `available` + `frozen` + `held`; `pending` comes on top of it."""

    network: Slug
    coin: Annotated[str, Field(description="The coin's slug.", examples=["usdt"])]
    symbol: Annotated[str, Field(description="The coin's symbol.", examples=["USDT"])]
    balance: Annotated[Money, Field(description="Everything that is credited.")]
    available: Annotated[Money, Field(description="What can be paid out.")]
    frozen: Annotated[Money, Field(description="Reserved by withdrawals that are under way.", examples=["0"])]
    held: Annotated[Money, Field(description="Came from an address of the grey list and is not released yet.", examples=["0"])]
    pending: Annotated[Money, Field(description="Seen in blocks and not credited yet.", examples=["0"])]
    balance_usd: Annotated[
        Usd | None, Field(alias="balanceUSD", description="What `balance` is worth. Null where no fresh rate is known.")
    ]
    received: Annotated[Received | None, Field(description="Only where `receivedDays` is sent.")] = None
