"""Moves out of UTXO hot wallets: the balance above the ceiling goes to the cold wallet, and a retired wallet's whole balance to
its successor.

The ceiling is the coin's `hotCeiling`, else collectPercentageHot per cent of what hot and cold have together by the ledger. What
open withdrawals need stays, and nothing is planned while payments gather: they are to be paid of these very coins.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import PERCENTAGE, NoFreshRate, limit_units
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import new_id
from chalicelib.domain.treasury.collections import fee_share_exceeds, hot_part
from chalicelib.domain.treasury.consolidations import (
    CoinMove,
    CoinMoveKind,
    MovedCoin,
    arranged,
    coin_move_command,
    coin_move_work,
)
from chalicelib.domain.treasury.hot_utxos import MOST_INPUTS, HeldCoins
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.base.current_wallets import wallet_of, wallets_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Open, Save
from chalicelib.usecases.ports.coins import CoinPayer, CoinPlan, Output
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.treasury.consolidation.parts import built, open_moves, unspent_of
from chalicelib.usecases.wallets.ledger_balances import ledger_balance
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.open_payouts import needed_by_payouts

log = logging.getLogger(__name__)

PAYOUT_VSIZE = 350
"""Virtual bytes of a payment with a few inputs."""


class ColdCoins:
    """For one network. Builds what is to be signed; signs nothing."""

    def __init__(self, context: NetworkContext, payer: CoinPayer, rates: RatesOf, fee_percent: int, fee_times: int) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._payer, self._rates, self._fee_percent, self._fee_times = payer, rates, fee_percent, fee_times

    def look(self) -> CoinMove | None:
        """Plan what goes to the cold wallet, where the hot one is above its ceiling; it. Raises Unavailable, Conflict."""
        return until_settled(self._look)

    def drain(self, wallet: Wallet) -> CoinMove | None:
        """Plan the move of what the replaced `wallet` still has to the hot wallet; None where nothing of it can be moved now, or
        something of it is under way. Raises Unavailable, Conflict."""
        return until_settled(lambda: self._drain(wallet))

    def _look(self) -> CoinMove | None:
        network = self._network
        coin = self._store.catalogue(network.realm).native(network.slug)
        if "hotCeiling" not in coin.settings and PERCENTAGE not in coin.settings:
            return None
        hot, cold = wallets_of(self._store, network.id, ("hot", "cold"))
        if hot is None or cold is None:
            return None
        # Read first: a coin of it that is taken, or a bundle that begins to gather, makes this decision a conflict.
        held = coins_of(self._store, network, hot.address)
        if held.gathering is not None or self._under_way(hot.address):
            return None
        free = sum(c.amount for c in held.free)
        excess, awaited = self._excess(coin, hot.address, cold.address, free)
        if not excess:
            return None
        coins = self._known(hot, held)
        plan = self._to_cold(hot.address, cold.address, coins, excess)
        if plan is None or free - sum(c.amount for c in coins if c.outpoint in set(plan.inputs)) < awaited:
            return None  # the withdrawals come first: change can not be spent before it is final
        return self._store_move("cold", coin, hot.address, cold.address, coins, plan, held, cold.address)

    def _drain(self, wallet: Wallet) -> CoinMove | None:
        network = self._network
        coin = self._store.catalogue(network.realm).native(network.slug)
        hot = wallet_of(self._store, network.id, "hot")
        held = coins_of(self._store, network, wallet.address)
        if hot is None or hot.address == wallet.address or held.gathering is not None or self._under_way(wallet.address):
            return None
        if any(c.reserved_by is not None for c in held.coins):
            return None  # what a bundle has is paid first; its change is drained with the rest
        coins = self._known(wallet, held)
        if not coins:
            return None
        try:
            plan = self._payer.consolidate(hot.address, unspent_of(coins), self._payer.fee_rate("low"))
        except Refused as refused:
            log.warning("%s: what the replaced wallet %s has stays: %s", network.id, wallet.address, refused)
            return None
        return self._store_move("drain", coin, wallet.address, hot.address, coins, plan, held, wallet.address)

    def worth(self, wallet: Wallet) -> bool:
        """Whether the coins of the replaced `wallet` are worth their fee now; also where the node does not know them as they are
        booked. Raises Unavailable."""
        hot = wallet_of(self._store, self._network.id, "hot")
        held = coins_of(self._store, self._network, wallet.address)
        coins = self._known(wallet, held)
        if hot is None or not coins:
            return True
        try:
            self._payer.consolidate(hot.address, unspent_of(coins), self._payer.fee_rate("low"))
        except Refused as refused:
            log.warning("%s: what the replaced wallet %s has is not worth its fee: %s", self._network.id, wallet.address, refused)
            return False
        return True

    # How much

    def _excess(self, coin: Coin, hot: str, cold: str, free: int) -> tuple[int, int]:
        """The units above the ceiling that may leave the address `hot`, of its `free` ones: 0 where they are too few to move; and
        the units that withdrawals wait for."""
        booked, stored_away = self._booked(coin, hot), self._booked(coin, cold)
        try:
            ceiling = self._ceiling(coin, booked + stored_away)
            rates, now = self._rates(self._network.realm), self._clock.now_ms()
            least = limit_units(coin, "collectServiceToColdThreshold", rates, now) or 1
            floor = limit_units(coin, "hotFloor", rates, now) or 0  # withdrawals leave it
        except NoFreshRate as reason:
            log.warning("%s: nothing goes to the cold wallet: %s", self._network.id, reason)
            return 0, 0
        if min(booked - ceiling, free - floor) < least:
            return 0, 0
        awaited = self._awaited(free)
        excess = 0 if awaited is None else min(booked - ceiling, free - awaited - floor)
        return (0, 0) if awaited is None or excess < least else (excess, awaited)

    def _under_way(self, wallet: str) -> bool:
        """Whether a move of the wallet's coins is not at its end: the next one is planned with what that one leaves."""
        return any(move.wallet == wallet and move.state != "settled" for move in open_moves(self._store, self._network.id))

    def _booked(self, coin: Coin, address: str) -> int:
        return ledger_balance(self._store, self._rules, self._network, address, coin.asset).units

    def _ceiling(self, coin: Coin, together: int) -> int:
        ceiling = limit_units(coin, "hotCeiling", self._rates(self._network.realm), self._clock.now_ms())
        if ceiling is not None or PERCENTAGE not in coin.settings:
            return together if ceiling is None else ceiling
        return hot_part(together, str(coin.settings[PERCENTAGE]))

    def _awaited(self, enough: int) -> int | None:
        """What withdrawals that are not signed yet pay, with what paying each by itself would cost; counted up to `enough`. None:
        nobody can tell in one look."""
        fee = self._payer.fee_rate("urgent") * PAYOUT_VSIZE // 1000
        return needed_by_payouts(self._store, self._network.id, lambda taken: taken.units + fee, enough)

    def _known(self, wallet: Wallet, held: HeldCoins) -> list[MovedCoin]:
        """The largest free coins that the node knows too, in a block."""
        free = held.free[:MOST_INPUTS]
        known: list[MovedCoin] = []
        for coin, seen in zip(free, self._payer.unspent([c.outpoint for c in free]), strict=True):
            if (
                seen is None
                or seen.amount != coin.amount
                or not same_place(self._rules, self._network, seen.address, wallet.address)
            ):
                log.error(
                    "ALARM %s: the node does not know %s of %s as it is booked", self._network.id, coin.outpoint, wallet.address
                )
            elif seen.height > 0:
                known.append(MovedCoin(coin.outpoint, coin.amount, seen.height, wallet.address))
        return known

    def _to_cold(self, hot: str, cold: str, coins: Sequence[MovedCoin], excess: int) -> CoinPlan | None:
        """The transaction that brings `excess` units to the cold wallet, or as much of it as the coins allow; None while its fee is
        too high a share of them."""
        rate, unspent = self._payer.fee_rate("low"), unspent_of(coins)
        try:
            try:
                plan = self._payer.plan(hot, unspent, [Output(cold, excess)], rate)
                # Its replacements take what they cost of the change: as much has to be there, or none.
                room = plan.fee * self._fee_times
                if plan.change is not None and plan.change.amount < room < excess:
                    plan = self._payer.plan(hot, unspent, [Output(cold, excess - room)], rate)
            except Refused:
                # Too many small coins, or no coin is to stay: what there is, less its fee.
                plan = self._payer.consolidate(cold, unspent, rate)
                if plan.change is None or plan.change.amount > excess:
                    return None
        except Refused as refused:
            log.warning("%s: %d units wait to go to the cold wallet: %s", self._network.id, excess, refused)
            return None
        if fee_share_exceeds(self._fee_percent, plan.fee, excess):
            log.warning("%s: %d units wait to go to the cold wallet: a fee of %d is too much", self._network.id, excess, plan.fee)
            return None
        return plan

    def _store_move(
        self,
        kind: CoinMoveKind,
        coin: Coin,
        wallet: str,
        recipient: str,
        coins: Sequence[MovedCoin],
        plan: CoinPlan,
        held: HeldCoins,
        owner: str,
    ) -> CoinMove:
        """One transaction: the coins are reserved, and the bytes are exact."""
        inputs = arranged(c for c in coins if c.outpoint in set(plan.inputs))
        now = self._clock.now_ms()
        move = CoinMove(
            new_id("cmv", now), self._network.id, kind, coin.asset, wallet, recipient, inputs, sum(c.amount for c in inputs), owner,
            now, now, state="built",
        )  # fmt: skip
        made = built(self._payer, self._rules, self._network, move, plan.unsigned)
        move = replace(move, newest=made, amount=made.amount + (0 if made.change else made.fee))
        news = News(now)
        news.command(coin_move_command(move))
        changes: list[Change] = [Save(move), Save(held.reserve(move.id, move.outpoints).next()), Open(coin_move_work(move))]
        self._store.commit([*changes, *news.emit()])
        return move
