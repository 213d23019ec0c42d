"""Kinds of UTXO transactions, as the engine knows them: bundles of payments, and moves between wallets of ours.

A record is one transaction with all of its attempts; a kind is made anew for each step of one, so that it reads the store once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.usecases.ports.signing import Signature

R = TypeVar("R", Bundle, CoinMove)
R_contra = TypeVar("R_contra", Bundle, CoinMove, contravariant=True)
InputSigner = Callable[[str, bytes], Signature]
"""Signs the digest of the input that spends an outpoint, with the key of its address."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a signature rests on. `conditions` commit with it. `unlike` names in what the records differ from what was approved, and
    `dear` by which bounds of its kind the fee is too high; `leaving` are parts of the order that may leave it for that, while
    nothing is signed."""

    conditions: Sequence[Change]
    unlike: Sequence[str] = ()
    dear: Sequence[str] = ()
    leaving: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Means:
    """What a replacement is made of. The rest goes to the address `home`; it may spend `more` beside the inputs that it has to. The
    coins `known` are ours. `priority` sets its fee rate. `unlike` names the reservations that are not of what was signed."""

    home: str
    priority: Priority
    known: Sequence[HeldCoin]
    more: Sequence[Unspent] = ()
    unlike: Sequence[str] = ()


class SignedKind(Protocol[R_contra]):
    """One record that is to be signed. Its methods raise Unavailable."""

    network: Network

    @property
    def name(self) -> str:
        """The word for its kind."""
        ...

    def grounds(self, record: R_contra) -> Grounds:
        """Guards of its kind, the kill switch's first. Raises PaymentsStopped."""
        ...

    def coins(self, record: R_contra) -> Sequence[HeldCoin]:
        """The coins of ours that are reserved for it, of those that its newest attempt says it spends."""
        ...

    def differs(self, record: R_contra, names: str) -> None:
        """Raise the alarm that its newest attempt is not what was approved."""
        ...

    def throw_away(self, record: R_contra, leaving: Sequence[str]) -> None:
        """Let it be built anew, without those who are `leaving`: nothing was signed."""
        ...

    def keys(self, record: R_contra) -> AbstractContextManager[InputSigner]:
        """Open its inputs' keys."""
        ...


class ReplacedKind(Protocol[R_contra]):
    """One record whose newest attempt is stuck. Its methods raise Unavailable."""

    network: Network

    def means(self, record: R_contra) -> Means: ...

    def forged(self, record: R_contra, names: str) -> None:
        """Raise the alarm that its newest attempt is not what was signed."""
        ...

    def affordable(self, record: R_contra, fee: int) -> bool:
        """Whether its parts are worth a replacement's `fee` in units; with an alarm where they are not."""
        ...

    def taken(self, record: R_contra) -> Sequence[Change]:
        """The reservation of the coins that its new attempt spends."""
        ...


class SentKind(Protocol[R]):
    """One record that is signed. Its methods raise Unavailable, Conflict."""

    network: Network

    def book(self, record: R) -> R:
        """Put in flight what is not: from its signature on, the money can leave at any time."""
        ...

    def halted(self) -> bool:
        """Whether nothing of its kind is sent now."""
        ...
