"""Open refunds and payout links of a network: expires links whose time is over, and orders withdrawals that a crash has left out.

Each is one transaction that closes the open work, so it may run twice, and beside claims and cancellations.

One merchant's thousand links may end at once and stand before all others. Each run first takes a few of every merchant, then all
from the oldest on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.refunds.refunds import refund_key
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.base.fairness import in_turn
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.changes import Close
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.endings import give_back
from chalicelib.usecases.refunds.ordering import Ordering

SHARE = 20
"""Refunds and links of one merchant that are ended while others may be waiting behind them."""
GLANCED = 10_000
"""Rows of open work in which those of every merchant are looked for."""


class OpenRefunds:
    def __init__(self, store: Store, clock: Clock, ordering: Ordering, rates_of: RatesOf) -> None:
        self._store, self._clock, self._ordering, self._rates_of = store, clock, ordering, rates_of

    def work(self, network: NetworkId, more: Callable[[], bool] = lambda: True) -> None:
        """End or order all that is due while `more` says that there is time: a few of every merchant first. Raises Unavailable,
        Failures."""
        with Each(f"{network}: refunds") as each:
            tried: set[str] = set()
            if not self._take(each, network, more, tried, Counter()):
                self._take(each, network, more, tried, None)

    def _take(self, each: Each, network: NetworkId, more: Callable[[], bool], tried: set[str], taken: Counter[str] | None) -> bool:
        """Whether nothing was left out that is due. `taken` counts work by merchant; None where there is no bound for one. What is
        in `tried` was taken in this run already."""
        whole, glanced = True, 0
        for works in pages_of(self._store, "refund", network, upto=time_order(self._clock.now_ms())):
            for work in in_turn([work for work in works if work.id not in tried], _owner):
                if taken is not None:
                    taken[_owner(work)] += 1
                    if taken[_owner(work)] > SHARE:
                        whole = False
                        continue
                if not more():
                    return True
                tried.add(work.id)
                each.take(work.id, partial(until_settled, partial(self._look, work)))
            glanced += len(works)
            if taken is not None and glanced >= GLANCED:
                return False
        return whole

    def _look(self, work: Work) -> None:
        kind, key = refund_key(work)
        refund = self._store.get(kind, **key)
        if refund is None:
            raise LookupError(f"{work.id} is open and there is no such refund")
        demand_known(refund)
        if refund.status == "ordered":
            self._ordering.order(refund)
        elif refund.status == "awaiting_claim":
            give_back(self._store, self._rates_of, refund, "expired", self._clock.now_ms())
        else:
            self._store.commit([Close(work)])


def _owner(work: Work) -> str:
    return work.id.split("|")[0]
