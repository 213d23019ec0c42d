"""Lending what a wallet's stake gives (Tron: bandwidth, energy) to another address of ours, and taking it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from chalicelib.domain.stakes import Resource
from chalicelib.usecases.ports.signing import Signature, Signed

Direction = Literal["delegation", "undelegation"]


@dataclass(frozen=True, slots=True)
class ExplainedDelegation:
    """What a transaction about to be signed really does, decoded from its bytes. `amount`: units of the native coin whose stake is
    lent or taken back; no coin moves."""

    direction: Direction
    owner: str
    receiver: str
    amount: int
    resource: Resource
    txid: str


@dataclass(frozen=True, slots=True)
class Lendable:
    """What there is to lend, and what it would do. Stakes in units of the native coin.

    `stake`: of the wallet, free today. `per_unit` and `of`: a stake of `of` gives `per_unit` of the resource a day. `active`:
    whether the receiver exists on the chain: to one that does not nothing can be lent, and it can send nothing.
    """

    stake: int
    per_unit: int
    of: int
    active: bool

    def for_(self, amount: int) -> int:
        """The stake that gives `amount` of the resource, rounded up to whole coins as the chain counts them."""
        coins = -(-amount * self.of // (self.per_unit * _COIN))
        return max(1, coins) * _COIN

    def covers(self, amount: int) -> bool:
        return self.active and self.for_(amount) <= self.stake


_COIN = 1_000_000
"""Stakes count in whole TRX."""


class DelegationNode(Protocol):
    """A real network on which stakes can be lent, by a transaction that the wallet's key signs."""

    def lendable(self, wallet: str, receiver: str, resource: Resource) -> Lendable:
        """What `wallet` could lend to `receiver` now. Raises Unavailable."""
        ...

    def lent(self, wallet: str, receiver: str, resource: Resource) -> int:
        """Units of the native coin whose stake `wallet` lends to `receiver`. Raises Unavailable."""
        ...

    def prepare(self, direction: Direction, wallet: str, receiver: str, amount: int, resource: Resource, sequence: int) -> str:
        """The unsigned transaction, as hex. `sequence` makes equal ones differ. Raises InsufficientFunds, Refused, Unavailable."""
        ...

    def explain(self, unsigned: str) -> ExplainedDelegation:
        """Decode `unsigned`. Raises ValueError for anything but a plain delegation or its return, a locked one too."""
        ...

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign. Raises ValueError as `explain` does."""
        ...

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction and its id. Raises ValueError unless the wallet's key signed."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def renewable(self, unsigned: str, txid: str) -> bool:
        """As `ChainPayer.renewable`: whether no block will ever have it."""
        ...
