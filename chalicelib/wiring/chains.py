"""Adapters of networks: for each its nodes, or the simulated chain, with the adapter of its family, made at first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chalicelib.chains.utxo.payer import UtxoPayer
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.treasury.moves import MoveKind
    from chalicelib.usecases.base.network_context import NetworkContext
    from chalicelib.usecases.ports.accounts import ChainPayer
    from chalicelib.usecases.ports.coins import CoinPayer
    from chalicelib.usecases.ports.delegating import DelegationNode
    from chalicelib.usecases.ports.payer_transactions import PayerTransactions
    from chalicelib.usecases.ports.readers import ChainReader, Mempool
    from chalicelib.usecases.ports.staking import StakingNode
    from chalicelib.usecases.ports.tokens import TokenReader
    from chalicelib.usecases.reconciliation.utxo import CoinWitness
    from chalicelib.wiring.nodes import NodeWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.second_readers import SecondReaders
    from chalicelib.wiring.simulated import SimulatedWiring


class ChainWiring:
    def __init__(self, parts: Parts, nodes: NodeWiring, simulated: SimulatedWiring) -> None:
        self._parts, self._nodes, self._simulated = parts, nodes, simulated
        self._made: dict[tuple[str, str], Any] = {}

    def context(self, network: Network) -> NetworkContext:
        """The context of one network, for one run. Raises LookupError where this deployment has no node of it."""
        from chalicelib.usecases.base.network_context import NetworkContext

        parts = self._parts
        return NetworkContext(network, self.reader(network), parts.store, parts.rules, parts.clock_of(network.realm))

    @cached_property
    def second_readers(self) -> SecondReaders:
        from chalicelib.wiring.second_readers import SecondReaders

        return SecondReaders(self._parts.settings)

    def reader(self, network: Network) -> ChainReader:
        """The reader that scans a network: over its node, or the simulated chain."""
        key = ("reader", f"{network.id} {network.version}")
        if key not in self._made:
            self._made[key] = self._simulated.reader(network) if network.simulated else self.live_reader(network)
        reader: ChainReader = self._made[key]
        return reader

    def payer(self, network: Network) -> ChainPayer:
        """The adapter that builds and sends a network's payments. Signs nothing."""
        key = ("payer", f"{network.id} {network.version}")
        if key not in self._made:
            self._made[key] = self._simulated.payer(network) if network.simulated else self.live_payer(network)
        payer: ChainPayer = self._made[key]
        return payer

    def coin_payer(self, network: Network) -> CoinPayer:
        """The adapter that builds and sends the payments of a UTXO network. Signs nothing."""
        key = ("coin payer", f"{network.id} {network.version}")
        if key not in self._made:
            self._made[key] = self.live_coin_payer(network)
        payer: CoinPayer = self._made[key]
        return payer

    def coin_witness(self, network: Network) -> CoinWitness:
        """The adapter that tells spent outputs of a UTXO network; where there are several nodes, with several nodes' word."""
        return self.live_coin_payer(network)

    def mempool(self, network: Network) -> Mempool:
        """The mempool of a network. Raises LookupError for any but a live bitcoin or litecoin."""
        key = ("mempool", f"{network.id} {network.version}")
        if key not in self._made:
            _demand_coins(network)
            from chalicelib.chains.utxo.mempool import UtxoMempool

            self._made[key] = UtxoMempool(network, self._nodes.rpc(network), self._parts.settings.chain(network.id))
        mempool: Mempool = self._made[key]
        return mempool

    def impatient_reader(self, network: Network) -> ChainReader:
        """The reader for a request that a caller waits for. Raises LookupError where this deployment has no node."""
        return self.reader(network) if network.simulated else self.live_reader(network, impatient=True)

    def token_reader(self, network: Network) -> TokenReader:
        """The reader of a network's token contracts. Raises LookupError where this deployment has none."""
        if network.simulated:
            return self._simulated.simulated_tokens(network.id)
        rpc = self._nodes.rpc(network, impatient=True)
        if network.family == "tron":
            from chalicelib.chains.tron.tokens import TronTokens

            return TronTokens(network, rpc, self._nodes.tron_genesis(network))
        from chalicelib.chains.evm.tokens import EvmTokens

        return EvmTokens(network, rpc)

    def staking_node(self, network: Network, impatient: bool = False) -> StakingNode:
        """The adapter that builds and sends stakes on the real Tron. Signs nothing. Raises LookupError where this deployment has
        no node."""
        if network.family != "tron":
            raise LookupError(f"{network.id} knows no stakes")
        from chalicelib.chains.tron.staking import TronStaking

        each = self._nodes.transports(network, impatient)
        return TronStaking(network, self._nodes.rpc(network, impatient), self._nodes.tron_genesis(network), each)

    def delegations(self, network: Network) -> DelegationNode:
        """The adapter that lends the energy of a stake on the real Tron. Raises LookupError for any other network."""
        if network.family != "tron" or network.simulated:
            raise LookupError(f"{network.id} lends nothing")
        from chalicelib.chains.tron.delegating import TronDelegating

        each = self._nodes.transports(network)
        return TronDelegating(network, self._nodes.rpc(network), self._nodes.tron_genesis(network), each)

    def loan_payer(self, network: Network, kind: MoveKind) -> ChainPayer:
        """The adapter that builds energy loans. Raises LookupError for a network that has none."""
        from chalicelib.usecases.treasury.tron.loan_payer import LoanPayer

        return LoanPayer(self.delegations(network), self.payer(network), kind, network.chain_id)

    def live_reader(self, network: Network, impatient: bool = False) -> ChainReader:
        """One reader for each node, so that a fault that a reader finds in its node makes another node answer."""
        nodes = self._nodes.nodes(network, impatient)
        if len(nodes) == 1:
            return self.reader_over(network, nodes[0].transport)
        from chalicelib.chains.node_comparison import NodeReader
        from chalicelib.chains.quorum import QuorumReader

        return QuorumReader(network, [NodeReader(self.reader_over(network, node.transport), node.health) for node in nodes])

    def reader_over(self, network: Network, transport: Any) -> ChainReader:
        """The reader of the network's family, over one node."""
        if network.family == "utxo":
            from chalicelib.chains.utxo.reader import UtxoReader

            return UtxoReader(network, transport, self._parts.settings.chain(network.id))
        if network.family == "tron":
            from chalicelib.chains.tron.reader import TronReader

            return TronReader(network, transport, self._nodes.tron_genesis(network))
        from chalicelib.chains.evm.reader import EvmReader

        return EvmReader(network, transport)

    def live_payer(self, network: Network) -> ChainPayer:
        """Raises LookupError for a network that pays from coins, and where this deployment has no node."""
        self._nodes.demand_live(network)
        if network.family == "utxo":
            raise LookupError(f"{network.id} pays from coins, not from accounts")
        rpc, each = self._nodes.rpc(network), self._nodes.transports(network)
        if network.family == "tron":
            from chalicelib.chains.tron.payer import TronPayer

            return TronPayer(network, rpc, self._nodes.tron_genesis(network), each)
        from chalicelib.chains.evm.payer import EvmPayer

        return EvmPayer(network, rpc, each)

    def payer_transactions(self, network: Network) -> PayerTransactions:
        """The adapter of transactions that payers sign. Its node is one for a request that a caller waits for. Raises LookupError
        for a network whose payers need none, and, when something is sent, where this deployment has no node."""
        if network.family != "tron" or network.simulated:
            raise LookupError(f"{network.id}: payers' wallets build by themselves")
        from chalicelib.chains.tron.payer import TronPayer
        from chalicelib.chains.tron.payer_transactions import TronPayerTransactions

        nodes = self._nodes

        def payer() -> TronPayer:
            rpc, each = nodes.rpc(network, impatient=True), nodes.transports(network, impatient=True)
            return TronPayer(network, rpc, nodes.tron_genesis(network), each)

        return TronPayerTransactions(payer)

    def live_coin_payer(self, network: Network) -> UtxoPayer:
        """Raises LookupError for a network that pays from accounts, and where this deployment has no node."""
        _demand_coins(network)
        from chalicelib.chains.utxo.payer import UtxoPayer

        rpc, each = self._nodes.rpc(network), self._nodes.transports(network)
        return UtxoPayer(network, rpc, self._parts.settings.chain(network.id), each)


def _demand_coins(network: Network) -> None:
    """Raises LookupError for any network but bitcoin and litecoin with a node."""
    if network.family != "utxo" or network.simulated:
        raise LookupError(f"{network.id} pays from accounts, not from coins")
