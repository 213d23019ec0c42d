"""Steps on networks that are not simulated: a litecoin in memory (`tests.support.fake_coins`), whose stored transactions are not as
long as real ones, a Tron test node, whose transactions are real, and an ethereum that only receives (account_steps.py). The
simulated networks of these names are inactive.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.signing import Signature
from chalicelib.usecases.scanning import confirming, sharing
from chalicelib.wiring import services
from chalicelib.wiring.chains import ChainWiring
from chalicelib.wiring.custody import CustodyWiring
from chalicelib.wiring.second_readers import SecondReaders
from chalicelib.workers import record
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.tron.server import Server
from tests.bench.account_steps import Ethereum, TokenChain, begun, token_paid, wallet_paid
from tests.bench.coin_steps import COIN, behind, glimpsed, treasury
from tests.bench.costs import Cost
from tests.bench.further_steps import completed, refunded
from tests.bench.main_steps import withdrawn
from tests.bench.walk import SETTLED, Walk
from tests.support.fake_coins import FakeCoins, FakeLibrary, Reader
from tests.support.heavy_node import served
from tests.support.mempools import Pool
from tests.support.stack import first_stack

SHARE = 12
"""Payments of a share, in place of `sharing.SHARE`: one full group. Two shares are a crowd."""


@dataclass
class Litecoin(Walk):
    network: str = "litecoin"
    coin: str = "ltc"
    merchant: str = "client_live"
    payee: str = "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9"  # BIP-173's program
    confirmations: int = 6
    chain: FakeCoins | None = None
    pool: Pool | None = None

    @property
    def coins(self) -> FakeCoins:
        assert self.chain is not None
        return self.chain

    def mine(self, blocks: int) -> None:
        """By the service's time."""
        for _ in range(blocks):
            self.coins.mine()
            self.coins.blocks[-1].time = services().clock.now_ms()

    def pay(self, address: str, coin: str, amount: str) -> None:
        self.coins.pay(address, round(float(amount) * COIN))


@dataclass
class Tron(Walk):
    network: str = "tron"
    coin: str = "trx"
    merchant: str = "client_live"
    payee: str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
    confirmations: int = 19
    whole: str = "50"
    node: Server | None = None

    def dev(self, path: str, **params: Any) -> None:
        assert self.node is not None
        status, answer = self.node.answer(f"dev/{path}", params)
        assert status == 200, answer

    def mine(self, blocks: int) -> None:
        self.dev("mine", count=blocks)

    def pay(self, address: str, coin: str, amount: str) -> None:
        self.dev("faucet", address=address, coin=coin.upper(), amount=amount)


class DigestsOfCoins:
    """The service's signer; of coins in memory, where it has signed, the digest stands for the signature (`FakeCoins.assemble`)."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        signature: Signature = self._real.sign(wallet, digest)
        return Signature(int.from_bytes(digest), 1, 0) if wallet.network == "live:litecoin" else signature


class DigestKeys:
    """The seed's keys, for coins in memory: they sign by repeating what is to be signed."""

    @contextmanager
    def opened(self) -> Iterator[DigestKeys]:
        yield self

    def sign_as(self, network: NetworkId, address: str, path: str, digest: bytes) -> Signature:
        return Signature(int.from_bytes(digest), 1, 0)


