"""What speaks to networks: for each its node, or the simulated chain; the adapter of its family, made at first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chalicelib.chains.sandbox.chain import SandboxChain
    from chalicelib.chains.sandbox.table import SandboxTable
    from chalicelib.chains.sandbox.tokens import SandboxTokens
    from chalicelib.domain.catalogue import Network
    from chalicelib.domain.ids import NetworkId
    from chalicelib.settings import Settings
    from chalicelib.store.dynamo import DynamoStore
    from chalicelib.usecases.ports import ChainPayer, ChainReader, Clock, TokenReader


class ChainServices:
    """The part of `Services` that differs from network to network."""

    settings: Settings
    clock: Clock
    _chains: dict[tuple[str, str], Any]

    @property
    def store(self) -> DynamoStore:
        raise NotImplementedError

    def _ahead_ms(self) -> int:
        raise NotImplementedError

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

    def _live_reader(self, network: Network) -> ChainReader:
        self._demand_live(network)
        from chalicelib.chains.evm.reader import EvmReader

        return EvmReader(network, self._rpc(network))

    def _live_payer(self, network: Network) -> ChainPayer:
        self._demand_live(network)
        from chalicelib.chains.evm.payer import EvmPayer

        return EvmPayer(network, self._rpc(network))

    def _demand_live(self, network: Network) -> None:
        """Raises LookupError where this deployment has no real networks, whatever the catalogue says."""
        if "live" not in self.settings.realms:
            raise LookupError(f"{network.id}: the stage {self.settings.stage} has simulated networks only")

    def _rpc(self, network: Network, impatient: bool = False) -> Any:
        """The network's node. `impatient`: for a request that somebody waits for, whose function has 29 seconds in all."""
        self._demand_live(network)
        from chalicelib.chains.rpc import JsonRpc

        if network.family != "evm" or network.rpc_url is None:
            raise LookupError(f"{network.id} has no node that this version can speak to")
        key = ("impatient rpc" if impatient else "rpc", network.rpc_url)
        if key not in self._chains:
            self._chains[key] = JsonRpc(network.rpc_url, timeout=5.0) if impatient else JsonRpc(network.rpc_url)
        return self._chains[key]

    def token_reader(self, network: Network) -> TokenReader:
        """What reads the contracts of a network. Raises LookupError where this deployment has nothing that can."""
        if network.simulated:
            return self.simulated_tokens(network.id)
        from chalicelib.chains.evm.tokens import EvmTokens

        return EvmTokens(network, self._rpc(network, impatient=True))

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
