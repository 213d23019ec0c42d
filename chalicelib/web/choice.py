"""The part of the checkout page where a payer chooses the coin: plain forms, one for each coin, which need no script."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_PAYABLE = ("pending", "partial")


def is_choosable(shown: Mapping[str, Any]) -> bool:
    """Whether a coin can be chosen now, for the first time or another one."""
    return "accept" in shown and shown["status"] in _PAYABLE and shown["expiresIn"] > 0


def to_choose(shown: Mapping[str, Any]) -> tuple[str, str]:
    """What the page says while nothing can be paid: before a choice, or where a coin has no rate now."""
    if shown["currency"] is None:
        return "Choose how to pay", "The amount is worked out when you choose, and the rate is kept for you for a while."
    return f"There is no rate for {shown['symbol']} now", "Choose another coin, or wait: this page goes on as soon as there is one."


def _place(one: Mapping[str, Any], names: Mapping[str, str]) -> str:
    return names.get(one["network"], one["network"])


def misdirected(shown: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """What came in a coin, or on a network, that does not count. `names` are what networks are called, by slug."""
    what = "It does not count here: ask the shop what becomes of it."
    found = shown.get("misdirected", ())
    return [f"{one['amount']} {one['coin'].upper()} came on {_place(one, names)}. {what}" for one in found]


def paid_in(shown: Mapping[str, Any], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """What was paid, by name: where the payer chooses, as it was sent, coin by coin."""
    told = {"unconfirmed": "Seen, not confirmed", "received": "Received"}
    if "choices" not in shown:
        return [(words, f"{shown[sum]} {shown['symbol']}") for sum, words in told.items() if shown[sum] != "0"]
    return [
        (words, f"{one[sum]} {one['coin'].upper()} on {_place(one, names)}")
        for sum, words in told.items()
        for one in shown["choices"]
        if one[sum] != "0"
    ]


def rate_facts(shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The price in fiat and the rate that is kept, by name."""
    if "accept" not in shown:
        return []
    facts = [("Price", f"{shown['fiatAmount']} {shown['fiatCurrency']}")]
    rate, until, payable = shown["rate"], shown["lockedUntil"], shown["status"] in _PAYABLE
    # A rate that is no longer kept is none that anybody can pay at.
    if rate is not None and ("paymentUri" in shown or not payable):
        facts.append(("Rate", f"1 {shown['symbol']} = {rate['value']} {rate['fiat']}"))
        if payable and until is not None:
            facts.append(("Rate kept until", f"{until[11:16]} UTC"))
    if shown["paidPercent"] != "0":
        facts.append(("Paid", f"{shown['paidPercent']} %"))
    return facts


def offers(own: str, shown: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """A form for each coin that can be chosen. `own` is the page's path, safe in HTML."""
    if not is_choosable(shown):
        return ""
    now = (shown["currency"], shown["network"])
    others = [one for one in shown["accept"] if (one["coin"], one["network"]) != now]
    forms = "".join(_form(own, one, names) for one in others)
    if shown["currency"] is None or not forms:
        return f'<div class="offers">{forms}</div>'
    # Where the coin that was chosen has no rate, another one is the way on.
    is_open = "" if "paymentUri" in shown else " open"
    return f'<details class="others"{is_open}><summary>Pay with another coin</summary><div class="offers">{forms}</div></details>'


def _form(own: str, one: Mapping[str, str], names: Mapping[str, str]) -> str:
    coin, network, name = escape(one["coin"]), escape(one["network"]), escape(_place(one, names))
    return (
        f'<form method="post" action="{own}/choice"><input type="hidden" name="coin" value="{coin}">'
        f'<input type="hidden" name="network" value="{network}">'
        f'<button class="offer"><b>{coin.upper()}</b> <span>{name}</span></button></form>'
    )
