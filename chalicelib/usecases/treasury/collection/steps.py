"""Brings one collection forward: planned → top-up sent → top-up confirmed → sweep sent → swept. One transaction per step.

Each step is decided anew from the books, the settings and the fees of that moment. What was planned is found by the collection's
own record, and its ids follow from the collection, so that who dies anywhere goes on from what is stored, and doing a step twice
plans nothing twice. What a step can not do for now it says in the record (`waiting`), and looks again later; what must not go on is
parked with an alarm, and the other collections go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Role, Wallet
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import NoFreshRate
from chalicelib.domain.treasury.collections import (
    IN_MOTION,
    LONGEST_MS,
    MOST_TOPUPS,
    MOST_TRIES,
    Collecting,
    Collection,
    CollectionState,
    Ending,
    ParkReason,
    WaitReason,
    collection_work,
    ended,
    waited,
    went_on,
)
from chalicelib.domain.treasury.energy_loans import TO_ACTIVATE
from chalicelib.domain.treasury.moves import Move, Origin, move_id
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.work import Command
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.grey_list import grey_listed
from chalicelib.usecases.treasury.collection.fees import MoveFees, Provision
from chalicelib.usecases.treasury.moves.planning import dropped, planned
from chalicelib.usecases.treasury.topups import HotWalletShort, TopUps
from chalicelib.usecases.treasury.tron.energy_loans import Loans
from chalicelib.usecases.wallets.sweep_candidates import place_id

log = logging.getLogger(__name__)

_MOST_STEPS = 8


class CollectSteps:
    """Of one network of accounts."""

    def __init__(
        self, network: Network, store: Store, rules: AddressRules, clock: Clock, fees: MoveFees, loans: Loans | None = None
    ) -> None:
        """`loans`: where energy can be lent in place of coins that are burnt (Tron)."""
        self._network, self._store, self._rules, self._clock, self._fees = network, store, rules, clock, fees
        self._loans, self._topups = loans, TopUps(fees)

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
                self._save(before, waited(before, "failed", words, now))
            elif before is not None and before.state == "waits_for_approval":
                self._save(before, replace(before, look_at=now + LONGEST_MS))

        until_settled(put)

    def _step(self, collection_id: str) -> bool:
        """One transaction; whether there may be another step now."""
        before = self._store.get(Collection, id=collection_id)
        if before is None or before.ended or before.state == "parked":
            return False
        if before.state == "topup_sent":
            return self._topped_up(before)
        if before.state == "sweep_sent":
            return self._arrived(before)
        return self._decide(before)

    def _topped_up(self, before: Collection) -> bool:
        move = self._move(before.topups[-1])
        if move is None or move.state in ("failed", "dropped"):
            return self._failed(before, "top-up", move)
        if move.state != "settled":
            return False
        after = went_on(before, "topup_confirmed", self._clock.now_ms())
        return self._save(before, replace(after, topups_since=before.topups_since + 1))

    def _arrived(self, before: Collection) -> bool:
        move = self._move(before.sweeps[-1])
        if move is not None and move.state == "settled":
            return self._end(replace(before, amount=move.amount, txid=move.txid, arrived=move.arrived), "swept")
        if move is not None and move.state == "failed":
            # It was paid for and moved nothing: the issuer has frozen the address, or the token stands still.
            return self._park(before, "reverted", f"move {move.id} failed on the chain")
        if move is None or move.state == "dropped":
            return self._failed(before, "sweep", move)
        if move.state == "planned" and move.reason is not None:
            return self._hindered(before, move)
        return False

    def _hindered(self, before: Collection, move: Move) -> bool:
        """The sweep is not signed, since something is missing: coins that fell out of the chain, or a fee that rose."""
        coin, hot = self._coin(before), self._wallet("hot")
        balance = self._fees.booked(before.address, coin)
        now = self._clock.now_ms()
        if balance.units - balance.small < move.amount:
            # Nothing is allotted for it: what is there now is decided anew.
            return self._save(before, went_on(before, "planned", now), dropped(move, "there is less to collect by now", now))
        if coin.contract is None or hot is None:
            return False
        try:
            fees = self._fees.provided(coin, before.address, [(move.recipient, move.amount)], hot)
        except Refused as refused:
            return self._park(before, "refused", str(refused))
        return bool(fees.topup) and self._topup(before, hot, fees)

    def _decide(self, before: Collection) -> bool:
        if self._resumed(before):
            return True
        coin = self._coin(before)
        balance = self._fees.booked(before.address, coin)
        if balance.held > 0:
            return self._park(before, "held", "a deposit from the grey list is there and not released")
        if grey_listed(self._store, self._rules, self._network.id, before.address):
            return self._park(before, "grey_listed", "the address is on the grey list")
        others = self._others(before)
        there = balance.units - balance.small
        # What came for the fees of a token that waits, or is parked, stays for them: else it has to come again each time.
        kept = sum(other.topped_up for other in others) if coin.contract is None else 0
        there -= kept
        before = replace(before, amount=max(0, there))
        try:
            least, approve = self._fees.limit(coin, "collectThreshold"), self._fees.limit(coin, "approveThreshold")
        except NoFreshRate as error:
            return self._wait(before, "no_rate", str(error))
        if there <= 0 or (least is not None and there < least):
            return self._end(before, "dropped")
        if approve is not None and there > approve and before.approved is None:
            return self._ask(before)
        amount = there if before.approved is None else min(there, before.approved)
        hot, destination = self._wallet("hot"), self._destination(coin)
        if hot is None or destination is None:
            return self._wait(before, "no_wallet", f"{self._network.slug} has no hot wallet")
        if self._other_moves(others, coin):
            return self._wait(before, "other_coin", None)
        return self._send(replace(before, amount=amount, destination=destination.address), coin, hot, destination, kept > 0)

    def _resumed(self, before: Collection) -> bool:
        """Whether a move of it is not at its end: that is waited for, and nothing else is planned."""
        ways: tuple[tuple[CollectionState, tuple[str, ...]], ...] = (
            ("topup_sent", before.topups), ("sweep_sent", before.sweeps),
        )  # fmt: skip
        for state, ids in ways:
            move = self._move(ids[-1]) if ids else None
            if move is not None and not move.at_rest:
                return self._save(before, replace(before, state=state, look_at=self._clock.now_ms()))
        return False

    def _send(self, before: Collection, coin: Coin, hot: Wallet, destination: Wallet, keeps: bool) -> bool:
        """The top-up where one is needed, else the sweep; unless it costs too much. `keeps`: something is to stay there."""
        try:
            if coin.contract is None:
                fees = Provision(0, 0, self._fees.cost(coin, before.address, destination.address, 1))
            else:
                fees = self._fees.provided(coin, before.address, [(destination.address, before.amount)], hot)
        except Refused as refused:
            return self._park(before, "refused", str(refused))
        stake = 0
        if coin.contract is not None and self._loans is not None:
            waited_ms = self._clock.now_ms() - before.created_at
            way, stake, costs = self._loans.way(hot.address, before.address, fees.transfers, waited_ms)
            if way == "wait":
                return self._wait(before, "energy", f"the energy of a stake of {stake} units of {self._fees.native.slug}")
            if way in ("lend", "activate"):
                activates = TO_ACTIVATE if way == "activate" else 0
                fees = Provision(activates, fees.topup_fee if activates else 0, costs)
            stake = stake if way == "lend" else 0
        before = replace(before, fee=fees.fee)
        try:
            dear = self._fees.too_dear(coin, before.amount, fees.fee)
        except NoFreshRate as error:
            return self._wait(before, "no_rate", str(error))
        worthless = coin.contract is None and fees.fee >= before.amount
        if worthless and self._open_here(before).number > 1:
            # What sweeps have left over of their fees. The next deposit asks again, and so does the daily reconciliation.
            return self._end(before, "dropped")
        if dear or worthless:
            return self._wait(before, "fee_share", f"a fee of {fees.fee} units of {self._fees.native.slug}")
        if stake:
            return self._lend(before, hot, stake)
        if fees.topup:
            return self._topup(before, hot, fees)
        # Of native coins the fee is part of what is there to collect: what shall stay must not pay it.
        return self._sweep(replace(before, amount=before.amount - fees.fee) if keeps else before, coin, destination)

    def _lend(self, before: Collection, hot: Wallet, stake: int) -> bool:
        """Energy in place of a top-up: it has a top-up's place in the collection, and comes back by itself."""
        if self._loans is None or before.topups_since >= MOST_TOPUPS:
            return self._park(before, "topups", f"{before.topups_since} top-ups were not enough")
        news, number = News(self._clock.now_ms()), len(before.topups) + 1
        lent = self._loans.lent(news, hot.address, before.address, stake, before.id, number)
        after = went_on(before, "topup_sent", news.at)
        after = replace(after, topups=(*before.topups, move_id(before.id, "delegation", number)))
        return self._save(before, after, lent, news) and False

    def _topup(self, before: Collection, hot: Wallet, fees: Provision) -> bool:
        """Native coins for the fee, out of the hot wallet."""
        if before.topups_since >= MOST_TOPUPS:
            return self._park(before, "topups", f"{before.topups_since} top-ups were not enough")
        news = News(self._clock.now_ms())
        origin = Origin(self._network.id, before.id, len(before.topups) + 1, news.at)
        try:
            topup = self._topups.plan(origin, hot, before.address, fees.topup, fees.topup_fee)
        except NoFreshRate as error:
            return self._wait(before, "no_rate", str(error))
        except HotWalletShort:
            return self._wait(before, "liquidity", f"a top-up of {fees.topup} units of {self._fees.native.slug}")
        after = went_on(before, "topup_sent", news.at)
        after = replace(after, topups=(*before.topups, topup.move.id), topped_up=before.topped_up + topup.move.amount)
        return self._save(before, after, topup.changes(news), news) and False

    def _sweep(self, before: Collection, coin: Coin, destination: Wallet) -> bool:
        news = News(self._clock.now_ms())
        origin = Origin(self._network.id, before.id, len(before.sweeps) + 1, news.at)
        move = Move.sweep(origin, coin, before.address, before.path, destination.address, before.amount)
        after = replace(went_on(before, "sweep_sent", news.at), sweeps=(*before.sweeps, move.id), topups_since=0)
        return self._save(before, after, planned(news, move), news) and False

    def _others(self, before: Collection) -> list[Collection]:
        """Of the other coins of the address, those that are not at their end."""
        record = self._open_here(before)
        ids = [(Collection, {"id": id}) for slug, id in sorted(record.open.items()) if slug != before.coin]
        found: list[Collection | None] = self._store.get_many(ids) if ids else []
        return [other for other in found if other is not None]

    def _other_moves(self, others: list[Collection], coin: Coin) -> bool:
        """Whether the native coins of the address are another collection's now: it moves them, or they pay for its sweep."""
        if coin.contract is None:
            return any(other.state in (*IN_MOTION, "planned") for other in others)
        native = self._fees.native.slug
        return any(other.coin == native and other.state in IN_MOTION for other in others)

    def _destination(self, coin: Coin) -> Wallet | None:
        """Tokens are gathered by the collector where there is one."""
        collector = self._wallet("collector") if coin.contract is not None else None
        return collector or self._wallet("hot")

    def _wallet(self, role: Role) -> Wallet | None:
        return wallet_of(self._store, self._network.id, role)

    def _coin(self, collection: Collection) -> Coin:
        return self._store.catalogue(self._network.realm).coins[self._network.slug, collection.coin]

    def _move(self, id: str) -> Move | None:
        return self._store.get(Move, network=self._network.id, id=id)

    def _ask(self, before: Collection) -> bool:
        """It needs an operator's word. Looked at now and then: the threshold may have changed."""
        if before.state != "waits_for_approval":
            log.warning("%s: collection %s over %d waits for approval", self._network.id, before.id, before.amount)
        after = went_on(before, "waits_for_approval", self._clock.now_ms() + LONGEST_MS)
        return self._save(before, after) and False

    def _wait(self, before: Collection, reason: WaitReason, detail: str | None) -> bool:
        if before.reason != reason:
            log.warning("%s: collection %s waits: %s: %s", self._network.id, before.id, reason, detail)
        return self._save(before, waited(before, reason, detail, self._clock.now_ms())) and False

    def _failed(self, before: Collection, what: str, move: Move | None) -> bool:
        """A move came to nothing: tried again after a while, and not for ever."""
        why = f"{what}: " + ("is gone" if move is None else f"{move.state}: {move.reason}")
        tried = replace(before, tries=before.tries + 1)
        if tried.tries >= MOST_TRIES:
            return self._park(tried, "failed", why)
        # The pause grows with the failures, whatever succeeded between them.
        after = waited(replace(tried, reason="failed", waits=tried.tries - 1), "failed", why, self._clock.now_ms())
        log.warning("%s: collection %s: %s", self._network.id, before.id, why)
        return self._save(before, after) and False

    def _park(self, before: Collection, reason: ParkReason, detail: str) -> bool:
        """Nothing of it goes on: a sweep that is planned only is taken back, one that has its bytes is followed instead."""
        now, more = self._clock.now_ms(), list[Change]()
        sweep = self._move(before.sweeps[-1]) if before.sweeps else None
        if sweep is not None and not sweep.at_rest:
            if sweep.state != "planned":
                return self._save(before, replace(before, state="sweep_sent", look_at=now))
            more = dropped(sweep, f"its collection is parked: {reason}", now)
        after = replace(next_version(before), state="parked", reason=reason, detail=detail[:300], updated_at=now)
        self._store.commit([Save(after), Close(collection_work(before)), *more])
        log.error("ALARM %s: collection %s is parked: %s: %s", self._network.id, before.id, reason, detail)
        return False

    def _end(self, before: Collection, state: Ending) -> bool:
        """At its end. What is there beyond, or came meanwhile, asks for another one."""
        news = News(self._clock.now_ms())
        record = self._open_here(before)
        balance = self._fees.booked(before.address, self._coin(before))
        if before.again or (state == "swept" and balance.units - balance.small > 0):
            news.command(Command("collectable", self._network.id, {"id": place_id(record.address, before.coin)}))
        closing: list[Change] = [Save(record.without(before.coin)), Close(collection_work(before))]
        self._store.commit([Save(ended(before, state, news.at)), *closing, *news.emit()])
        return False

    def _open_here(self, collection: Collection) -> Collecting:
        place = self._rules.storage_form(self._network.slug, collection.address)
        return self._store.get(Collecting, network=self._network.id, address=place) or Collecting(self._network.id, place)

    def _save(self, before: Collection, after: Collection, more: Sequence[Change] = (), news: News | None = None) -> bool:
        """`after` in place of what is stored, with its obligation where that has moved, and `more`. Always True."""
        saved = replace(after, updated_at=self._clock.now_ms(), version=version_after(before))
        works: list[Change] = []
        if collection_work(saved) != collection_work(before):
            works = [Close(collection_work(before)), Open(collection_work(saved))]
        self._store.commit([Save(saved), *works, *more, *(news.emit() if news is not None else ())])
        return True
