"""Loans of a stake's resources (Tron: bandwidth, energy) to another address of ours, and their return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.domain.treasury.energy_loans import Lendable
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.usecases.ports.signing import Signature, Signed

Direction = Literal["delegation", "undelegation"]


@dataclass(frozen=True, slots=True)
class ExplainedDelegation:
    """The effect of a transaction about to be signed, decoded from its bytes. `amount`: units of the native coin whose stake is
    lent or taken back; no coin moves. `fee`: the most that its bytes can cost."""

    direction: Direction
    owner: str
    receiver: str
    amount: int
    resource: Resource
    txid: str
    fee: int


class DelegationNode(Protocol):
    """A real network on which stakes can be lent, by a transaction that the wallet's key signs."""

    def lendable(self, wallet: str, receiver: str, resource: Resource) -> Lendable:
        """The units that `wallet` could lend to `receiver` now. Raises Unavailable."""
        ...

    def lent(self, wallet: str, receiver: str, resource: Resource) -> int:
        """Units of the native coin whose stake `wallet` lends to `receiver`. Raises Unavailable."""
        ...

    def prepare(self, direction: Direction, wallet: str, receiver: str, amount: int, resource: Resource, sequence: int) -> str:
        """The unsigned transaction, as hex. `sequence` makes equal ones differ. Raises InsufficientFunds, Refused, Unavailable."""
        ...

    def renewed(self, unsigned: str) -> str:
        """The same with a new expiry. Raises as `prepare` and `explain` do."""
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

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        """As `ChainPayer.renewable`: whether every node says that no block will ever have it."""
        ...

    def lifetime(self, raw: str, txid: str) -> Lifetime | None:
        """As `ChainPayer.lifetime`."""
        ...
