"""Follows coin moves: built and not signed, in the chain, fallen out of it, stuck, or never to be mined.

* deep enough in the chain: what is in flight becomes the recipient's, the change and the fee; what a hot wallet gets can be spent.
* fell out again: the exact opposite, and the same bytes are sent again. Watched as deep as reorganisations are followed; only then
  the hints of what it spent end.
* in no block for too long: the function that signs is asked for a replacement.
* can not be mined any more: deeper than a reorganisation is followed, another transaction was met that spends one of its inputs,
  and every node says so. Its money goes back to its places, and its other coins can be moved again. It is watched for as many
  blocks again: if the chain has it after all, an operator is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.consolidations import (
    UNSIGNED,
    CoinAttempt,
    CoinMove,
    coin_move_command,
    coin_move_work,
    coin_moved_work,
)
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Scanned, Verdicts
from chalicelib.usecases.transactions.given_up import WHY
from chalicelib.usecases.transactions.notes import Notes
from chalicelib.usecases.transactions.round_robin import Asking
from chalicelib.usecases.transactions.sorting import Out, Sorted
from chalicelib.usecases.transactions.utxo.attempts import CoinAttempts
from chalicelib.usecases.treasury.consolidation.approval import Consolidations, sent
from chalicelib.usecases.treasury.consolidation.parts import (
    amounts_at,
    built,
    deposits_of,
    ended,
    freed,
    held_after,
    place_of,
    recipient_of,
    spendable,
    unspent_of,
)
from chalicelib.usecases.wallets.returned_utxos import as_they_stand

log = logging.getLogger(__name__)

REJECTED_MS = 24 * 3_600_000
"""How long the coins of a consolidation that an operator refused are left alone (milliseconds); they alone."""
IDLE_MS = 30_000
"""What nobody has worked on for so long (milliseconds) is asked for again."""
_ITEMS = 9


class CoinMoveFollowing:
    """Follows the coin moves of one network. Needs no key: it only sends bytes that are already signed."""

    def __init__(
        self,
        network: Network,
        reader: ChainReader,
        payer: CoinPayer,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        renewals: RenewalRules,
        verdicts: Verdicts,
    ) -> None:
        self._network, self._payer, self._store = network, payer, store
        self._rules, self._clock, self._renewals, self._verdicts = rules, clock, renewals, verdicts
        self._shown = Consolidations(store, rules, network)
        self._answers = Answers(reader)
        self._attempts = CoinAttempts(network, reader, payer, store, clock, verdicts, payer.broadcast, self._answers)
        self.waits_for_scan = False
        """As in `Settlement`."""

    def follow(self, more: Callable[[], bool]) -> int:
        """Look at the coin moves that are due, and at some of the others (`transactions.sorting`); how many.

        Stops when `more` says so. Raises Unavailable, Failures.
        """
        self.waits_for_scan = False
        looked = 0
        with Each(f"{self._network.id}: coin moves") as each:
            looked += self._go("coinmoved", self._watch, more, each)
            looked += self._go("coinmove", self._look, more, each)
        return looked

    def _go(self, kind: WorkKind, look: Callable[[str, Scanned], None], more: Callable[[], bool], each: Each) -> int:
        found, scanned, now = Sorted(), None, self._clock.now_ms()
        for works in pages_of(self._store, kind, self._network.id):
            scanned = scanned or self._verdicts.scanned()
            moves = self._store.get_many([(CoinMove, {"network": self._network.id, "id": work.id}) for work in works])
            outs = [self._out(work, move, scanned, now) for work, move in zip(works, moves, strict=True)]
            found.add([out for out in outs if out is not None], Notes(self._network, self._store, scanned), now)
        if scanned is None:
            return 0
        self.waits_for_scan |= found.ripens
        due, quiet = found.ended()
        at = scanned
        asking = Asking(self._network, self._store, self._clock, kind)
        return asking.take(due, quiet, more, lambda work: each.take(work.id, partial(until_settled, partial(look, work.id, at))))

    def _out(self, work: Work, move: CoinMove | None, scanned: Scanned, now: int) -> Out | None:
        """None for one that is settled, watched, and still in the chain."""
        if move is not None and move.state == "settled" and move.block_number is not None:
            stands = self._answers.hash_at(move.block_number, scanned) == move.block_hash
            if stands and move.block_number > scanned.height - self._network.reorg_depth:
                return None
        if move is None or move.state != "signed" or move.booked < len(move.inputs):
            return Out(work, asks=True)
        return self._attempts.out(work, move, move.outpoints, overdue=self._overdue(move, now))

    def _look(self, move_id: str, scanned: Scanned) -> None:
        move = self._read(move_id)
        match move.state:
            case "signed":
                self._await(move, scanned)
            case "dead":
                self._give_back(move)
            case state if state in UNSIGNED:
                self._prepare(move)
            case _:
                pass  # ended between two reads

    def _read(self, move_id: str) -> CoinMove:
        move = self._store.get(CoinMove, network=self._network.id, id=move_id)
        if move is None:
            raise LookupError(f"the coin move {move_id} is gone")
        return move

    # Not signed yet

    def _prepare(self, move: CoinMove) -> None:
        """Have it signed, once it is approved and its bytes are made. Nothing is lost by dropping one that no longer fits."""
        now = self._clock.now_ms()
        if recipient_of(self._store, move) is None:
            self._drop(move, "the wallet that it goes to is another one now")
        elif move.wallet is None and not all(map(spendable, deposits_of(self._store, move))):
            self._drop(move, "what it spends is not all there any more")
        elif move.state == "waiting":
            self._see_decision(move)
        elif move.state == "built" and now - move.updated_at >= IDLE_MS:
            self._ask(move)

    def _see_decision(self, move: CoinMove) -> None:
        collection = self._shown.of(move)
        if collection is None:
            self._drop(move, move.reason or "nobody was asked")
        elif collection.state == "rejected":
            if self._clock.now_ms() - (collection.decided_at or 0) >= REJECTED_MS:
                self._drop(move, "rejected")
        elif collection.state != "waits_for_approval":
            self._build(move, collection)

    def _build(self, move: CoinMove, collection: Collection) -> None:
        """What was approved gets its bytes, at the fees of now."""
        try:
            plan = self._payer.consolidate(move.recipient, unspent_of(move.inputs), self._payer.fee_rate("low"))
        except Refused as refused:
            self._drop(move, f"fee: {refused}")
            return
        if len(plan.inputs) < len(move.inputs):
            self._drop(move, "some of its coins are not worth their fee any more")
            return
        made = built(self._payer, self._rules, self._network, move, plan.unsigned)
        news = News(self._clock.now_ms())
        after = replace(move, state="built", newest=made, reason=None).next(news.at)
        news.command(coin_move_command(after))
        self._store.commit([Save(after), sent(collection, after, news.at), *news.emit()])

    def _drop(self, move: CoinMove, why: str) -> None:
        log.warning("%s: %s is dropped: %s", self._network.id, move.id, why)
        now = self._clock.now_ms()
        dropped = replace(move, state="dropped", reason=why).next(now)
        over = self._shown.closed(dropped, "dropped", now)
        self._store.commit([Save(dropped), Close(coin_move_work(move)), *freed(self._store, self._network, move), *over])

    def _ask(self, move: CoinMove, *changes: Change) -> None:
        news = News(self._clock.now_ms())
        news.command(coin_move_command(move))
        self._store.commit([*changes, *news.emit()])

    # In the chain, or not

    def _await(self, move: CoinMove, scanned: Scanned) -> None:
        found, somewhere = self._attempts.mined(move, scanned)
        if found is not None:
            self._count(move, *found, scanned)
            return
        if somewhere:
            return
        if move.booked < len(move.inputs):
            self._ask(move)  # nothing is sent before all of it is booked
            return
        if put_back(self._store, self._network.realm) is not None:
            return  # as with payments
        fate, move = self._attempts.fate(move, move.outpoints, scanned)
        if fate == "possible":
            self._ask_to_replace(move)
        elif fate == "dead":
            self._die(move)

    def _ask_to_replace(self, move: CoinMove) -> None:
        newest, now = move.newest, self._clock.now_ms()
        if newest is None:
            return
        if newest.raw is None or move.renew:
            self._ask(move)  # at every poll until it is done: a command may be lost
            return
        replaced = len(move.earlier)
        if not self._overdue(move, now):
            return
        if self._renewals.worn_out(replaced):
            log.error("ALARM %s: %s was replaced %d times and is in no block", self._network.id, move.id, replaced)
            return
        self._ask(move, Save(replace(move, renew=True).next(now)))

    def _overdue(self, move: CoinMove, now: int) -> bool:
        waited = now - max(0 if move.newest is None else move.newest.signed_at, move.updated_at)
        return waited >= self._renewals.patience("low", self._network.block_time, len(move.earlier))

    # Settled

    def _count(self, move: CoinMove, attempt: CoinAttempt, receipt: Receipt, scanned: Scanned) -> None:
        if scanned.depth(receipt.block_number) < self._network.confirmations:
            self.waits_for_scan |= scanned.tip - receipt.block_number + 1 >= self._network.confirmations
            self._attempts.doubted(move, None)
            return
        if move.booked < len(move.inputs):
            self._ask(move)
            return
        believed = self._verdicts.believed(receipt, scanned, move.asset, move.total)
        if believed is not None:
            self._settle(move, attempt, believed)

    def _settle(self, move: CoinMove, attempt: CoinAttempt, receipt: Receipt) -> None:
        held = self._wallets(move)
        if move.wallet is None:
            if any(d is None or d.status != "confirmed" for d in deposits_of(self._store, move)):
                return  # what it spends is not confirmed again yet: that comes first
        elif any(coin.gone for coin in held[move.wallet].reserved(move.id)):
            return
        now = self._clock.now_ms()
        arrived = {place_of(self._rules, self._network, move.recipient): Amount(move.asset, attempt.amount)}
        if attempt.change and move.wallet is not None:
            arrived[place_of(self._rules, self._network, move.wallet)] = Amount(move.asset, attempt.change)
        fee = Amount(move.asset, attempt.fee)
        entry = ledger.coins_moved(move.id, move.round, now, self._network.realm, arrived, fee)
        done = replace(
            move, state="settled", mined=attempt.txid, block_number=receipt.block_number, block_hash=receipt.block_hash,
            confirmed_at=now, doubtful_since=None, renew=False,
        )  # fmt: skip
        changes: list[Change] = [Save(done.next(now)), Post(entry), Close(coin_move_work(move)), Open(coin_moved_work(done))]
        if move.wallet is not None:
            held[move.wallet] = held[move.wallet].spent(move.outpoints)
        for address in held:
            for coin in move.received(attempt, address, receipt.block_number):
                held[address] = held[address].came(coin)
        over = self._shown.closed(done, "swept", now)
        self._store.commit([*changes, *(Save(coins.next()) for coins in held.values()), *ended(self._store, move), *over])

    def _wallets(self, move: CoinMove) -> dict[str, HeldCoins]:
        """The coins of the hot wallets that it takes from and brings to; the cold wallet's are nobody's to spend."""
        return held_after(self._store, self._network, [move.wallet, None if move.kind == "cold" else move.recipient])

    def _watch(self, move_id: str, scanned: Scanned) -> None:
        """See that it stays in the chain as deep as a reorganisation is followed; undo its settlement when it does not."""
        move = self._read(move_id)
        if move.state == "dead" and self._attempts.watched_enough(move, scanned):
            self._store.commit([Close(coin_moved_work(move))])
        number = move.block_number
        if move.state != "settled" or number is None:
            return  # undone between two reads
        found = self._answers.hash_at(number, scanned)
        if found is None:
            return  # the node is behind, or a shorter branch has won for a moment
        if found != move.block_hash:
            self._unsettle(move)
        elif number <= scanned.height - self._network.reorg_depth:
            self._finish(move)

    def _unsettle(self, move: CoinMove) -> None:
        log.warning("%s: the block that settled %s fell out of the chain", self._network.id, move.id)
        attempt, now = move.attempt(move.mined or ""), self._clock.now_ms()
        entry = self._store.get(JournalEntry, id=f"settle:{move.id}:{move.round}")
        if entry is None:
            raise LookupError(f"the journal does not have what settled {move.id}")
        held = self._wallets(move)
        if move.wallet is not None:
            back = as_they_stand(self._store, self._network, [coin.held for coin in move.inputs])
            held[move.wallet] = held[move.wallet].unspent(move.id, back)
        for address in held:
            for coin in move.received(attempt, address):
                held[address] = held[address].taken_back(coin.outpoint)
        again = replace(
            move, state="signed", mined=None, block_number=None, block_hash=None, confirmed_at=None, round=move.round + 1
        )
        changes: list[Change] = [
            Save(again.next(now)),
            Post(ledger.move_reversed(entry, move.id, move.round, now)),
            Close(coin_moved_work(move)),
            Open(coin_move_work(move)),
        ]
        self._store.commit([*changes, *(Save(coins.next()) for coins in held.values())])

    def _finish(self, move: CoinMove) -> None:
        """No reorganisation reaches it: what it spent is spent for good."""
        if move.wallet is None:
            spent = {coin.deposit or "" for coin in move.inputs}
            hints = [w for works in pages_of(self._store, "collectable", self._network.id) for w in works if w.id in spent]
            for start in range(0, len(hints), _ITEMS):
                self._store.commit([Close(work) for work in hints[start : start + _ITEMS]])
        self._store.commit([Close(coin_moved_work(move))])

    # Never to be mined

    def _die(self, move: CoinMove) -> None:
        why = "it can not be mined any more"
        if self._store.get(GivenUp, id=move.id) is not None:
            why = WHY
        elif move.wallet is None and all(map(spendable, deposits_of(self._store, move))):
            why = "somebody else spent what only the seed can sign for"
        log.error("ALARM %s: %s is dead, its coins are given back: %s", self._network.id, move.id, why)
        now = self._clock.now_ms()
        dead = replace(move, state="dead", renew=False, reason=why).next(now)
        over = self._shown.closed(dead, "dropped", now)
        self._store.commit([Save(dead), *freed(self._store, self._network, move), *over])
        self._give_back(dead)

    def _give_back(self, move: CoinMove) -> None:
        """Place by place what is in flight is where it was: at most a few addresses per transaction."""
        while part := move.next_part(back=True):
            now = self._clock.now_ms()
            left = move.booked - len(part)
            entry = ledger.coins_released(move.id, left, now, amounts_at(self._rules, self._network, move, part))
            move = replace(move, booked=left).next(now)
            over: list[Change] = [] if left else [Close(coin_move_work(move)), Open(coin_moved_work(move))]
            self._store.commit([Save(move), Post(entry), *over])
