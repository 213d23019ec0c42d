"""Cancels refunds and payout links before they are paid."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId
from chalicelib.domain.refunds.refunds import Refund
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.endings import give_back
from chalicelib.usecases.refunds.refund_reads import Shown, found
from chalicelib.usecases.withdrawals.withdrawals import Withdrawals


class Cancelling:
    def __init__(self, store: Store, clock: Clock, withdrawals: Withdrawals, rates_of: RatesOf) -> None:
        self._store, self._clock, self._withdrawals, self._rates_of = store, clock, withdrawals, rates_of

    def cancel(self, tenant: TenantId, refund_id: str, kind: type[Refund]) -> Shown:
        """Give its money back, unless it is being paid or has ended otherwise. Again, it changes nothing. Raises NotFound,
        BusinessRule."""

        def decide() -> Shown:
            shown = found(self._store, tenant, refund_id, kind)
            if shown.status == "cancelled":
                return shown
            if shown.refund.reserves:
                return Shown(give_back(self._store, self._rates_of, shown.refund, "cancelled", self._clock.now_ms()))
            if shown.status != "pending" or shown.withdrawal is None:
                raise BusinessRule("status", f"only what is not being paid yet can be cancelled; this one is {shown.status}")
            return replace(shown, withdrawal=self._withdrawals.cancel(tenant, shown.withdrawal.id))

        return until_settled(decide)
