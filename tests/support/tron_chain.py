"""The live network `tron` over the strict test node, for tests: keys, payments, and a transport that lies."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coincurve import PrivateKey

from chalicelib.chains.tron.delegating import TronDelegating
from chalicelib.chains.tron.http import TronHttp
from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.reader import TronReader
from chalicelib.chains.tron.staking import TronStaking
from chalicelib.chains.tron.tokens import TronTokens
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Block, Receipt, Transfer
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.signing import Signature, Signed
from infra.local.tron.process import TronNode

TRX = 10**6
USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
SOLID = 19
"""So many blocks on top make any block solid on the test node."""


def stranger() -> str:
    """An address that nobody has used before."""
    return base58check.encode(b"\x41" + secrets.token_bytes(20))


@dataclass(frozen=True)
class TronKey:
    """A key of the tests, for one wallet."""

    secret: PrivateKey = field(default_factory=PrivateKey)

    @property
    def address(self) -> str:
        return tron_address(self.secret.public_key.format(compressed=False)[1:])

    def raw_signature(self, digest: bytes) -> str:
        """65 bytes as hex."""
        return self.secret.sign_recoverable(digest, hasher=None).hex()

    def sign(self, digest: bytes) -> Signature:
        compact = self.secret.sign_recoverable(digest, hasher=None)
        return Signature(int.from_bytes(compact[:32]), int.from_bytes(compact[32:64]), compact[64])


class Lying:
    """A transport that changes what a node answers to one path."""

    def __init__(self, http: Any, path: str, change: Callable[[Any], Any]) -> None:
        self._http, self._path, self._change = http, path, change

    def call(self, method: str, params: Any = ()) -> Any:
        answer = self._http.call(method, params)
        return self._change(answer) if method == self._path else answer

    def batch(self, requests: Sequence[tuple[str, Any]]) -> list[Any]:
        return [self.call(*request) for request in requests]


@dataclass(frozen=True)
class TronChain:
    """`usdt` is at the real address, and answers false although it moves."""

    node: TronNode

    @property
    def network(self) -> Network:
        found = next(network for network in default_networks("live") if network.slug == "tron")
        return replace(found, rpc_url=self.node.url, status="active")

    @property
    def http(self) -> TronHttp:
        return TronHttp(self.node.url)

    @property
    def reader(self) -> TronReader:
        return TronReader(self.network, self.http, None)

    @property
    def payer(self) -> TronPayer:
        return TronPayer(self.network, self.http, None)

    @property
    def staking(self) -> TronStaking:
        return TronStaking(self.network, self.http, None)

    @property
    def delegating(self) -> TronDelegating:
        return TronDelegating(self.network, self.http, None)

    @property
    def tokens(self) -> TronTokens:
        return TronTokens(self.network, self.http, None)

    def lying(self, path: str, change: Callable[[Any], Any]) -> Lying:
        return Lying(self.http, path, change)

    def funded(self, *, trx: int = 100, usdt: int = 0) -> TronKey:
        """A new wallet that holds this much, in whole coins."""
        key = TronKey()
        if trx:
            self.node.faucet(key.address, trx)
        if usdt:
            self.node.faucet(key.address, usdt, "USDT")
        return key

    def payment(self, key: TronKey, to: str, units: int, contract: str | None = None, nonce: int = 0) -> Payment:
        return Payment(key.address, to, contract, units, nonce)

    def signed(self, key: TronKey, payment: Payment) -> tuple[str, Signed]:
        """The payment unsigned and signed, not sent."""
        payer = self.payer
        unsigned = payer.prepare(payment)
        return unsigned, payer.assemble(unsigned, key.sign(payer.digest(unsigned)))

    def pay(self, key: TronKey, to: str, units: int, contract: str | None = None, nonce: int = 0) -> Receipt:
        """Pay, and mine it."""
        _, signed = self.signed(key, self.payment(key, to, units, contract, nonce))
        self.payer.broadcast(signed.raw)
        self.node.mine()
        receipt = self.reader.receipt(signed.txid)
        assert receipt is not None
        return receipt

    def since(self, height: int, *contracts: str) -> list[Block]:
        return self.reader.blocks(height + 1, self.reader.tip(), {USDT, *contracts})

    def to(self, recipient: str, height: int, *contracts: str) -> list[Transfer]:
        return [t for block in self.since(height, *contracts) for t in block.transfers if t.recipient == recipient]

    def proven_to(self, recipient: str, height: int, *contracts: str) -> list[Transfer]:
        found = []
        for block in self.since(height, *contracts):
            found += self.reader.proven(block, [t for t in block.transfers if t.recipient == recipient])
        return found

    def solidify(self) -> None:
        """Make everything until now solid."""
        self.node.mine(SOLID)
