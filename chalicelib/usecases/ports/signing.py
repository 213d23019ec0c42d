"""Signatures, and who makes them. `custody` fits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.addresses import Wallet


@dataclass(frozen=True, slots=True)
class Signature:
    """secp256k1, s in the lower half (EIP-2, BIP-62); `parity` is the y parity of R."""

    r: int
    s: int
    parity: int


@dataclass(frozen=True, slots=True)
class Signed:
    """`raw` is what goes to the node, as hex."""

    raw: str
    txid: str


class Signer(Protocol):
    def sign(self, wallet: Wallet, digest: bytes) -> Signature:
        """Sign with the wallet's key. The caller has checked what it signs (money rule 7). Raises Unavailable."""
        ...
