"""Refunds, payout links, their claims, and the open work of both."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.refunds.cancelling import Cancelling
    from chalicelib.usecases.refunds.claims import Claims
    from chalicelib.usecases.refunds.making import Making
    from chalicelib.usecases.refunds.open_refunds import OpenRefunds
    from chalicelib.usecases.refunds.ordering import Ordering
    from chalicelib.usecases.refunds.payout_links import PayoutLinks
    from chalicelib.usecases.refunds.refunds import Refunds
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.withdrawals import WithdrawalWiring


class RefundWiring:
    def __init__(self, parts: Parts, withdrawals: WithdrawalWiring) -> None:
        self._parts, self._withdrawals = parts, withdrawals

    @cached_property
    def refunds(self) -> Refunds:
        from chalicelib.usecases.refunds.refunds import Refunds

        parts, url = self._parts, self._parts.settings.public_url
        return Refunds(parts.store, parts.realm_clock, self._making, self._ordering, self._cancelling, parts.rates, url)

    @cached_property
    def payout_links(self) -> PayoutLinks:
        from chalicelib.usecases.refunds.payout_links import PayoutLinks

        parts = self._parts
        return PayoutLinks(parts.store, parts.realm_clock, self._making, self._cancelling, parts.settings.public_url)

    @cached_property
    def claims(self) -> Claims:
        from chalicelib.usecases.refunds.claims import Claims

        return Claims(self._parts.store, self._parts.clock_of, self._ordering)

    @cached_property
    def open_refunds(self) -> OpenRefunds:
        from chalicelib.usecases.refunds.open_refunds import OpenRefunds

        return OpenRefunds(self._parts.store, self._parts.realm_clock, self._ordering, self._parts.rates)

    @cached_property
    def _making(self) -> Making:
        from chalicelib.usecases.refunds.making import Making

        return Making(self._parts.store, self._withdrawals.withdrawals, self._parts.rates)

    @cached_property
    def _ordering(self) -> Ordering:
        from chalicelib.usecases.refunds.ordering import Ordering

        parts = self._parts
        return Ordering(parts.store, parts.realm_clock, self._withdrawals.withdrawals, parts.rates)

    @cached_property
    def _cancelling(self) -> Cancelling:
        from chalicelib.usecases.refunds.cancelling import Cancelling

        parts = self._parts
        return Cancelling(parts.store, parts.realm_clock, self._withdrawals.withdrawals, parts.rates)
