"""Attempts of one UTXO transaction: each spends the inputs of the first (BIP-125), so that one of them at most is mined."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar


class Made(Protocol):
    """One attempt; without an id it is not signed."""

    @property
    def txid(self) -> str | None: ...


M = TypeVar("M", bound=Made)


class Attempts(Generic[M]):
    """A record with its newest attempt in `newest` and the replaced ones in `earlier`, oldest first."""

    __slots__ = ()
    id: str
    newest: M | None
    earlier: tuple[M, ...]

    @property
    def signed(self) -> tuple[M, ...]:
        """Every attempt that may be in the chain, the newest first."""
        newest = () if self.newest is None or self.newest.txid is None else (self.newest,)
        return (*newest, *reversed(self.earlier))

    @property
    def txids(self) -> tuple[str, ...]:
        return tuple(attempt.txid for attempt in self.signed if attempt.txid)

    def attempt(self, txid: str) -> M:
        """The attempt with this transaction id. Raises LookupError for any other transaction."""
        for made in self.signed:
            if made.txid == txid:
                return made
        raise LookupError(f"{txid} is no transaction of {self.id}")
