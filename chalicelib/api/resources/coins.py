"""Coins of the caller's realm."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import NetworkSlug, Query, chosen_coin, coin_network
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.paging import MAX_LIMIT
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue import Coin
from chalicelib.domain.coin_settings import AMOUNTS, PERCENTAGE, amount_text, in_usd


class CoinsQuery(Query):
    network: NetworkSlug | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = None


class CoinQuery(Query):
    network: NetworkSlug | None = None


@endpoint("GET", "/coins", family="flat", permission="coins:read", query=CoinsQuery, summary="All coins, or those of one network")
def list_coins(ctx: Ctx, query: CoinsQuery) -> Answer:
    coins = ctx.catalogue.coins.values() if query.network is None else ctx.catalogue.coins_of(query.network)
    return Answer([shown(coin) for coin in coins][: query.limit])


@endpoint(
    "GET", "/coins/{coin}", family="flat", permission="coins:read", query=CoinQuery, summary="One coin, its settings in USD as well"
)
def get_coin(ctx: Ctx, query: CoinQuery) -> Answer:
    """Without `network`: the coin on its first active network. The USD counterparts are null while there is no rate."""
    coin = chosen_coin(ctx.catalogue, "coin", ctx.param("coin"), query.network)
    record = shown(coin)
    usd = {f"{name}USD": 0 if amount_text(coin, name) == "0" else None for name in AMOUNTS}
    return Answer({**record, "settings": {**record["settings"], **usd}})


def shown(coin: Coin) -> dict[str, Any]:
    """The public record of a coin; its settings as exact numbers in coin units."""
    settings: dict[str, Any] = {"useUsdLimits": in_usd(coin)}
    settings |= {name: JsonNumber(amount_text(coin, name)) for name in AMOUNTS}
    settings[PERCENTAGE] = JsonNumber(str(coin.settings.get(PERCENTAGE, "0")))
    return {
        "coin": coin.slug,
        "symbol": coin.symbol,
        "name": coin.name,
        "type": coin.type,
        "decimals": coin.decimals,
        "contractAddress": coin.contract,
        "status": coin.status,
        "settings": settings,
        "network": {"network": coin_network(coin)},
    }
