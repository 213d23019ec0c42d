"""Exchange rates of coins in fiat currencies, as a provider quoted them, with the time; and when a rate is stale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal

from chalicelib.domain.catalogue.fiats import ANCHORED, DOLLAR
from chalicelib.domain.ids import Realm, TenantId
from chalicelib.domain.money import usd_cents

STALE_MS = 15 * 60 * 1000
"""A rate older than this prices nothing (milliseconds)."""
_CROSS = Context(prec=30)


@dataclass(frozen=True, slots=True)
class Rate:
    """`value` units of `fiat` (ISO 4217, upper case) for one `coin` (slug), exact, as text. `at` in milliseconds since 1970.

    `anchor` is the reference for later rates (`usecases/catalogue/rates.py`), as of `anchor_at`: the last value that two providers
    quoted (`agreed`), or that a single one has been quoting for an hour or so.
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
        """The anchor and its time; a rate that was stored without one is its own anchor."""
        return (self.decimal, self.at) if self.anchor is None else (Decimal(self.anchor), self.anchor_at)

    def stale(self, now_ms: int) -> bool:
        return now_ms - self.at > STALE_MS


class Rates:
    """The rates of one realm, looked up by coin and currency.

    `constant` rates have no provider outside, so none can quote them wrong.
    """

    constant = False

    def __init__(self, rates: Iterable[Rate] = ()) -> None:
        self._rates = {(rate.coin, rate.fiat): rate for rate in rates}

    def get(self, coin: str, fiat: str = "USD") -> Rate | None:
        """The last known rate, however old. In a currency that coins are not quoted in: by way of the US dollar, as old as the
        older of the two, to 30 digits."""
        found = self._rates.get((coin, fiat))
        if found is not None or fiat in ANCHORED:
            return found
        usd, cross = self._rates.get((coin, "USD")), self._rates.get((DOLLAR, fiat))
        if usd is None or cross is None:
            return None
        source = usd.source if usd.source == cross.source else f"{usd.source}, {cross.source}"
        return Rate(coin, fiat, f"{_CROSS.multiply(usd.decimal, cross.decimal):f}", min(usd.at, cross.at), source)

    def fresh(self, coin: str, now_ms: int, fiat: str = "USD") -> Rate | None:
        """The rate, unless it is stale: the only one that may price anything."""
        rate = self.get(coin, fiat)
        return None if rate is None or rate.stale(now_ms) else rate

    def of(self, tenant: TenantId) -> Rates:
        """Those that count for a merchant's prices in fiat: in the sandbox it may have set its own."""
        return self

    def usd(self, coin: str, units: int, decimals: int, now_ms: int) -> float | None:
        """The value of `units` in US dollars, rounded to cents, for display; None without a fresh rate."""
        rate = self.fresh(coin, now_ms)
        return None if rate is None else usd_cents(units, decimals, rate.decimal)


class ConstantRates(Rates):
    """Rates that never change and are never stale: each read gives the current time as theirs.

    For the sandbox, whose clock merchants move, and for local stacks, which have no provider. `values` by coin and currency.
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
"""The rates of a realm, at most 30 seconds old, as use cases get them."""


def no_rates(realm: Realm) -> Rates:
    """An empty table of rates."""
    return Rates()
