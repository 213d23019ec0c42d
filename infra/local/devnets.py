"""`make run NODES=1`: a private chain per EVM network, with the catalogue's tokens on it, and money for the hot wallets.

Everything is done as a stranger would do it, through the nodes' RPC; only the hot wallets' addresses are read from the store.
Other families of networks join here.
"""

from __future__ import annotations

from chalicelib.chains.addresses import Rules
from chalicelib.domain.addresses import Wallet
from chalicelib.domain.catalogue import Network, default_coins, default_networks
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.nodes import Anvil, deploy_token, find_anvil, mined, send_native, send_token
from infra.local.tokens import call_data, send

BLOCK_SECONDS = 2
NATIVE_COINS = 100
TOKEN_COINS = 1_000_000


def give_customers(node: Anvil, token: str, units: int) -> None:
    """Every unlocked account of the node gets tokens, so that any of them can play the customer."""
    for account in node.rpc.call("eth_accounts"):
        send(node.rpc, token, data=call_data("mint(address,uint256)", account, units))


class Devnets:
    """The nodes of one run. `start`, then `infos` for the first start, then `fund_hot_wallets`; `stop` at any time."""

    def __init__(self) -> None:
        self._networks: dict[str, Network] = {n.slug: n for n in default_networks("live") if n.family == "evm"}
        self._nodes: dict[str, Anvil] = {}
        self._contracts: dict[str, dict[str, str]] = {}

    def start(self) -> None:
        """Start a node per network and deploy its tokens. Raises NodeMissing, RuntimeError."""
        program = find_anvil()
        for slug, network in self._networks.items():
            if network.chain_id is None:
                raise ValueError(f"{slug} has no chain id")
            self._nodes[slug] = Anvil(network.chain_id, block_time=BLOCK_SECONDS, program=program)
            self._contracts[slug] = self._deploy(slug)

    def infos(self) -> dict[str, NodeInfo]:
        """Each network's node and the contracts of its tokens."""
        return {slug: NodeInfo(node.url, self._contracts[slug]) for slug, node in self._nodes.items()}

    def urls(self) -> dict[str, str]:
        return {slug: node.url for slug, node in self._nodes.items()}

    def fund_hot_wallets(self) -> None:
        """Send every hot wallet coins from outside, by transfers that the scanner sees. Returns when all are in blocks."""
        wired = services()
        decimals = {(c.network, c.slug): c.decimals for c in default_coins("live")}
        for slug, node in self._nodes.items():
            network = self._networks[slug]
            wallet = wired.store.get(Wallet, network=network.id, role="hot")
            if wallet is None:
                raise LookupError(f"{network.id} has no hot wallet")
            sent = [send_native(node.rpc, wallet.address, NATIVE_COINS * 10**network.decimals)]
            for coin, contract in self._contracts[slug].items():
                units = TOKEN_COINS * 10 ** decimals[network.id, coin]
                sent.append(send_token(node.rpc, contract, wallet.address, units))
            for txid in sent:
                if mined(node.rpc, txid)["status"] != "0x1":
                    raise RuntimeError(f"{slug}: the hot wallet could not be funded")

    def stop(self) -> None:
        for node in self._nodes.values():
            node.stop()
        self._nodes.clear()

    def _deploy(self, slug: str) -> dict[str, str]:
        """The tokens that the catalogue has on this network; USDT returns nothing, as the real one does on Ethereum. By coin."""
        rules = Rules()
        contracts = {}
        for coin in default_coins("live"):
            if coin.network == self._networks[slug].id and coin.contract is not None:
                nothing = coin.slug == "usdt"
                address = deploy_token(self._nodes[slug].rpc, coin.symbol, coin.name, coin.decimals, returns_nothing=nothing)
                contracts[coin.slug] = rules.normalize(slug, address)
                give_customers(self._nodes[slug], address, TOKEN_COINS * 10**coin.decimals)
        return contracts
