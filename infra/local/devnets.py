"""`make run NODES=1`: a private chain per network, with the catalogue's tokens on it, and money for the hot wallets.

Everything is done as a stranger would do it, through the nodes' RPC; only the hot wallets' addresses are read from the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from chalicelib.chains.addresses import Rules
from chalicelib.domain.catalogue.catalogue import Coin, Network, default_coins, default_networks
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.nodes import (
    Anvil,
    Bcoin,
    Litecoin,
    UtxoNode,
    deploy_token,
    find_anvil,
    find_bcoin,
    find_litecoind,
    mine,
    mined,
    send_native,
    send_token,
)  # fmt: skip
from infra.local.tokens import call_data, send
from infra.local.tron.process import TronNode

BLOCK_SECONDS = 2
NATIVE_COINS = 100
TOKEN_COINS = 1_000_000
UTXO_OUTPUTS = 5
"""The hot wallet's coins come in so many payments: one that is spent and waits for its change does not hold up the next one."""
LIVE_CHAINS = "bitcoin=regtest,litecoin=regtest"
"""The setting of that name which goes with these nodes."""


class Devnet(Protocol):
    """One node. `contracts` are those of its tokens by coin, empty where they are the catalogue's."""

    contracts: dict[str, str]

    @property
    def url(self) -> str:
        """With credentials, where the node wants any."""
        ...

    def fund(self, address: str) -> None:
        """Send a hot wallet coins; returns when all are confirmed."""
        ...

    def end(self) -> None:
        """Ask it to end, without waiting."""
        ...

    def stop(self) -> None: ...


class EvmDevnet:
    """anvil, with the tokens that the catalogue has on the network; USDT returns nothing, as the real one does on Ethereum."""

    def __init__(self, network: Network) -> None:
        if network.chain_id is None:
            raise ValueError(f"{network.id} has no chain id")
        self._network = network
        self._tokens = {coin.slug: coin for coin in _coins(network) if coin.contract is not None}
        self._node = Anvil(network.chain_id, block_time=BLOCK_SECONDS)
        self.url = self._node.url
        try:
            self.contracts = {slug: self._deploy(coin) for slug, coin in self._tokens.items()}
        except BaseException:
            self.stop()
            raise

    def _deploy(self, coin: Coin) -> str:
        rpc = self._node.rpc
        address = deploy_token(rpc, coin.symbol, coin.name, coin.decimals, returns_nothing=coin.slug == "usdt")
        # Every unlocked account of the node gets tokens, so that any of them can play the customer.
        for account in rpc.call("eth_accounts"):
            send(rpc, address, data=call_data("mint(address,uint256)", account, TOKEN_COINS * 10**coin.decimals))
        return Rules().normalize(self._network.slug, address)

    def fund(self, address: str) -> None:
        rpc = self._node.rpc
        sent = [send_native(rpc, address, NATIVE_COINS * 10**self._network.decimals)]
        for slug, contract in self.contracts.items():
            sent.append(send_token(rpc, contract, address, TOKEN_COINS * 10 ** self._tokens[slug].decimals))
        for txid in sent:
            if mined(rpc, txid)["status"] != "0x1":
                raise RuntimeError(f"{self._network.slug}: the hot wallet could not be funded")
        mine(rpc, self._network.confirmations)

    def end(self) -> None:
        self._node.end()

    def stop(self) -> None:
        self._node.stop()


class UtxoDevnet:
    """Litecoin Core or bcoin in regtest."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._node: UtxoNode = Bcoin() if network.slug == "bitcoin" else Litecoin()
        self._node.mine_every(BLOCK_SECONDS)
        self.url = self._node.url
        self.contracts: dict[str, str] = {}

    def fund(self, address: str) -> None:
        for _ in range(UTXO_OUTPUTS):
            self._node.send(address, NATIVE_COINS * 10**self._network.decimals // UTXO_OUTPUTS)
        self._node.mine(self._network.confirmations)

    def end(self) -> None:
        self._node.end()

    def stop(self) -> None:
        self._node.stop()


class TronDevnet:
    """The strict Tron node, which has USDT where the catalogue has it."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._node = TronNode(block_seconds=BLOCK_SECONDS)
        self.url = self._node.url
        self.contracts: dict[str, str] = {}

    def fund(self, address: str) -> None:
        self._node.faucet(address, NATIVE_COINS * 100)  # a transfer of a token may burn 30 TRX
        self._node.faucet(address, TOKEN_COINS, "USDT")
        self._node.mine(self._network.confirmations)

    def end(self) -> None:
        self._node.end()

    def stop(self) -> None:
        self._node.stop()


_FAMILIES: dict[str, Callable[[Network], Devnet]] = {"evm": EvmDevnet, "utxo": UtxoDevnet, "tron": TronDevnet}


class Devnets:
    """The nodes of one run. `start`, then `infos` for the first start, then `fund_hot_wallets`; `stop` at any time."""

    def __init__(self) -> None:
        self._networks: dict[str, Network] = {n.slug: n for n in default_networks("live")}
        self._nodes: dict[str, Devnet] = {}
        self._stopping = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start a node per network, and deploy its tokens. Raises NodeMissing, RuntimeError."""
        for find in (find_anvil, find_litecoind, find_bcoin):
            find()
        _at_once([partial(self._start, network) for network in self._networks.values()])

    def _start(self, network: Network) -> None:
        node = _FAMILIES[network.family](network)
        with self._lock:
            late = self._stopping
            if not late:
                self._nodes[network.slug] = node
        if late:
            node.stop()

    def infos(self) -> dict[str, NodeInfo]:
        """Each network's node and the contracts of its tokens."""
        return {slug: NodeInfo(self._nodes[slug].url, self._nodes[slug].contracts) for slug in self._networks}

    def urls(self) -> dict[str, str]:
        return {slug: self._nodes[slug].url for slug in self._networks}

    def fund_hot_wallets(self) -> None:
        """Send every hot wallet coins from outside, by transfers that the scanner sees. Returns when all are confirmed,
        so that the first look at a network finds a wallet which can pay."""
        wallets = {slug: wallet_of(services().store, self._networks[slug].id, "hot") for slug in self._networks}
        jobs = []
        for slug, wallet in wallets.items():
            if wallet is None:
                raise LookupError(f"{self._networks[slug].id} has no hot wallet")
            jobs.append(partial(self._nodes[slug].fund, wallet.address))
        _at_once(jobs)

    def stop(self) -> None:
        """End every node, also those that are being started in other threads. All are asked before the first one is waited for:
        a busy machine takes seconds for each."""
        with self._lock:
            self._stopping = True
        for node in self._nodes.values():
            node.end()
        for node in self._nodes.values():
            node.stop()
        self._nodes.clear()


def _at_once(jobs: Iterable[Callable[[], None]]) -> None:
    """Do these, four at a time, and wait for all; raise what the first failed one raised. A Ctrl-C meanwhile waits for none."""
    pool = ThreadPoolExecutor(4)
    try:
        for one in [pool.submit(job) for job in jobs]:
            one.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _coins(network: Network) -> list[Coin]:
    return [coin for coin in default_coins("live") if coin.network == network.id]
