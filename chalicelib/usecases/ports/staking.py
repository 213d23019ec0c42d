"""Stakes of a wallet's coins on a real network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.usecases.ports.accounts import Opened
from chalicelib.usecases.ports.signing import Signature, Signed


@dataclass(frozen=True, slots=True)
class ExplainedStake:
    """The effect of a staking transaction about to be signed, decoded from its bytes. `amount` in units of the native coin."""

    owner: str
    amount: int
    resource: Resource
    txid: str


class StakingNode(Protocol):
    """A real network on which coins of a wallet can be staked, by a transaction that the wallet's key signs."""

    def prepare(self, wallet: str, amount: int, resource: Resource, sequence: int) -> str:
        """The unsigned transaction, as hex. `sequence` makes equal ones differ. Raises InsufficientFunds, Unavailable."""
        ...

    def explain(self, unsigned: str) -> ExplainedStake:
        """Decode `unsigned`. Raises ValueError for anything but a plain stake."""
        ...

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign."""
        ...

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction and its id. Raises ValueError unless the wallet's key signed."""
        ...

    def opened(self, raw: str) -> Opened:
        """As `ChainPayer.opened`."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        """As `ChainPayer.renewable`: whether every node says that no block will ever have it."""
        ...

    def lifetime(self, raw: str, txid: str) -> Lifetime | None:
        """As `ChainPayer.lifetime`."""
        ...
