"""How the places of one network are compared with the chain: what a run needs of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from chalicelib.domain.reconciliation import Place, Seen, Unread


class Looks(Protocol):
    """How the places of one network are compared. `everywhere`: also where the ledger knows of nothing, since asking is cheap.
    `unspent` has the merchants' deposits whose UTXOs the last look found, on UTXO networks."""

    everywhere: bool
    unspent: Sequence[str]

    def block(self) -> int:
        """The block that a comparison would use now. Raises Unavailable."""
        ...

    def form(self, contract: str | None) -> str | None:
        """A contract's form in places."""
        ...

    def look(self, places: Sequence[Place]) -> list[Seen | Unread]:
        """The comparison of each place. Raises Unavailable, but where one token alone can not be read."""
        ...

    def holding(self, places: Sequence[Place]) -> list[Place]:
        """Those of `places` where the chain has something; asked where looking is `everywhere`. Raises Unavailable."""
        ...

    def touched(self) -> Collection[str]:
        """The addresses (storage form) that transactions in flight take from, or bring to. Raises Unavailable."""
        ...
