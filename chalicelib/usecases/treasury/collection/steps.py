"""Brings one collection forward: planned → top-up sent → top-up confirmed → sweep sent → swept. One transaction per step.

Each step is decided anew from the books, the settings and the fees of that moment. What was planned is found by the collection's
own record, and its ids follow from the collection, so that who dies anywhere goes on from what is stored, and doing a step twice
plans nothing twice. What a step can not do for now it says in the record (`waiting`), and looks again later; what must not go on is
parked with an alarm, and the other collections go on.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import (
    IN_MOTION,
    LONGEST_MS,
    MOST_TOPUPS,
    Collection,
    CollectionState,
    ParkReason,
    waited,
    went_on,
)
from chalicelib.domain.treasury.energy_loans import TO_ACTIVATE, Way
from chalicelib.domain.treasury.moves import Move, Origin, move_id
from chalicelib.usecases.base.current_wallets import topup_wallet, wallets_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.screening.grey_list import grey_listed
from chalicelib.usecases.treasury.collection.fees import MoveFees, Provision
from chalicelib.usecases.treasury.collection.records import CollectionRecords
from chalicelib.usecases.treasury.moves.planning import dropped, planned
from chalicelib.usecases.treasury.topups import PayerShort, TopUps
from chalicelib.usecases.treasury.tron.energy_loans import Loans

log = logging.getLogger(__name__)

_MOST_STEPS = 8


@dataclass(frozen=True, slots=True)
class Wallets:
    """The wallets of a step: the one whose stake is lent (Tron), the one that a sweep goes to, and the one that pays top-ups."""

    hot: Wallet
    destination: Wallet
    payer: Wallet


class CollectSteps:
    """Of one network of accounts."""

    def __init__(self, context: NetworkContext, fees: MoveFees, loans: Loans | None = None) -> None:
        """`loans`: where energy can be lent in place of coins that are burnt (Tron)."""
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._fees, self._loans, self._topups = fees, loans, TopUps(fees)
        self._records = CollectionRecords(context, fees)

    def advance(self, collection_id: str) -> None:
        """Take every step that can be taken now. Safe at any time, twice, at once. Raises Conflict, Unavailable."""
        for _ in range(_MOST_STEPS):
            if not until_settled(lambda: self._step(collection_id)):
                return

    def put_off(self, collection_id: str, error: Exception) -> None:
        """After a look that raised `error`: the next one is later each time. What is on its way is looked at whatever happens."""

        def put() -> None:
            before = self._store.get(Collection, id=collection_id)
            now, words = self._clock.now_ms(), str(error) or type(error).__name__
            if before is not None and before.state in ("planned", "waiting"):
                self._records.save(before, waited(before, "failed", words, now))
            elif before is not None and before.state == "waits_for_approval":
                self._records.save(before, replace(before, look_at=now + LONGEST_MS))

        until_settled(put)

    def _step(self, collection_id: str) -> bool:
        """One transaction; whether there may be another step now."""
        before = self._store.get(Collection, id=collection_id)
        if before is None or before.ended or before.state == "parked":
            return False
        demand_known(before)
        if before.state == "topup_sent":
            return self._topped_up(before)
        if before.state == "sweep_sent":
            return self._arrived(before)
        return self._decide(before)

    def _topped_up(self, before: Collection) -> bool:
        move = self._records.move(before.topups[-1])
        if move is None or move.state in ("failed", "dropped"):
            return self._records.failed(before, "top-up", move)
        if move.state != "settled":
            return False
        after = went_on(before, "topup_confirmed", self._clock.now_ms())
        return self._records.save(before, replace(after, topups_since=before.topups_since + 1))

    def _arrived(self, before: Collection) -> bool:
        move = self._records.move(before.sweeps[-1])
        if move is not None and move.state == "settled":
            return self._records.end(replace(before, amount=move.amount, txid=move.txid, arrived=move.arrived), "swept")
        if move is not None and move.state == "failed":
            # It was paid for and moved nothing: the issuer has frozen the address, or the token stands still.
            return self._records.park(before, "reverted", f"move {move.id} failed on the chain")
        if move is None or move.state == "dropped":
            return self._records.failed(before, "sweep", move)
        if move.state == "planned" and move.reason is not None:
            return self._hindered(before, move)
        return False

    def _hindered(self, before: Collection, move: Move) -> bool:
        """The sweep is not signed, since something is missing: coins that fell out of the chain, or a fee that rose."""
        coin, payer = self._records.coin(before), topup_wallet(self._store, self._network.id)
        balance = self._fees.booked(before.address, coin)
        now = self._clock.now_ms()
        if balance.units - balance.small < move.amount:
            # Nothing is allotted for it: what is there now is decided anew.
            less = dropped(move, "there is less to collect by now", now)
            return self._records.save(before, went_on(before, "planned", now), less)
        if coin.contract is None or payer is None:
            return False
        try:
            fees = self._fees.provided(coin, before.address, [(move.recipient, move.amount)], payer)
        except Refused as refused:
            return self._records.park(before, "refused", str(refused))
        return bool(fees.topup) and self._topup(before, payer, fees)

    def _decide(self, before: Collection) -> bool:
        if self._resumed(before):
            return True
        coin = self._records.coin(before)
        balance = self._fees.booked(before.address, coin)
        barred = self._barred(before, balance)
        if barred is not None:
            return self._records.park(before, *barred)
        others = self._others(before)
        there = balance.units - balance.small
        # What came for the fees of a token that waits, or is parked, stays for them: else it has to come again each time.
        kept = sum(other.topped_up for other in others) if coin.contract is None else 0
        there -= kept
        before = replace(before, amount=max(0, there))
        try:
            least, approve = self._fees.limit(coin, "collectThreshold"), self._fees.limit(coin, "approveThreshold")
        except NoFreshRate as error:
            return self._records.wait(before, "no_rate", str(error))
        if there <= 0 or (least is not None and there < least):
            return self._records.end(before, "dropped")
        if approve is not None and there > approve and before.approved is None:
            return self._records.ask(before)
        amount = there if before.approved is None else min(there, before.approved)
        return self._to_collect(before, coin, amount, others, kept > 0)

    def _barred(self, before: Collection, balance: WalletBalance) -> tuple[ParkReason, str] | None:
        """Why nothing may leave its address now."""
        if balance.held > 0:
            return "held", "a deposit from the grey list is there and not released"
        if grey_listed(self._store, self._rules, self._network.id, before.address):
            return "grey_listed", "the address is on the grey list"
        return None

    def _to_collect(self, before: Collection, coin: Coin, amount: int, others: list[Collection], keeps: bool) -> bool:
        """`amount` may be collected. `keeps`: something is to stay there."""
        hot, collector, own = wallets_of(self._store, self._network.id, ("hot", "collector", "topup"))
        if hot is None:
            return self._records.wait(before, "no_wallet", f"{self._network.slug} has no hot wallet")
        if self._other_moves(others, coin):
            return self._records.wait(before, "other_coin", None)
        # Tokens are gathered by the collector where there is one.
        destination = (collector if coin.contract is not None else None) or self._fees.emptiest(hot, coin)
        before = replace(before, amount=amount, destination=destination.address)
        return self._send(before, coin, Wallets(hot, destination, own or hot), keeps)

    def _resumed(self, before: Collection) -> bool:
        """Whether a move of it is not at its end: that is waited for, and nothing else is planned."""
        ways: tuple[tuple[CollectionState, tuple[str, ...]], ...] = (
            ("topup_sent", before.topups), ("sweep_sent", before.sweeps),
        )  # fmt: skip
        for state, ids in ways:
            move = self._records.move(ids[-1]) if ids else None
            if move is not None and not move.at_rest:
                return self._records.save(before, replace(before, state=state, look_at=self._clock.now_ms()))
        return False

    def _send(self, before: Collection, coin: Coin, wallets: Wallets, keeps: bool) -> bool:
        """The top-up where one is needed, else the sweep; unless it costs too much. `keeps`: something is to stay there."""
        try:
            fees = self._provided(before, coin, wallets)
        except Refused as refused:
            return self._records.park(before, "refused", str(refused))
        way, stake, fees = self._lending(before, coin, wallets.hot, fees)
        if way == "wait":
            return self._records.wait(before, "energy", f"the energy of a stake of {stake} units of {self._fees.native.slug}")
        before = replace(before, fee=fees.fee)
        if self._not_worth_it(before, coin):
            return False
        if stake and way == "lend":
            return self._lend(before, wallets.hot, stake)
        if fees.topup:
            return self._topup(before, wallets.payer, fees)
        return self._sweep(before, coin, wallets.destination, keeps)

    def _not_worth_it(self, before: Collection, coin: Coin) -> bool:
        """Whether its fee is too large a part of it, or nobody knows: it waits then, or is dropped."""
        try:
            dear = self._fees.too_dear(coin, before.amount, before.fee)
        except NoFreshRate as error:
            self._records.wait(before, "no_rate", str(error))
            return True
        worthless = coin.contract is None and before.fee >= before.amount
        if worthless and self._records.open_here(before).number > 1:
            # What sweeps have left over of their fees. The next deposit asks again, and so does the daily reconciliation.
            self._records.end(before, "dropped")
        elif dear or worthless:
            self._records.wait(before, "fee_share", f"a fee of {before.fee} units of {self._fees.native.slug}")
        else:
            return False
        return True

    def _provided(self, before: Collection, coin: Coin, wallets: Wallets) -> Provision:
        """Raises Refused, Unavailable."""
        to = wallets.destination.address
        if coin.contract is None:
            return Provision(0, 0, self._fees.cost(coin, before.address, to, 1))
        return self._fees.provided(coin, before.address, [(to, before.amount)], wallets.payer)

    def _lending(self, before: Collection, coin: Coin, hot: Wallet, fees: Provision) -> tuple[Way, int, Provision]:
        """Whether the energy of a token's transfer is lent, by which stake, and how its fee is provided then. Raises
        Unavailable."""
        if coin.contract is None or self._loans is None:
            return "burn", 0, fees
        waited_ms = self._clock.now_ms() - before.created_at
        way, stake, costs = self._loans.way(hot.address, before.address, fees.transfers, waited_ms)
        if way in ("lend", "activate"):
            activates = TO_ACTIVATE if way == "activate" else 0
            fees = Provision(activates, fees.topup_fee if activates else 0, costs)
        return way, stake, fees

    def _lend(self, before: Collection, hot: Wallet, stake: int) -> bool:
        """Energy in place of a top-up: it has a top-up's place in the collection, and comes back by itself."""
        if self._loans is None or before.topups_since >= MOST_TOPUPS:
            return self._records.park(before, "topups", f"{before.topups_since} top-ups were not enough")
        news, number = News(self._clock.now_ms()), len(before.topups) + 1
        lent = self._loans.lent(news, hot.address, before.address, stake, before.id, number)
        after = went_on(before, "topup_sent", news.at)
        after = replace(after, topups=(*before.topups, move_id(before.id, "delegation", number)))
        return self._records.save(before, after, lent, news) and False

    def _topup(self, before: Collection, payer: Wallet, fees: Provision) -> bool:
        """Native coins for the fee."""
        if before.topups_since >= MOST_TOPUPS:
            return self._records.park(before, "topups", f"{before.topups_since} top-ups were not enough")
        news = News(self._clock.now_ms())
        origin = Origin(self._network.id, before.id, len(before.topups) + 1, news.at)
        try:
            topup = self._topups.plan(origin, payer, before.address, fees.topup, fees.topup_fee)
        except NoFreshRate as error:
            return self._records.wait(before, "no_rate", str(error))
        except PayerShort:
            return self._records.wait(before, "liquidity", f"a top-up of {fees.topup} units of {self._fees.native.slug}")
        after = went_on(before, "topup_sent", news.at)
        after = replace(after, topups=(*before.topups, topup.move.id), topped_up=before.topped_up + topup.move.amount)
        return self._records.save(before, after, topup.changes(news), news) and False

    def _sweep(self, before: Collection, coin: Coin, destination: Wallet, keeps: bool) -> bool:
        if keeps:
            # Of native coins the fee is part of what is there to collect: what shall stay must not pay it.
            before = replace(before, amount=before.amount - before.fee)
        news = News(self._clock.now_ms())
        origin = Origin(self._network.id, before.id, len(before.sweeps) + 1, news.at)
        move = Move.sweep(origin, coin, before.address, before.path, destination.address, before.amount)
        after = replace(went_on(before, "sweep_sent", news.at), sweeps=(*before.sweeps, move.id), topups_since=0)
        return self._records.save(before, after, planned(news, move), news) and False

    def _others(self, before: Collection) -> list[Collection]:
        """Of the other coins of the address, those that are not at their end."""
        record = self._records.open_here(before)
        ids = [(Collection, {"id": id}) for slug, id in sorted(record.open.items()) if slug != before.coin]
        found: list[Collection | None] = self._store.get_many(ids) if ids else []
        return [other for other in found if other is not None]

    def _other_moves(self, others: list[Collection], coin: Coin) -> bool:
        """Whether the native coins of the address are another collection's now: it moves them, or they pay for its sweep."""
        if coin.contract is None:
            return any(other.state in (*IN_MOTION, "planned") for other in others)
        native = self._fees.native.slug
        return any(other.coin == native and other.state in IN_MOTION for other in others)
