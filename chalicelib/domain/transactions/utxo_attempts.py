"""Attempts of one UTXO transaction: each spends the inputs of the first (BIP-125), so that one of them at most is mined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from chalicelib.domain.treasury.hot_utxos import HeldCoin


class Made(Protocol):
    """One attempt; without its signed bytes `raw` and an id it is not signed."""

    @property
    def raw(self) -> str | None: ...

    @property
    def txid(self) -> str | None: ...

    @property
    def fee(self) -> int: ...

    @property
    def vsize(self) -> int: ...

    @property
    def positions(self) -> tuple[str, ...]:
        """Those of its outputs that are ours."""
        ...


class SpentCoin(NamedTuple):
    """A UTXO of ours that an attempt spends. `outpoint` is "<txid>:<n>", `amount` in units, `height` its block's number, `address`
    its owner's (public spelling)."""

    outpoint: str
    address: str
    amount: int
    height: int


class Contents(NamedTuple):
    """A transaction by its bytes: `unsigned` as hex, the coins that it spends, its outputs as (address, units) in order, `fee` in
    units, `vsize` in virtual bytes (BIP-141)."""

    unsigned: str
    inputs: tuple[HeldCoin, ...]
    outputs: Sequence[tuple[str, int]]
    fee: int
    vsize: int


M = TypeVar("M", bound=Made)


class Attempts(ABC, Generic[M]):
    """A record with its newest attempt in `newest` and the replaced ones in `earlier`, oldest first."""

    __slots__ = ()
    id: str
    newest: M | None
    earlier: tuple[M, ...]

    @abstractmethod
    def spends(self, attempt: M) -> tuple[SpentCoin, ...]:
        """The coins that one of its attempts spends."""

    @abstractmethod
    def pays(self, attempt: M) -> tuple[tuple[str, int], ...]:
        """Whom one of its attempts has to pay, by the record: (address, units), the change last."""

    @abstractmethod
    def attempt_of(self, contents: Contents) -> M:
        """The attempt, not signed yet, that does `contents`. Raises ValueError unless that is what the record orders: it pays those
        who are to be paid, and gives nobody else anything but the change to its wallet."""

    @property
    def latest(self) -> M:
        """The newest attempt. Raises LookupError where there is none."""
        if self.newest is None:
            raise LookupError(f"{self.id} has nothing to sign")
        return self.newest

    @property
    def signed(self) -> tuple[M, ...]:
        """Every attempt that may be in the chain, the newest first."""
        newest = () if self.newest is None or self.newest.txid is None else (self.newest,)
        return (*newest, *reversed(self.earlier))

    @property
    def txids(self) -> tuple[str, ...]:
        return tuple(attempt.txid for attempt in self.signed if attempt.txid)

    def mined_as(self, txid: str | None) -> M | None:
        """The attempt with this transaction id, None where none of them has it."""
        return next((made for made in self.signed if made.txid is not None and made.txid == txid), None)

    def attempt(self, txid: str) -> M:
        """The attempt with this transaction id. Raises LookupError for any other transaction."""
        found = self.mined_as(txid)
        if found is None:
            raise LookupError(f"{txid} is no transaction of {self.id}")
        return found
