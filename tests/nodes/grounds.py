"""Every live network with the realest node that can be had, in one shape: pay, mine, reorganise, ask the chain itself.

What differs between the families is here and nowhere in the scenario that runs on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from chalicelib.chains.rpc import RpcError
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from infra.bootstrap import NodeInfo
from infra.local import nodes
from infra.local.nodes import Anvil, Bcoin, Litecoin, UtxoNode, mine
from infra.local.tron.process import TronNode
from tests.nodes.sending import send_native

CHAINS = "bitcoin=regtest,litecoin=regtest,tron=regtest"
"""The setting LIVE_CHAINS that goes with these nodes."""


DAY = 86_400


class Ground(ABC):
    """A live network on its node. `out` is where a withdrawal goes. Amounts are units of the native coin."""

    network: Network
    out: str

    def __init__(self, slug: str) -> None:
        self.network = next(n for n in default_networks("live") if n.slug == slug)

    @property
    @abstractmethod
    def info(self) -> NodeInfo: ...

    @abstractmethod
    def fund(self, wallet: str) -> None:
        """Give the hot wallet what it pays from."""

    @abstractmethod
    def pay(self, address: str, units: int) -> None:
        """A stranger pays. In a block when this returns, or waiting for the next one."""

    @abstractmethod
    def mine(self, count: int = 1) -> None: ...

    @abstractmethod
    def height(self) -> int:
        """The newest block's number."""

    @abstractmethod
    def pay_in(self, number: int, address: str, units: int) -> None:
        """The stranger pays in the block of that `number`, which is to come."""

    @abstractmethod
    def reorganise(self, depth: int) -> None:
        """Replace the last `depth` blocks by empty ones, one more than there were."""

    @abstractmethod
    def pay_again(self, address: str, units: int) -> None:
        """The stranger sees to it that a payment which fell out comes back, as wallets do on this chain."""

    @abstractmethod
    def received(self, address: str) -> int:
        """What the chain says that `address` has."""

    def waits(self) -> bool:
        """Whether a payment of the stranger waits in the mempool where the service sees it."""
        return False

    def wait_out(self) -> int:
        """Let so much time pass on the chain that a transaction which can not be mined any more has ended; in milliseconds."""
        return 0

    @abstractmethod
    def stop(self) -> None: ...


class EvmGround(Ground):
    """anvil mines each transaction at once."""

    out = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"

    def __init__(self, slug: str) -> None:
        super().__init__(slug)
        assert self.network.chain_id is not None
        self.node = Anvil(self.network.chain_id)

    @property
    def info(self) -> NodeInfo:
        return NodeInfo(self.node.url)

    def fund(self, wallet: str) -> None:
        send_native(self.node.rpc, wallet, 100 * 10**18)

    def pay(self, address: str, units: int) -> None:
        send_native(self.node.rpc, address, units)

    def mine(self, count: int = 1) -> None:
        mine(self.node.rpc, count)

    def height(self) -> int:
        return int(self.node.rpc.call("eth_blockNumber"), 16)

    def pay_in(self, number: int, address: str, units: int) -> None:
        mine(self.node.rpc, number - 1 - self.height())
        self.pay(address, units)
        assert self.height() == number

    def reorganise(self, depth: int) -> None:
        # Empty blocks mined again are the same blocks: another payment makes the new branch a different one.
        elsewhere = {"from": nodes.dev_account(self.node.rpc), "to": "0x" + "ee" * 20, "value": "0x1"}
        self.node.rpc.call("anvil_reorg", [depth, [[elsewhere, 0]]])
        self.mine()

    def pay_again(self, address: str, units: int) -> None:
        self.pay(address, units)

    def received(self, address: str) -> int:
        return int(self.node.rpc.call("eth_getBalance", [address, "latest"]), 16)

    def stop(self) -> None:
        self.node.stop()


class UtxoGround(Ground):
    """Litecoin Core or bcoin: payments wait in the mempool, and go back there when their block falls out."""

    def __init__(self, slug: str) -> None:
        super().__init__(slug)
        self.node: UtxoNode = Bcoin() if slug == "bitcoin" else Litecoin()
        self.out = self.node.new_address()
        self._paid: dict[str, str] = {}

    @property
    def info(self) -> NodeInfo:
        return NodeInfo(self.node.url)

    def fund(self, wallet: str) -> None:
        for _ in range(2):
            self.node.send(wallet, 3 * 10**8)
        self.mine()

    def pay(self, address: str, units: int) -> None:
        txid = self.node.send(address, units)
        self._paid[txid] = self.node.raw(txid)

    def mine(self, count: int = 1) -> None:
        self.node.mine(count)

    def height(self) -> int:
        return self.node.height

    def pay_in(self, number: int, address: str, units: int) -> None:
        self.node.mine(number - 1 - self.height())
        self.pay(address, units)
        self.node.mine()

    def reorganise(self, depth: int) -> None:
        self.node.reorg(depth)

    def pay_again(self, address: str, units: int) -> None:
        for raw in self._paid.values():
            try:
                self.node.rpc.call("sendrawtransaction", [raw])
            except RpcError as error:
                assert "already" in error.message, error  # it went back to the mempool by itself

    def waits(self) -> bool:
        return not self._paid.keys().isdisjoint(self.node.mempool())

    def received(self, address: str) -> int:
        height = self.node.height
        hashes = self.node.rpc.batch([("getblockhash", [number]) for number in range(max(0, height - 80), height + 1)])
        found = 0
        for block in self.node.rpc.batch([("getblock", [name, 2]) for name in hashes]):
            for transaction in block["tx"]:
                for output in transaction["vout"]:
                    script = output["scriptPubKey"]
                    if address in (script.get("address"), *script.get("addresses", ())):
                        found += round(float(output["value"]) * 10**8)
        return found

    def stop(self) -> None:
        self.node.stop()


class TronGround(Ground):
    """Our strict node: the faucet's payments are in a block at once."""

    out = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"

    def __init__(self) -> None:
        super().__init__("tron")
        self.node = TronNode()

    @property
    def info(self) -> NodeInfo:
        return NodeInfo(self.node.url)

    def fund(self, wallet: str) -> None:
        self.node.faucet(wallet, 10_000)
        self.node.mine()

    def pay(self, address: str, units: int) -> None:
        whole, rest = divmod(units, 10**6)
        self.node.faucet(address, f"{whole}.{rest:06d}")

    def mine(self, count: int = 1) -> None:
        self.node.mine(count)

    def height(self) -> int:
        return int(self.node.call("wallet/getnowblock")["block_header"]["raw_data"]["number"])

    def pay_in(self, number: int, address: str, units: int) -> None:
        self.node.mine(number - 1 - self.height())
        self.pay(address, units)
        assert self.height() == number

    def reorganise(self, depth: int) -> None:
        self.node.reorg(depth)

    def pay_again(self, address: str, units: int) -> None:
        self.pay(address, units)

    def wait_out(self) -> int:
        self.node.call("dev/time", shift_seconds=DAY)
        self.mine(20 + self.network.reorg_depth)
        return DAY * 1000

    def received(self, address: str) -> int:
        return int(self.node.call("wallet/getaccount", address=address, visible=True).get("balance", 0))

    def stop(self) -> None:
        self.node.stop()


def ground_of(slug: str) -> Ground:
    """Start the node of a network."""
    if slug == "tron":
        return TronGround()
    return UtxoGround(slug) if slug in ("bitcoin", "litecoin") else EvmGround(slug)
