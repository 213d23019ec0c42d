"""Signatures and signers. `custody` fits it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.ids import NetworkId


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


class OpenDepositKeys(Protocol):
    """The keys of deposit addresses while the seed is open."""

    def sign_as(self, network: NetworkId, address: str, path: str, digest: bytes) -> Signature:
        """Sign with the key at the derivation path `path`. The caller has checked what it signs (money rule 7).

        Raises ValueError unless that key is the one of `address` on `network`.
        """
        ...


class DepositKeys(Protocol):
    """The seed of the deposit addresses, which one function alone may open."""

    def opened(self) -> AbstractContextManager[OpenDepositKeys]:
        """Open for the length of a `with` block: one call to the key service, however much is signed. Raises Unavailable, and
        LookupError where there is no seed."""
        ...
