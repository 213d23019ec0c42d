"""Exchange rates of the live realm: providers are asked in order, and no single one decides a coin's value.

A rate decides what an invoice costs. With two providers or more, a value is compared with another provider's in four cases: it is
the first one of a coin; it differs from the last by more than 5 %; it differs by more than 20 % from the last one that two
providers agreed on; that agreement is more than an hour old. Within 5 % of each other they agree, and the value is taken. Otherwise
the old rate stays, grows stale, prices nothing any more, and an alarm says so every time.

One provider alone, because no other is configured or all the others answer and do not know the coin: the first value is taken with
a warning. After that it may move by 20 % at once and by 20 % more an hour. A larger move is refused with an alarm, until enough
hours have passed for it.

Coins are quoted in three currencies each. In all others a coin is worth its rate in dollars times a dollar's in that currency,
which is kept as a rate of its own under the same rules. It is asked for every five minutes, in the same request to a provider, as
what one bitcoin is worth there and in dollars.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Protocol

from chalicelib.domain.catalogue.fiats import ANCHORED, CROSSED, DOLLAR
from chalicelib.domain.catalogue.rates import STALE_MS, ConstantRates, Rate
from chalicelib.domain.versions import version_after
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

Pair = tuple[str, str]
"""Coin and currency."""

LEAST, MOST = Decimal("1e-12"), Decimal("1e12")
MOST_DIGITS = 40
NEAR = Decimal("1.05")
"""Two values of which none is more than this many times the other are the same, or have hardly moved."""
AN_HOUR = Decimal("1.2")
"""How many times the anchor a value may be, or which part of it, with nobody to confirm it."""
HOUR_MS = 3_600_000
ALARM_AFTER_MS = 2 * STALE_MS
MINUTE_MS = 60_000
CROSS_MS = 5 * MINUTE_MS
"""How old a dollar's rates in other currencies may get before they are asked for again."""
_REFERENCE = "btc"
"""The coin that tells what a dollar is worth: the one that every provider quotes in most currencies."""
_ITEMS = 10
_ROUNDED = Context(prec=20)
_LONGEST_HOURS = 1_000


@dataclass(frozen=True, slots=True)
class Quote:
    """A provider's rate: `value` units of `fiat` for one `coin`, at `at` (milliseconds since 1970)."""

    coin: str
    fiat: str
    value: Decimal
    at: int

    @property
    def pair(self) -> Pair:
        return self.coin, self.fiat

    @property
    def plausible(self) -> bool:
        """Whether the value can be a price at all. An implausible one is the provider's mistake."""
        value = self.value
        return value.is_finite() and LEAST <= value <= MOST and len(value.as_tuple().digits) <= MOST_DIGITS


class RateProvider(Protocol):
    @property
    def name(self) -> str: ...

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        """Its rates of `wanted`, fewer where it does not know them all. Raises Unavailable."""
        ...


def constant_rates(provider: RateProvider, wanted: Collection[Pair], now_ms: Callable[[], int]) -> ConstantRates:
    """The rates of a provider whose rates never change: it is asked once, nothing is stored, and its rates never grow stale."""
    said = provider.quotes(wanted, now_ms())
    return ConstantRates({quote.pair: f"{quote.value:f}" for quote in said}, now_ms, provider.name)


@dataclass(frozen=True, slots=True)
class _Said:
    """A quote, its provider, and whether another provider has to confirm it: without that it is not taken."""

    quote: Quote
    source: str
    doubted: bool


