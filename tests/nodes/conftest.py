"""One node of a kind per test process: anvil as the live network `ethereum`, with tokens; bitcoin's and litecoin's in regtest.

Tests use fresh addresses, so they can share them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest
from coincurve import PrivateKey

from chalicelib import wiring
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Block, Transfer
from chalicelib.encoding.public_keys import evm_address
from chalicelib.usecases.ports.signing import Signature
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from infra.local.nodes import Anvil, Bcoin, Litecoin, UtxoNode, deploy_token, dev_account, mine
from infra.local.tron.process import TronNode
from tests.nodes.renewing import block_at
from tests.nodes.sending import send_native, send_token
from tests.nodes.shops import ETHER, Kept, Shop, arbitrum_shop
from tests.support.tron_chain import TronChain


@dataclass(frozen=True)
class Key:
    """A key of the tests, for one wallet."""

    secret: PrivateKey = field(default_factory=PrivateKey)

    @property
    def address(self) -> str:
        return evm_address(self.secret.public_key.format(compressed=False)[1:])

    def sign(self, digest: bytes) -> Signature:
        compact = self.secret.sign_recoverable(digest, hasher=None)
        return Signature(int.from_bytes(compact[:32]), int.from_bytes(compact[32:64]), compact[64])


@dataclass(frozen=True)
class Chain:
    """A network with its node, reader and payer. `usdt` returns nothing, `usdc` is to the letter; both in lower case."""

    node: Anvil
    network: Network
    usdt: str
    usdc: str

    @property
    def rpc(self) -> JsonRpc:
        return self.node.rpc

    @property
    def reader(self) -> EvmReader:
        return EvmReader(self.network, self.rpc)

    @property
    def payer(self) -> EvmPayer:
        return EvmPayer(self.network, self.rpc)

    @property
    def dev(self) -> str:
        return dev_account(self.rpc)

    def funded(self, *, wei: int = 10**18, usdt: int = 0, usdc: int = 0) -> Key:
        """A new wallet that holds this much."""
        key = Key()
        if wei:
            send_native(self.rpc, key.address, wei)
        for contract, units in ((self.usdt, usdt), (self.usdc, usdc)):
            if units:
                send_token(self.rpc, contract, key.address, units)
        return key

    def since(self, height: int, *more: str) -> list[Block]:
        """The blocks after `height`, with the transfers of the tokens and of `more` contracts."""
        return self.reader.blocks(height + 1, self.reader.tip(), {self.usdt, self.usdc, *more})

    def to(self, recipient: str, height: int, *more: str) -> list[Transfer]:
        """What was seen to go to `recipient` after `height`, proven or not."""
        return [t for block in self.since(height, *more) for t in block.transfers if t.recipient == recipient.lower()]

    def proven_to(self, recipient: str, height: int, *more: str) -> list[Transfer]:
        found = []
        for block in self.since(height, *more):
            found += self.reader.proven(block, [t for t in block.transfers if t.recipient == recipient.lower()])
        return found


def start(node: Anvil, slug: str) -> Chain:
    network = next(network for network in default_networks("live") if network.slug == slug)
    assert network.chain_id == node.chain_id
    mine(node.rpc)
    return Chain(
        node,
        replace(network, rpc_url=node.url, status="active"),
        usdt=deploy_token(node.rpc, "USDT", "Tether USD", 6, returns_nothing=True),
        usdc=deploy_token(node.rpc, "USDC", "USD Coin", 6),
    )


@pytest.fixture(scope="session")
def chain() -> Iterator[Chain]:
    """Ethereum. A block is mined for every transaction, and when asked."""
    with Anvil(1) as node:
        yield start(node, "ethereum")


@pytest.fixture
def stranger() -> str:
    """An address that nobody has used before, in lower case."""
    return "0x" + secrets.token_hex(20)


@pytest.fixture(scope="session")
def tron_node() -> Iterator[TronNode]:
    """A Tron node that mines when asked and for every payment of its faucet. Tests use fresh keys, so they can share it."""
    with TronNode() as node:
        yield node


@pytest.fixture(scope="session")
def bitcoin() -> Iterator[Bcoin]:
    """bcoin in regtest. Blocks are mined when asked for."""
    with Bcoin() as node:
        yield node


@pytest.fixture(scope="session")
def litecoin() -> Iterator[Litecoin]:
    """Litecoin Core in regtest. Blocks are mined when asked for."""
    with Litecoin() as node:
        yield node


@pytest.fixture(params=["bitcoin", "litecoin"])
def utxo_node(request: pytest.FixtureRequest) -> UtxoNode:
    """Either of them: what has to be right on both is written once."""
    node: UtxoNode = request.getfixturevalue(request.param)
    return node


@pytest.fixture(scope="session")
def tron(tron_node: TronNode) -> TronChain:
    """Tron with its node, reader and payer."""
    return TronChain(tron_node)


@pytest.fixture(scope="session")
def shops(running_aws: LocalAws) -> Iterator[Callable[[], Shop]]:
    """Gives a live merchant on arbitrum as its first start made it: the same one again, where its node can go back.

    AWS has to be active.
    """
    with ExitStack() as node:
        made: list[tuple[Shop, Kept]] = []

        def begin() -> Shop:
            if not made or not made[0][1].back():
                node.close()
                wiring.forget()
                shop = node.enter_context(arbitrum_shop(running_aws))
                made[:] = [(shop, Kept(shop.stack, shop.node.rpc))]
            return made[0][0]

        yield begin


@pytest.fixture
def shop(running_aws: LocalAws, shops: Callable[[], Shop]) -> Iterator[Shop]:
    """A live merchant on arbitrum. Modules about another network have a `shop` of their own."""
    with running_aws.active():
        yield shops()


@pytest.fixture
def slow(shop: Shop) -> Iterator[Shop]:
    """A merchant with an ether and 30 USDT, on a chain that mines only when asked."""
    ether = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
    token = shop.post("/v1/invoices", currency="usdt", amount="30", network="arbitrum")
    send_native(shop.node.rpc, ether["address"], ETHER)
    send_token(shop.node.rpc, shop.usdt, token["address"], 30_000_000)
    shop.confirm()
    assert shop.available() == {"eth": "1", "usdt": "30"}
    shop.node.rpc.call("evm_setAutomine", [False])
    block_at(shop, 10)
    yield shop
    assert audit(services().store) == []