@contextmanager
def litecoin() -> Iterator[tuple[FakeCoins, Pool]]:
    """The live litecoin is a chain in memory; its node tells of a mempool what is in the pool beside it."""
    chain, pool = FakeCoins(), Pool()
    reader, signer = ChainWiring.live_reader, CustodyWiring.__dict__["signer"].func

    def read(self: ChainWiring, network: Any, impatient: bool = False) -> Any:
        return Reader(chain) if network.slug == "litecoin" else reader(self, network, impatient)

    made = cached_property(lambda self: DigestsOfCoins(signer(self)))
    made.__set_name__(CustodyWiring, "signer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChainWiring, "live_reader", read)
        patch.setattr(ChainWiring, "live_coin_payer", lambda self, network: chain)
        patch.setattr(ChainWiring, "mempool", lambda self, network: pool)
        patch.setattr(SecondReaders, "coins", lambda self, network: FakeLibrary())
        patch.setattr(CustodyWiring, "signer", made)
        patch.setattr(CustodyWiring, "deposit_keys", DigestKeys())
        yield chain, pool


@contextmanager
def tron() -> Iterator[Server]:
    """A Tron node in this process, on a free port of 127.0.0.1, by the service's time."""
    server = Server(0, 0)
    server.chain.now = _now  # type: ignore[method-assign]
    serving = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _now() -> int:
    """By whatever wiring is at work."""
    return services().clock.now_ms()


def crowded(walk: Litecoin, share: int) -> None:
    """A block's payments are recorded half by its poll, half by a function `record` at the same time; one that gets the whole lane
    credits them."""
    body = {"currency": walk.coin, "network": walk.network, "amount": walk.amount()}
    for made in [walk.ask("POST", "/invoices", body) for _ in range(2 * share)]:
        walk.pay(made["address"], walk.coin, walk.amount())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "FROM", share)
        patch.setattr(sharing, "SHARE", share)
        patch.setattr(confirming, "CONFIRM_AT_ONCE", share)
        walk.mine(1)
        shared_poll(walk, f"of {2 * share} payments half are recorded", f"{share} payments are recorded")
        walk.mine(walk.confirmations)
        shared_poll(walk, f"{2 * share} payments are due", f"{2 * share} payments are credited")
    walk.told(f"{2 * share} payments are credited")
    walk.idle()


def shared_poll(walk: Walk, polled: str, helped: str) -> None:
    """A poll; what it asks others for is done at once."""
    queues = services().queues
    send = queues.record

    def asked(message: dict[str, str]) -> None:
        send(message)
        walk.step(f"record: {helped}", lambda: record.handle(json.dumps(message)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "record", asked)
        walk.poll(polled)


def opened(walk: Walk) -> None:
    """What both walks find: a merchant with money, a funded hot wallet, and nothing that waits."""
    hot = services().store.get(Wallet, network=NetworkId(f"live:{walk.network}"), role="hot")
    assert hot is not None
    body = {"network": walk.network, "status": "inactive"}
    walk.ask("PUT", "/networks", body, "admin_test")
    walk.idle()
    walk.pay(hot.address, walk.coin, walk.amount("20"))
    completed(walk)
    walk.mine(SETTLED)
    walk.idle()


def live(aws: LocalAws) -> dict[str, Cost]:
    """What the steps cost; `aws` has another first start afterwards."""
    costs: dict[str, Cost] = {}
    ethereum = TokenChain()
    with litecoin() as (chain, pool), tron() as node, served(ethereum.told) as url:
        nodes = {"litecoin": NodeInfo("http://127.0.0.1:9"), "tron": NodeInfo(node.url), "ethereum": NodeInfo(url)}
        stack = first_stack(aws, nodes)
        services().clock.shift_ms = 0
        Litecoin(stack, "", chain=chain).mine(SETTLED)
        opened(Litecoin(stack, "", chain=chain))
        opened(Tron(stack, "", node=node))
        begun(Ethereum(stack, "", node=ethereum))
        for counts in (False, True):
            coins = Litecoin(stack, "", counts, chain=chain)
            coins.poll("nothing is new")
            coins.mine(1)
            coins.poll("an empty block")
            crowded(coins, SHARE if counts else 2)
            refunded(coins)
            accounts = Tron(stack, "", counts, node=node)
            accounts.poll("nothing is new")
            accounts.mine(1)
            accounts.poll("an empty block")
            withdrawn(accounts)
            accounts.idle()
            wallet_paid(accounts)
            tokens = Ethereum(stack, "", counts, node=ethereum)
            token_paid(tokens)
        for counts in (False, True):
            moved = Litecoin(stack, "", counts, chain=chain, pool=pool)
            glimpsed(moved)
            behind(moved)
            treasury(moved)
    return costs | coins.costs | accounts.costs | tokens.costs | moved.costs
