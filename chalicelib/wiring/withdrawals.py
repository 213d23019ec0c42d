"""Withdrawals up to the transaction: orders, batches, approvals, the whitelist, the payout line, fee budgets."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.withdrawals.approvals import Approvals
    from chalicelib.usecases.withdrawals.batches import BatchMaker
    from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets
    from chalicelib.usecases.withdrawals.payout_line import Line
    from chalicelib.usecases.withdrawals.retry_idle import IdleRetries
    from chalicelib.usecases.withdrawals.whitelist import Whitelist
    from chalicelib.usecases.withdrawals.withdrawals import Withdrawals
    from chalicelib.wiring.parts import Parts


class WithdrawalWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @cached_property
    def withdrawals(self) -> Withdrawals:
        from chalicelib.usecases.withdrawals.withdrawals import Withdrawals

        parts = self._parts
        charged = parts.settings.merchant_pays_fees
        return Withdrawals(parts.store, parts.rules, parts.realm_clock, self.batch_maker, parts.rates, charged)

    @cached_property
    def batch_maker(self) -> BatchMaker:
        from chalicelib.usecases.withdrawals.batches import BatchMaker

        return BatchMaker(self._parts.store, self._parts.realm_clock)

    @cached_property
    def approvals(self) -> Approvals:
        from chalicelib.usecases.withdrawals.approvals import Approvals

        parts = self._parts
        return Approvals(parts.store, parts.rules, parts.realm_clock, self.withdrawals, parts.rates)

    @cached_property
    def whitelist(self) -> Whitelist:
        from chalicelib.usecases.withdrawals.whitelist import Whitelist

        return Whitelist(self._parts.store, self._parts.rules, self._parts.realm_clock)

    @cached_property
    def fee_budgets(self) -> FeeBudgets:
        from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets

        parts = self._parts
        return FeeBudgets(parts.store, parts.realm_clock, parts.rates, parts.settings.fee_budget_usd)

    @cached_property
    def payout_line(self) -> Line:
        from chalicelib.usecases.withdrawals.payout_line import Line

        return Line(self._parts.store, self._parts.realm_clock)

    @cached_property
    def payout_sweep(self) -> IdleRetries:
        from chalicelib.usecases.withdrawals.retry_idle import IdleRetries

        return IdleRetries(self._parts.store, self._parts.queues, self._parts.realm_clock)
