"""Scanning: blocks, mempools, rescans, transfers between our own addresses."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.ports.queues import ScanQueue
    from chalicelib.usecases.scanning.internal_transfers import InternalTransfers
    from chalicelib.usecases.scanning.mempool import Looks, MempoolScan
    from chalicelib.usecases.scanning.node_reports import NodeReports
    from chalicelib.usecases.scanning.rescans import Rescanner, Rescans
    from chalicelib.usecases.scanning.scanner import Scanner
    from chalicelib.usecases.scanning.ticks import Ticks
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.deposits import DepositWiring
    from chalicelib.wiring.nodes import NodeWiring
    from chalicelib.wiring.parts import Parts


class ScanningWiring:
    def __init__(self, parts: Parts, chains: ChainWiring, deposits: DepositWiring, nodes: NodeWiring) -> None:
        self._parts, self._chains, self._deposits, self._nodes = parts, chains, deposits, nodes
        self.looks: dict[str, Looks] = {}

    def scanner(self, network: Network) -> Scanner:
        from chalicelib.usecases.scanning.scanner import Scanner

        deposits = self._deposits.deposits(network.realm)
        return Scanner(self._chains.context(network), deposits, self.range_queue(network))

    def node_reports(self, network: Network) -> NodeReports:
        from chalicelib.usecases.scanning.node_reports import NodeReports

        nodes = [node.health for node in self._nodes.nodes(network)]
        return NodeReports(network, self._chains.reader(network), self._parts.store, self._parts.clock, nodes)

    def range_queue(self, network: Network) -> ScanQueue | None:
        """The queue that shares out backlogs and crowded blocks; None for a simulated chain, read as fast as our own tables."""
        return None if network.simulated else self._parts.queues

    def mempool_scan(self, network: Network, of: str = "poll") -> MempoolScan | None:
        """The reader of a network's mempool; None for a network whose payments are first seen in blocks. `of`: polls and ticks
        remember apart what they have read, since they run at once in the local stack's process."""
        from chalicelib.usecases.scanning.mempool import Looks, MempoolScan
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        if not pays_from_coins(network):
            return None
        mempool = self._chains.mempool(network)
        looks = self.looks.setdefault(network.id if of == "poll" else f"{of} {network.id}", Looks())
        deposits = self._deposits.deposits(network.realm)
        return MempoolScan(self._chains.context(network), mempool, deposits, looks)

    @cached_property
    def ticks(self) -> Ticks:
        from chalicelib.usecases.scanning.ticks import Ticks

        settings = self._parts.settings
        most_ms = settings.busy_hours * 3_600_000 if settings.ticks else None
        return Ticks(self._parts.store, self._parts.clock, self._parts.queues, most_ms)

    def rescanner(self, network: Network) -> Rescanner:
        from chalicelib.usecases.scanning.rescans import Rescanner

        return Rescanner(self._chains.context(network), self.scanner(network).passing)

    @cached_property
    def rescans(self) -> Rescans:
        from chalicelib.usecases.scanning.rescans import Rescans

        return Rescans(self._parts.store, self._parts.clock)

    def balance_booker(self, network: Network) -> InternalTransfers:
        from chalicelib.usecases.scanning.internal_transfers import InternalTransfers

        page = self._parts.settings.reconcile_page
        return InternalTransfers(self._chains.context(network), self.scanner(network).recorder, page)
