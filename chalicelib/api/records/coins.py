"""Answers about coins."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from chalicelib.api.records.base import CamelRecord, Message, Record, Time
from chalicelib.domain.catalogue.coin_settings import MEANING, PERCENTAGE

Slug = Annotated[str, Field(description="The coin's slug, unique on its network.", examples=["usdt"])]
NetworkSlug = Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
Symbol = Annotated[str, Field(description="As wallets show it.", examples=["USDT"])]
Name = Annotated[str, Field(description="What people call it.", examples=["Tether USD"])]
Decimals = Annotated[int, Field(ge=0, le=36, description="Never changes.", examples=[6])]
Contract = Annotated[str, Field(description="The token's contract.", examples=["0xdAC17F958D2ee523a2206206994597C13D831ec7"])]
Number = Annotated[float, Field(ge=0, examples=[0.5])]
InCoin = Annotated[float, Field(ge=0, examples=[0.5])]
InUsd = Annotated[float, Field(ge=0, examples=[1500])]
Percentage = Annotated[float, Field(ge=0, le=100, description=MEANING[PERCENTAGE], examples=[20])]
UseUsd = Annotated[bool, Field(description=MEANING["useUsdLimits"], examples=[False])]
IN_COIN = (
    "In coin units. Where `useUsdLimits` is true it follows from the USD value and the fresh rate: null without one. 0: no limit."
)
IN_USD = "In USD. Exact where `useUsdLimits` is true; else rounded to cents, and null without a fresh rate."

_EXAMPLES = {
    "collectThreshold": 100,
    "collectServiceToColdThreshold": 10_000,
    "approveThreshold": 1_000,
    "minValue": 5,
    "maxValue": 1_000,
    "maxValueDaily": 5_000,
    "minDepositAmount": 1,
    "hotCeiling": 50_000,
    "hotFloor": 2_000,
}
"""Of a coin that is worth a dollar, so that both units say the same."""


def _set(name: str, unit: str = "Exact; in coin units, or in USD where `useUsdLimits` is true. 0: no limit.") -> Any:
    return Field(description=f"{MEANING[name]} {unit}", examples=[_EXAMPLES[name]])


class CoinNetwork(Record):
    """The network that the coin is on."""

    network: NetworkSlug


class Settings(CamelRecord):
    """Thresholds and limits as they were set."""

    use_usd_limits: UseUsd
    collect_threshold: Annotated[Number, _set("collectThreshold")]
    collect_service_to_cold_threshold: Annotated[Number, _set("collectServiceToColdThreshold")]
    collect_percentage_hot: Percentage
    approve_threshold: Annotated[Number, _set("approveThreshold")]
    min_value: Annotated[Number, _set("minValue")]
    max_value: Annotated[Number, _set("maxValue")]
    max_value_daily: Annotated[Number, _set("maxValueDaily")]
    min_deposit_amount: Annotated[Number, _set("minDepositAmount")]


class BothSettings(Record):
    """Thresholds and limits in coin units and in USD."""

    useUsdLimits: UseUsd
    collectPercentageHot: Percentage
    collectThreshold: Annotated[InCoin | None, _set("collectThreshold", IN_COIN)]
    collectServiceToColdThreshold: Annotated[InCoin | None, _set("collectServiceToColdThreshold", IN_COIN)]
    approveThreshold: Annotated[InCoin | None, _set("approveThreshold", IN_COIN)]
    minValue: Annotated[InCoin | None, _set("minValue", IN_COIN)]
    maxValue: Annotated[InCoin | None, _set("maxValue", IN_COIN)]
    maxValueDaily: Annotated[InCoin | None, _set("maxValueDaily", IN_COIN)]
    minDepositAmount: Annotated[InCoin | None, _set("minDepositAmount", IN_COIN)]
    hotCeiling: Annotated[InCoin | None, _set("hotCeiling", IN_COIN)]
    hotFloor: Annotated[InCoin | None, _set("hotFloor", IN_COIN)]
    collectThresholdUSD: Annotated[InUsd | None, _set("collectThreshold", IN_USD)]
    collectServiceToColdThresholdUSD: Annotated[InUsd | None, _set("collectServiceToColdThreshold", IN_USD)]
    approveThresholdUSD: Annotated[InUsd | None, _set("approveThreshold", IN_USD)]
    minValueUSD: Annotated[InUsd | None, _set("minValue", IN_USD)]
    maxValueUSD: Annotated[InUsd | None, _set("maxValue", IN_USD)]
    maxValueDailyUSD: Annotated[InUsd | None, _set("maxValueDaily", IN_USD)]
    minDepositAmountUSD: Annotated[InUsd | None, _set("minDepositAmount", IN_USD)]
    hotCeilingUSD: Annotated[InUsd | None, _set("hotCeiling", IN_USD)]
    hotFloorUSD: Annotated[InUsd | None, _set("hotFloor", IN_USD)]


class _Facts(CamelRecord):
    coin: Slug
    symbol: Symbol
    name: Name
    type: Annotated[Literal["NATIVE", "TOKEN"], Field(description="The network's own coin, or a token.", examples=["TOKEN"])]
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

    usd: Annotated[float, Field(gt=0, description="US dollars for one coin, exact.", examples=[1])]
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
