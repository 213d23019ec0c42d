"""Storage of keys, and derivation of addresses. `custody` fits these."""

from __future__ import annotations

from typing import Any, Protocol

from chalicelib.domain.addresses.addresses import Role, Wallet
from chalicelib.domain.ids import NetworkId, Realm


class WalletKeys(Protocol):
    """Keys of service wallets, stored for the payouts. Code that registers wallets can not read a stored key."""

    @property
    def native(self) -> bool:
        """Whether keys of this deployment's wallets are made where they stay (`make`), and no others are taken."""
        ...

    def make(self, network: NetworkId, role: Role, number: int, now_ms: int) -> Wallet:
        """The wallet over a key that never leaves its place: the `number`-th for this role, made once however often it is asked
        for. Raises Unavailable."""
        ...

    def new(self) -> str:
        """A fresh private key, as hex."""
        ...

    def put_away(self, network: NetworkId, role: Role, secret: str, now_ms: int) -> tuple[Wallet, Any]:
        """The wallet of a private key, and the record that keeps the key encrypted: store both together.

        Raises ValueError, without the key in its message, for what is no private key of that network; Unavailable.
        """
        ...


class Deriver(Protocol):
    """Deposit addresses from public keys alone."""

    def derive(self, realm: Realm, network: str, index: int) -> tuple[str, str]:
        """Address in its public spelling, and its derivation path. Raises LookupError when the realm has no xpub yet."""
        ...
