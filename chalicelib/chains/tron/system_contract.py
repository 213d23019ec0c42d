"""The common part of stakes and delegations: transactions of Tron's system contracts, which cost their bytes alone.

Built, signed as they stand, sent, and made again once they have ended. No Tron library is imported here.
Source: developers.tron.network, "Stake 2.0", "Resource Model".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import ClassVar

from chalicelib.chains.tron import fees, transactions
from chalicelib.chains.tron.calls import Node
from chalicelib.chains.tron.reader import MAINNET
from chalicelib.chains.tron.sending import Sending
from chalicelib.chains.tron.values import hex_address, row, whole
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.usecases.ports.accounts import Opened
from chalicelib.usecases.ports.failures import InsufficientFunds
from chalicelib.usecases.ports.signing import Signature, Signed


class SystemContract(ABC):
    """`kinds` are the contracts that are built and signed here, `name` what such a transaction is called. `genesis` as in
    `TronReader`; `witnesses` are the nodes that have to agree that a transaction is dead."""

    kinds: ClassVar[Collection[transactions.Kind]]
    name: ClassVar[str]

    def __init__(self, network: Network, node: Node, genesis: str | None = MAINNET, witnesses: Sequence[Node] = ()) -> None:
        self._node = node
        self._sending = Sending(network, node, genesis, witnesses)

    @abstractmethod
    def explain(self, unsigned: str) -> object:
        """Decode `unsigned`. Raises ValueError for anything but what this class builds."""

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign: the id. Raises ValueError as `explain` does."""
        self.explain(unsigned)
        return sha256(bytes.fromhex(unsigned)).digest()

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction. Raises ValueError as `explain` does, and unless the wallet's key signed."""
        self.explain(unsigned)
        return transactions.assemble(bytes.fromhex(unsigned), signature)

    def opened(self, raw: str) -> Opened:
        """As `ChainPayer.opened`."""
        return transactions.opened(raw)

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        self._sending.broadcast(raw)

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        """As `ChainPayer.renewable`: no block will ever have it."""
        return self._sending.sure(lambda: self._sending.dead(self._decoded(unsigned), txid, every_node))

    def lifetime(self, raw: str, txid: str) -> Lifetime:
        """As `ChainPayer.lifetime`."""
        return transactions.lifetime(raw, txid)

    def _paid(self, wallet: str, raw: bytes, amount: int) -> str:
        """`raw` as hex, once it is sure that `wallet` has `amount` sun and what its bytes cost now. Raises InsufficientFunds."""
        asked = {"address": hex_address(wallet), "visible": False}
        parameters, resources, account = self._node.batch(
            [("wallet/getchainparameters", {}), ("wallet/getaccountresource", asked), ("wallet/getaccount", asked)]
        )
        fee = fees.bytes_fee(fees.prices_of(parameters), fees.resources_of(resources), fees.size_of(raw))
        funds = whole(row(account, "an account").get("balance"), "a balance")
        if funds < amount + fee:
            raise InsufficientFunds(f"insufficient funds: the wallet has {funds} sun of {amount + fee}")
        return raw.hex()

    def _decoded(self, unsigned: str) -> transactions.Unsigned:
        decoded = transactions.decode(bytes.fromhex(unsigned))
        if decoded.kind not in self.kinds:
            raise ValueError(f"the transaction is no {self.name}")
        return decoded
