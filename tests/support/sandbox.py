"""A simulated network on a table in moto, with a clock that tests turn by hand and wallets that can sign."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import boto3
from coincurve import PrivateKey
from moto import mock_aws

from chalicelib.chains.sandbox.chain import SandboxChain
from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.chains.sandbox.reader import SandboxReader
from chalicelib.chains.sandbox.table import SandboxTable
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.encoding.public_keys import address_of
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.signing import Signature, Signed
from infra.local import repairs
from tests.support.custody import CREDENTIALS

START_MS = 1_760_000_000_000
NETWORKS = {network.slug: network for network in default_networks("test")}
USDT = "0xdac17f958d2ee523a2206206994597c13d831ec7"
_numbers = itertools.count()


@dataclass
class HandClock:
    """The port Clock; `now` in milliseconds since 1970."""

    now: int = START_MS

    def now_ms(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


class Client:
    """A DynamoDB client that counts its calls, and lets a test step in before a write."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: list[str] = []
        self.before_write: Callable[[], None] | None = None
        self.after_write: Callable[[], None] | None = None

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            self.calls.append(operation)
            if operation == "transact_write_items" and self.before_write is not None:
                step_in, self.before_write = self.before_write, None
                step_in()
            answer = getattr(self._client, operation)(**arguments)
            if operation == "transact_write_items" and self.after_write is not None:
                step_in, self.after_write = self.after_write, None
                step_in()
            return answer

        return call


@dataclass
class Wallet:
    """A key of one network."""

    network: Network
    key: PrivateKey

    @property
    def address(self) -> str:
        return address_of(self.network.slug, self.key.public_key.format(compressed=False)[1:])

    def sign(self, digest: bytes) -> Signature:
        made = self.key.sign_recoverable(digest, hasher=None)
        return Signature(int.from_bytes(made[:32], "big"), int.from_bytes(made[32:64], "big"), made[64])


@dataclass
class Lab:
    """One simulated network and everything that speaks to it."""

    network: Network
    client: Client
    name: str
    clock: HandClock = field(default_factory=HandClock)
    block_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.table = SandboxTable(self.client, self.name)
        self.chain = SandboxChain(self.network, self.table, self.clock, self.block_seconds)
        self.reader = SandboxReader(self.network, self.table, self.clock)
        self.payer = SandboxPayer(self.network, self.chain)
        self.contracts = (USDT,)

    def wallet(self, seed: int) -> Wallet:
        return Wallet(self.network, PrivateKey.from_int(seed + 1))

    def signed(self, wallet: Wallet, recipient: str, amount: int, nonce: int, contract: str | None = None, **more: Any) -> Signed:
        """A payment as the payout worker makes it: prepared, signed, assembled."""
        unsigned = self.payer.prepare(Payment(wallet.address, recipient, contract, amount, nonce, **more))
        return self.payer.assemble(unsigned, wallet.sign(self.payer.digest(unsigned)))

    def with_pace(self, block_seconds: float) -> Lab:
        """The same chain, by a deployment with another setting."""
        return replace(self, block_seconds=block_seconds)

    def all_blocks(self) -> list[Any]:
        return self.reader.blocks(0, self.reader.tip(), self.contracts)


@contextmanager
def lab_of(slug: str, block_seconds: float = 0.0) -> Iterator[Lab]:
    """A fresh simulated network on a table of its own."""
    repairs.install()
    with mock.patch.dict("os.environ", CREDENTIALS), mock_aws():
        client = boto3.client("dynamodb", region_name="eu-central-1")
        yield fresh(client, slug, block_seconds)


def fresh(client: Any, slug: str, block_seconds: float = 0.0) -> Lab:
    name = f"sandbox-{next(_numbers)}"
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": k, "AttributeType": "S"} for k in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    return Lab(NETWORKS[slug], Client(client), name, block_seconds=block_seconds)
