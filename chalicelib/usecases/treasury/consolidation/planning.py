"""Plans consolidations: the deposits' outputs that go to the hot wallet together, and when.

Open work of the kind `collectable` names every deposit whose output is not spent for good; so the outputs that wait are found
without looking through addresses. A hint ends with a deposit that nothing is to be collected of (it fell out, it was too little),
that an operator has to look into first (it came from the grey list: it is asked for again when it is released), or that is spent
for good (`spent_utxos`).

Coins are gathered until together they are worth the coin's collectThreshold, and move while the fee, at the rate of the priority
low, is no more than a set share of them. One consolidation is under way at a time; what has no room in it goes with the next. Those
above approveThreshold wait for an operator with their own coins alone. What coins wait for is a `Collection` of the network.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

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
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Close, Conflict, Open, Save, Still
from chalicelib.usecases.ports.coins import CoinPayer, CoinPlan
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.treasury.consolidation.approval import Consolidations, Why
from chalicelib.usecases.treasury.consolidation.parts import built, open_moves, outpoint_of, queue_of, spendable, unspent_of
from chalicelib.usecases.treasury.consolidation.spent_utxos import SpentCoins
from chalicelib.usecases.wallets.sweep_candidates import hint_work

log = logging.getLogger(__name__)

LOOK_MS = 5 * 60 * 1000
"""How often the coins that wait are looked through (milliseconds): fees and thresholds change slowly."""
MOST_ASKED = 20
"""Consolidations that wait for an operator, or were refused within a day: while there are so many, nothing is planned."""


class CoinMovePlanning:
    """For one network. Builds what is to be signed; signs nothing."""

    def __init__(self, context: NetworkContext, payer: CoinPayer, rates: RatesOf, fee_percent: int) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._payer, self._rates, self._fee_percent = payer, rates, fee_percent
        self._shown = Consolidations(context.store, context.rules, context.network)
        self._spent = SpentCoins(context, payer)

    def look(self, scanned: Scanned) -> CoinMove | None:
        """Plan a consolidation where one is due; it. Does nothing where one is under way, or where it was looked for lately.

        Raises Unavailable, Conflict.
        """
        coin = self._store.catalogue(self._network.realm).native(self._network.slug)
        if not collects(coin):
            return None
        return until_settled(lambda: self._look(coin, scanned))

    def _look(self, coin: Coin, scanned: Scanned) -> CoinMove | None:
        queue = queue_of(self._store, self._network.id)
        hot = wallet_of(self._store, self._network.id, "hot")
        if queue.move is not None or hot is None:
            return None
        if self._clock.now_ms() - queue.looked_at < LOOK_MS and not self._shown.pressed(queue):
            return None
        # In this order: what ends after its queue was read is still found here, or its hints are gone.
        taken = {outpoint for move in open_moves(self._store, self._network.id) for outpoint in move.outpoints}
        coins = self._waiting(taken)
        looked = replace(queue, looked_at=self._clock.now_ms(), waiting=sum(c.amount for c in coins), coins=len(coins))
        if not coins:
            self._nothing(queue, looked)
            return None
        why, plan = self._too_little(coin, queue, coins), None
        if why is None:
            plan, why = self._planned(coin, queue, hot.address, coins, scanned)
        if plan is None or why is not None:
            self._wait(coin, hot.address, looked, why or Why("failed", "nothing of it can be spent"))
            return None
        return self._store_move(coin, hot.address, coins, plan, looked)

    def _nothing(self, before: ConsolidationQueue, looked: ConsolidationQueue) -> None:
        if before.coins or before.shown is not None:
            looked, changes = self._shown.nothing_waits(replace(looked, why=None))
            self._store.commit([Save(looked.next()), *changes])

    def _wait(self, coin: Coin, hot: str, looked: ConsolidationQueue, why: Why) -> None:
        if why.detail != looked.why:
            log.warning("%s: %d units in %d coins wait: %s", self._network.id, looked.waiting, looked.coins, why.detail)
        looked, changes = self._shown.waits(replace(looked, why=why.detail), coin.asset, hot, why, looked.looked_at + LOOK_MS)
        self._store.commit([Save(looked.next()), *changes])

    # What waits

    def _waiting(self, taken: set[str]) -> list[MovedCoin]:
        """The coins that may be moved, the largest first. Ends the hints of those that never will."""
        network = self._network.id
        found: list[MovedCoin] = []
        for works in pages_of(self._store, "collectable", network):
            deposits = self._store.get_many([(Deposit, {"id": work.id}) for work in works])
            able: list[Deposit] = []
            for work, deposit in zip(works, deposits, strict=True):
                if spendable(deposit):
                    if outpoint_of(deposit) not in taken:
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

    def _too_little(self, coin: Coin, queue: ConsolidationQueue, coins: Sequence[MovedCoin]) -> Why | None:
        if len(queue.asked) >= MOST_ASKED:
            return Why("approvals", f"{len(queue.asked)} consolidations wait for an operator, or were refused within a day")
        try:
            least = limit_units(coin, "collectThreshold", self._rates(self._network.realm), self._clock.now_ms())
        except NoFreshRate as reason:
            return Why("no_rate", str(reason))
        total = sum(c.amount for c in coins)
        if least is None or total >= least:
            return None
        return Why("threshold", f"collectThreshold: {total} of {least} units wait")

    def _planned(
        self, coin: Coin, queue: ConsolidationQueue, hot: str, coins: list[MovedCoin], scanned: Scanned
    ) -> tuple[CoinPlan | None, Why | None]:
        """The transaction that is due, or what is in its way."""
        known, missing = self._known(coin, coins, scanned)
        if not known:
            return None, Why("failed", "nothing of it is known to the node as it is booked")
        # What is missing must not send each small deposit beside it on a way of its own.
        too_little = self._too_little(coin, queue, [c for c in coins if c.outpoint not in missing])
        if too_little is not None:
            return None, too_little
        rate = self._payer.fee_rate("low")
        try:
            plan = self._payer.consolidate(hot, unspent_of(known), rate)
        except Refused as refused:
            return None, Why("fee_share", f"fee: {refused}")
        value = sum(c.amount for c in known if c.outpoint in set(plan.inputs))
        if fee_share_exceeds(self._fee_percent, plan.fee, value):
            return None, Why("fee_share", f"fee: {plan.fee} units are more than {self._fee_percent} per cent of {value}")
        return plan, None

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

    def _store_move(
        self, coin: Coin, hot: str, coins: Sequence[MovedCoin], plan: CoinPlan, looked: ConsolidationQueue
    ) -> CoinMove | None:
        """One transaction: the coins are this move's, and its bytes are exact; or an operator is waited for."""
        inputs = arranged(c for c in coins if c.outpoint in set(plan.inputs))
        now = self._clock.now_ms()
        total = sum(c.amount for c in inputs)
        id_ = new_id("cmv", now)
        move = CoinMove(id_, self._network.id, "consolidation", coin.asset, None, hot, inputs, total, id_, now, now, state="built")
        try:
            limit = limit_units(coin, "approveThreshold", self._rates(self._network.realm), now)
        except NoFreshRate as reason:
            self._wait(coin, hot, looked, Why("no_rate", str(reason)))
            return None
        news = News(now)
        move = replace(move, newest=built(self._payer, self._rules, self._network, move, plan.unsigned))
        looked, move, shown = self._shown.taken_up(looked, move, ask=limit is not None and total > limit)
        if move.state == "waiting":
            log.warning("%s: %s waits for an operator: %d units", self._network.id, move.owner, total)
        else:
            news.command(coin_move_command(move))
        changes: list[Change] = [Save(move), Save(replace(looked, why=move.reason).next()), *shown]
        self._store.commit([*changes, Open(coin_move_work(move)), *news.emit()])
        return move
