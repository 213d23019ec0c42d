"""Follows coin moves: built and not signed by what is decided here, signed ones by `transactions.utxo.following`.

* settled: what is in flight becomes the recipient's, the change and the fee; what a hot wallet gets can be spent. Undone by the
  exact opposite. Only when no reorganisation reaches it the hints of what it spent end.
* dead: its money goes back to its places, a few addresses per transaction, and its other coins can be moved again. A crash leaves
  the rest in flight, to the next poll.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.consolidations import (
    UNSIGNED,
    CoinMove,
    coin_move_command,
    coin_move_work,
    coin_moved_work,
)
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.domain.work import Work
from chalicelib.usecases.base.address_forms import account_at
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.open_work import is_open, pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import FEW_ITEMS, Change, Close, Conflict, Open, Post, Save
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality
from chalicelib.usecases.transactions.given_up import WHY
from chalicelib.usecases.transactions.utxo.following import Due, UtxoFollowing
from chalicelib.usecases.treasury.consolidation.approval import Consolidations, sent
from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget
from chalicelib.usecases.treasury.consolidation.parts import (
    amounts_at,
    at_odds,
    built,
    deposits_of,
    ended,
    freed,
    held_after,
    recipient_of,
    spendable,
    unspent_of,
)
from chalicelib.usecases.wallets.returned_utxos import as_they_stand

log = logging.getLogger(__name__)

REJECTED_MS = 24 * 3_600_000
"""How long the coins of a consolidation that an operator refused are left alone (milliseconds); they alone."""
IDLE_MS = 30_000
"""A step without progress for so long (milliseconds) is asked for again."""


class CoinMoveFollowing:
    """Follows the coin moves of one network. Needs no key: it only sends bytes that are already signed."""

    name = "coin moves"

    def __init__(
        self,
        context: NetworkContext,
        payer: CoinPayer,
        renewals: RenewalRules,
        finality: Finality,
        budget: ConsolidationBudget,
    ) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._payer, self._budget, self._shown = payer, budget, Consolidations(context.store, context.rules, context.network)
        answers = Answers(context.reader)
        self._following = UtxoFollowing(context, payer, renewals, finality, payer.broadcast, answers, self)

    @property
    def waits_for_scan(self) -> bool:
        return self._following.waits_for_scan

    def follow(self, more: Callable[[], bool]) -> int:
        """As `UtxoFollowing.follow`."""
        return self._following.follow(["coinmoved", "coinmove"], more)

    # As `FollowedKind`

    def records(self, works: Sequence[Work]) -> Sequence[CoinMove | None]:
        return known_of(self._store, [(CoinMove, {"network": self._network.id, "id": work.id}) for work in works])

    def due(self, move: CoinMove) -> Due:
        return "by chain" if move.state == "signed" and move.booked == len(move.inputs) else "always"

    def followed(self, id: str) -> CoinMove | None:
        move = self._store.get(CoinMove, network=self._network.id, id=id)
        if move is None:
            raise LookupError(f"the coin move {id} is gone")
        if named := at_odds(self._store, move):
            self._demand_unchanged(move)
            if move.state == "dropped" and not any(is_open(self._store, of(move)) for of in (coin_move_work, coin_moved_work)):
                return None  # another poll has ended it between two reads
            raise LookupError(f"{id} is open and {move.state}, and differs from what was stored of it in {named}")
        if move.state in UNSIGNED:
            self._prepare(move)
        return move if move.state in ("signed", "settled", "dead") else None

    def priority(self, move: CoinMove) -> Priority:
        return "low"

    def in_flight(self, move: CoinMove) -> bool:
        if move.booked == len(move.inputs):
            return True
        self.ask(move)  # nothing is sent before all of it is booked
        return False

    def halted(self) -> bool:
        return put_back(self._store, self._network.realm) is not None

    def ask(self, move: CoinMove, changes: Sequence[Change] = ()) -> None:
        news = News(self._clock.now_ms())
        news.command(coin_move_command(move))
        self._store.commit([*changes, *news.emit()])

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
            self.ask(move)

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
        """An approved move gets its bytes, at the fees of now."""
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
        # Counted, whatever is left of the budget: an operator approved it.
        count = self._budget.count(self._network, made.fee, news.at)
        self._store.commit([Save(after), sent(collection, after, news.at), *news.emit(), *count.changes])

    def _drop(self, move: CoinMove, why: str) -> None:
        log.warning("%s: %s is dropped: %s", self._network.id, move.id, why)
        self._store.commit(self._shown.dropped(move, why, self._clock.now_ms()))

    # Settled

    def settle(self, move: CoinMove, txid: str, receipt: Receipt) -> None:
        held = self._wallets(move)
        if move.wallet is None:
            if any(d is None or d.status != "confirmed" for d in deposits_of(self._store, move)):
                return  # what it spends is not confirmed again yet: that comes first
        elif any(coin.gone for coin in held[move.wallet].reserved(move.id)):
            return
        if self._store.get(JournalEntry, id=ledger.coins_moved_id(move.id, move.round)) is not None:
            self._demand_unchanged(move)
            raise LookupError(f"{move.id} is signed, and was settled: it differs from what was stored of it in its state")
        attempt, now = move.attempt(txid), self._clock.now_ms()
        arrived = {account_at(self._rules, self._network, move.recipient): Amount(move.asset, attempt.amount)}
        if attempt.change and move.wallet is not None:
            arrived[account_at(self._rules, self._network, move.wallet)] = Amount(move.asset, attempt.change)
        fee = Amount(move.asset, attempt.fee)
        entry = ledger.coins_moved(move.id, move.round, now, self._network.realm, arrived, fee)
        done = replace(
            move, state="settled", mined=txid, block_number=receipt.block_number, block_hash=receipt.block_hash,
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

    def _demand_unchanged(self, move: CoinMove) -> None:
        """Raise Conflict where it was written since it was read: what differs from it may be that. Raises Unavailable."""
        now = self._store.get(CoinMove, network=move.network, id=move.id)
        if now is None or now.version != move.version:
            raise Conflict(None)

    def _wallets(self, move: CoinMove) -> dict[str, HeldCoins]:
        """The coins of the hot wallets that it takes from and brings to; the cold wallet's are nobody's to spend."""
        return held_after(self._store, self._network, [move.wallet, None if move.kind == "cold" else move.recipient])

    def unsettle(self, move: CoinMove) -> None:
        attempt, now = move.attempt(move.mined or ""), self._clock.now_ms()
        entry = self._store.get(JournalEntry, id=ledger.coins_moved_id(move.id, move.round))
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

    def finish(self, move: CoinMove) -> None:
        """No reorganisation reaches it: what it spent is spent for good."""
        if move.wallet is None:
            spent = {coin.deposit or "" for coin in move.inputs}
            hints = [w for works in pages_of(self._store, "collectable", self._network.id) for w in works if w.id in spent]
            for start in range(0, len(hints), FEW_ITEMS):
                self._store.commit([Close(work) for work in hints[start : start + FEW_ITEMS]])
        self._store.commit([Close(coin_moved_work(move))])

    # Never to be mined

    def die(self, move: CoinMove) -> None:
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
        self.bury(dead)

    def owes(self, move: CoinMove) -> bool:
        return move.booked > 0

    def bury(self, move: CoinMove) -> bool:
        """Place by place what is in flight is where it was: at most a few addresses per transaction."""
        if not move.booked:
            return True
        while part := move.next_part(back=True):
            now = self._clock.now_ms()
            left = move.booked - len(part)
            entry = ledger.coins_released(move.id, left, now, amounts_at(self._rules, self._network, move, part))
            move = replace(move, booked=left).next(now)
            over: list[Change] = [] if left else [Close(coin_move_work(move)), Open(coin_moved_work(move))]
            self._store.commit([Save(move), Post(entry), *over])
        return False

    def forget(self, move: CoinMove) -> None:
        self._store.commit([Close(coin_moved_work(move))])
