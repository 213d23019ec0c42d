"""Kraken: the public `Ticker`, last trades. https://docs.kraken.com/api/docs/rest-api/get-ticker-information"""

from __future__ import annotations

import re
from collections.abc import Collection
from decimal import Decimal
from typing import Any

from chalicelib.rates.http import JsonGet
from chalicelib.usecases.catalogue.rates import Pair, Quote
from chalicelib.usecases.ports.failures import Unavailable

URL = "https://api.kraken.com"
_PATH = "/0/public/Ticker"
_UNKNOWN = "EQuery:Unknown asset pair"
_PRICE = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?", re.ASCII)

PAIRS: dict[Pair, str] = {
    ("btc", "USD"): "XXBTZUSD", ("btc", "EUR"): "XXBTZEUR", ("btc", "GBP"): "XXBTZGBP",
    ("btc", "JPY"): "XXBTZJPY", ("btc", "CAD"): "XXBTZCAD", ("btc", "CHF"): "XBTCHF", ("btc", "AUD"): "XBTAUD",
    ("eth", "USD"): "XETHZUSD", ("eth", "EUR"): "XETHZEUR", ("eth", "GBP"): "XETHZGBP",
    ("ltc", "USD"): "XLTCZUSD", ("ltc", "EUR"): "XLTCZEUR", ("ltc", "GBP"): "LTCGBP",
    ("trx", "USD"): "TRXUSD", ("trx", "EUR"): "TRXEUR",
    ("bnb", "USD"): "BNBUSD", ("bnb", "EUR"): "BNBEUR",
    ("matic", "USD"): "POLUSD", ("matic", "EUR"): "POLEUR",
    ("usdt", "USD"): "USDTZUSD", ("usdt", "EUR"): "USDTEUR", ("usdt", "GBP"): "USDTGBP",
    ("usdc", "USD"): "USDCUSD", ("usdc", "EUR"): "USDCEUR", ("usdc", "GBP"): "USDCGBP",
    ("dai", "USD"): "DAIUSD", ("dai", "EUR"): "DAIEUR",
}  # fmt: skip
"""Kraken's own names of the pairs, as its answers have them. A pair that it does not trade it does not know."""


class Kraken:
    name = "kraken"

    def __init__(self, url: str = URL) -> None:
        self._http = JsonGet(url)

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        """Rates of now: the ticker has no time of its own. Raises Unavailable."""
        pairs = {PAIRS[pair]: pair for pair in sorted(wanted) if pair in PAIRS}
        if not pairs:
            return []
        answer = self._http.get(_PATH, {"pair": ",".join(pairs)})
        if _errors(answer) and all(str(error).startswith(_UNKNOWN) for error in _errors(answer)):
            # One pair that is not traded any more spoils the whole request. Without a list, Kraken tells what there is.
            answer = self._http.get(_PATH, {})
        if _errors(answer) or not isinstance(answer, dict) or not isinstance(answer.get("result"), dict):
            raise Unavailable("answers an error" if _errors(answer) else "answers something else than tickers")
        found = []
        for name, (coin, fiat) in pairs.items():
            price = _last(answer["result"].get(name))
            if price is not None:
                found.append(Quote(coin, fiat, price, now_ms))
        return found


def _errors(answer: Any) -> list[Any]:
    errors = answer.get("error") if isinstance(answer, dict) else None
    return errors if isinstance(errors, list) else []


def _last(ticker: Any) -> Decimal | None:
    """The price of the last trade: the first of `c`."""
    closed = ticker.get("c") if isinstance(ticker, dict) else None
    price = closed[0] if isinstance(closed, list) and closed else None
    return Decimal(price) if isinstance(price, str) and _PRICE.fullmatch(price) else None
