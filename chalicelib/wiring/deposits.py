"""Deposits, and releases of held ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.ids import NetworkId, Realm
    from chalicelib.domain.work import Work
    from chalicelib.usecases.deposits.counted_rates import UnpricedPayments
    from chalicelib.usecases.deposits.deposits import Deposits
    from chalicelib.usecases.deposits.releases import Releases
    from chalicelib.wiring.parts import Parts


class DepositWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stopped: dict[NetworkId, Work] = {}
        """Where the search for rates stopped."""

    def deposits(self, realm: Realm) -> Deposits:
        from chalicelib.usecases.deposits.deposits import Deposits

        parts = self._parts
        return Deposits(parts.store, parts.rules, parts.clock_of(realm), parts.rates)

    def unpriced(self, network: Network) -> UnpricedPayments:
        from chalicelib.usecases.deposits.counted_rates import UnpricedPayments

        parts = self._parts
        return UnpricedPayments(network, parts.store, parts.rules, parts.clock_of(network.realm), parts.rates, self._stopped)

    def releases(self, realm: Realm) -> Releases:
        from chalicelib.usecases.deposits.releases import Releases

        parts = self._parts
        return Releases(parts.store, parts.rules, parts.clock_of(realm), parts.rates)
