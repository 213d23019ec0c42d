"""Follows a transaction of ours that is in flight: mined, lost, given up, or still out. For payouts, moves and stakes.

The problem: to give money back for a transaction that is mined later is to pay twice, and no node's silence proves that it is not
mined (money rule 13). So one question is asked after the other, and the first that says "perhaps" ends the look:

1. Does a node tell the receipt of any attempt, in a block of the chain? Then that attempt was it, and the kind books it by what is
   scanned (`InFlight.mined`). Two such attempts are an alarm.
2. Does a node tell a receipt in any other block, or was an attempt met in a scanned block? Then it is waited for.
3. Is a point-in-time restore under way? Then nothing is lost: what it was replaced by may be unknown here.
4. Is it lost by what was met in the blocks, and does every node deny it? Then the kind fails it (`lose`), and it is watched on.
5. Has an operator given it up, and speaks nothing against that? Then the kind gives it up.
6. Else it is still out. Its stored bytes are sent again, the newest first, where no switch forbids it; and the kind asks for a
   replacement where that is due (`still_out`). Only the function that signs makes one (`accounts.signing`).

A crash leaves the record as it was, and the next poll asks everything again: nothing here is true for longer than one look. Nothing
is signed here, so the worst that a second worker at the same time does is to send the same bytes.

Payments out of UTXOs are looked at here one by one, too; their common transaction is followed with its bundle.

The engine stops where kinds have nothing in common: which records a poll looks at (`sorting`), and when a replacement is due. A
payment or a move outbids itself (`replacements.Stuck`); a stake has no fee to raise, and is made anew once it has expired.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.usecases.base.kill_switch import put_back, stopped
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.given_up import GivenUps
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.transactions.mined_attempts import mined_attempt

log = logging.getLogger(__name__)


class InFlight(Protocol):
    """One transaction in flight, as its record was read for this look. Every method raises Conflict, Unavailable."""

    @property
    def id(self) -> str:
        """Of the record, by which an operator's decision names it."""
        ...

    @property
    def name(self) -> str:
        """In alarms."""
        ...

    @property
    def others(self) -> bool:
        """As in `accounts.signing.Attempts`."""
        ...

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The newest first. Of one that is not signed a restore may have forgotten that it was: it is looked for, and not sent."""
        ...

    @property
    def at_stake(self) -> tuple[AssetId, int]:
        """The coin and its units that would be paid twice if nodes lied."""
        ...

    def ours(self) -> Ours:
        """The attempts by what they are met in blocks."""
        ...

    def mined(self, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> bool:
        """Book it, once its block is deep enough and believed; whether that is deep enough by the node's height alone."""
        ...

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        """Whether the blocks prove that none of its attempts can be mined, nor anything in their place."""
        ...

    def lose(self, scanned: Scanned) -> None:
        """Fail it: its money is where it was."""
        ...

    def give_up(self) -> None:
        """The same by an operator's decision."""
        ...

    def broadcast(self, raw: str) -> None:
        """As `ChainPayer.broadcast`."""
        ...

    def still_out(self, sent: bool, ours: Ours, scanned: Scanned) -> None:
        """Note that it is in no block, and ask for a replacement where that is due. `sent`: a node took it again."""
        ...


class Following:
    """Of one network, for one poll. Needs no key."""

    def __init__(self, network: Network, store: Store, answers: Answers, losses: Losses, finality: Finality) -> None:
        self._network, self._store, self._answers = network, store, answers
        self._losses, self._finality = losses, finality
        self._given_ups = GivenUps(network, store, losses, finality)

    def decided(self, id: str) -> bool:
        """As `GivenUps.decided`."""
        return self._given_ups.decided(id)

    def look(self, it: InFlight, scanned: Scanned) -> bool:
        """Bring it as far as can be told now; whether it is deep enough by the node's height, and not by what is scanned. Raises
        Conflict, Unavailable."""
        mined = mined_attempt(self._network, self._answers, it.name, [attempt.txid for attempt in it.attempts], scanned)
        if mined.receipt is not None:
            return it.mined(it.attempts[mined.place], mined.receipt, scanned)
        ours = it.ours()
        if mined.somewhere or self._losses.met(it.name, ours, scanned):
            return False
        if put_back(self._store, self._network.realm) is None:
            self._end_or_go_on(it, ours, scanned)
        return False

    def _end_or_go_on(self, it: InFlight, ours: Ours, scanned: Scanned) -> None:
        if it.lost(ours, scanned) and self._finality.denied([attempt.txid for attempt in it.attempts], *it.at_stake):
            it.lose(scanned)
        elif self._given_ups.standing(it.id, ours, scanned) is not None:
            it.give_up()
        elif not it.others or not stopped(self._store, self._network.realm):
            it.still_out(self._sent_again(it), ours, scanned)

    def _sent_again(self, it: InFlight) -> bool:
        """The same bytes, as often as it takes: a node that forgot them hears of them again (money rule 5).

        The newest first; where the node refuses those, the earlier ones are as good: any of them pays.
        """
        for attempt in it.attempts:
            if attempt.forgotten:
                continue
            try:
                it.broadcast(attempt.raw)
            except Refused as refused:
                log.warning("%s: %s is in no block and the node refuses it: %s", self._network.id, attempt.txid, refused)
                continue
            return True
        return False
