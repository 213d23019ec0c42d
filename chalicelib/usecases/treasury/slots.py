"""Moves between the hot wallets of an account network, so that a payout larger than each of them is paid all the same.

A payout that finds no hot wallet with enough waits with the reason `liquidity`, and says in the same transaction what the wallet
that comes nearest lacks (`SlotShortage`). The poll finds that, and plans moves to it from the others while the payout waits, where
they have enough above their parts of the floor. A wallet that is lost sight of meanwhile, or a payout that is cancelled, leaves
money that the next payout spends: nothing has to be undone. The fullest wallet is always the one that is filled, so no money goes
to and fro.

The operator pays the fees, and a merchant who cancels a withdrawal does not. So what moves is rounded up until it is worth its fee,
as what is collected is (`domain/treasury/slot_moves`), and a day's fees are within the budget that UTXO networks have for their
consolidations. The wallets that gave keep half, unless more is needed; sweeps, which go to the emptiest, fill them again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate
from chalicelib.domain.times import iso
from chalicelib.domain.treasury.collections import worth
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.slot_moves import Given, rounded_up
from chalicelib.domain.withdrawals.slot_shortages import SlotShortage
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.treasury.collection.fees import UNPRICED_FEE, MoveFees
from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget, Count
from chalicelib.usecases.treasury.lots import Lots
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.usecases.withdrawals.shortages import counts

log = logging.getLogger(__name__)

UNPRICED_A_DAY = 50
"""So many moves a day are within the budget where nobody ever said what the native coin is worth."""


class SlotMoves:
    """Of one network of accounts. Needs no key: it plans."""

    def __init__(self, context: NetworkContext, fees: MoveFees, budget: ConsolidationBudget) -> None:
        self._network, self._store, self._clock = context.network, context.store, context.clock
        self._fees, self._budget, self._lots = fees, budget, Lots(context)

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures."""
        hots = hot_wallets(self._store, self._network.id)
        if len(hots) < 2:
            return
        coins = self._store.catalogue(self._network.realm).coins_of(self._network.slug)
        keys = [(SlotShortage, {"network": self._network.id, "asset": coin.asset}) for coin in coins]
        found: list[SlotShortage | None] = self._store.get_many(keys)
        with Each(f"{self._network.id}: hot wallets") as each:
            for coin, short in zip(coins, found, strict=True):
                if short is not None and more():
                    each.take(coin.slug, partial(self._fill, coin, short, hots))

    def _fill(self, coin: Coin, short: SlotShortage, hots: Sequence[Wallet]) -> None:
        """Plan what the wallet lacks, where the others have it. Raises Conflict, Unavailable."""
        if not counts(self._store, short, self._clock.now_ms()):
            return
        target = next((wallet for wallet in hots if wallet.address == short.wallet), None)
        try:
            part = self._fees.floor(coin)
        except NoFreshRate as error:
            log.info("%s: nothing is moved between hot wallets: %s", self._network.id, error)
            return
        if target is None:
            return
        there = self._fees.booked(target.address, coin).units - self._fees.spoken_for(target, coin)
        lack = short.units + part - there - self._coming(target, coin, hots)
        if lack <= 0:
            return
        others = (self._given(wallet, target, coin, part) for wallet in hots if wallet is not target)
        given = [each for each in others if each is not None]
        less = lack - sum(each.units for each in given)
        if less > 0:
            log.info("%s: the hot wallets together lack %d units of %s", self._network.id, less, coin.slug)
            return
        parts = rounded_up(given, lack, short.units, partial(self._dear, coin))
        if not parts:
            log.info("%s: %s gets no %s: the fee is too large a part of it", self._network.id, target.address, coin.slug)
            return
        if self._covered(parts, target, coin):
            for each in parts:
                self._plan(each, target, coin)

    def _plan(self, given: Given, target: Wallet, coin: Coin) -> None:
        source, news = given.wallet, News(self._clock.now_ms())
        move = Move.distribution(self._lots.origin(given.record, 1), coin, source.address, target.address, given.units)
        move, count = replace(move, seat=source.seat), self._count(given.fee)
        self._lots.plan(given.record, [move], [*planned(news, move), *count.changes], news)
        log.info("%s: %d units of %s go from %s to %s", self._network.id, given.units, coin.slug, source.address, target.address)

    def _given(self, source: Wallet, target: Wallet, coin: Coin, part: int) -> Given | None:
        """What a wallet can give now, above its part of the floor and the fee of its move. Raises Conflict, Unavailable."""
        fees = self._fees
        free = fees.on_hand(source.address, coin) - fees.spoken_for(source, coin) - part
        if free <= 0:
            return None
        try:
            fee = fees.cost(coin, source.address, target.address, 1)
        except Refused as refused:
            log.info("%s: %s gives no %s: %s", self._network.id, source.address, coin.slug, refused)
            return None
        if coin.contract is None:
            free -= fee
        elif fees.on_hand(source.address, fees.native) - fees.spoken_for(source, fees.native) < fee:
            return None
        record = self._lots.ready(source, coin) if free > 0 else None
        return None if record is None else Given(source, record, free, fee)

    def _dear(self, coin: Coin, units: int, fee: int) -> bool:
        """Whether moves of so much cost too large a part of it. A coin whose worth nobody tells now is moved all the same, where
        the fee is one of a usual day: its payout would wait for ever, and the budget bounds how often."""
        try:
            return self._fees.too_dear(coin, units, fee)
        except NoFreshRate:
            most = UNPRICED_FEE["tron" if self._network.family == "tron" else "evm"]
            return worth(fee, self._fees.native.decimals, Decimal(1)) > most

    def _covered(self, parts: Sequence[Given], target: Wallet, coin: Coin) -> bool:
        """Whether the day's budget is enough for the moves. Operators are told once a day that it is not, and read it at the wallet
        that would give most."""
        if not self._count(sum(each.fee for each in parts)).over:
            return True
        day, record = iso(self._clock.now_ms())[:10], parts[0].record
        reason = f"fee_share: the {self._budget.usd} USD of CONSOLIDATION_BUDGET_USD for {day} are used up"
        if record.reason != reason:
            log.error("ALARM %s: %s gets no %s from other hot wallets: %s", self._network.id, target.address, coin.slug, reason)
            self._lots.say(record, reason)
        return False

    def _count(self, fee: int) -> Count:
        return self._budget.count(self._network, fee, self._clock.now_ms(), unpriced=UNPRICED_A_DAY)

    def _coming(self, target: Wallet, coin: Coin, hots: Sequence[Wallet]) -> int:
        """Units on their way from another hot wallet."""
        sources, units = {wallet.address for wallet in hots}, 0
        for works in pages_of(self._store, "move", self._network.id):
            keys = [(Move, {"network": self._network.id, "id": work.id}) for work in works]
            moves: list[Move | None] = self._store.get_many(keys)
            units += sum(
                move.amount
                for move in moves
                if move is not None and not move.at_rest and (move.asset, move.recipient) == (coin.asset, target.address)
                and move.source in sources
            )  # fmt: skip
        return units
