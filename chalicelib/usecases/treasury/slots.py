"""Moves between the hot wallets of an account network, so that a payout larger than each of them is paid all the same.

A payout that finds no hot wallet with enough waits with the reason `liquidity`, and says in the same transaction what the wallet
that comes nearest lacks (`SlotShortage`). The poll finds that, and plans moves to it from the others, where they have enough above
their parts of the floor. A wallet that is lost sight of meanwhile, or a payout that is cancelled, leaves money that the next payout
spends: nothing has to be undone. The fullest wallet is always the one that is filled, so no money goes to and fro.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.slot_shortages import LASTS_MS, SlotShortage
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.lots import Lots
from chalicelib.usecases.treasury.moves.planning import planned

log = logging.getLogger(__name__)


class SlotMoves:
    """Of one network of accounts. Needs no key: it plans."""

    def __init__(self, context: NetworkContext, fees: MoveFees) -> None:
        self._network, self._store, self._clock = context.network, context.store, context.clock
        self._fees, self._lots = fees, Lots(context)

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
                if short is not None and self._clock.now_ms() - short.at <= LASTS_MS and more():
                    each.take(coin.slug, partial(self._fill, coin, short, hots))

    def _fill(self, coin: Coin, short: SlotShortage, hots: Sequence[Wallet]) -> None:
        """Plan what the wallet lacks, where the others have it. Raises Conflict, Unavailable."""
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
        given = {wallet.address: self._given(wallet, target, coin, part) for wallet in hots if wallet is not target}
        if sum(given.values()) < lack:
            log.info("%s: the hot wallets together lack %d units of %s", self._network.id, lack - sum(given.values()), coin.slug)
            return
        for source in sorted((each for each in hots if each is not target), key=lambda each: -given[each.address]):
            units = min(lack, given[source.address])
            if units > 0 and self._plan(source, target, coin, units):
                lack -= units

    def _plan(self, source: Wallet, target: Wallet, coin: Coin, units: int) -> bool:
        record = self._lots.ready(source, coin)
        if record is None:
            return False
        move = Move.distribution(self._lots.origin(record, 1), coin, source.address, target.address, units)
        move, news = replace(move, seat=source.seat), News(self._clock.now_ms())
        self._lots.plan(record, [move], planned(news, move), news)
        log.info("%s: %d units of %s go from %s to %s", self._network.id, units, coin.slug, source.address, target.address)
        return True

    def _given(self, source: Wallet, target: Wallet, coin: Coin, part: int) -> int:
        """Units that a wallet can give, above its part of the floor and the fee of its move. Raises Unavailable."""
        fees = self._fees
        free = fees.on_hand(source.address, coin) - fees.spoken_for(source, coin) - part
        if free <= 0:
            return 0
        try:
            fee = fees.cost(coin, source.address, target.address, 1)
        except Refused as refused:
            log.info("%s: %s gives no %s: %s", self._network.id, source.address, coin.slug, refused)
            return 0
        if coin.contract is None:
            return max(0, free - fee)
        return free if fees.on_hand(source.address, fees.native) - fees.spoken_for(source, fees.native) >= fee else 0

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
