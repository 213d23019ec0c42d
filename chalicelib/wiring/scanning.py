"""Scanning: blocks, mempools, rescans, transfers between our own addresses."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.ports.queues import RangeQueue
    from chalicelib.usecases.scanning.internal_transfers import BalanceBooker
    from chalicelib.usecases.scanning.mempool import Glimpses, Looks
    from chalicelib.usecases.scanning.rescans import Rescanner, Rescans
    from chalicelib.usecases.scanning.scanner import Scanner
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.deposits import DepositWiring
    from chalicelib.wiring.parts import Parts


class ScanningWiring:
    def __init__(self, parts: Parts, chains: ChainWiring, deposits: DepositWiring) -> None:
        self._parts, self._chains, self._deposits = parts, chains, deposits
        self.looks: dict[str, Looks] = {}

    def scanner(self, network: Network) -> Scanner:
        from chalicelib.usecases.scanning.scanner import Scanner

        parts, deposits = self._parts, self._deposits.deposits(network.realm)
        reader, clock, queue = self._chains.reader(network), parts.clock_of(network.realm), self.range_queue(network)
        return Scanner(network, reader, parts.store, deposits, parts.rules, clock, queue)

    def range_queue(self, network: Network) -> RangeQueue | None:
        """Who helps with a backlog. A simulated chain is read as fast as our own tables: nobody has to."""
        return None if network.simulated else self._parts.queues

    def glimpses(self, network: Network) -> Glimpses | None:
        """What looks into a network's mempool; None for one whose payments are first seen in blocks."""
        from chalicelib.usecases.scanning.mempool import Glimpses, Looks
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        if not pays_from_coins(network):
            return None
        mempool = self._chains.mempool(network)
        looks = self.looks.setdefault(network.id, Looks())
        parts, deposits = self._parts, self._deposits.deposits(network.realm)
        return Glimpses(network, mempool, parts.store, deposits, parts.rules, parts.clock_of(network.realm), looks)

    def rescanner(self, network: Network) -> Rescanner:
        from chalicelib.usecases.scanning.rescans import Rescanner

        store, clock = self._parts.store, self._parts.clock_of(network.realm)
        return Rescanner(network, self._chains.reader(network), store, self.scanner(network), clock)

    @cached_property
    def rescans(self) -> Rescans:
        from chalicelib.usecases.scanning.rescans import Rescans

        return Rescans(self._parts.store, self._parts.clock)

    def balance_booker(self, network: Network) -> BalanceBooker:
        from chalicelib.usecases.scanning.internal_transfers import BalanceBooker

        parts, page = self._parts, self._parts.settings.reconcile_page
        reader, clock = self._chains.reader(network), parts.clock_of(network.realm)
        return BalanceBooker(network, reader, parts.store, self.scanner(network), parts.rules, clock, page)
