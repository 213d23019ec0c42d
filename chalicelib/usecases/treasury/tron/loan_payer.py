"""Energy loans in the form in which moves are built, signed and followed: a `ChainPayer` that makes, and takes, nothing else."""

from __future__ import annotations

from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.domain.treasury.moves import MoveKind
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.usecases.ports.accounts import ChainPayer, Explained, FeeEstimate, Opened, Payment
from chalicelib.usecases.ports.delegating import DelegationNode, Direction
from chalicelib.usecases.ports.signing import Signature, Signed

_DIRECTIONS: dict[MoveKind, Direction] = {"delegation": "delegation", "undelegation": "undelegation"}


class LoanPayer:
    """Implements `ChainPayer` for one direction. `amount` of a payment is the stake whose energy is lent or taken back.

    `payer` is the network's own: for what is the same for every transaction.
    """

    def __init__(self, node: DelegationNode, payer: ChainPayer, kind: MoveKind, chain_id: int | None) -> None:
        """Raises LookupError for a kind that is no loan."""
        self._node, self._payer, self._direction, self._chain_id = node, payer, _DIRECTIONS[kind], chain_id

    def next_nonce(self, address: str) -> int:
        return self._payer.next_nonce(address)

    def used_nonces(self, address: str) -> int:
        return self._payer.used_nonces(address)

    def told_nonces(self, address: str) -> tuple[int | None, ...]:
        return self._payer.told_nonces(address)

    def estimate(self, payment: Payment) -> FeeEstimate:
        return FeeEstimate(self.explain(self.prepare(payment)).fee)

    def cost(self, payment: Payment) -> FeeEstimate:
        return self.estimate(payment)

    def gas_bound(self, sender: str, contract: str | None, gas: int) -> int:
        return self._payer.gas_bound(sender, contract, gas)

    def prepare(self, payment: Payment) -> str:
        """Raises Refused, InsufficientFunds, Unavailable."""
        return self._node.prepare(self._direction, payment.sender, payment.recipient, payment.amount, "ENERGY", payment.nonce)

    def explain(self, unsigned: str) -> Explained:
        """Raises ValueError for anything but a loan of energy in this direction, never locked."""
        does = self._node.explain(unsigned)
        if does.direction != self._direction or does.resource != "ENERGY":
            raise ValueError(f"the transaction is a {does.direction} of {does.resource}, no {self._direction} of energy")
        return Explained(self._chain_id, None, does.receiver, None, does.amount, does.owner, does.fee)

    def digest(self, unsigned: str) -> bytes:
        self.explain(unsigned)
        return self._node.digest(unsigned)

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        self.explain(unsigned)
        return self._node.assemble(unsigned, signature)

    def opened(self, raw: str) -> Opened:
        return self._payer.opened(raw)

    def broadcast(self, raw: str) -> None:
        self._node.broadcast(raw)

    def renew(self, unsigned: str, priority: Priority, sender: str) -> str:
        """The same loan with a new expiry. Raises as `prepare` does, ValueError as `explain` does."""
        self.explain(unsigned)
        return self._node.renewed(unsigned)

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        return self._node.renewable(unsigned, txid, every_node)

    def lifetime(self, raw: str, txid: str) -> Lifetime | None:
        return self._node.lifetime(raw, txid)
