"""What speaks to networks: for each its node, or the simulated chain; the adapter of its family, made at first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from chalicelib.wiring.base import Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from chalicelib.chains.providers import Node
    from chalicelib.chains.sandbox.chain import SandboxChain
    from chalicelib.chains.sandbox.table import SandboxTable
    from chalicelib.chains.sandbox.tokens import SandboxTokens
    from chalicelib.chains.utxo.payer import UtxoPayer
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.ids import NetworkId
    from chalicelib.domain.transactions.replacements import RenewalRules
    from chalicelib.domain.treasury.moves import MoveKind
    from chalicelib.usecases.payouts.sent import Sent
    from chalicelib.usecases.ports.accounts import ChainPayer
    from chalicelib.usecases.ports.coins import CoinPayer
    from chalicelib.usecases.ports.delegating import DelegationNode
    from chalicelib.usecases.ports.readers import ChainReader, Mempool
    from chalicelib.usecases.ports.staking import StakingNode
    from chalicelib.usecases.ports.tokens import TokenReader
    from chalicelib.usecases.reconciliation.utxo import CoinWitness
    from chalicelib.usecases.transactions.replacements import Stuck


class ChainServices(Parts):
    """The part of `Services` that differs from network to network."""

    def reader(self, network: Network) -> ChainReader:
        """What scans a network: its node, or the simulated chain."""
        key = ("reader", f"{network.id} {network.version}")
        if key not in self._chains:
            if network.simulated:
                from chalicelib.chains.sandbox.reader import SandboxReader

                self._chains[key] = SandboxReader(network, self._sandbox_table, self.clock, self._ahead_ms)
            else:
                self._chains[key] = self._live_reader(network)
        reader: ChainReader = self._chains[key]
        return reader

    def payer(self, network: Network) -> ChainPayer:
        """What builds and sends a network's payments. Signs nothing."""
        key = ("payer", f"{network.id} {network.version}")
        if key not in self._chains:
            if network.simulated:
                from chalicelib.chains.sandbox.payer import SandboxPayer

                self._chains[key] = SandboxPayer(network, self.simulated(network.id))
            else:
                self._chains[key] = self._live_payer(network)
        payer: ChainPayer = self._chains[key]
        return payer

    def coin_payer(self, network: Network) -> CoinPayer:
        """What builds and sends the payments of a network of coins. Signs nothing."""
        key = ("coin payer", f"{network.id} {network.version}")
        if key not in self._chains:
            self._chains[key] = self._live_coin_payer(network)
        payer: CoinPayer = self._chains[key]
        return payer

    def coin_witness(self, network: Network) -> CoinWitness:
        """What tells which coins of a network of coins are spent, with several nodes' word where there are several."""
        return self._live_coin_payer(network)

    def _live_coin_payer(self, network: Network) -> UtxoPayer:
        self._demand_coins(network)
        from chalicelib.chains.utxo.payer import UtxoPayer

        each = [node.transport for node in self._nodes(network)]
        return UtxoPayer(network, self._rpc(network), self.settings.chain(network.id), each)

    def mempool(self, network: Network) -> Mempool:
        """What waits on a network. Raises LookupError for any but a live bitcoin or litecoin."""
        key = ("mempool", f"{network.id} {network.version}")
        if key not in self._chains:
            self._demand_coins(network)
            from chalicelib.chains.utxo.mempool import UtxoMempool

            self._chains[key] = UtxoMempool(network, self._rpc(network), self.settings.chain(network.id))
        mempool: Mempool = self._chains[key]
        return mempool

    def _demand_coins(self, network: Network) -> None:
        """Raises LookupError for any network but bitcoin and litecoin with a node."""
        if network.family != "utxo" or network.simulated:
            raise LookupError(f"{network.id} pays from accounts, not from coins")

    def sent(self, network: Network) -> Sent:
        """How a network's payments went out: one by one, or several in one transaction."""
        from chalicelib.usecases.payouts.sent import SentAlone
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        if pays_from_coins(network):
            from chalicelib.usecases.payouts.bundle_sent import SentTogether

            return SentTogether(self.store, self.coin_payer(network))
        return SentAlone(self.payer(network), self.stuck(network))

    def stuck(self, network: Network) -> Stuck:
        """What says when a transaction of ours should be replaced. For networks of accounts, and for one poll."""
        from chalicelib.usecases.transactions.replacements import Stuck

        return Stuck(
            network, self.reader(network), self.payer(network), self.renewals, self.store, self.rules, self.verdicts(network)
        )

    @property
    def renewals(self) -> RenewalRules:
        from chalicelib.domain.transactions.replacements import RenewalRules

        settings = self.settings
        return RenewalRules(settings.renewal_seconds, settings.renewals_most, times=settings.renewal_fee_times)

    def impatient_reader(self, network: Network) -> ChainReader:
        """The same for a request that somebody waits for. Raises LookupError where this deployment has no node."""
        return self.reader(network) if network.simulated else self._live_reader(network, impatient=True)

    def _live_reader(self, network: Network, impatient: bool = False) -> ChainReader:
        """One reader for each node, so that what a reader finds wrong with its node makes another one answer."""
        nodes = self._nodes(network, impatient)
        if len(nodes) == 1:
            return self._reader_over(network, nodes[0].transport)
        from chalicelib.chains.quorum import Seen, SeveralReaders

        return SeveralReaders(network, [Seen(self._reader_over(network, node.transport), node.health) for node in nodes])

    def _reader_over(self, network: Network, transport: Any) -> ChainReader:
        """The reader of the network's family, over one node."""
        if network.family == "utxo":
            from chalicelib.chains.utxo.reader import UtxoReader

            return UtxoReader(network, transport, self.settings.chain(network.id))
        if network.family == "tron":
            from chalicelib.chains.tron.reader import TronReader

            return TronReader(network, transport, self._tron_genesis(network))
        from chalicelib.chains.evm.reader import EvmReader

        return EvmReader(network, transport)

    def _live_payer(self, network: Network) -> ChainPayer:
        self._demand_live(network)
        if network.family == "utxo":
            raise LookupError(f"{network.id} pays from coins, not from accounts")
        if network.family == "tron":
            from chalicelib.chains.tron.payer import TronPayer

            each = [node.transport for node in self._nodes(network)]
            return TronPayer(network, self._rpc(network), self._tron_genesis(network), each)
        from chalicelib.chains.evm.payer import EvmPayer

        return EvmPayer(network, self._rpc(network), [node.transport for node in self._nodes(network)])

    def _tron_genesis(self, network: Network) -> str | None:
        """The first block that the real Tron has. None, for any: the local stack's nodes make chains of their own, and so does
        whoever says that this network is not on its main one."""
        from chalicelib.chains.tron.reader import MAINNET

        local = self.settings.stage == "local" or self.settings.chain(network.id) != "main"
        return None if local else MAINNET

    def _demand_live(self, network: Network) -> None:
        """Raises LookupError where this deployment has no real networks, whatever the catalogue says."""
        if "live" not in self.settings.realms:
            raise LookupError(f"{network.id}: the stage {self.settings.stage} has simulated networks only")

    def _rpc(self, network: Network, impatient: bool = False) -> Any:
        """The network's node, or several that stand in for each other, behind `call` and `batch`."""
        from chalicelib.chains.providers import Providers

        nodes = self._nodes(network, impatient)
        return nodes[0].transport if len(nodes) == 1 else Providers(nodes)

    def _nodes(self, network: Network, impatient: bool = False) -> list[Node]:
        """The network's nodes as configured. How they have been doing is known to all who speak to them in this process.

        `impatient`: for a request that somebody waits for, whose function has 29 seconds in all.
        """
        self._demand_live(network)
        from hashlib import sha256

        from chalicelib.chains.providers import Health, Heard, Node

        if network.rpc_url is None:
            raise LookupError(f"{network.id} has no node that this version can speak to")
        urls = (network.rpc_url, *network.more_rpc_urls)
        key = ("impatient nodes" if impatient else "nodes", " ".join(urls))
        if key not in self._chains:
            # With another one to ask, nobody waits long for the first.
            seconds = 5.0 if impatient else 15.0 if len(urls) == 1 else 8.0
            # A node's URL may hold a provider's secret: what is stored of the node has a name that says nothing of it.
            healths = [Health(number, name=sha256(url.encode()).hexdigest()[:16]) for number, url in enumerate(urls, start=1)]
            self._chains[key] = [
                Node(Heard(self._transport(network, url, seconds), health), health)
                for url, health in zip(urls, healths, strict=True)
            ]
        nodes: list[Node] = self._chains[key]
        return nodes

    def _transport(self, network: Network, url: str, seconds: float) -> Any:
        """What speaks to one node, in the way of the network's family, and waits so long for each part of an answer."""
        if network.family == "tron":
            from chalicelib.chains.tron.http import TronHttp

            return TronHttp(url, timeout=seconds, place_allowed=self._place_allowed)
        from chalicelib.chains.rpc import JsonRpc

        return JsonRpc(url, timeout=seconds, place_allowed=self._place_allowed)

    @property
    def _place_allowed(self) -> Callable[[str], bool] | None:
        """Whether a node may be at an IP address. On the local stack, whose nodes are at the same machine, anywhere."""
        if self.settings.stage == "local":
            return None
        from chalicelib.usecases.catalogue.node_urls import may_be_a_node

        return may_be_a_node

    def token_reader(self, network: Network) -> TokenReader:
        """What reads the contracts of a network. Raises LookupError where this deployment has nothing that can."""
        if network.simulated:
            return self.simulated_tokens(network.id)
        if network.family == "tron":
            from chalicelib.chains.tron.tokens import TronTokens

            return TronTokens(network, self._rpc(network, impatient=True), self._tron_genesis(network))
        from chalicelib.chains.evm.tokens import EvmTokens

        return EvmTokens(network, self._rpc(network, impatient=True))

    def staking_node(self, network: Network, impatient: bool = False) -> StakingNode:
        """What builds and sends stakes on the real Tron. Signs nothing. Raises LookupError where this deployment has no node."""
        if network.family != "tron":
            raise LookupError(f"{network.id} knows no stakes")
        from chalicelib.chains.tron.staking import TronStaking

        each = [node.transport for node in self._nodes(network, impatient)]
        return TronStaking(network, self._rpc(network, impatient), self._tron_genesis(network), each)

    def delegations(self, network: Network) -> DelegationNode:
        """What lends the energy of a stake on the real Tron. Raises LookupError for any other network."""
        if network.family != "tron" or network.simulated:
            raise LookupError(f"{network.id} lends nothing")
        from chalicelib.chains.tron.delegating import TronDelegating

        each = [node.transport for node in self._nodes(network)]
        return TronDelegating(network, self._rpc(network), self._tron_genesis(network), each)

    def loan_payer(self, network: Network, kind: MoveKind) -> ChainPayer:
        """What builds loans of energy. Raises LookupError for a network that has none."""
        from chalicelib.usecases.treasury.tron.loan_payer import LoanPayer

        return LoanPayer(self.delegations(network), self.payer(network), kind, network.chain_id)

    def simulated_tokens(self, network_id: NetworkId) -> SandboxTokens:
        """The token contracts of a network of the test realm. Raises LookupError for any other."""
        from chalicelib.chains.sandbox.tokens import SandboxTokens
        from chalicelib.domain.ids import network_parts

        realm, slug = network_parts(network_id)
        return SandboxTokens(self.store.catalogue(realm).networks[slug], self._sandbox_table, self.clock)

    @cached_property
    def _sandbox_table(self) -> SandboxTable:
        from chalicelib.chains.sandbox.table import SandboxTable

        return SandboxTable(self.store.models.connection.client, self.settings.table("sandbox"))

    def simulated(self, network_id: NetworkId) -> SandboxChain:
        """The simulated chain of a network of the test realm. Raises LookupError for any other."""
        from chalicelib.chains.sandbox.chain import SandboxChain
        from chalicelib.domain.ids import network_parts

        realm, slug = network_parts(network_id)
        network = self.store.catalogue(realm).networks[slug]
        # On the demo, litecoin's blocks come only when asked for: what waits for confirmations there goes on waiting.
        waits = self.settings.stage == "demo" and slug == "litecoin"
        seconds = 0.0 if waits else self.settings.sandbox_block_seconds
        return SandboxChain(network, self._sandbox_table, self.clock, seconds, self._ahead_ms)
