"""Postings of moves: recorded once their block is deep enough, reversed when it falls out of the chain all the same.

As with payments, the block is watched as deep as a reorganisation is followed. Undone, a move is as if it had never been final: its
coins are in flight again, and the poll goes on sending its bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import asset_parts
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.treasury.moves import Move, MoveKind, move_work, moved_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import Usurped
from chalicelib.domain.work import Command, Work
from chalicelib.usecases.base.address_forms import account_at, form_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.transactions.accounts.losing import NONCE_USED, Losing
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.forgotten import unlike_met
from chalicelib.usecases.transactions.given_up import LOST, WHY
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.transactions.marks import traces_of
from chalicelib.usecases.transactions.signed_bytes import unlike_ordered
from chalicelib.usecases.transactions.watching import Watch, demand_over
from chalicelib.usecases.wallets.sweep_candidates import place_id

log = logging.getLogger(__name__)


class MoveBooking:
    """Books and unbooks the moves of one network. Needs no key."""

    def __init__(self, context: NetworkContext, finality: Finality, payer_of: Callable[[MoveKind], ChainPayer]) -> None:
        """`payer_of` explains the bytes of a kind."""
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._rules, self._clock, self._finality, self._payer_of = context.rules, context.clock, finality, payer_of
        self._losing = Losing(context, Losses(context.network, context.reader, context.store), self._told_nonces)

    def ripen(self, before: Move, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> bool:
        """Book a move that a node has in its chain, once that is deep enough and believed; whether it is deep enough by the node's
        height and not by what was scanned yet. Nothing is booked by a record that is not what was signed. Raises Conflict,
        Unavailable."""
        if scanned.depth(receipt.block_number) < self._network.confirmations:
            return scanned.tip - receipt.block_number + 1 >= self._network.confirmations
        if self._altered(before, attempt):
            return False
        believed = self._finality.believed(
            receipt, scanned, before.asset, before.amount, lambda told: self._arrived(before, told) > 0,
            traces_of(self._network, self._rules, before),
        )  # fmt: skip
        if believed is not None:
            self._settle(before, attempt, believed)
        return False

    def _arrived(self, move: Move, receipt: Receipt) -> int:
        """Units that are at the destination by the chain's word: of a token, by its own log: it may take a part (money rule 8).

        Never more than was sent: what else a token does is not this move's.
        """
        if not receipt.success:
            return 0
        if move.contract is None:
            return move.amount
        contract, source, recipient = (
            form_of(self._rules, self._network, text) for text in (move.contract, move.source, move.recipient)
        )
        logged = receipt.arrived(contract, source, recipient)
        return min(move.amount, logged)

    def _settle(self, before: Move, attempt: Attempt, receipt: Receipt) -> None:
        arrived = self._arrived(before, receipt)
        now = self._clock.now_ms()
        after = replace(
            next_version(before),
            state="settled" if arrived else "failed",
            reason=None if arrived else "the transaction failed on the chain",
            arrived=arrived,
            mined=attempt.txid,
            fee=attempt.fee if receipt.fee is None else receipt.fee,
            renew=False,
            usurped=None,
            block_number=receipt.block_number,
            block_hash=receipt.block_hash,
            confirmed_at=now if arrived else None,
            updated_at=now,
        )
        works: list[Change] = [Close(move_work(before)), Open(moved_work(after))]
        self._store.commit([Save(after), *works, Post(self._entry(after)), *self._stranded(after)])
        if not arrived:
            log.error("ALARM %s: move %s failed on the chain, in %s", self._network.id, after.id, attempt.txid)

    def lose(self, before: Move, scanned: Scanned) -> None:
        """Another transaction used its nonce for good: its coins are where they were. Raises Conflict, Unavailable."""
        if self._altered(before, *before.attempts):
            return
        source, now = self._rules.normalize(self._network.slug, before.source), self._clock.now_ms()
        watch = GivenUp(before.id, self._network.id, "move", "", LOST, NONCE_USED, now, scanned.height, before.txids)
        if self._losing.begin(before, source, watch, scanned):
            usurped = before.usurped or Usurped(scanned.height, scanned.epoch, (before.nonce or 0) + 1)
            self._fail(replace(before, usurped=usurped), NONCE_USED)

    def give_up(self, before: Move) -> None:
        """Its coins are where they were by an operator's decision. It is watched on: see `given_up_watching`."""
        if not self._altered(before, *before.attempts):
            self._fail(before, WHY)

    def _told_nonces(self, source: str) -> Sequence[int | None]:
        return self._payer_of("sweep").told_nonces(source)

    def _altered(self, move: Move, *attempts: Attempt) -> bool:
        """Whether the record is not what was signed, with an alarm."""
        wrong = dict.fromkeys(name for attempt in attempts for name in self._unlike(move, attempt))
        if wrong:
            named = ", ".join(wrong)
            log.error("ALARM %s: move %s differs from what was signed in %s", self._network.id, move.id, named)
        return bool(wrong)

    def _unlike(self, move: Move, attempt: Attempt) -> list[str]:
        forgotten = unlike_met(self._network, self._rules, self._store, move, move.source, attempt)
        payer = self._payer_of(move.kind)
        return [*unlike_ordered(payer, self._rules, self._network, move, move.source, attempt), *forgotten]

    def _fail(self, before: Move, reason: str) -> None:
        after = replace(
            next_version(before), state="failed", reason=reason, arrived=0, fee=0, renew=False, updated_at=self._clock.now_ms(),
        )  # fmt: skip
        self._store.commit([Save(after), Close(move_work(before)), Post(self._entry(after)), *self._stranded(after)])

    def _stranded(self, move: Move) -> list[Change]:
        """A sweep that was settled once, was undone and has failed now: its collection was at its end, and nobody else would look
        at what is at the address again."""
        if move.kind != "sweep" or move.state != "failed" or not move.round:
            return []
        news, coin = News(move.updated_at), asset_parts(move.asset)[1]
        place = place_id(form_of(self._rules, self._network, move.source), coin)
        news.command(Command("collectable", self._network.id, {"id": place}))
        return [*news.emit()]

    def watch(self, more: Callable[[], bool]) -> None:
        """Undo what was settled and fell out of the chain. Raises Unavailable, Failures."""
        self._watched().undo_fallen(more)

    def let_rest(self, more: Callable[[], bool]) -> None:
        """End the watch over what no reorganisation reaches. Raises Unavailable, Failures."""
        self._watched().let_rest(more)

    def _watched(self) -> Watch:
        return Watch(
            "moved", "settled moves", self._network, self._reader, self._store, self._finality,
            self._undo, lambda work: self._store.commit([Close(work)]),
        )  # fmt: skip

    def _undo(self, work: Work) -> None:
        move = self._store.get(Move, network=self._network.id, id=work.id.rsplit("|", 1)[0])
        if move is None or move.state not in ("settled", "failed") or moved_work(move) != work:
            demand_over(self._store, work)
            return
        log.warning("%s: the block that settled move %s fell out of the chain", self._network.id, move.id)
        now = self._clock.now_ms()
        back = ledger.move_reversed(self._entry(move), move.id, move.round, now)
        after = replace(
            next_version(move), state="signed", reason=None, arrived=None, mined=None, block_number=None, block_hash=None,
            confirmed_at=None, round=move.round + 1, updated_at=now,
        )  # fmt: skip
        self._store.commit([Save(after), Close(work), Open(move_work(after)), Post(back)])

    def _entry(self, move: Move) -> JournalEntry:
        """What a move that is in the chain moved."""
        catalogue, slug = self._store.catalogue(self._network.realm), self._network.slug
        place = account_at(self._rules, self._network, move.source)
        amount, fee = Amount(move.asset, move.units), Amount(catalogue.native(slug).asset, move.fee)
        signed, now = ledger.SignedMove(move.id, move.round, self._network.realm, place, amount), self._clock.now_ms()
        if move.state == "failed":
            return ledger.move_failed(signed, now, fee)
        destination = account_at(self._rules, self._network, move.recipient)
        return ledger.move_settled(signed, now, destination, min(move.arrived or 0, move.units), fee)
