"""Open refunds and payout links of a network: expires links whose time is over, and orders withdrawals that a crash has left out.

Each is one transaction that closes the open work, so it may run twice, and beside claims and cancellations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.refunds.refunds import refund_key
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.changes import Close
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.endings import give_back
from chalicelib.usecases.refunds.ordering import Ordering


class OpenRefunds:
    def __init__(self, store: Store, clock: Clock, ordering: Ordering, rates_of: RatesOf) -> None:
        self._store, self._clock, self._ordering, self._rates_of = store, clock, ordering, rates_of

    def work(self, network: NetworkId, more: Callable[[], bool] = lambda: True) -> None:
        """End or order all that is due, oldest first, while `more` says that there is time. Raises Unavailable, Failures."""
        with Each(f"{network}: refunds") as each:
            for works in pages_of(self._store, "refund", network, upto=time_order(self._clock.now_ms())):
                for work in works:
                    if not more():
                        return
                    each.take(work.id, partial(until_settled, partial(self._look, work)))

    def _look(self, work: Work) -> None:
        kind, key = refund_key(work)
        refund = self._store.get(kind, **key)
        if refund is None:
            raise LookupError(f"{work.id} is open and there is no such refund")
        if refund.status == "ordered":
            self._ordering.order(refund)
        elif refund.status == "awaiting_claim":
            give_back(self._store, self._rates_of, refund, "expired", self._clock.now_ms())
        else:
            self._store.commit([Close(work)])
