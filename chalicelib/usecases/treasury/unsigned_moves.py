"""Gives up moves and coin moves that were never signed, by an operator's decision (`transactions.unsigned`).

Each ends in one transaction: a coin move's coins can be moved anew, and a move's nonce goes back to its wallet, for the next
transaction or for a filler (`moves.cures`). Whoever planned it plans anew, or says what stands in the way.
"""

from __future__ import annotations

import logging

from chalicelib.domain.treasury.consolidations import UNSIGNED, CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceUse
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.transactions.give_up import NotGivenUp
from chalicelib.usecases.transactions.losses import has_nonces
from chalicelib.usecases.transactions.unsigned import decided, demand_unsigned, demand_unspent
from chalicelib.usecases.treasury.consolidation.approval import Consolidations
from chalicelib.usecases.treasury.moves.cures import MoveCures

log = logging.getLogger(__name__)


class UnsignedMoves:
    """Of one network, of accounts or of coins. Needs no key."""

    def __init__(self, context: NetworkContext, payer: ChainPayer | None, coins: CoinPayer | None) -> None:
        """`payer` is there on account networks, `coins` on UTXO networks."""
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._payer, self._coins = payer, coins

    def give_up(self, id: str, by: str, reason: str) -> None:
        """End the move or coin move `id`. Raises NotGivenUp, Conflict, Unavailable."""
        until_settled(lambda: self._give_up(id, by, reason))

    def _give_up(self, id: str, by: str, reason: str) -> None:
        demand_unsigned(self._store, self._network, id)
        if self._coins is not None:
            self._coin_move(self._coins, id, by, reason)
        elif self._payer is not None:
            self._move(self._payer, id, by, reason)

    def _move(self, payer: ChainPayer, id: str, by: str, reason: str) -> None:
        move = self._store.get(Move, network=self._network.id, id=id)
        if move is None or move.state not in ("planned", "built") or move.raw or move.txids:
            raise NotGivenUp(f"{id} is no move of {self._network.id}, is at its end, or has something that was signed")
        if move.kind == "filler":
            raise NotGivenUp(f"{id} uses a nonce that nothing else may use: restore its record, or use the nonce elsewhere")
        if move.nonce is not None:
            self._demand_nonce(payer, move, move.nonce)
        now = self._clock.now_ms()
        why = f"given up by {by}: {reason}"
        cures = MoveCures(self._store, self._rules, self._clock)
        cures.release(self._network, move, payer, why, decided(self._network, id, "move", by, reason, now))

    def _demand_nonce(self, payer: ChainPayer, move: Move, nonce: int) -> None:
        """Raises NotGivenUp unless the nonce on record is the one that was allotted to it, and nothing has used it."""
        use, source = self._store.get(NonceUse, owner=move.id), self._rules.normalize(self._network.slug, move.source)
        allotted = None if use is None else (use.network, self._rules.normalize(self._network.slug, use.wallet), use.nonce)
        if allotted != (self._network.id, source, nonce):
            raise NotGivenUp(f"{move.id} was not allotted the nonce {nonce} of {source}: its record was altered, restore it")
        if has_nonces(self._network) and payer.next_nonce(source) > nonce:
            raise NotGivenUp(f"the nonce {nonce} of {source} is used: something was signed with it")

    def _coin_move(self, coins: CoinPayer, id: str, by: str, reason: str) -> None:
        move = self._store.get(CoinMove, network=self._network.id, id=id)
        if move is None or move.state not in UNSIGNED or move.signed or move.booked:
            raise NotGivenUp(f"{id} is no coin move of {self._network.id}, is at its end, or has something that was signed")
        demand_unspent(coins, id, move.outpoints)
        now = self._clock.now_ms()
        shown = Consolidations(self._store, self._rules, self._network)
        changes = shown.dropped(move, f"given up by {by}: {reason}", now)
        self._store.commit([*changes, *decided(self._network, id, "coin_move", by, reason, now)])
        log.error("ALARM %s: %s is given up, as %s decided: %s", self._network.id, id, by, reason)
