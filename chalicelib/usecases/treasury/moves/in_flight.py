"""A move in flight, as `transactions.accounts.following` looks at it."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.treasury.moves import Move, move_command
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.replacements import Stuck, Waiting
from chalicelib.usecases.treasury.moves.booking import MoveBooking
from chalicelib.usecases.treasury.moves.replacement_room import ReplacementRoom


class MoveInFlight:
    """Implements `InFlight`. `stuck` is the rule for its kind. Its coins stay ours: the kill switch does not stop it."""

    others = False

    def __init__(
        self, context: NetworkContext, payer: ChainPayer, stuck: Stuck, booking: MoveBooking, room: ReplacementRoom, move: Move
    ) -> None:
        self._context, self._payer, self._stuck, self._booking, self._room = context, payer, stuck, booking, room
        self._move, self.attempts, self.id, self.name = move, move.attempts, move.id, move.id
        self.at_stake: tuple[AssetId, int] = (move.asset, move.amount)

    def ours(self) -> Ours:
        return self._stuck.ours(self.attempts, self._move.source, self._move.nonce or 0)

    def mined(self, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> bool:
        return self._booking.ripen(self._move, attempt, receipt, scanned)

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        return self._stuck.lost(ours, scanned)

    def lose(self, scanned: Scanned) -> None:
        self._booking.lose(self._move, scanned)

    def give_up(self) -> None:
        self._booking.give_up(self._move)

    def broadcast(self, raw: str) -> None:
        self._payer.broadcast(raw)

    def still_out(self, sent: bool, ours: Ours, scanned: Scanned) -> None:
        """A replacement is asked for at every poll until it is done, since a command may be lost."""
        move, news = self._move, News(self._context.clock.now_ms())
        waiting = Waiting(move.id, move, move.unsigned or "", ours, move.source, "normal", move.updated_at, self.at_stake)
        standing = self._stuck.look(waiting, news.at, scanned)
        topup = self._room.made(move, news) if standing.replace and move.bare else None
        asks = standing.replace and topup is None
        after = replace(move, usurped=standing.usurped, renew=asks or move.renew)
        changes: list[Change] = [] if after == move else [Save(replace(after, version=version_after(move)))]
        changes += topup or []
        if asks:
            news.command(move_command(move))
        if changes or asks:
            self._context.store.commit([*changes, *news.emit()])
