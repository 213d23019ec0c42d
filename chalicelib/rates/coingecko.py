"""CoinGecko: `/simple/price`, one request for all coins. https://docs.coingecko.com/reference/simple-price"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from chalicelib.rates.http import JsonGet
from chalicelib.usecases.catalogue.rates import Pair, Quote
from chalicelib.usecases.ports.failures import Unavailable

URL = "https://api.coingecko.com/api/v3"

# Polygon's coin was renamed from MATIC to POL in 2024, one for one; the old id's price stands still.
IDS = {
    "btc": "bitcoin", "eth": "ethereum", "ltc": "litecoin", "trx": "tron", "bnb": "binancecoin",
    "matic": "polygon-ecosystem-token", "ftm": "fantom", "usdt": "tether", "usdc": "usd-coin", "busd": "binance-usd", "dai": "dai",
}  # fmt: skip
"""CoinGecko's names of the catalogue's coins."""


class CoinGecko:
    """`key` is optional; the paid host wants its own header. `ids` names further coins by slug, or other ids for these."""

    name = "coingecko"

    def __init__(self, url: str = URL, key: str | None = None, ids: Mapping[str, str] | None = None) -> None:
        header = "x-cg-pro-api-key" if (urlsplit(url).hostname or "").startswith("pro-api.") else "x-cg-demo-api-key"
        self._http = JsonGet(url, {header: key} if key else None)
        self._ids = {**IDS, **(ids or {})}

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        """Rates with CoinGecko's own time of them. Raises Unavailable."""
        known = sorted({coin for coin, _ in wanted if coin in self._ids})
        if not known:
            return []
        query = {
            "ids": ",".join(sorted({self._ids[coin] for coin in known})),
            "vs_currencies": ",".join(sorted({fiat.lower() for _, fiat in wanted})),
            "include_last_updated_at": "true",
            "precision": "full",
        }
        answer = self._http.get("/simple/price", query)
        if not isinstance(answer, dict):
            raise Unavailable("answers something else than prices")
        found = []
        for coin, fiat in sorted(wanted):
            prices = answer.get(self._ids.get(coin, ""))
            if not isinstance(prices, dict):
                continue
            value, at = number(prices.get(fiat.lower())), number(prices.get("last_updated_at"))
            # The time is part of what makes a rate usable: one that does not say when it was true may be a week old.
            if value is not None and at is not None and 0 < at < 10**11:
                found.append(Quote(coin, fiat, value, min(int(at * 1000), now_ms)))
        return found


def number(value: Any) -> Decimal | None:
    """A JSON number, exact; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    return Decimal(value)
