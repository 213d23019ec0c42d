"""Stray payments: the operator's decisions, and the returns that follow from them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.stray_payments.decisions import StrayPayments
    from chalicelib.usecases.stray_payments.returns import StrayReturns
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.withdrawals import WithdrawalWiring


class StrayPaymentWiring:
    def __init__(self, parts: Parts, chains: ChainWiring, withdrawals: WithdrawalWiring) -> None:
        self._parts, self._chains, self._withdrawals = parts, chains, withdrawals

    @cached_property
    def stray_payments(self) -> StrayPayments:
        from chalicelib.usecases.stray_payments.decisions import StrayPayments

        parts, reader, withdrawals = self._parts, self._chains.impatient_reader, self._withdrawals.withdrawals
        return StrayPayments(parts.store, parts.rules, parts.realm_clock, reader, withdrawals)

    def stray_returns(self, network: Network) -> StrayReturns:
        from chalicelib.usecases.stray_payments.returns import StrayReturns

        store, clock = self._parts.store, self._parts.clock_of(network.realm)
        return StrayReturns(network, store, clock, self._withdrawals.withdrawals)
