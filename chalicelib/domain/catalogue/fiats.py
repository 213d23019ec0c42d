"""Fiat currencies that a price may be in: those that the rate providers tell, with their decimals."""

from __future__ import annotations

from collections.abc import Mapping

FIATS: Mapping[str, int] = {
    "USD": 2, "EUR": 2, "GBP": 2,
    "AED": 2, "ARS": 2, "AUD": 2, "BDT": 2, "BHD": 3, "BMD": 2, "BRL": 2, "CAD": 2, "CHF": 2, "CLP": 0, "CNY": 2, "CZK": 2,
    "DKK": 2, "GEL": 2, "HKD": 2, "HUF": 2, "IDR": 2, "ILS": 2, "INR": 2, "JPY": 0, "KRW": 0, "KWD": 3, "LKR": 2, "MMK": 2,
    "MXN": 2, "MYR": 2, "NGN": 2, "NOK": 2, "NZD": 2, "PHP": 2, "PKR": 2, "PLN": 2, "RUB": 2, "SAR": 2, "SEK": 2, "SGD": 2,
    "THB": 2, "TRY": 2, "TWD": 2, "UAH": 2, "VND": 0, "ZAR": 2,
}  # fmt: skip
"""By code, the digits behind the point (ISO 4217, minor units). CoinGecko's `vs_currencies` that are currencies of a country:
docs.coingecko.com/reference/simple-supported-currencies"""
MOST_DECIMALS = max(FIATS.values())
MINOR_DIGITS = 2
"""Digits behind the point that most currencies have."""
ANCHORED = ("USD", "EUR", "GBP")
"""Each coin is quoted in these. In all others it is worth its rate in US dollars times a dollar's in the other currency."""
CROSSED = tuple(fiat for fiat in FIATS if fiat not in ANCHORED)
DOLLAR = "$"
"""The name that a dollar's rates are kept under, where a coin's slug stands: none is written so."""


def fiat_problem(amount: str, currency: str) -> str | None:
    """The reason why no price can be `amount` (plain decimal) in `currency`; None where one can, or nobody knows the currency."""
    decimals = FIATS.get(currency)
    if decimals is None or len(amount.partition(".")[2]) <= decimals:
        return None
    return f"must have at most {decimals} decimals in {currency}" if decimals else f"must have no decimals in {currency}"


def unknown_fiat() -> str:
    """What is allowed in place of a currency that no provider tells."""
    return f"must be one of: {', '.join(FIATS)}"
