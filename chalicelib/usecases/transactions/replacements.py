"""When to replace a stuck transaction of ours: the same rule for payments and for moves."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.replacements import RenewalRules, Signed
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.withdrawals.withdrawals import Priority, Usurped
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.losses import Losses, has_nonces, sent_from
from chalicelib.usecases.transactions.open_nonces import open_nonces
from chalicelib.usecases.transactions.rivals import mined_beside
from chalicelib.usecases.transactions.sighting_gaps import NoteGaps

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """`replace`: the newest attempt should be replaced. `usurped`: since when a transaction of somebody else has its nonce."""

    replace: bool
    usurped: Usurped | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A signed transaction of ours that is in no block. `name` is its record's id, `unsigned` are the newest bytes before they were
    signed, `ours` its attempts, the newest first. `since`: when something last happened to it, in milliseconds since 1970. `stake`
    is what would be paid twice if nodes lied: a coin and its units."""

    name: str
    signed: Signed
    unsigned: str
    ours: Ours
    wallet: str
    priority: Priority
    since: int
    stake: tuple[AssetId, int]


class Stuck:
    """Which transactions are stuck, for one poll: it asks for the nonce of a wallet once, however many wait. Signs nothing."""

    def __init__(self, context: NetworkContext, payer: ChainPayer, rules: RenewalRules, finality: Finality) -> None:
        network, reader, store = context.network, context.reader, context.store
        self._network, self._reader, self._payer, self._rules, self._store = network, reader, payer, rules, store
        self._forms, self._losses, self._gaps = context.rules, Losses(network, reader, store), NoteGaps(network, store)
        self._finality = finality
        self._following: dict[str, int] = {}
        self._looked: set[str] = set()

    def look(self, it: Waiting, now: int, scanned: Scanned) -> Standing:
        """Whether it should be replaced: when it has waited too long, and its own fee is what holds it up. Behind an earlier
        transaction of its wallet, more would not help. Raises Unavailable."""
        as_it_was = Standing(False, it.signed.usurped)
        if not it.ours.txids or not self.overdue(it.signed, it.priority, it.since, now):
            return as_it_was
        nonce = self._payer.explain(it.unsigned).nonce
        if nonce is not None:
            following = self._next(it.wallet, nonce)
            if following > nonce:
                return self._foreign(it, nonce, following, now, scanned)
            if it.signed.usurped is not None:
                return Standing(False, None)
            if following < nonce:
                self._behind(it.name, it.wallet, nonce, following)
                return as_it_was
        return Standing(True, None) if self._replaceable(it, nonce, now, scanned) else as_it_was

    def _replaceable(self, it: Waiting, nonce: int | None, now: int, scanned: Scanned) -> bool:
        """Whether another attempt may be signed, by what can be told without a key."""
        if self._rules.exhausted(it.signed, expires=nonce is None):
            self._alarm("%s was replaced %d times and is in no block", it.name, len(it.signed.earlier))
            return False
        every_node = nonce is not None or self._finality.every_node(*it.stake)
        if not self._payer.renewable(it.unsigned, it.ours.txids[0], every_node):
            return False
        if nonce is None and not self._losses.lost(it.ours, scanned):
            # That every node says so is no proof: the blocks have to (money rule 13).
            self._gaps.close(self._losses.gap(it.ours, scanned), scanned, now)
            return False
        return True

    def _foreign(self, it: Waiting, nonce: int, following: int, now: int, scanned: Scanned) -> Standing:
        """Remember since when a node says that a transaction of somebody else has the nonce. That is a hint, and no proof: it gives
        nothing back. Where it should have been met in a block by now and was not, the blocks before there were notes are read."""
        signed = it.signed
        known = signed.usurped is not None and signed.usurped.epoch == scanned.epoch
        if signed.usurped is not None and known and scanned.height - signed.usurped.height >= self._network.reorg_depth:
            self._gaps.close_since(signed.created_at, scanned, now)
        if known or any(self._reader.receipt(txid) is not None for txid in it.ours.txids):
            return Standing(False, signed.usurped)  # or mined since it was looked at
        if mined_beside(self._store, self._reader, self._network, signed) is None:
            self._alarm("%s: a transaction that is not ours used the nonce %d of %s", it.name, nonce, it.wallet)
        return Standing(False, Usurped(scanned.tip, scanned.epoch, following))

    def overdue(self, signed: Signed, priority: Priority, since: int, now: int) -> bool:
        """Whether it has waited too long for a block. No node is asked."""
        return self._rules.stuck(signed, priority, since, self._network.block_time, now)

    def affordable(self, signed: Signed, fee: int) -> bool:
        """Whether a replacement may cost `fee`."""
        return self._rules.affordable(signed, fee)

    def _behind(self, name: str, wallet: str, nonce: int, following: int) -> None:
        """What has waited too long waits for `following`: an alarm where nothing of ours has that. Once for a wallet."""
        if wallet in self._looked:
            return
        self._looked.add(wallet)
        if following not in open_nonces(self._store, self._network, wallet):
            self._alarm("%s has the nonce %d of %s, and the chain waits for %d, which nothing has", name, nonce, wallet, following)

    def ours(self, attempts: Sequence[Attempt], wallet: str, nonce: int) -> Ours:
        """A transaction with these attempts, by what it is met in blocks."""
        return sent_from(self._network, self._forms, self._payer, attempts, wallet, nonce)

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        """Whether somebody else's transaction has its nonce for good. One that expires is never lost so: another one is signed in
        its place. Raises Unavailable."""
        return has_nonces(self._network) and self._losses.lost(ours, scanned)

    def _next(self, wallet: str, nonce: int) -> int:
        """The wallet's next nonce: where `nonce` waits behind another one, as it was when last asked for."""
        if self._following.get(wallet, nonce) >= nonce:
            self._following[wallet] = self._payer.next_nonce(wallet)
        return self._following[wallet]

    def _alarm(self, words: str, *about: object) -> None:
        # On a simulated network a developer decides what sticks: nobody has to look.
        log.error(f"{'' if self._network.simulated else 'ALARM '}%s: {words}", self._network.id, *about)
