"""Plans consolidations: the deposits' outputs that go to the hot wallet together, and when.

Open work of the kind `collectable` names every deposit whose output is not spent for good; so the outputs that wait are found
without looking through addresses. A hint ends with a deposit that nothing is to be collected of (it fell out, it was too little),
that an operator has to look into first (it came from the grey list: it is asked for again when it is released), or that is spent
for good (`spent_utxos`).

Coins are gathered until together they are worth the coin's collectThreshold, and move while the fee, at the rate of the priority
low, is no more than a set share of them, and the day's budget has room for it. What has no room in one consolidation goes with the
next: beside those under way when it is full, else once they are at their end. Those above approveThreshold wait for an operator
with their own coins alone. What coins wait for is a `Collection` of the network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, collects, limit_units
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import new_id
from chalicelib.domain.treasury.collections import fee_share_exceeds
from chalicelib.domain.treasury.consolidations import (
    CoinMove,
    ConsolidationQueue,
    MovedCoin,
    arranged,
    coin_move_command,
    coin_move_work,
)
from chalicelib.domain.treasury.hot_utxos import MOST_INPUTS
from chalicelib.domain.versions import newer_state
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Close, Conflict, Open, Save, Still
from chalicelib.usecases.ports.coins import CoinPayer, CoinPlan
from chalicelib.usecases.ports.failures import Refused, TooNew
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.treasury.consolidation.approval import Consolidations, Why
from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget, Count
from chalicelib.usecases.treasury.consolidation.parts import built, open_moves, outpoint_of, queue_of, spendable, unspent_of
from chalicelib.usecases.treasury.consolidation.spent_utxos import SpentCoins
from chalicelib.usecases.wallets.sweep_candidates import hint_work

log = logging.getLogger(__name__)

LOOK_MS = 5 * 60 * 1000
"""How often the coins that wait are looked through (milliseconds): fees and thresholds change slowly."""
MOST_UNDER_WAY = 20
"""Consolidations of a network at a time. Every poll reads all of them, at 50 KB each: 1,600 coins are on their way."""
MOST_ASKED = 20
"""Consolidations that wait for an operator, or were refused within a day: while there are so many, nothing is planned."""


class CoinMovePlanning:
    """For one network. Builds what is to be signed; signs nothing."""

    def __init__(
        self, context: NetworkContext, payer: CoinPayer, rates: RatesOf, fee_percent: int, budget: ConsolidationBudget
    ) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._payer, self._rates, self._fee_percent, self._budget = payer, rates, fee_percent, budget
        self._shown = Consolidations(context.store, context.rules, context.network)
        self._spent = SpentCoins(context, payer)

    def look(self, scanned: Scanned, more: Callable[[], bool] = lambda: True) -> None:
        """Plan the consolidations that are due, one after the other while `more` allows; none where it was looked for lately.

        Raises Unavailable, Conflict.
        """
        coin = self._store.catalogue(self._network.realm).native(self._network.slug)
        if collects(coin):
            until_settled(lambda: self._look(coin, scanned, more))

    def _look(self, coin: Coin, scanned: Scanned, more: Callable[[], bool]) -> None:
        queue = queue_of(self._store, self._network.id)
        hot = wallet_of(self._store, self._network.id, "hot")
        now = self._clock.now_ms()
        if hot is None or (now - queue.looked_at < LOOK_MS and not self._shown.pressed(queue)):
            return
        # In this order: what ends after its queue was read is still found here, or its hints are gone.
        moves = open_moves(self._store, self._network.id)
        asked = sum(move.id in queue.holders and move.state == "waiting" for move in moves)
        under_way = len(queue.holders) - asked
        if under_way >= MOST_UNDER_WAY:
            self._store.commit([Save(replace(queue, looked_at=now).next())])
            return
        coins = self._waiting(moves)
        looked = _looked(queue, coins, now)
        if coins:
            self._plan(coin, _Round(looked, hot.address, coins, asked, under_way, scanned), more)
        elif queue.coins or queue.shown is not None or moves:
            looked, changes = self._shown.nothing_waits(replace(looked, why=None))
            self._store.commit([Save(looked.next()), *changes])

    def _plan(self, coin: Coin, now: _Round, more: Callable[[], bool]) -> None:
        """One consolidation after the other. Each commit is by the version of the one before: whoever else changes the queue ends
        it."""
        read = now.queue.version
        while now.coins and now.under_way < MOST_UNDER_WAY:
            # Beside others goes only what is full: else each look would send the few deposits that came since by themselves.
            full = len(now.coins) >= MOST_INPUTS or not now.under_way
            found = self._planned(coin, now) if full else _Found()
            if found.why is not None:
                self._wait(coin, now, found.why)
                return
            if found.plan is None:
                if now.queue.version == read:
                    self._store.commit([Save(now.queue.next())])
                return
            stored = self._store_move(coin, now, found.plan)
            if stored is None or not more():
                return
            now = now.after(*stored, found.missing)

    def _wait(self, coin: Coin, now: _Round, why: Why) -> None:
        looked, hot = now.queue, now.hot
        if why.detail != looked.why:
            log.warning("%s: %d units in %d coins wait: %s", self._network.id, looked.waiting, looked.coins, why.detail)
        looked, changes = self._shown.waits(replace(looked, why=why.detail), coin.asset, hot, why, looked.looked_at + LOOK_MS)
        self._store.commit([Save(looked.next()), *changes])

    # What waits

    def _waiting(self, moves: Sequence[CoinMove]) -> list[MovedCoin]:
        """The coins that may be moved and are none of `moves`', the largest first. Ends the hints of those that never will."""
        network, taken = self._network.id, {coin.deposit for move in moves for coin in move.inputs}
        found: list[MovedCoin] = []
        for page in pages_of(self._store, "collectable", network):
            works = [work for work in page if work.id not in taken]
            if not works:
                continue
            deposits = each_of(self._store, [(Deposit, {"id": work.id}) for work in works])
            able: list[Deposit] = []
            for work, deposit in zip(works, deposits, strict=True):
                if isinstance(deposit, TooNew) or (deposit is not None and newer_state(deposit) is not None):
                    continue  # its hint stays for the newer version
                if deposit is not None and spendable(deposit):
                    able.append(deposit)
                    continue
                if deposit is not None and deposit.status == "confirmed" and deposit.held:
                    log.error("ALARM %s: %s came from the grey list and is not collected before it is released", network, work.id)
                # Held against the deposit as it was read: where it counts again meanwhile, it is asked for again.
                self._forget(work.id, deposit)
            keys = [(Address, {"tenant": d.tenant or "", "id": d.address_id or ""}) for d in able]
            for deposit, address in zip(able, self._store.get_many(keys), strict=True):
                if address is None or not address.path:
                    log.error("ALARM %s: nobody knows the key of %s, where %s is", network, deposit.address, deposit.id)
                    continue
                found.append(
                    MovedCoin(outpoint_of(deposit), deposit.amount, deposit.block[0], deposit.address, deposit.id, address.path)
                )
        return sorted(found, key=lambda coin: (-coin.amount, coin.outpoint))

    def _forget(self, deposit_id: str, deposit: Deposit | None) -> None:
        still = [] if deposit is None else [Still(deposit)]
        try:
            self._store.commit([Close(hint_work(self._network.id, deposit_id)), *still])
        except Conflict:
            log.info("%s: the hint of %s changed meanwhile", self._network.id, deposit_id)

    # Whether it is due

    def _too_little(self, coin: Coin, asked: int, coins: Sequence[MovedCoin]) -> Why | None:
        if asked >= MOST_ASKED:
            return Why("approvals", f"{asked} consolidations wait for an operator, or were refused within a day")
        try:
            least = limit_units(coin, "collectThreshold", self._rates(self._network.realm), self._clock.now_ms())
        except NoFreshRate as reason:
            return Why("no_rate", str(reason))
        total = sum(c.amount for c in coins)
        if least is None or total >= least:
            return None
        return Why("threshold", f"collectThreshold: {total} of {least} units wait")

    def _planned(self, coin: Coin, now: _Round) -> _Found:
        """The transaction that is due, or what is in its way."""
        asked, coins = now.asked, now.coins
        if (why := self._too_little(coin, asked, coins)) is not None:
            return _Found(why=why)
        known, missing = self._known(coin, coins, now.scanned)
        if not known:
            return _Found(why=Why("failed", "nothing of it is known to the node as it is booked"))
        # What is missing must not send each small deposit beside it on a way of its own.
        too_little = self._too_little(coin, asked, [c for c in coins if c.outpoint not in missing])
        if too_little is not None:
            return _Found(why=too_little)
        rate = self._payer.fee_rate("low")
        try:
            plan = self._payer.consolidate(now.hot, unspent_of(known), rate)
        except Refused as refused:
            return _Found(why=Why("fee_share", f"fee: {refused}"))
        value = sum(c.amount for c in known if c.outpoint in set(plan.inputs))
        if fee_share_exceeds(self._fee_percent, plan.fee, value):
            detail = f"fee: {plan.fee} units are more than {self._fee_percent} per cent of {value}"
            return _Found(why=Why("fee_share", detail))
        return _Found() if now.under_way and len(plan.inputs) < MOST_INPUTS else _Found(plan, missing=frozenset(missing))

    def _known(self, coin: Coin, every: list[MovedCoin], scanned: Scanned) -> tuple[list[MovedCoin], set[str]]:
        """The largest that the node knows too, in a block, as many as one transaction takes; and the outpoints of those that were
        asked about in vain. What only nodes deny keeps its hint, and takes no other coin's place."""
        network, known, asked, denied = self._network, list[MovedCoin](), list[MovedCoin](), list[MovedCoin]()
        while len(known) < MOST_INPUTS and len(asked) < len(every):
            coins = every[len(asked) : len(asked) + MOST_INPUTS - len(known)]
            asked += coins
            for each, seen in zip(coins, self._payer.unspent([c.outpoint for c in coins]), strict=True):
                if seen is None:
                    denied.append(each)
                elif seen.amount != each.amount or not same_place(self._rules, network, seen.address, each.address):
                    log.error("ALARM %s: the node does not know %s of %s as it is booked", network.id, each.outpoint, each.address)
                elif seen.height > 0:  # else its block has just fallen out
                    known.append(each)
        for gone in self._spent.spent(coin.asset, denied, scanned):
            self._forget(gone.deposit or "", None)
        return known, {each.outpoint for each in asked} - {each.outpoint for each in known}

    def _store_move(self, coin: Coin, look: _Round, plan: CoinPlan) -> tuple[ConsolidationQueue, CoinMove] | None:
        """One transaction: the coins are this move's, and its bytes are exact; or an operator is waited for. The queue as it is
        stored then; None where it has to wait."""
        inputs, hot = arranged(c for c in look.coins if c.outpoint in set(plan.inputs)), look.hot
        now = self._clock.now_ms()
        total = sum(c.amount for c in inputs)
        id_ = new_id("cmv", now)
        move = CoinMove(id_, self._network.id, "consolidation", coin.asset, None, hot, inputs, total, id_, now, now, state="built")
        try:
            limit = limit_units(coin, "approveThreshold", self._rates(self._network.realm), now)
        except NoFreshRate as reason:
            self._wait(coin, look, Why("no_rate", str(reason)))
            return None
        ask = limit is not None and total > limit
        count = Count() if ask else self._budget.count(self._network, plan.fee, now)
        if count.over:
            used_up = f"the {self._budget.usd} USD a day of CONSOLIDATION_BUDGET_USD are used up"
            self._wait(coin, look, Why("fee_share", used_up))
            return None
        news = News(now)
        move = replace(move, newest=built(self._payer, self._rules, self._network, move, plan.unsigned))
        queue, move, shown = self._shown.taken_up(look.queue, move, ask)
        if move.state == "waiting":
            log.warning("%s: %s waits for an operator: %d units", self._network.id, move.owner, total)
        else:
            news.command(coin_move_command(move))
        queue = replace(queue, why=move.reason).next()
        changes: list[Change] = [Save(move), Save(queue), *shown, *count.changes]
        self._store.commit([*changes, Open(coin_move_work(move)), *news.emit()])
        return queue, move


