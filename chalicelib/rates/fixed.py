"""The provider of the sandbox and of local stacks: plausible values, the same every time, no network. Nothing here is a quote."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from chalicelib.usecases.catalogue.rates import Pair, Quote

_USD = {
    "btc": "60000", "eth": "3000", "ltc": "80", "trx": "0.15", "bnb": "600", "matic": "0.5", "ftm": "0.5",
    "usdt": "1", "usdc": "1", "busd": "1", "dai": "1",
}  # fmt: skip
_PER_USD = {
    "USD": "1", "EUR": "0.9", "GBP": "0.8",
    "AED": "3.7", "ARS": "1400", "AUD": "1.5", "BDT": "120", "BHD": "0.4", "BMD": "1", "BRL": "5", "CAD": "1.4", "CHF": "0.8",
    "CLP": "950", "CNY": "7", "CZK": "21", "DKK": "6.4", "GEL": "2.7", "HKD": "8", "HUF": "340", "IDR": "16000", "ILS": "3.5",
    "INR": "90", "JPY": "150", "KRW": "1400", "KWD": "0.3", "LKR": "300", "MMK": "2100", "MXN": "18", "MYR": "4", "NGN": "1500",
    "NOK": "10", "NZD": "1.7", "PHP": "58", "PKR": "280", "PLN": "3.6", "RUB": "80", "SAR": "3.75", "SEK": "9.5", "SGD": "1.3",
    "THB": "32", "TRY": "42", "TWD": "31", "UAH": "42", "VND": "26000", "ZAR": "17",
}  # fmt: skip

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
