"""Answers about the merchant's balances."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.addresses import Slug
from chalicelib.api.records.base import CamelRecord, Money, Usd


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
