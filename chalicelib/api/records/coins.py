"""What answers about coins look like."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import CamelRecord, Message, Record, Time

Slug = Annotated[str, Field(description="The coin's slug, unique on its network.", examples=["usdt"])]
NetworkSlug = Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
Symbol = Annotated[str, Field(examples=["USDT"])]
Name = Annotated[str, Field(examples=["Tether USD"])]
Decimals = Annotated[int, Field(ge=0, le=36, description="Never changes.", examples=[6])]
Contract = Annotated[str, Field(examples=["0xdAC17F958D2ee523a2206206994597C13D831ec7"])]
Number = Annotated[
    float, Field(ge=0, description="Exact; in coin units, or in USD where `useUsdLimits` is true. 0: no limit.", examples=[0.5])
]
InCoin = Annotated[
    float,
    Field(
        ge=0,
        description="In coin units. Where `useUsdLimits` is true it follows from the USD value and the fresh rate, and is null "
        "without one. 0: no limit.",
        examples=[0.5],
    ),
]
InUsd = Annotated[
    float,
    Field(
        ge=0,
        description="In USD. Exact where `useUsdLimits` is true; else rounded to cents, and null without a fresh rate.",
        examples=[1500],
    ),
]
Percentage = Annotated[float, Field(ge=0, le=100, description="Per cent of the coin that stay on the hot wallet.", examples=[20])]
UseUsd = Annotated[bool, Field(description="Whether thresholds and limits were set in USD.")]


class CoinNetwork(Record):
    network: NetworkSlug


class Settings(CamelRecord):
    """Thresholds and limits as they were set."""

    use_usd_limits: UseUsd
    collect_threshold: Number
    collect_service_to_cold_threshold: Number
    collect_percentage_hot: Percentage
    approve_threshold: Number
    min_value: Number
    max_value: Number
    max_value_daily: Number
    min_deposit_amount: Number


class BothSettings(Record):
    """Thresholds and limits in coin units and in USD."""

    useUsdLimits: UseUsd
    collectPercentageHot: Percentage
    collectThreshold: InCoin | None
    collectServiceToColdThreshold: InCoin | None
    approveThreshold: InCoin | None
    minValue: InCoin | None
    maxValue: InCoin | None
    maxValueDaily: InCoin | None
    minDepositAmount: InCoin | None
    collectThresholdUSD: InUsd | None
    collectServiceToColdThresholdUSD: InUsd | None
    approveThresholdUSD: InUsd | None
    minValueUSD: InUsd | None
    maxValueUSD: InUsd | None
    maxValueDailyUSD: InUsd | None
    minDepositAmountUSD: InUsd | None


class _Facts(CamelRecord):
    coin: Slug
    symbol: Symbol
    name: Name
    type: Literal["NATIVE", "TOKEN"]
    decimals: Decimals
    contract_address: Annotated[Contract | None, Field(description="Null for native coins.")]
    status: Annotated[
        Literal["ACTIVE", "INACTIVE"],
        Field(description="An inactive coin takes no new invoices and withdrawals. What arrives is credited."),
    ]
    network: CoinNetwork


class Coin(_Facts):
    """A coin as lists show it."""

    settings: Settings


class Rate(Record):
    """What the coin is worth."""

    usd: Annotated[float, Field(gt=0, description="US dollars for one coin, exact.", examples=[3000.25])]
    at: Annotated[Time, Field(description="When that was true.")]
    source: Annotated[str, Field(description="Who said so: coingecko, kraken, or fixed in the sandbox.", examples=["kraken"])]
    stale: Annotated[bool, Field(description="Older than 15 minutes: it prices nothing.")]


class CoinDetails(_Facts):
    """A coin, its settings in both units, and the rate between them."""

    settings: BothSettings
    rate: Annotated[Rate | None, Field(description="Null where nobody ever said what the coin is worth.")]


class Created(Message):
    """The coin that was registered."""

    coin: Slug
    network: NetworkSlug


class Precreated(Record):
    """What registering a contract would make."""

    coin: Slug
    symbol: Symbol
    name: Name
    decimals: Decimals


class SandboxContract(CamelRecord):
    """A token contract of a simulated network."""

    network: NetworkSlug
    contract_address: Contract
    symbol: Symbol
    name: Name
    decimals: Decimals
