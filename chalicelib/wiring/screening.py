"""Screening: the grey list, and the risk rules of withdrawals."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.screening.grey_list import GreyList
    from chalicelib.usecases.screening.withdrawals import Risk
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.parts import Parts


class ScreeningWiring:
    def __init__(self, parts: Parts, chains: ChainWiring) -> None:
        self._parts, self._chains = parts, chains

    @cached_property
    def grey_list(self) -> GreyList:
        from chalicelib.usecases.screening.grey_list import GreyList

        return GreyList(self._parts.store, self._parts.rules, self._parts.realm_clock)

    @cached_property
    def risk(self) -> Risk:
        from chalicelib.usecases.screening.withdrawals import Risk

        parts = self._parts
        return Risk(parts.store, parts.rules, parts.rates, self._chains.reader, parts.settings.risk)
