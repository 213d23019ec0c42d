"""The provider of the sandbox and of local stacks: plausible values, the same every time, no network. Nothing here is a quote."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from chalicelib.usecases.catalogue.rates import Pair, Quote

_USD = {
    "btc": "60000", "eth": "3000", "ltc": "80", "trx": "0.15", "bnb": "600", "matic": "0.5", "ftm": "0.5",
    "usdt": "1", "usdc": "1", "busd": "1", "dai": "1",
}  # fmt: skip
_PER_USD = {"USD": "1", "EUR": "0.9", "GBP": "0.8"}

PAIRS: frozenset[Pair] = frozenset((coin, fiat) for coin in _USD for fiat in _PER_USD)
"""All that it knows."""


class Fixed:
    name = "fixed"

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        """Rates at the current time. Never raises."""
        return [
            Quote(coin, fiat, (Decimal(_USD[coin]) * Decimal(_PER_USD[fiat])).normalize(), now_ms)
            for coin, fiat in sorted(wanted)
            if (coin, fiat) in PAIRS
        ]
