"""Cures a built move that may not be signed as it is: its nonce must not hold up later ones.

Nothing was signed for it, so nothing can reach the chain. Its bytes are thrown away, and others with the same nonce take their
place; where the move may go nowhere any more, it is dropped and its nonce given back: to the counter where it was the last, else a
*filler* uses it, one unit from the wallet to itself. Which of the two `MoveChecks` says (`MoveMismatch.cure`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.moves import Move, Origin, move_command, move_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.treasury.moves.checks import MoveMismatch

log = logging.getLogger(__name__)


class MoveCures:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock) -> None:
        self._store, self._rules, self._clock = store, rules, clock

    def apply(self, network: Network, move: Move, payer: ChainPayer, mismatch: OrderMismatch) -> None:
        """Of a built move, in one transaction. Raises Conflict, Unavailable."""
        if mismatch.bytes_only:
            after = replace(next_version(move), unsigned="", updated_at=self._clock.now_ms())
            self._store.commit([Save(after)])
        elif isinstance(mismatch, MoveMismatch) and mismatch.cure == "drop":
            self.release(network, move, payer, str(mismatch))

    def release(self, network: Network, move: Move, payer: ChainPayer, reason: str, beside: Sequence[Change] = ()) -> None:
        """Drop a move that is planned or built; `beside` commits with that. Raises Conflict, Unavailable."""
        news = News(self._clock.now_ms())
        dropped = replace(next_version(move), state="dropped", reason=reason[:300], nonce=None, unsigned=None, updated_at=news.at)
        changes: list[Change] = [Save(dropped), Close(move_work(move)), *self._freed(network, move, payer, news)]
        self._store.commit([*changes, *beside, *news.emit()])
        log.error("ALARM %s: move %s is dropped, and nothing was signed for it: %s", network.id, move.id, reason)

    def _freed(self, network: Network, move: Move, payer: ChainPayer, news: News) -> list[Change]:
        source = self._rules.normalize(network.slug, move.source)
        counter = self._store.get(NonceCounter, network=network.id, wallet=source)
        nonce = move.nonce
        if counter is None or nonce is None or nonce >= counter.next:
            return []  # never allotted
        if move.over is not None:
            return []  # a payment has it, whose signed bytes can be mined
        counts = network.simulated or network.family != "tron"
        if not counts or nonce + 1 == counter.next or payer.next_nonce(source) > nonce:
            return [Save(counter.without(nonce))]
        native = self._store.catalogue(network.realm).native(network.slug).asset
        filler = Move.fill(Origin(move.network, move.id, 1, news.at), native, move.source, move.path, nonce)
        news.command(move_command(filler))
        return [Save(filler), Open(move_work(filler))]
