"""Amounts, hashes and numbers as UTXO nodes write them. Whatever is not exactly that is the node's fault, and raises Garbled.

Pure; `units` is on the scanner's hot path.
"""

from __future__ import annotations

from typing import Any

from chalicelib.chains.answers import Garbled

COIN = 10**8
"""Units of one coin."""

MOST_EXACT = 2**25 * COIN
"""Amounts below this come through a float unharmed, see `units`. It is more than all bitcoins and 40 % of all litecoins."""


def units(value: Any) -> int:
    """An amount of coins, as JSON has it, in units: exactly what the node wrote, or Garbled.

    Nodes write amounts as JSON numbers with eight decimals, and the JSON parser makes the nearest float of them. Below 2^25
    coins neighbouring floats are at most 2^-28 apart, less than half a unit (10^-8), so no two amounts share a float; the float
    is off by at most 2^-29, which is 0.19 units, and rounding the product (below 2^52, where floats are 0.5 apart at most) adds
    0.25: less than a half in all, so `round` finds the very amount. `amount / COIN` is rounded once from exact integers, hence
    the parser's float again: where it is not, the node wrote more than eight decimals.
    """
    if type(value) is int:
        amount = value * COIN
    elif type(value) is float:
        amount = round(value * COIN) if -1.0 < value < 2.0**25 else MOST_EXACT
        if amount < MOST_EXACT and amount / COIN != value:
            raise Garbled("an amount has more than eight decimals")
    else:
        raise Garbled("an amount is no number")
    if not 0 <= amount < MOST_EXACT:
        raise Garbled("an amount is below zero, or more than there can be")
    return amount


def number(value: Any, what: str) -> int:
    """An integer of zero or more."""
    if type(value) is not int or value < 0:
        raise Garbled(f"{what} is no number")
    return value
