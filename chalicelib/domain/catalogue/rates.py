"""What a coin is worth in a fiat currency, as a provider said it, with the time; and when that is too old to be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from chalicelib.domain.ids import Realm
from chalicelib.domain.money import usd_cents

STALE_MS = 15 * 60 * 1000
"""A rate older than this prices nothing (milliseconds)."""
FIATS = ("USD", "EUR", "GBP")
"""What coins are priced in."""


@dataclass(frozen=True, slots=True)
class Rate:
    """`value` units of `fiat` (ISO 4217, upper case) for one `coin` (slug), exact, as text. `at` in milliseconds since 1970.

    `anchor` is what the next ones are held against (`usecases/catalogue/rates.py`), as of `anchor_at`: the last value that two
    providers said (`agreed`), or what a single one has been saying for an hour or so.
    """

    coin: str
    fiat: str
    value: str
    at: int
    source: str
    version: int = 1
    anchor: str | None = None
    anchor_at: int = 0
    agreed: bool = False

    @property
    def decimal(self) -> Decimal:
        return Decimal(self.value)

    @property
    def anchored(self) -> tuple[Decimal, int]:
        """The anchor and its time; a rate that was stored without one is its own."""
        return (self.decimal, self.at) if self.anchor is None else (Decimal(self.anchor), self.anchor_at)

    def stale(self, now_ms: int) -> bool:
        return now_ms - self.at > STALE_MS


class Rates:
    """The rates of one realm, looked up by coin and currency.

    `constant` ones are said by nobody outside, so that nobody can say them wrong.
    """

    constant = False

    def __init__(self, rates: Iterable[Rate] = ()) -> None:
        self._rates = {(rate.coin, rate.fiat): rate for rate in rates}

    def get(self, coin: str, fiat: str = "USD") -> Rate | None:
        """The last known rate, however old."""
        return self._rates.get((coin, fiat))

    def fresh(self, coin: str, now_ms: int, fiat: str = "USD") -> Rate | None:
        """The rate, unless it is stale: the only one that may price anything."""
        rate = self.get(coin, fiat)
        return None if rate is None or rate.stale(now_ms) else rate

    def usd(self, coin: str, units: int, decimals: int, now_ms: int) -> float | None:
        """What `units` are worth in US dollars, rounded to cents, for display; None without a fresh rate."""
        rate = self.fresh(coin, now_ms)
        return None if rate is None else usd_cents(units, decimals, rate.decimal)


class ConstantRates(Rates):
    """Rates that never change and never grow old: whoever looks at one is told that it was made at that very moment.

    For the sandbox, whose clock merchants move, and for local stacks, which ask nobody. `values` by coin and currency.
    """

    constant = True

    def __init__(self, values: Mapping[tuple[str, str], str], now_ms: Callable[[], int], source: str = "fixed") -> None:
        super().__init__(Rate(coin, fiat, value, 0, source) for (coin, fiat), value in values.items())
        self._now_ms = now_ms

    def get(self, coin: str, fiat: str = "USD") -> Rate | None:
        found = super().get(coin, fiat)
        return None if found is None else replace(found, at=self._now_ms())

    def fresh(self, coin: str, now_ms: int, fiat: str = "USD") -> Rate | None:
        found = super().get(coin, fiat)
        return None if found is None else replace(found, at=now_ms)


RatesOf = Callable[[Realm], Rates]
"""What use cases are handed: the rates of a realm, at most 30 seconds old."""


def no_rates(realm: Realm) -> Rates:
    """Where nobody knows what anything is worth."""
    return Rates()