class _Found(NamedTuple):
    """The transaction that is due, or `why` the coins wait; neither: they wait for more, or for what is under way. `missing` are
    the outpoints that the node was asked about in vain."""

    plan: CoinPlan | None = None
    why: Why | None = None
    missing: frozenset[str] = frozenset()


class _Round(NamedTuple):
    """How far one look is: the queue as it is stored, the coins that still wait, the largest first, and how many consolidations
    wait for an operator or are under way."""

    queue: ConsolidationQueue
    hot: str
    coins: list[MovedCoin]
    asked: int
    under_way: int
    scanned: Scanned

    def after(self, queue: ConsolidationQueue, move: CoinMove, missing: frozenset[str]) -> _Round:
        """Once `move` is stored. Coins in `missing` are left to the next look."""
        left = [coin for coin in self.coins if coin.outpoint not in missing.union(move.outpoints)]
        waits = move.state == "waiting"
        return self._replace(
            queue=_looked(queue, left, queue.looked_at),
            coins=left,
            asked=self.asked + waits,
            under_way=self.under_way + (not waits),
        )


def _looked(queue: ConsolidationQueue, coins: Sequence[MovedCoin], now: int) -> ConsolidationQueue:
    return replace(queue, looked_at=now, waiting=sum(coin.amount for coin in coins), coins=len(coins))
