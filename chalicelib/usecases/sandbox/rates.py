"""Rates that a merchant sets in its own sandbox, for rehearsing prices in fiat, choices, and rates that are stale.

They are read for what is priced in fiat alone (`Rates.of`): nothing else in the sandbox, and nothing live, asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chalicelib.domain.catalogue.rates import ConstantRates, Rate, Rates
from chalicelib.domain.catalogue.sandbox_rates import MOST, MerchantsRates, OwnRate, SandboxRates
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.store import Store


class OverridableRates(ConstantRates):
    """The sandbox's rates, which each merchant may set for itself. `usual` are those of everybody."""

    def __init__(self, usual: Rates, store: Callable[[], Store]) -> None:
        super().__init__({}, lambda: 0)
        self._usual, self._store = usual, store

    def get(self, coin: str, fiat: str = "USD") -> Rate | None:
        return self._usual.get(coin, fiat)

    def fresh(self, coin: str, now_ms: int, fiat: str = "USD") -> Rate | None:
        return self._usual.fresh(coin, now_ms, fiat)

    def of(self, tenant: TenantId) -> Rates:
        """One read. Raises Unavailable."""
        own = self._store().get(SandboxRates, tenant=tenant)
        return self if own is None or not own.rates else MerchantsRates(self._usual, own)


@dataclass(frozen=True, slots=True)
class SetRate:
    """A rate as it is now: `value` None where nobody knows one. `own`: by the merchant's wish."""

    coin: str
    fiat: str
    value: str | None
    stale: bool
    own: bool


class RateSetter:
    def __init__(self, store: Store, usual: Rates) -> None:
        self._store, self._usual = store, usual

    def setting(self, tenant: TenantId, rate: OwnRate) -> Creation[SetRate]:
        """Prepare to set a rate of the merchant's sandbox. A try raises BusinessRule where it has set too many, Unavailable."""

        def prepare() -> Prepared[SetRate]:
            before = self._store.get(SandboxRates, tenant=tenant) or SandboxRates(tenant, version=0)
            after = before.with_rate(rate)
            if len(after.rates) > MOST:
                raise BusinessRule("coin", f"at most {MOST} rates may be set: take one back first, with value null")
            usual = self._usual.get(rate.coin, rate.fiat)
            value = rate.value if rate.value is not None or usual is None else f"{usual.decimal:f}"
            own = rate.value is not None or rate.stale
            return Prepared(SetRate(rate.coin, rate.fiat, value, rate.stale, own), [Save(after)])

        return Creation(self._store, prepare)
