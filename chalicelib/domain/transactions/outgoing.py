"""Outgoing transactions on account networks, in all their attempts: what payment orders, moves and stakes have in common.

Every attempt has the nonce of the first, or the ones before it have expired (Tron): the chain takes one of them at most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

FORGOTTEN = ""
"""In place of the signed bytes of an attempt that a point-in-time restore has forgotten: the chain told its id and no more."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Signed bytes. Those that were replaced the chain may still take. `fee` is the most they can cost, in units of the native
    coin; `at`, when they were signed, in milliseconds since 1970."""

    raw: str
    txid: str
    fee: int
    at: int

    @classmethod
    def stored(cls, raw: str | None, txid: str | None, fee: int, at: int) -> Self | None:
        """The attempt that a record's fields tell of, None before one is signed."""
        return None if raw is None or txid is None else cls(raw, txid, fee, at)

    @property
    def forgotten(self) -> bool:
        """Whether its bytes are not known, so that it can be looked for, and neither sent again nor replaced."""
        return self.raw == FORGOTTEN


class Outgoing(ABC):
    """A record with its newest attempt in fields of its own, the signed bytes in `raw`, and the replaced attempts in `earlier`,
    oldest first. Whichever of all of them is in the chain, that one has paid."""

    __slots__ = ()
    raw: str | None
    earlier: tuple[Attempt, ...]

    @property
    @abstractmethod
    def txid(self) -> str | None:
        """The id of the newest attempt."""

    @property
    @abstractmethod
    def newest(self) -> Attempt | None:
        """The attempt that should be mined, None before one is signed."""

    @abstractmethod
    def signed_as(self, attempt: Attempt) -> Self:
        """The next version, whose newest attempt is this one; what was the newest is kept beside the others."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt that may be in the chain, the newest first. None of them where the newest is not known (a record that was
        altered): by the others alone it would be lost once the newest is mined."""
        newest = self.newest
        return () if newest is None else (newest, *reversed(self.earlier))

    @property
    def txids(self) -> tuple[str, ...]:
        """The ids of all of them, and of one that another record signs or that is still to be signed; the newest first."""
        return (*((self.txid,) if self.txid else ()), *(attempt.txid for attempt in reversed(self.earlier)))

    @property
    def replaced(self) -> tuple[Attempt, ...]:
        """`earlier`, once another attempt is the newest."""
        newest = self.newest
        return self.earlier if newest is None else (*self.earlier, newest)

    @property
    def was_signed(self) -> bool:
        """Whether anything says so: of a record that was altered one field may, and the others not."""
        return self.raw is not None or bool(self.earlier)
