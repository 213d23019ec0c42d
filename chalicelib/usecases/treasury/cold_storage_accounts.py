"""Distribution between service wallets of an account network: collector → hot and cold, hot above its ceiling → cold.

Looked at in every poll, from the ledger's balances alone, so that a changed setting and a sweep that arrived are found alike. One
lot of moves per wallet and coin is under way at a time (`lots`). Of several hot wallets the ceiling is that of their sum: the
fullest gives what is above it, and the emptiest gets what the collector has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chalicelib.domain.addresses.addresses import Wallet, floor_part
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import PERCENTAGE, NoFreshRate, collects, distributes
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import MOST_TOPUPS, Distribution, hot_part
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.domain.withdrawals.payout_line import Taken
from chalicelib.usecases.base.current_wallets import current_wallets
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.lots import Lots
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.usecases.treasury.topups import PayerShort, TopUps
from chalicelib.usecases.withdrawals.open_payouts import MOST_ADDED_UP, needed_by_payouts

log = logging.getLogger(__name__)

Leg = tuple[Callable[[Origin, Coin, str, str, int], Move], Wallet, int]
"""The constructor of the move, to which wallet, how many units."""


@dataclass(frozen=True, slots=True)
class Held:
    """The wallets of a network, and what the ledger has there of one coin."""

    hots: dict[int, Wallet]
    """By slot."""
    collector: Wallet | None
    cold: Wallet | None
    payer: Wallet
    """Of top-ups."""
    there: dict[str, int]
    """Units by the place (`Wallet.place`) of each wallet."""
    records: dict[str, Distribution]
    """By place, as they were read first; absent where nothing was ever decided."""

    @property
    def fullest(self) -> Wallet:
        return max(self.hots.values(), key=lambda wallet: (self.there[wallet.place], -wallet.slot))

    @property
    def emptiest(self) -> Wallet:
        return min(self.hots.values(), key=lambda wallet: (self.there[wallet.place], wallet.slot))

    @property
    def hot_units(self) -> int:
        return sum(self.there[wallet.place] for wallet in self.hots.values())


class Distributor:
    """Of one network of accounts."""

    def __init__(self, context: NetworkContext, fees: MoveFees) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._fees, self._lots = fees, Lots(context)

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures. Asks for nothing where no coin of the network has a setting for it."""
        coins = self._store.catalogue(self._network.realm).coins_of(self._network.slug)
        coins = [c for c in coins if distributes(c)]
        if not coins:
            return
        wallets = {wallet.place: wallet for wallet in current_wallets(self._store, self._network.id)}
        if "hot" not in wallets:
            return
        with Each(f"{self._network.id}: distribution") as each:
            for coin, held in self._held(coins, wallets):
                if not more():
                    return
                each.take(f"hot {coin.slug}", partial(self._look, self._hot, held.fullest, coin, held))
                each.take(f"collector {coin.slug}", partial(self._look, self._collector, held.collector, coin, held))

    def _look(self, look: Callable[[Coin, Held], bool], wallet: Wallet | None, coin: Coin, held: Held) -> None:
        """Note in a wallet's record, for operators, what its balance waits for; nothing once there is nothing to move."""
        if wallet is None:
            return
        try:
            known = held.records.get(wallet.place)
            if not look(coin, held) and known is not None and known.reason is not None:
                self._lots.say(self._lots.record(wallet, coin), None)
        except NoFreshRate as error:
            self._lots.say(self._lots.record(wallet, coin), f"no_rate: {error}")

    def _held(self, coins: Sequence[Coin], wallets: dict[str, Wallet]) -> list[tuple[Coin, Held]]:
        """`wallets` by place."""
        hots = {wallet.slot: wallet for wallet in wallets.values() if wallet.role == "hot"}
        payer = wallets.get("topup") or hots[0]
        asked = [wallet for wallet in wallets.values() if wallet.role != "topup"]
        places = [(coin, wallet) for coin in coins for wallet in asked]
        keys = [{"network": self._network.id, "address": self._lots.place(wallet), "asset": coin.asset} for coin, wallet in places]
        wanted: list[tuple[type[Any], dict[str, str]]] = [(kind, key) for key in keys for kind in (WalletBalance, Distribution)]
        found = self._store.get_many(wanted)
        units: dict[str, dict[str, int]] = {coin.slug: {} for coin in coins}
        records: dict[str, dict[str, Distribution]] = {coin.slug: {} for coin in coins}
        for (coin, wallet), balance, record in zip(places, found[::2], found[1::2], strict=True):
            units[coin.slug][wallet.place] = 0 if balance is None else balance.units
            if record is not None:
                records[coin.slug][wallet.place] = record
        held = partial(Held, hots, wallets.get("collector"), wallets.get("cold"), payer)
        return [(coin, held(units[coin.slug], records[coin.slug])) for coin in coins]

    def _collector(self, coin: Coin, held: Held) -> bool:
        """What the collector has gathered goes on, once it is enough: its part to the hot wallet, the rest to the cold one. False:
        there is nothing to move."""
        units, collector = held.there.get("collector", 0), held.collector
        if collector is None or coin.contract is None or not collects(coin) or units <= 0:
            return False
        least = self._fees.limit(coin, "collectServiceToColdThreshold")
        if units < (least or 1):
            return False
        record = self._lots.ready(collector, coin)
        if record is None:
            return True
        share = coin.settings.get(PERCENTAGE)
        part = hot_part(units, None if share is None else str(share))
        if held.cold is None and part < units:
            log.warning("%s: %s has no cold wallet: all of it goes to the hot one", self._network.id, coin.slug)
            part = units
        legs: list[Leg] = [(Move.distribution, held.emptiest, part)] if part else []
        if held.cold is not None and part < units:
            legs.append((Move.cold, held.cold, units - part))
        self._plan(record, coin, collector, held.payer, legs, worth_it=least is None)
        return True

    def _hot(self, coin: Coin, held: Held) -> bool:
        """What is above the hot wallets' ceiling goes to the cold one. False: there is nothing to move."""
        units, hot = held.hot_units, held.fullest
        ceiling = self._ceiling(coin, held)
        if ceiling is None or units <= ceiling:
            return False
        record = self._lots.ready(hot, coin)
        if record is None:
            return True
        if held.cold is None:
            self._lots.say(record, "no_wallet: no cold wallet is registered")
            return True
        floor = self._fees.limit(coin, "hotFloor") or 0  # withdrawals leave it
        taken = sum(self._fees.spoken_for(wallet, coin) for wallet in held.hots.values())
        needed = self._needed(coin, units - taken - floor)
        if needed is None:
            self._lots.say(record, f"liquidity: more than {MOST_ADDED_UP} withdrawals are open")
            return True
        above = units - taken - max(ceiling, needed + floor)
        if len(held.hots) > 1:
            own = held.there[hot.place] - self._fees.spoken_for(hot, coin) - floor_part(floor, len(held.hots))
            above = min(above, own)
        if coin.contract is None and above > 0:
            above -= self._fees.cost(coin, hot.address, held.cold.address, above)
        least = self._fees.limit(coin, "collectServiceToColdThreshold")
        if above < (least or 1):
            return False
        self._plan(record, coin, hot, held.payer, [(Move.cold, held.cold, above)], worth_it=least is None)
        return True

    def _ceiling(self, coin: Coin, held: Held) -> int | None:
        """The most that stays in the hot wallet: a number, or a share of the sum, where coins are gathered there."""
        ceiling = self._fees.limit(coin, "hotCeiling")
        gathered = collects(coin) and (coin.contract is None or held.collector is None)
        if ceiling is not None or not gathered or PERCENTAGE not in coin.settings:
            return ceiling
        return hot_part(held.hot_units + held.there.get("cold", 0), str(coin.settings[PERCENTAGE]))

    def _needed(self, coin: Coin, enough: int) -> int | None:
        """Units that open withdrawals of the network will take from the hot wallet, fees included, counted up to `enough`; None:
        nobody can tell in one look."""
        quote = self._store.get(FeeQuote, network=self._network.id) if coin.contract is None else None
        fees = {} if quote is None else quote.fees

        def measure(taken: Taken) -> int:
            amount = taken.units if taken.slug == coin.slug else 0
            return amount + (taken.fee(fees.get(taken.slug, 0)) if coin.contract is None else 0)

        return needed_by_payouts(self._store, self._network.id, measure, enough)

    def _plan(
        self, record: Distribution, coin: Coin, source: Wallet, payer: Wallet, legs: Sequence[Leg], *, worth_it: bool
    ) -> None:
        """Plan a lot of moves; a top-up of the collector in its place where that can not pay for them. `worth_it`: only where the
        fee is a small part of it."""
        try:
            topup, sending, fee = 0, 0, 0
            if coin.contract is not None:
                transfers = [(wallet.address, units) for _, wallet, units in legs]
                fees = self._fees.provided(coin, source.address, transfers, payer)
                topup, sending, fee = (fees.topup if source.role != "hot" else 0), fees.topup_fee, fees.fee
            else:
                fee = sum(self._fees.cost(coin, source.address, wallet.address, units) for _, wallet, units in legs)
        except Refused as refused:
            self._lots.put_off(record, f"refused: {refused}")
            return
        if worth_it and self._fees.too_dear(coin, sum(units for _, _, units in legs), fee):
            self._lots.say(record, "fee_share: the fee is too large a part of it")
            return
        if topup:
            if record.topups >= MOST_TOPUPS:
                self._lots.put_off(record, "as many top-ups as there may be were not enough")
                return
            self._topup(record, payer, source, topup, sending)
            return
        moves = [
            replace(make(self._lots.origin(record, n), coin, source.address, wallet.address, units), seat=source.seat)
            for n, (make, wallet, units) in enumerate(legs, 1)
        ]
        news = News(self._clock.now_ms())
        changes = [change for move in moves for change in planned(news, move)]
        self._lots.plan(replace(record, topups=0), moves, changes, news)

    def _topup(self, record: Distribution, payer: Wallet, source: Wallet, units: int, sending: int) -> None:
        news = News(self._clock.now_ms())
        try:
            topup = TopUps(self._fees).plan(self._lots.origin(record, 1), payer, source.address, units, sending)
        except PayerShort:
            self._lots.say(record, f"liquidity: a top-up of {units} units of {self._fees.native.slug}")
            return
        self._lots.plan(replace(record, topups=record.topups + 1), [topup.move], topup.changes(news), news)
