"""Nodes of the live networks, and the transport to each by its family."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chalicelib.chains.node_secrets import NodeSecrets
    from chalicelib.chains.providers import Node
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.wiring.parts import Parts


class NodeWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: dict[tuple[bool, str], list[Node]] = {}

    def nodes(self, network: Network, impatient: bool = False) -> list[Node]:
        """The network's nodes as configured. Their health is shared by all callers in this process.

        `impatient`: for a request that a caller waits for, whose function has 29 seconds in all. Raises LookupError where this
        deployment has no node of the network.
        """
        self.demand_live(network)
        from hashlib import sha256

        from chalicelib.chains.providers import Health, Heard, Node

        if network.rpc_url is None:
            raise LookupError(f"{network.id} has no node that this version can speak to")
        urls = (network.rpc_url, *network.more_rpc_urls)
        key = (impatient, " ".join(urls))
        if key not in self._known:
            # With another one to ask, nobody waits long for the first.
            seconds = 5.0 if impatient else 15.0 if len(urls) == 1 else 8.0
            # A node's URL may hold a provider's secret: what is stored of the node has a name that says nothing of it.
            healths = [Health(number, name=sha256(url.encode()).hexdigest()[:16]) for number, url in enumerate(urls, start=1)]
            self._known[key] = [
                Node(Heard(self.transport(network, url, seconds), health), health)
                for url, health in zip(urls, healths, strict=True)
            ]
        return self._known[key]

    def transports(self, network: Network, impatient: bool = False) -> list[Any]:
        """Each node by itself, behind `call` and `batch`."""
        return [node.transport for node in self.nodes(network, impatient)]

    def rpc(self, network: Network, impatient: bool = False) -> Any:
        """The network's node, or several that stand in for each other, behind `call` and `batch`."""
        from chalicelib.chains.providers import Providers

        nodes = self.nodes(network, impatient)
        return nodes[0].transport if len(nodes) == 1 else Providers(nodes)

    def transport(self, network: Network, url: str, seconds: float) -> Any:
        """The transport to one node, by the network's family; it waits so many seconds for each part of an answer. Secrets that the
        URL refers to are read when the node is called first."""
        from chalicelib.usecases.catalogue.node_secrets import has_reference

        connect = partial(self._connected, network, seconds)
        if not has_reference(url):
            return connect(url)
        from chalicelib.chains.node_secrets import SecretNode

        return SecretNode(url, self._parts.settings.node_secret(""), self._secrets, connect, self._parts.clock)

    def _connected(self, network: Network, seconds: float, url: str, hidden: Sequence[str] = ()) -> Any:
        if network.family == "tron":
            from chalicelib.chains.tron.http import TronHttp

            return TronHttp(url, timeout=seconds, place_allowed=self._place_allowed, hidden=hidden)
        from chalicelib.chains.rpc import JsonRpc

        return JsonRpc(url, timeout=seconds, place_allowed=self._place_allowed, hidden=hidden)

    @cached_property
    def _secrets(self) -> NodeSecrets:
        from chalicelib.chains.node_secrets import QUICK, NodeSecrets

        made: list[Any] = []

        def client() -> Any:
            if not made:
                made.append(self._parts.quick_client("secretsmanager", QUICK))
            return made[0]

        return NodeSecrets(client, self._parts.clock)

    def demand_live(self, network: Network) -> None:
        """Raises LookupError where this deployment has no real networks, whatever the catalogue says."""
        settings = self._parts.settings
        if "live" not in settings.realms:
            raise LookupError(f"{network.id}: the stage {settings.stage} has simulated networks only")

    def tron_genesis(self, network: Network) -> str | None:
        """The first block that the real Tron has. None, for any: the local stack's nodes make chains of their own, and the
        settings may say that this network is not on its main one."""
        from chalicelib.chains.tron.reader import MAINNET

        settings = self._parts.settings
        local = settings.stage == "local" or settings.chain(network.id) != "main"
        return None if local else MAINNET

    @property
    def _place_allowed(self) -> Callable[[str], bool] | None:
        """Whether a node may be at an IP address. On the local stack, whose nodes are at the same machine, anywhere."""
        if self._parts.settings.stage == "local":
            return None
        from chalicelib.usecases.catalogue.node_urls import may_be_a_node

        return may_be_a_node
