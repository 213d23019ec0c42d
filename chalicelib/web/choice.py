"""The part of the checkout page where a payer chooses the coin: plain forms, one for each coin, which need no script.

The search is a form as well. All coins are in the page, and those that do not match are hidden: so a script searches without
asking, and the page knows what was searched for without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from math import ceil
from typing import Any

from chalicelib.web.parts import Frame

_PAYABLE = ("pending", "partial")
_SEARCHED = 6
"""With more coins than these the page has a search."""
KNOWN = frozenset({"btc", "eth", "usdt", "usdc", "trx", "bnb", "matic", "ftm", "ltc", "dai", "busd"})
"""Coins that the style sheet has a colour for."""
_SMALL = ("<small>", "</small>")


def is_choosable(shown: Mapping[str, Any]) -> bool:
    """Whether a coin can be chosen now, for the first time or another one."""
    return "accept" in shown and shown["status"] in _PAYABLE and shown["expiresIn"] > 0


def symbol_of(one: Mapping[str, Any]) -> str:
    """The symbol of a coin that may be chosen, or of a payment."""
    return str(one.get("symbol") or one["coin"].upper())


@dataclass(frozen=True, slots=True)
class Offers:
    """The coins that can be chosen. `own` is the page's path, safe in HTML; `names` are what networks are called, by slug;
    `search` is what was searched for."""

    frame: Frame
    own: str
    names: Mapping[str, str]
    search: str = ""

    def html(self, shown: Mapping[str, Any]) -> str:
        """Their forms, and the search; empty where nothing can be chosen."""
        if not is_choosable(shown):
            return ""
        say = self.frame.say
        now = (shown["currency"], shown["network"])
        others = [one for one in shown["accept"] if (one["coin"], one["network"]) != now]
        if not others:
            return ""
        # Among all coins: none is called the quickest that is slower than the one chosen already.
        marked = _quickest(shown["accept"]), _cheapest(shown["accept"])
        inside = self._search(others) + self._list(others, shown["fiatCurrency"], marked)
        if shown["currency"] is None:
            return f'<h2 class="label">{say("choice.coins")}</h2>{inside}'
        # Where the coin that was chosen has no rate, another one is the way on.
        is_open = "" if "paymentUri" in shown and not self.search else " open"
        return f'<details class="others"{is_open}><summary>{say("choice.another")}</summary>{inside}</details>'

    def _search(self, others: Sequence[Mapping[str, Any]]) -> str:
        if len(others) <= _SEARCHED:
            return ""
        say = self.frame.say
        return (
            f'<form class="search" id="search" method="get" action="{self.own}" role="search">'
            f'<label class="label" for="query">{say("choice.search")}</label><div class="line">'
            f'<input class="typed" type="search" id="query" name="search" value="{escape(self.search)}" maxlength="60" '
            f'autocomplete="off" spellcheck="false"><button class="copy shown">{say("choice.find")}</button></div></form>'
        )

    def _list(self, others: Sequence[Mapping[str, Any]], fiat: str, marked: tuple[Mapping[str, Any] | None, ...]) -> str:
        quickest, cheapest = marked
        wanted = [self._matches(one) for one in others]
        # As the shop has put them; in a long list those that most people look for come first.
        first = list(zip(others, wanted, strict=True))
        if len(first) > _SEARCHED:
            first.sort(key=lambda pair: not (pair[0] is quickest or pair[0] is cheapest))
        forms = "".join(self._form(one, fiat, (one is quickest, one is cheapest), hidden=not found) for one, found in first)
        nothing = "" if not any(wanted) else " hidden"
        return f'<div class="offers" id="offers">{forms}</div><p class="only" id="none" role="status"{nothing}>{self._none()}</p>'

    def _none(self) -> str:
        return self.frame.say("choice.none")

    def _place(self, one: Mapping[str, Any]) -> str:
        return self.names.get(one["network"], one["network"])

    def _matches(self, one: Mapping[str, Any]) -> bool:
        """Whether each word that was searched for is in the coin's or the network's name."""
        text = f"{one['coin']} {symbol_of(one)} {one['network']} {self._place(one)}".lower()
        return all(word in text for word in self.search.lower().split())

    def _form(self, one: Mapping[str, Any], fiat: str, marks: tuple[bool, bool], *, hidden: bool) -> str:
        coin, network, say = escape(one["coin"]), escape(one["network"]), self.frame.say
        symbol, name = escape(symbol_of(one)), escape(self._place(one))
        paused = one.get("delay") == "halted"
        tags = [tag for tag, is_so in zip(("quickest", "cheapest"), marks, strict=True) if is_so]
        told = "".join(f'<span class="tag">{say(f"choice.{tag}")}</span>' for tag in tags)
        look = f" c-{coin}" if one["coin"] in KNOWN else ""
        text = escape(f"{one['coin']} {symbol_of(one)} {one['network']} {self._place(one)}".lower())
        return (
            f'<form method="post" action="{self.own}/choice" data-text="{text}"{" hidden" if hidden else ""}>'
            f'<input type="hidden" name="coin" value="{coin}"><input type="hidden" name="network" value="{network}">'
            f'<button class="offer"{" disabled" if paused else ""}><i class="mono{look}" aria-hidden="true">{symbol[:1]}</i>'
            f'<span class="name"><b dir="ltr">{symbol}</b>{told} <span><bdi>{name}</bdi></span></span>'
            f'<span class="usual">{say("choice.paused").join(_SMALL) if paused else self._usual(one, fiat)}</span>'
            "</button></form>"
        )

    def _usual(self, one: Mapping[str, Any], fiat: str) -> str:
        """The usual time, and the fee where it is known."""
        words = self.frame.words
        told = [about(self.frame, one["usualSeconds"])] if "usualSeconds" in one else []
        if "usualFee" in one:
            told.append(words.html("choice.fee", amount=words.number(one["usualFee"]), fiat=fiat))
        return "".join(each.join(_SMALL) for each in told)


def about(frame: Frame, seconds: int) -> str:
    """A usual time, in words: at least a minute, since the service looks once a minute."""
    minutes = max(1, ceil(seconds / 60))
    words = frame.words
    told = words.count("time.minutes", minutes) if minutes < 90 else words.count("time.hours", round(minutes / 60))
    return frame.say("time.about", time=told)


def _quickest(others: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The one with the shortest usual time, of equal ones the cheapest; None where none is quicker than another."""
    known = [one for one in others if "usualSeconds" in one and one.get("delay") is None]
    if len({one["usualSeconds"] for one in known}) < 2:
        return None
    return min(known, key=lambda one: (one["usualSeconds"], Decimal(one.get("usualFee", "Infinity"))))


def _cheapest(others: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The one with the lowest usual fee, of equal ones the quickest; None where none is cheaper than another."""
    known = [one for one in others if "usualFee" in one and one.get("delay") is None]
    if len({Decimal(one["usualFee"]) for one in known}) < 2:
        return None
    return min(known, key=lambda one: (Decimal(one["usualFee"]), one.get("usualSeconds", 0)))
