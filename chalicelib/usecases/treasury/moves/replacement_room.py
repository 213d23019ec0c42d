"""Room for the replacement of a move that sends everything: its higher fee comes as a top-up."""

from __future__ import annotations

import logging

from chalicelib.domain.treasury.collections import topup_units
from chalicelib.domain.treasury.moves import Move, Origin, move_id
from chalicelib.usecases.base.current_wallets import topup_wallet
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer, Payment
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused
from chalicelib.usecases.transactions.replacements import Stuck
from chalicelib.usecases.treasury.topups import PayerShort, TopUps

log = logging.getLogger(__name__)

MOST_TOPUPS = 3
"""So many top-ups for the replacements of one move."""


class ReplacementRoom:
    """Of one account network."""

    def __init__(self, context: NetworkContext, payer: ChainPayer, stuck: Stuck, topups: TopUps) -> None:
        self._context, self._payer, self._stuck, self._topups = context, payer, stuck, topups

    def made(self, move: Move, news: News) -> list[Change] | None:
        """The changes that plan a top-up, where that is all that a replacement of `move` lacks; none where it has to wait; None
        where nothing is missing.

        The move is signed, so the top-up may take its payer below the floor. Raises Unavailable.
        """
        if not self._lacks(move):
            return None
        payer, before = topup_wallet(self._context.store, move.network), self._before(move)
        now = self._payer.cost(Payment(move.source, move.recipient, None, 1, move.nonce or 0)).fee
        needed = max(now, -(-move.fee * 9 // 8))
        if payer is None or any(not found.at_rest for found in before):
            return []
        if len(before) == MOST_TOPUPS or not self._stuck.affordable(move, needed):
            return self._alarm(move, needed)
        units = topup_units(needed, max(0, self._context.reader.balance(move.source) - move.amount))
        if not units:
            return None  # what it says of itself is not what it costs: the signing step says why
        origin = Origin(move.network, move.id, len(before) + 1, news.at)
        try:
            return self._topups.plan(origin, payer, move.source, units, begun=True).changes(news)
        except (PayerShort, Refused) as error:
            log.info("%s: no top-up for move %s: %s", move.network, move.id, error)
            return self._alarm(move, needed)

    def _lacks(self, move: Move) -> bool:
        """Whether its replacement can not be paid with what is there."""
        try:
            self._payer.renew(move.unsigned or "", "normal", move.source)
        except InsufficientFunds:
            return True
        except Refused:
            return False  # the signing step says why
        return False

    def _before(self, move: Move) -> list[Move]:
        """The top-ups that it had."""
        wanted = [(Move, {"network": move.network, "id": move_id(move.id, "topup", n)}) for n in range(1, MOST_TOPUPS + 1)]
        return [found for found in self._context.store.get_many(wanted) if found is not None]

    def _alarm(self, move: Move, needed: int) -> list[Change]:
        log.warning("ALARM %s: move %s is stuck, and a fee of %d is not provided", move.network, move.id, needed)
        return []
