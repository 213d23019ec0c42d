"""Losses: whether a transaction of ours is in the chain, or can never be, by the sightings in scanned blocks (money rule 13).

The one decision for payments, moves, stakes, bundles and coin moves. Absence proves nothing: that no node knows a transaction says
neither. Lost is one

* with a nonce (EVM, every simulated network): when another transaction was met with its nonce;
* that spends coins: when another one was met that spends an input which all its attempts share;
* that expires (Tron): when every block was passed and noted, from the one that it refers to until the first whose time is past its
  end, and none of its attempts was met.

Each block that this rests on is in the chain, and deeper than reorganisations are followed. None of its own attempts is in a block
of the chain, however deep. What every node says is asked for by the caller, on top of it. While a network is halted, or a
reorganisation is being followed, nothing is decided.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Lifetime, Ours, Seen, Sighting, by_inputs, by_lifetime, by_nonce, met
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.finality import Scanned, scanned_so_far

log = logging.getLogger(__name__)

_REFERENCES = 2**16
"""What a transaction on Tron names of the number of the block that it refers to."""


class Lifetimes(Protocol):
    """As `ChainPayer`."""

    def lifetime(self, raw: str, txid: str) -> Lifetime | None: ...


def has_nonces(network: Network) -> bool:
    """Whether transactions of a network of accounts have nonces; on Tron they expire instead. Every simulated network has them."""
    return network.simulated or network.family != "tron"


def sent_from(
    network: Network, rules: AddressRules, payer: Lifetimes, attempts: Sequence[Attempt], sender: str, nonce: int
) -> Ours:
    """A transaction of ours on a network of accounts in all its attempts; `sender` as records spell it."""
    txids = [attempt.txid for attempt in attempts]
    if has_nonces(network):
        return by_nonce(txids, form_of(rules, network, sender), nonce)
    return by_lifetime(txids, [_lifetime(payer, attempt) for attempt in attempts])


def stake_sent(network: Network, rules: AddressRules, node: Lifetimes, stake: Stake) -> Ours:
    """A stake on a real network."""
    return sent_from(network, rules, node, stake.expected, stake.wallet, 0)


def _lifetime(payer: Lifetimes, attempt: Attempt) -> Lifetime | None:
    try:
        return payer.lifetime(attempt.raw, attempt.txid)
    except ValueError:
        return None


def replaceable(network: Network, reader: ChainReader, store: Store, ours: Ours) -> bool:
    """Whether signing another attempt can never pay twice: always where all of them have one nonce; where they expire, once those
    that are signed are lost. Raises Unavailable."""
    if has_nonces(network):
        return True
    return Losses(network, reader, store).lost(ours, scanned_so_far(network, reader, store))


class Losses:
    """Of one network, for one poll or one signature. Every method raises Unavailable, and TooNew for a sighting in a form that only
    a newer version knows: nothing of that transaction is decided without it, and others go on."""

    def __init__(self, network: Network, reader: ChainReader, store: Store) -> None:
        self._network, self._reader, self._store = network, reader, store
        self._hashes: dict[int, str | None] = {}

    def met(self, what: str, ours: Ours, scanned: Scanned) -> bool:
        """Whether one of its attempts is in a block of the chain by what was scanned, and so neither lost nor to be replaced,
        whatever receipts say; with an alarm where nodes ought to have its receipt by now. `what` is the name of its record."""
        seen = self.mined(ours, scanned)
        if seen is not None and scanned.depth(seen.number) >= self._network.confirmations:
            log.error(
                "ALARM %s: %s of %s is in block %d, which was scanned, and no node tells its receipt",
                *(self._network.id, seen.txid, what, seen.number),
            )
        return seen is not None

    def used(self, sender: str, nonce: int, scanned: Scanned) -> int | None:
        """The first nonce from `nonce` on that no transaction of `sender` (storage form) was met with. None where one was that is
        not as deep as reorganisations are followed: then nobody knows yet."""
        while True:
            _, others = met(by_nonce((), sender, nonce), self._sightings(by_nonce((), sender, nonce)))
            seen = self._deepest(others, scanned)
            if seen is None:
                return nonce
            if not self._deep(seen.number, scanned):
                return None
            nonce += 1

    def mined(self, ours: Ours, scanned: Scanned) -> Seen | None:
        """Where one of its attempts was met in a block of the chain: the deepest such block. `Scanned.depth` of its number says how
        deep that is."""
        own, _ = met(ours, self._sightings(ours))
        return self._deepest(own, scanned)

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        """Whether none of its attempts is in the chain, and none can ever be."""
        if scanned.unsure:
            return False
        own, others = met(ours, self._sightings(ours))
        if self._deepest(own, scanned) is not None:
            return False
        if ours.lifetimes:
            return self._over(ours.lifetimes, scanned)
        rival = self._deepest(others, scanned)
        return rival is not None and self._deep(rival.number, scanned)

    def spender(self, outpoint: str, scanned: Scanned) -> str | None:
        """The transaction, of ours or not, that was met spending this output, deeper than reorganisations are followed; None where
        none was."""
        _, seen = met(by_inputs((), [outpoint]), self._sightings(by_inputs((), [outpoint])))
        deepest = None if scanned.unsure else self._deepest(seen, scanned)
        return deepest.txid if deepest is not None and self._deep(deepest.number, scanned) else None

    def gap(self, ours: Ours, scanned: Scanned) -> int | None:
        """The first block that has to be noted before a transaction that expires can be told to be lost; None where nothing is
        missing, or it is not known what."""
        first = self._first(ours.lifetimes, scanned)
        if first is None or (scanned.noted_from is not None and scanned.noted_from <= first):
            return None
        return first

    def _sightings(self, ours: Ours) -> list[Sighting | None]:
        keys = [(Sighting, {"network": self._network.id, "subject": subject}) for subject in ours.subjects]
        return self._store.get_many(keys) if keys else []

    def _deepest(self, many: Sequence[Seen], scanned: Scanned) -> Seen | None:
        for seen in sorted(many, key=lambda each: each.number):
            if seen.number <= scanned.height and self._hash_at(seen.number, scanned) == seen.hash:
                return seen
        return None

    def _hash_at(self, number: int, scanned: Scanned) -> str | None:
        """As it is remembered; of a block deeper than that as the node says."""
        remembered = scanned.recent.get(str(number))
        if remembered is not None:
            return remembered
        if number not in self._hashes:
            self._hashes[number] = self._reader.block_hash(number)
        return self._hashes[number]

    def _deep(self, number: int, scanned: Scanned) -> bool:
        return number <= scanned.height - self._network.reorg_depth

    def _over(self, lifetimes: Sequence[Lifetime | None], scanned: Scanned) -> bool:
        ends = [lifetime.ends for lifetime in lifetimes if lifetime is not None]
        if len(ends) < len(lifetimes):
            return False  # the bytes of one are not known: nobody knows when it ends
        deep = scanned.height - self._network.reorg_depth
        headers = self._reader.headers(deep, deep) if deep >= 0 else []
        if not headers or headers[0].time <= max(ends) or headers[0].hash != self._hash_at(deep, scanned):
            return False
        first = self._first(lifetimes, scanned)
        return first is not None and scanned.noted_from is not None and scanned.noted_from <= first

    def _first(self, lifetimes: Sequence[Lifetime | None], scanned: Scanned) -> int | None:
        """The number of the block that the oldest of them refers to, None where it is not found."""
        found = [self._referred(lifetime, scanned) for lifetime in lifetimes if lifetime is not None]
        known = [number for number in found if number is not None]
        return min(known) if known and len(known) == len(lifetimes) else None

    def _referred(self, lifetime: Lifetime, scanned: Scanned) -> int | None:
        """The number of the block that it refers to.

        Where that fell out of the chain, no block of the chain can have the transaction (TaPoS): it is the number of the block in
        its place, the last one before the end whose number ends so. A transaction lives a day at most, 65,536 blocks take two.
        """
        newest = scanned.height - (scanned.height - lifetime.low) % _REFERENCES
        for number in range(newest, -1, -_REFERENCES):
            if (self._hash_at(number, scanned) or "")[16:32] == lifetime.part:
                return number
        for number in range(newest, -1, -_REFERENCES):
            headers = self._reader.headers(number, number)
            if not headers or headers[0].hash != self._hash_at(number, scanned):
                return None
            if headers[0].time <= lifetime.ends:
                return number
        return None
