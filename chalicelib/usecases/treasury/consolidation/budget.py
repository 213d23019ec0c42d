"""The budget of consolidations: what a network's may cost in a UTC day, unless an operator approved them (money rule 14).
On a network of accounts, which has no consolidations, it is that of the moves between its hot wallets.

The transaction that plans a consolidation, or replaces its attempt, saves the day's count by its version: of two at once the second
is decided again with the first one counted.
"""

from __future__ import annotations

from typing import NamedTuple

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.treasury.consolidation_fees import ConsolidationFees
from chalicelib.domain.withdrawals.fee_budget import MICROS, micros_of
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.store import Store


class Count(NamedTuple):
    """The changes that count a fee; `over`: the day's budget is not enough for it."""

    changes: tuple[Change, ...] = ()
    over: bool = False


class ConsolidationBudget:
    """Reads and decides; stores nothing itself. `usd` is the budget in US dollars, for each network and UTC day."""

    def __init__(self, store: Store, rates_of: RatesOf, usd: int) -> None:
        self._store, self._rates_of, self.usd = store, rates_of, usd

    def count(self, network: Network, fee: int, now_ms: int, unpriced: int = 0) -> Count:
        """The count of `fee` units more, at `now_ms` (milliseconds since 1970). Where there was never a rate it is nothing, or one
        of the `unpriced` that the budget is enough for. Raises Unavailable."""
        native = self._store.catalogue(network.realm).native(network.slug)
        # The last one that is known, however old: an expensive hour must not be free because nobody says what it costs.
        rate = self._rates_of(network.realm).get(native.slug)
        if rate is not None:
            micros = micros_of(fee, native.decimals, rate.decimal)
        elif unpriced:
            micros = max(1, self.usd * MICROS // unpriced)
        else:
            return Count()
        record = self._store.get(ConsolidationFees, network=network.id) or ConsolidationFees(network.id)
        after = record.counting(now_ms, micros)
        return Count((Save(after),), after.over(self.usd))
