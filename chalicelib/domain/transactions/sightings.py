"""Sightings: our nonces, inputs and transactions that the scanner met in blocks (money rule 13). Pure.

A node's silence about a transaction proves nothing. The proof is in blocks: another transaction with the same nonce, or with the
same input; and, where transactions expire, all blocks that could have held one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version

MOST_SEEN = 200
"""Blocks that are kept of one subject, which is met in one block of each branch. An item has 400 KB, and this is 40."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Transaction `txid` in block `number`, as long as that block, named by its `hash`, is in the chain."""

    txid: str
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """A block in which `subject` was met: a sender's nonce, an input, or a transaction's id (`nonce_subject` and the next two)."""

    network: NetworkId
    subject: str
    seen: tuple[Seen, ...] = ()
    version: int = 0

    def noting(self, found: Seen) -> Sighting:
        """The version to save; this very record where the block was noted before."""
        if found in self.seen:
            return self
        return replace(next_version(self), seen=(*self.seen, found)[-MOST_SEEN:])


def nonce_subject(sender: str, nonce: int) -> str:
    """`sender` in storage form."""
    return f"nonce:{sender}:{nonce}"


def input_subject(outpoint: str) -> str:
    """`outpoint` is "<txid>:<n>"."""
    return f"input:{outpoint}"


def txid_subject(txid: str) -> str:
    return f"txid:{txid}"


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The blocks that can hold a transaction that expires (Tron): none before the block that it refers to, whose number ends with
    the 16 bits `low` and whose id has `part` (16 hex digits) in its second half's beginning; none behind the first block whose
    time is past `ends` (milliseconds since 1970). Source: java-tron, Manager.validateTapos and validateCommon.
    """

    low: int
    part: str
    ends: int


@dataclass(frozen=True, slots=True)
class Ours:
    """One of our transactions in all its attempts: their ids, and the `subjects` by which each of them would be met.

    `lifetimes` are those of the attempts where they expire, None for one whose bytes are not known; without any, the subjects are
    what all attempts share and no other transaction may have: one nonce, or inputs.
    """

    txids: tuple[str, ...]
    subjects: tuple[str, ...]
    lifetimes: tuple[Lifetime | None, ...] = ()


def by_nonce(txids: Iterable[str], sender: str, nonce: int) -> Ours:
    """`sender` in storage form."""
    return Ours(tuple(txids), (nonce_subject(sender, nonce),))


def by_inputs(txids: Iterable[str], shared: Iterable[str]) -> Ours:
    """`shared` are the outpoints that every attempt spends."""
    return Ours(tuple(txids), tuple(input_subject(outpoint) for outpoint in shared))


def by_lifetime(txids: Sequence[str], lifetimes: Sequence[Lifetime | None]) -> Ours:
    """Each attempt with its lifetime, in the same order."""
    return Ours(tuple(txids), tuple(txid_subject(txid) for txid in txids), tuple(lifetimes))


def met(ours: Ours, sightings: Iterable[Sighting | None]) -> tuple[list[Seen], list[Seen]]:
    """Sightings of its subjects, in two groups: its own attempts, and other transactions."""
    every = [seen for sighting in sightings if sighting is not None for seen in sighting.seen]
    return [seen for seen in every if seen.txid in ours.txids], [seen for seen in every if seen.txid not in ours.txids]