class _Round:
    """The providers' quotes at one refresh, and the values taken of them."""

    def __init__(self, wanted: set[Pair], known: dict[Pair, Rate], now: int) -> None:
        self.wanted, self._known, self._now = wanted, known, now
        self.taken: dict[Pair, Rate] = {}
        self._said: dict[Pair, list[_Said]] = {}
        self._refused: set[Pair] = set()
        self.answered = 0

    def missing(self) -> set[Pair]:
        """The pairs still to be asked for."""
        return self.wanted - self.taken.keys()

    def hear(self, name: str, quotes: Iterable[Quote]) -> None:
        """A provider's answer."""
        self.answered += 1
        missing = self.missing()
        for quote in quotes:
            if quote.pair in missing and quote.pair not in self.taken:
                self._weigh(name, quote)

    def _weigh(self, name: str, quote: Quote) -> None:
        earlier = self._said.setdefault(quote.pair, [])
        if any(said.source == name for said in earlier):
            return
        usable = quote.plausible and self._now - quote.at <= STALE_MS
        if not usable:
            # It knows the coin, and may know better in a minute: so nobody is alone with it.
            self._refused.add(quote.pair)
            return
        before = self._known.get(quote.pair)
        for said in earlier:
            if _near(quote.value, said.quote.value, NEAR):
                self._take(said, said.quote.value, self._now, agreed=True)
                return
        said = _Said(quote, name, before is None or self._moved(before, quote.value))
        earlier.append(said)
        if before is None or said.doubted:
            return
        anchor, anchor_at = before.anchored
        if len(earlier) == 1 and before.agreed and self._now - anchor_at <= HOUR_MS:
            self._take(said, anchor, anchor_at, agreed=True)
        elif len(earlier) > 1 and all(other.doubted for other in earlier[:-1]):
            # The others astonish, and this one says what was known.
            self._take(said, anchor, anchor_at, agreed=before.agreed)
            self._alarm(earlier[:-1])

    def _moved(self, before: Rate, value: Decimal) -> bool:
        return not (_near(value, before.decimal, NEAR) and _near(value, before.anchored[0], AN_HOUR))

    def close(self, configured: int) -> None:
        """Decide the pairs that one provider alone quotes, once all providers were asked."""
        for pair, said in self._said.items():
            if pair in self.taken or not said:
                continue
            before, first = self._known.get(pair), said[0]
            # A coin that two have agreed on once needs two for ever, unless there are no two any more.
            others_know = pair in self._refused or self.answered < configured or (before is not None and before.agreed)
            if len(said) > 1:
                self._alarm(said)
            elif configured > 1 and others_know:
                if before is None or first.doubted or not before.agreed:
                    self._alarm(said)
                else:
                    self._take(first, *before.anchored, agreed=True)
            else:
                self._alone(first, before)

    def _alone(self, said: _Said, before: Rate | None) -> None:
        value = said.quote.value
        if before is None:
            log.warning("rates: %s/%s is taken from %s alone, unconfirmed: %s", *said.quote.pair, said.source, value)
            self._take(said, value, self._now, agreed=False)
            return
        anchor, anchor_at = before.anchored
        hours = min(Decimal(max(0, self._now - anchor_at)) / HOUR_MS, Decimal(_LONGEST_HOURS))
        if not _near(value, anchor, _ROUNDED.power(AN_HOUR, max(hours, Decimal(1)))):
            self._alarm([said])
            return
        reach = _ROUNDED.power(AN_HOUR, hours)
        followed = min(max(value, _ROUNDED.divide(anchor, reach)), _ROUNDED.multiply(anchor, reach))
        self._take(said, followed, self._now, agreed=False)

    def _take(self, said: _Said, anchor: Decimal, anchor_at: int, *, agreed: bool) -> None:
        quote, before = said.quote, self._known.get(said.quote.pair)
        version = version_after(before)
        at, value = min(quote.at, self._now), f"{quote.value:f}"
        made = Rate(quote.coin, quote.fiat, value, at, said.source, version, f"{anchor:f}", anchor_at, agreed)
        self.taken[quote.pair] = made

    def _alarm(self, refused: Sequence[_Said]) -> None:
        for said in refused:
            before = self._known.get(said.quote.pair)
            was = "never known" if before is None else before.value
            log.error("ALARM rates: %s says %s for %s/%s, was %s: refused", said.source, said.quote.value, *said.quote.pair, was)


class RateKeeper:
    """Refreshes the stored rates. Two at once harm nothing: the records' versions let one pass."""

    def __init__(self, store: Store, providers: Sequence[RateProvider], clock: Clock) -> None:
        self._store, self._providers, self._clock = store, providers, clock

    def refresh(self, coins: Iterable[str]) -> int:
        """Ask for `coins`, and where it is time for a dollar's rates; the number of rates stored. Raises Unavailable when no
        provider answers."""
        now = self._clock.now_ms()
        known = {(rate.coin, rate.fiat): rate for rate in self._stored()}
        heard = _Round({(coin, fiat) for coin in coins for fiat in ANCHORED} | _crosses_due(known, now), known, now)
        for provider in self._providers:
            missing = heard.missing()
            if not missing:
                break
            try:
                quotes = _crossed(provider.quotes(_asked_for(missing), now))
            except Unavailable as error:
                log.warning("rates: %s: %s", provider.name, error)
            else:
                heard.hear(provider.name, quotes)
        heard.close(len(self._providers))
        written = self._write([rate for _, rate in sorted(heard.taken.items())])
        self._complain({**known, **{(r.coin, r.fiat): r for r in written}}, now)
        if self._providers and not heard.answered:
            raise Unavailable("no provider of rates answers")
        return len(written)

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


def _crosses_due(known: Mapping[Pair, Rate], now: int) -> set[Pair]:
    """The dollar's rates, where the newest is old enough; while none is known, in one minute of five. One that no provider tells
    is asked for with the others."""
    newest = max((rate.at for (coin, _), rate in known.items() if coin == DOLLAR), default=None)
    due = now % CROSS_MS < MINUTE_MS if newest is None else now - newest >= CROSS_MS
    return {(DOLLAR, fiat) for fiat in CROSSED} if due else set()


def _asked_for(missing: set[Pair]) -> set[Pair]:
    """What a provider is asked for: a bitcoin's rates in place of a dollar's."""
    crosses = {fiat for coin, fiat in missing if coin == DOLLAR}
    asked = {pair for pair in missing if pair[0] != DOLLAR}
    return asked | {(_REFERENCE, fiat) for fiat in (*crosses, "USD")} if crosses else asked


def _crossed(quotes: Sequence[Quote]) -> list[Quote]:
    """Quotes with a dollar's in place of a bitcoin's in other currencies, both of one provider's answer."""
    usd = next((quote for quote in quotes if quote.pair == (_REFERENCE, "USD") and quote.plausible), None)
    found = [quote for quote in quotes if quote.fiat in ANCHORED]
    if usd is not None:
        others = [quote for quote in quotes if quote.coin == _REFERENCE and quote.fiat not in ANCHORED and quote.plausible]
        found += [Quote(DOLLAR, q.fiat, _ROUNDED.divide(q.value, usd.value), min(q.at, usd.at)) for q in others]
    return found


def _near(one: Decimal, other: Decimal, times: Decimal) -> bool:
    return one <= other * times and other <= one * times
