"""Keeping the rates of the live realm: providers are asked in order, and the first fresh answer for a coin wins.

A rate decides what an invoice costs, so no provider is believed alone where it says something astonishing: a rate that differs
from the last one by more than half is taken only when another provider says nearly the same. Where none does, the old one
stays, grows stale, and prices nothing any more; an alarm says so every time. After six hours of that the new one is taken:
the market has really moved, or there is nobody who minds.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from chalicelib.domain.rates import FIATS, STALE_MS, Rate
from chalicelib.usecases.changes import Conflict, Save
from chalicelib.usecases.ports import Clock, Store, Unavailable

log = logging.getLogger(__name__)

Pair = tuple[str, str]
"""Coin and currency."""

LEAST, MOST = Decimal("1e-12"), Decimal("1e12")
MOST_DIGITS = 40
JUMP = Decimal("1.5")
"""A rate that is more than this many times the last one, or less than that part of it, astonishes."""
AGREE = Decimal("1.05")
BELIEVED_AFTER_MS = 6 * 3_600_000
ALARM_AFTER_MS = 2 * STALE_MS
_ITEMS = 10


@dataclass(frozen=True, slots=True)
class Quote:
    """What a provider says: `value` units of `fiat` for one `coin`, at `at` (milliseconds since 1970)."""

    coin: str
    fiat: str
    value: Decimal
    at: int

    @property
    def pair(self) -> Pair:
        return self.coin, self.fiat

    @property
    def plausible(self) -> bool:
        """Whether it can be a price at all. What is not is the provider's mistake."""
        value = self.value
        return value.is_finite() and LEAST <= value <= MOST and len(value.as_tuple().digits) <= MOST_DIGITS


class RateProvider(Protocol):
    @property
    def name(self) -> str: ...

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        """Its rates of `wanted`, fewer where it does not know them all. Raises Unavailable."""
        ...


class RateKeeper:
    """Refreshes the stored rates. Two at once harm nothing: the records' versions let one pass."""

    def __init__(self, store: Store, providers: Sequence[RateProvider], clock: Clock) -> None:
        self._store, self._providers, self._clock = store, providers, clock

    def refresh(self, coins: Iterable[str]) -> int:
        """Ask for `coins` in every currency; the number of rates stored. Raises Unavailable when no provider answers."""
        now = self._clock.now_ms()
        known = {(rate.coin, rate.fiat): rate for rate in self._stored()}
        taken, answered = self._ask({(coin, fiat) for coin in coins for fiat in FIATS}, known, now)
        written = self._write([self._next(known.get(pair), quote, source) for pair, (quote, source) in sorted(taken.items())])
        self._complain({**known, **{(r.coin, r.fiat): r for r in written}}, now)
        if self._providers and not answered:
            raise Unavailable("no provider of rates answers")
        return len(written)

    def _ask(self, wanted: set[Pair], known: dict[Pair, Rate], now: int) -> tuple[dict[Pair, tuple[Quote, str]], bool]:
        taken: dict[Pair, tuple[Quote, str]] = {}
        doubted: dict[Pair, tuple[Quote, str]] = {}
        answered = False
        for provider in self._providers:
            missing = wanted - taken.keys()
            if not missing:
                break
            try:
                quotes = provider.quotes(missing, now)
            except Unavailable as error:
                log.warning("rates: %s: %s", provider.name, error)
                continue
            answered = True
            for quote in quotes:
                if quote.pair not in missing or not quote.plausible or now - quote.at > STALE_MS:
                    continue
                before, other = known.get(quote.pair), doubted.get(quote.pair)
                if before is None or _near(quote.value, before.decimal, JUMP):
                    taken[quote.pair] = quote, provider.name
                elif other is not None and _near(quote.value, other[0].value, AGREE):
                    taken[quote.pair] = doubted.pop(quote.pair)
                elif now - before.at > BELIEVED_AFTER_MS:
                    log.error("ALARM rates: %s/%s is believed to be %s after six hours", *quote.pair, quote.value)
                    taken[quote.pair] = quote, provider.name
                elif other is None:
                    doubted[quote.pair] = quote, provider.name
        for pair, (quote, source) in doubted.items():
            log.error("ALARM rates: %s says %s for %s/%s, was %s: refused", source, quote.value, *pair, known[pair].value)
        return taken, answered

    def _next(self, before: Rate | None, quote: Quote, source: str) -> Rate:
        version = 1 if before is None else before.version + 1
        return Rate(quote.coin, quote.fiat, f"{quote.value:f}", min(quote.at, self._clock.now_ms()), source, version)

    def _write(self, rates: list[Rate]) -> list[Rate]:
        written: list[Rate] = []
        for start in range(0, len(rates), _ITEMS):
            part = rates[start : start + _ITEMS]
            try:
                self._store.commit([Save(rate) for rate in part])
            except Conflict:
                log.info("rates: another refresh was first")
                continue
            written += part
        return written

    def _complain(self, rates: dict[Pair, Rate], now: int) -> None:
        old = sorted(f"{coin}/{fiat}" for (coin, fiat), rate in rates.items() if now - rate.at > ALARM_AFTER_MS)
        if old:
            log.error("ALARM rates: no fresh rate for half an hour: %s", ", ".join(old))

    def _stored(self) -> list[Rate]:
        found: list[Rate] = []
        after: str | None = None
        while True:
            page = self._store.page(Rate, limit=1000, after=after)
            found += page.items
            after = page.next
            if after is None:
                return found


def _near(one: Decimal, other: Decimal, times: Decimal) -> bool:
    return one <= other * times and other <= one * times
