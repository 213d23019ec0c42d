"""A payer's own transactions, built here for a wallet that can not build them, and handed to the network once it has signed.
`chains/tron/payer_transactions.py` fits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class PayerTransfer:
    """What a payer's transaction moves: `amount` units of the token `contract`, or of the native coin where that is None. Addresses
    in public spelling."""

    sender: str
    recipient: str
    contract: str | None
    amount: int


@dataclass(frozen=True, slots=True)
class PayerSigned:
    """A signed transaction, read: what it moves, its id, until when the chain takes it (ms since 1970), its `raw` bytes in hex."""

    transfer: PayerTransfer
    txid: str
    expires_at: int
    raw: str


class PayerTransactions(Protocol):
    """One network's. Holds no key."""

    def build(self, transfer: PayerTransfer, block_hash: str, now_ms: int, expires_at: int) -> Mapping[str, Any]:
        """The unsigned transaction, as the network's wallets take it; it refers to the block with that hash. Asks no node. Raises
        ValueError for a transfer that no wallet can make."""
        ...

    def read(self, unsigned: str, signature: str) -> PayerSigned:
        """The transaction of these bytes (hex) and the signature of its sender's key (hex). Asks no node. Raises ValueError for any
        but a plain transfer, as `build` makes it, and unless the sender's key signed."""
        ...

    def rehearse(self, transfer: PayerTransfer) -> None:
        """Ask the network whether the transfer would succeed now: what fails in a block costs the payer a fee and pays nothing.
        Raises Refused (InsufficientFunds), Unavailable."""
        ...

    def send(self, signed: PayerSigned) -> None:
        """Hand it to the network. Safe to repeat: what the network knows already is done. Raises Refused (InsufficientFunds),
        Unavailable."""
        ...
