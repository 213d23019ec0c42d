"""Constant, plausible rates for the sandbox and for local stacks: no network, the same every time. Nothing here is a quote."""

from __future__ import annotations

from decimal import Decimal

_USD = {
    "btc": "60000", "eth": "3000", "ltc": "80", "trx": "0.15", "bnb": "600", "matic": "0.5", "ftm": "0.5",
    "usdt": "1", "usdc": "1", "busd": "1", "dai": "1",
}  # fmt: skip
_PER_USD = {"USD": "1", "EUR": "0.9", "GBP": "0.8"}


def fixed_values() -> dict[tuple[str, str], str]:
    """Units of a currency for one coin, as plain decimals, by coin and currency."""
    return {
        (coin, fiat): f"{(Decimal(usd) * Decimal(factor)).normalize():f}"
        for coin, usd in _USD.items()
        for fiat, factor in _PER_USD.items()
    }
