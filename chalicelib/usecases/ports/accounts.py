"""Payments on account networks (EVM, Tron, every simulated one): one payment per transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.usecases.ports.signing import Signature, Signed


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment before the chain's own fields are filled in. `amount` in units; `contract` None for the native coin.

    `reference` is the withdrawal's id: simulated networks write it into the payment, so that an outcome can be planned for it.
    `gas`, where transactions have gas: how much of it may be signed for. `bounded`: no more than `ChainPayer.gas_bound` says.
    `used`: the same, and where it would take more, or fail, it gets just that: its nonce is allotted, and has to be used.
    `over`: unsigned bytes with the same nonce, in whose place nodes have to take it, whichever of them they have: its fees are at
    least what nodes ask of a replacement of each.
    """

    sender: str
    recipient: str
    contract: str | None
    amount: int
    nonce: int
    priority: Priority = "normal"
    reference: str | None = None
    gas: Literal["any", "bounded", "used"] = "any"
    over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """The effect of a transaction about to be signed, decoded from its bytes. `nonce` is None where the chain has none (Tron).

    `sender` is None where the bytes do not name one (EVM); `fee` is the most that it can cost, in units of the native coin. `gas`
    is the most gas that it can take, 0 where transactions have none.
    """

    chain_id: int | None
    nonce: int | None
    recipient: str
    contract: str | None
    amount: int
    sender: str | None = None
    fee: int = 0
    gas: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FeeEstimate:
    """`fee` is the most that the payment can cost, in units of the native coin. `bare`: what the same costs out of an address that
    has nothing of the network's resources (Tron: energy, bandwidth), to one that has the coin already; None: as much as `fee`.
    `gas` is what it takes now by the node's estimate, 0 where transactions have no gas. `stated`: the most that bytes built now
    could cost, whatever resources there are; None: as much as `fee`."""

    fee: int
    gas: int = 0
    bare: int | None = field(default=None, kw_only=True)
    stated: int | None = field(default=None, kw_only=True, compare=False)

    @property
    def sweep(self) -> int:
        """The fee of moving a deposit of the coin to a wallet, once its address has the fee."""
        return self.fee if self.bare is None else self.bare


@dataclass(frozen=True, slots=True)
class Opened:
    """A signed transaction, taken apart: what was signed, its id, and the address whose key signed."""

    unsigned: str
    txid: str
    signer: str


class ChainPayer(Protocol):
    """One account network (EVM, Tron, every simulated one), as payments need it."""

    def next_nonce(self, address: str) -> int:
        """Transactions of `address` that are in blocks (not the mempool). Raises Unavailable."""
        ...

    def used_nonces(self, address: str) -> int:
        """The lowest `next_nonce` of all configured nodes: so many nonces are used whatever one node says. Raises Unavailable,
        also where one of them does not answer."""
        ...

    def told_nonces(self, address: str) -> tuple[int | None, ...]:
        """The `next_nonce` of each configured node, None where it does not answer. Raises Unavailable where none does."""
        ...

    def estimate(self, payment: Payment) -> FeeEstimate:
        """The payment's present cost. A payment to the sender itself stands for one to an address that never had the coin, which
        is the dearest: the recipient is not known yet. Raises Refused (InsufficientFunds) when it would fail on the chain,
        Unavailable."""
        ...

    def cost(self, payment: Payment) -> FeeEstimate:
        """As `estimate`, but the sender need not have the fee yet. Raises Refused where it would fail all the same, Unavailable."""
        ...

    def gas_bound(self, sender: str, contract: str | None, gas: int) -> int:
        """The most gas that a payment of this coin by `sender` may take where nobody pays for more: three times what a plain one
        takes now. May be less than that where it is `gas` or more; 0 where transactions have no gas. Raises Unavailable."""
        ...

    def prepare(self, payment: Payment) -> str:
        """The unsigned transaction, as hex, with fees of now. Raises Refused (InsufficientFunds, TooMuchGas), Unavailable."""
        ...

    def explain(self, unsigned: str) -> Explained:
        """Decode `unsigned`. Raises ValueError for anything but a plain transfer of the native coin or of a token."""
        ...

    def digest(self, unsigned: str) -> bytes:
        """The 32 bytes to sign."""
        ...

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        """The signed transaction and its id."""
        ...

    def opened(self, raw: str) -> Opened:
        """A transaction made by `assemble`, decoded from its bytes alone. Raises ValueError for anything else."""
        ...

    def broadcast(self, raw: str) -> None:
        """Send the transaction to the node. Safe to repeat: a known transaction is a success. Raises Refused (the node's words),
        Unavailable."""
        ...

    def renew(self, unsigned: str, priority: Priority, sender: str) -> str:
        """The same payment with the same nonce, in bytes that a node takes in place of `unsigned`: at the fees of now, and at least
        at what nodes ask of a replacement; where transactions expire, with a new expiry. `sender` is the wallet that pays, which
        some chains' bytes do not name. Raises Refused (InsufficientFunds), Unavailable, and ValueError as `explain` does."""
        ...

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        """Whether no node objects to a replacement of `unsigned`, whose signed form is `txid`. Where both have one nonce: always.
        Where transactions have none: once every node says that this one is past its expiry and in no block. That proves nothing by
        itself (`usecases.transactions.losses`). Without `every_node` one that has no vote (`usecases.transactions.node_votes`) is
        not waited for. Raises Unavailable.
        """
        ...

    def lifetime(self, raw: str, txid: str) -> Lifetime | None:
        """In which blocks the signed bytes `raw` can be; None where transactions have nonces. Raises ValueError for what `assemble`
        did not make, or not under the id `txid`."""
        ...
