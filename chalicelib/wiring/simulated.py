"""The simulated networks of the test realm: their table, blocks, tokens, reader and payer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.chains.sandbox.chain import SandboxChain
    from chalicelib.chains.sandbox.table import SandboxTable
    from chalicelib.chains.sandbox.tokens import SandboxTokens
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.ids import NetworkId
    from chalicelib.usecases.ports.accounts import ChainPayer
    from chalicelib.usecases.ports.readers import ChainReader
    from chalicelib.wiring.parts import Parts


class SimulatedWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def simulated(self, network_id: NetworkId) -> SandboxChain:
        """The simulated chain of a network of the test realm. Raises LookupError for any other."""
        from chalicelib.chains.sandbox.chain import SandboxChain

        network, settings = self._network(network_id), self._parts.settings
        # On the demo, litecoin's blocks come only when asked for: what waits for confirmations there goes on waiting.
        waits = settings.stage == "demo" and network.slug == "litecoin"
        seconds = 0.0 if waits else settings.sandbox_block_seconds
        return SandboxChain(network, self._table, self._parts.clock, seconds, self._parts.ahead_ms)

    def simulated_tokens(self, network_id: NetworkId) -> SandboxTokens:
        """The token contracts of a network of the test realm. Raises LookupError for any other."""
        from chalicelib.chains.sandbox.tokens import SandboxTokens

        return SandboxTokens(self._network(network_id), self._table, self._parts.clock)

    def reader(self, network: Network) -> ChainReader:
        from chalicelib.chains.sandbox.reader import SandboxReader

        return SandboxReader(network, self._table, self._parts.clock, self._parts.ahead_ms)

    def payer(self, network: Network) -> ChainPayer:
        from chalicelib.chains.sandbox.payer import SandboxPayer

        return SandboxPayer(network, self.simulated(network.id))

    def _network(self, network_id: NetworkId) -> Network:
        from chalicelib.domain.ids import network_parts

        realm, slug = network_parts(network_id)
        return self._parts.catalogue(realm).networks[slug]

    @cached_property
    def _table(self) -> SandboxTable:
        from chalicelib.chains.sandbox.table import SandboxTable

        return SandboxTable(self._parts.store.models.connection.client, self._parts.settings.table("sandbox"))
