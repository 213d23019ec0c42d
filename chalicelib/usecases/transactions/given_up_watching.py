"""Watches given-up transactions: where the chain has one after all, the ledger records it.

Payments and moves of accounts, and stakes: one of its attempts was met in a block that is deep enough. Then it is as if it had
never been given up: what was given back is taken back, its coins are in flight again, and settlement books what the chain did. A
merchant's balance may be negative then: the payment that he ordered was made. If the operator bore that, a merchant could keep the
bytes, send them later and have both. Bundles and coin moves are watched where they are dead (`utxo_attempts`): an operator is told.

Watched for twice as many blocks as a reorganisation is followed, as what is dead is; where transactions expire, for the longest
that they may live besides; where there are nonces, until its nonce is used and the scan is as deep behind that as a reorganisation
is followed: that a nonce is used may be seen before the scan meets by whom, and it may be one of these.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import TenantId
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.transactions.given_up import GivenUp, given_up_work
from chalicelib.domain.transactions.sightings import Seen
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move, move_work
from chalicelib.domain.treasury.stakes import Stake, stake_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.losses import Losses, has_nonces
from chalicelib.usecases.transactions.marks import Record, traces_of
from chalicelib.usecases.withdrawals.steps import catalogue_views, moved, order_of, sent_work, stepped

log = logging.getLogger(__name__)

_DAY = 86_400


class GivenUpWatching:
    """Of one network, for one poll. Needs no key. `payer` is there where transactions have nonces."""

    def __init__(
        self,
        context: NetworkContext,
        losses: Losses,
        finality: Finality,
        rates_of: RatesOf,
        payer: ChainPayer | None,
    ) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._losses, self._finality, self._rates_of, self._payer = losses, finality, rates_of, payer

    def work(self, more: Callable[[], bool]) -> None:
        """Look at everything that was given up and is not over, oldest first. Raises Unavailable, Failures."""
        scanned: Scanned | None = None
        with Each(f"{self._network.id}: what was given up") as each:
            for works in pages_of(self._store, "givenup", self._network.id):
                scanned = scanned or self._finality.scanned()
                for work in works:
                    if not more():
                        return
                    each.take(work.id, partial(until_settled, partial(self._look, work, scanned)))

    def _look(self, work: Work, scanned: Scanned) -> None:
        decision = self._store.get(GivenUp, id=work.id)
        if decision is None or decision.state != "open":
            return  # ended between two reads
        match decision.kind:
            case "payout":
                self._payout(decision, scanned)
            case "move":
                self._move(decision, scanned)
            case "stake":
                self._stake(decision, scanned)
            case "bundle":
                bundle = self._store.get(Bundle, id=decision.id)
                self._coins(decision, "" if bundle is None else bundle.state)
            case "coin_move":
                coins = self._store.get(CoinMove, network=self._network.id, id=decision.id)
                self._coins(decision, "" if coins is None else coins.state)

    def _coins(self, decision: GivenUp, state: str) -> None:
        if state in ("settled", "dead"):
            self._end(decision, "mined" if state == "settled" else "over")

    def _payout(self, decision: GivenUp, scanned: Scanned) -> None:
        tenant = TenantId(decision.owner)
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=decision.id)
        order = self._store.get(PaymentOrder, id=order_of(tenant, decision.id))
        if withdrawal is None or order is None:
            raise LookupError(f"{decision.id} was given up and is gone")
        seen = self._met_after_all(decision, order, scanned, order.state == "signed", withdrawal.block_number is not None)
        if seen is None:
            return
        news = News(self._clock.now_ms())
        _, views = catalogue_views(self._store, withdrawal, self._rates_of, news.at)
        entry = self._booked(order.id, order.round)
        back = ledger.settlement_reversed(entry, order.id, order.round, news.at)
        after = stepped(
            news, views, withdrawal, replace(withdrawal, status="confirming", failure=None, txid=seen.txid, updated_at=news.at)
        )
        again = replace(next_version(order), state="signed", round=order.round + 1)
        balance = self._store.get(Balance, tenant=tenant, asset=withdrawal.asset) or Balance(tenant, withdrawal.asset)
        money = moved(self._store, news, views, balance, back)
        changes = [Save(after), Save(again), Open(sent_work(withdrawal)), *money, *news.emit()]
        self._revive(decision, seen, changes)
        if balance.after(back).available < 0:
            log.error("ALARM %s: what %s has of %s is less than nothing now", self._network.id, tenant, withdrawal.asset)

    def _move(self, decision: GivenUp, scanned: Scanned) -> None:
        move = self._store.get(Move, network=self._network.id, id=decision.id)
        if move is None:
            raise LookupError(f"{decision.id} was given up and is gone")
        seen = self._met_after_all(decision, move, scanned, move.state == "signed", move.mined is not None)
        if seen is None:
            return
        now = self._clock.now_ms()
        back = ledger.move_reversed(self._booked(move.id, move.round), move.id, move.round, now)
        again = replace(next_version(move), state="signed", reason=None, arrived=None, round=move.round + 1, updated_at=now)
        self._revive(decision, seen, [Save(again), Open(move_work(again)), Post(back)])

    def _stake(self, decision: GivenUp, scanned: Scanned) -> None:
        stake = self._store.get(Stake, network=self._network.id, id=decision.id)
        if stake is None:
            raise LookupError(f"{decision.id} was given up and is gone")
        seen = self._met_after_all(decision, stake, scanned, stake.status == "pending", stake.mined is not None)
        if seen is None:
            return
        again = replace(next_version(stake), status="pending", reason=None)
        self._revive(decision, seen, [Save(again), Open(stake_work(again))])

    def _met_after_all(self, decision: GivenUp, record: Record, scanned: Scanned, in_flight: bool, mined: bool) -> Seen | None:
        """Where a record that was ended was met after all. `in_flight`: its following is still to end it; `mined`: the chain was
        first, and the watch is over."""
        if in_flight:
            return None
        if mined:
            self._end(decision, "mined")
            return None
        return self._seen(decision, record, scanned)

    def _seen(self, decision: GivenUp, record: Record, scanned: Scanned) -> Seen | None:
        """Where an attempt was met, deep enough. The watch is over where none can be any more."""
        if scanned.unsure:
            return None
        seen = self._losses.mined(traces_of(self._network, self._rules, record), scanned)
        if seen is not None:
            return seen if scanned.depth(seen.number) >= self._network.confirmations else None
        if scanned.height - decision.height < 2 * self._network.reorg_depth + self._longest_life():
            return None
        if self._payer is None or not isinstance(record, PaymentOrder | Move) or record.nonce is None:
            self._end(decision, "over")
        else:
            self._look_at_nonce(decision, record, self._payer, scanned)
        return None

    def _longest_life(self) -> int:
        """Blocks in which a transaction that expires (Tron) may be mined: those of a day, which is all that the chain allows.
        Source: java-tron, Constant.MAXIMUM_TIME_UNTIL_EXPIRATION."""
        return 0 if has_nonces(self._network) else math.ceil(_DAY / self._network.block_time)

    def _look_at_nonce(self, decision: GivenUp, record: PaymentOrder | Move, payer: ChainPayer, scanned: Scanned) -> None:
        """While the chain waits for its nonce any of its attempts may be mined at any time. Once that is used, the scan tells by
        whom before the watch is over."""
        sender = record.wallet if isinstance(record, PaymentOrder) else record.source
        used = payer.next_nonce(sender) > (record.nonce or 0)
        if used and decision.used_at is not None and scanned.height - decision.used_at >= self._network.reorg_depth:
            self._end(decision, "over")
        elif used != (decision.used_at is not None):
            noted = replace(next_version(decision), used_at=scanned.tip if used else None)
            self._store.commit([Save(noted)])

    def _booked(self, record: str, round_: int) -> JournalEntry:
        entry = self._store.get(JournalEntry, id=f"settle:{record}:{round_}")
        if entry is None:
            raise LookupError(f"the journal does not have what ended {record}")
        return entry

    def _revive(self, decision: GivenUp, seen: Seen, changes: list[Change]) -> None:
        done = replace(next_version(decision), state="mined")
        self._store.commit([*changes, Save(done), Close(given_up_work(decision))])
        log.error(
            "ALARM %s: %s was given up by %s (%s), and its transaction %s is in block %d: what was given back is taken back",
            *(self._network.id, decision.id, decision.by, decision.reason, seen.txid, seen.number),
        )

    def _end(self, decision: GivenUp, state: str) -> None:
        done = replace(next_version(decision), state="mined" if state == "mined" else "over")
        self._store.commit([Save(done), Close(given_up_work(decision))])
