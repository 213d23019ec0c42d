"""A merchant's own rates in its sandbox: what a coin is worth there by its wish, or that its rate is stale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.rates import STALE_MS, Rate, Rates
from chalicelib.domain.ids import TenantId
from chalicelib.domain.versions import next_version

MOST = 200
"""Rates that one merchant may set: a few KB in one record."""
SOURCE = "sandbox"


@dataclass(frozen=True, slots=True)
class OwnRate:
    """The rate of `coin` in `fiat`: `value` as text, exact; None: the usual one, which is `stale`."""

    coin: str
    fiat: str
    value: str | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class SandboxRates:
    """All rates that a merchant has set in its sandbox."""

    tenant: TenantId
    rates: tuple[OwnRate, ...] = ()
    version: int = 1

    def of(self, coin: str, fiat: str) -> OwnRate | None:
        return next((rate for rate in self.rates if (rate.coin, rate.fiat) == (coin, fiat)), None)

    def with_rate(self, rate: OwnRate) -> SandboxRates:
        """With another rate of its coin and currency: back to the usual one where it says nothing."""
        others = tuple(one for one in self.rates if (one.coin, one.fiat) != (rate.coin, rate.fiat))
        usual = rate.value is None and not rate.stale
        return replace(next_version(self), rates=others if usual else (*others, rate))


class MerchantsRates(Rates):
    """The sandbox's rates with a merchant's own in their place. `constant`, as the sandbox's: no provider can quote them wrong."""

    constant = True

    def __init__(self, usual: Rates, own: SandboxRates) -> None:
        super().__init__()
        self._usual, self._own = usual, own

    def get(self, coin: str, fiat: str = "USD") -> Rate | None:
        usual, own = self._usual.get(coin, fiat), self._own.of(coin, fiat)
        return usual if own is None else _said(own, usual, 0 if usual is None else usual.at)

    def fresh(self, coin: str, now_ms: int, fiat: str = "USD") -> Rate | None:
        usual, own = self._usual.fresh(coin, now_ms, fiat), self._own.of(coin, fiat)
        if own is None:
            return usual
        return None if own.stale else _said(own, usual, now_ms)


def _said(own: OwnRate, usual: Rate | None, at: int) -> Rate | None:
    if own.value is not None:
        return Rate(own.coin, own.fiat, own.value, at, SOURCE)
    return None if usual is None else replace(usual, at=at - STALE_MS - 1)
