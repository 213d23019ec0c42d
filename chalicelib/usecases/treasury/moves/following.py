"""Follows moves between our addresses: receipts alone decide (money rule 8). Part of the poll; needs no key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.domain.treasury.moves import Move, MoveKind, move_command
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import demand_known, known_of
from chalicelib.usecases.base.open_work import is_open, pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.accounts.following import Following
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.losses import Losses, has_nonces
from chalicelib.usecases.transactions.marks import traces_of
from chalicelib.usecases.transactions.notes import Notes
from chalicelib.usecases.transactions.replacements import Stuck
from chalicelib.usecases.transactions.round_robin import Asking
from chalicelib.usecases.transactions.sorting import Out, Sorted
from chalicelib.usecases.treasury.moves.booking import MoveBooking
from chalicelib.usecases.treasury.moves.in_flight import MoveInFlight
from chalicelib.usecases.treasury.moves.replacement_room import ReplacementRoom

IDLE_SECONDS = 60
"""A move that stood still this long without being signed is asked for again: a command may be lost, coins may have come."""


class MoveFollowing:
    """Brings the open moves of one network to their end."""

    def __init__(
        self,
        context: NetworkContext,
        payer: ChainPayer,
        finality: Finality,
        stuck: Stuck,
        booking: MoveBooking,
        room: ReplacementRoom,
        loans: Mapping[MoveKind, Stuck] | None = None,
    ) -> None:
        """`loans`: what knows when a loan is stuck, by its kind, where the network has any."""
        self._context, self._network, self._store, self._clock = context, context.network, context.store, context.clock
        self._payer, self._finality, self._stuck, self._loans = payer, finality, stuck, loans or {}
        self._booking, self._room = booking, room
        losses = Losses(context.network, context.reader, context.store)
        self._following = Following(context.network, context.store, Answers(context.reader), losses, finality)
        self.waits_for_scan = False
        """Whether something was met that is deep enough by the node's height and not by what was scanned yet."""

    def follow(self, more: Callable[[], bool]) -> None:
        """Look at the open moves that are due, and at some of the others: ask for signatures, send again what the chain lost,
        settle what is final (`transactions.sorting`).

        Stops when `more` says that the time is over. Raises Unavailable, Failures.
        """
        self.waits_for_scan = False
        found, scanned, now = Sorted(), None, self._clock.now_ms()
        with Each(f"{self._network.id}: moves") as each:
            for works in pages_of(self._store, "move", self._network.id):
                scanned = scanned or self._finality.scanned()
                found.add(self._out(works, now), Notes(self._network, self._store, scanned), now)
            if scanned is None:
                return
            self.waits_for_scan, at = found.ripens, scanned
            due, quiet = found.by_place()
            asking = Asking(self._network, self._store, self._clock, "move")
            asking.take(due, quiet, more, lambda work: each.take(work.id, partial(until_settled, partial(self._look, work, at))))

    def _out(self, works: Sequence[Work], now: int) -> list[Out]:
        wanted = [(Move, {"network": self._network.id, "id": work.id}) for work in works]
        moves: list[Move | None] = known_of(self._store, wanted)
        return [self._sorted_by(work, move, now) for work, move in zip(works, moves, strict=True)]

    def _sorted_by(self, work: Work, move: Move | None, now: int) -> Out:
        if move is None or move.at_rest or not move.attempts:
            return Out(work, asks=True)  # no node is asked about it
        return Out(
            work,
            traces_of(self._network, self._context.rules, move),
            move.created_at,
            move.signed_at,
            asks=move.renew or move.usurped is not None or self._following.decided(move.id),
            undone=move.round > 0,
            overdue=self._stuck_of(move).overdue(move, "normal", move.updated_at, now),
            line=(move.source, move.nonce) if has_nonces(self._network) and move.nonce is not None else None,
        )

    def watch(self, more: Callable[[], bool]) -> None:
        """Undo settled moves whose block fell out of the chain. Raises Unavailable, Failures."""
        self._booking.watch(more)

    def let_rest(self, more: Callable[[], bool]) -> None:
        """End the watch over settled moves that no reorganisation reaches. Raises Unavailable, Failures."""
        self._booking.let_rest(more)

    def _look(self, work: Work, scanned: Scanned) -> None:
        move = self._store.get(Move, network=self._network.id, id=work.id)
        if move is None or move.at_rest:
            if is_open(self._store, work):  # else another poll has ended it between two reads
                raise LookupError(f"{work.id} is open, and its record is {'gone' if move is None else move.state}")
            return
        demand_known(move)
        if not move.attempts:
            if move.state == "signed":
                raise LookupError(f"{move.id} is signed without signed bytes")
            self._ask(move)
            return
        it = MoveInFlight(self._context, self._payer, self._stuck_of(move), self._booking, self._room, move)
        self.waits_for_scan |= self._following.look(it, scanned)

    def _stuck_of(self, move: Move) -> Stuck:
        return self._loans.get(move.kind, self._stuck)

    def _ask(self, move: Move) -> None:
        """For its signature, where nobody has been at work on it for a while."""
        news = News(self._clock.now_ms())
        if news.at - move.updated_at < IDLE_SECONDS * 1000:
            return
        news.command(move_command(move))
        self._store.commit([Save(replace(next_version(move), updated_at=news.at)), *news.emit()])
