"""Distribution between service wallets of an account network: collector → hot and cold, hot above its ceiling → cold.

Looked at in every poll, from the ledger's balances alone, so that a changed setting and a sweep that arrived are found alike. One
lot of moves per wallet and coin is under way at a time: the record `Distribution` names them, and is saved with their plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chalicelib.domain.addresses.addresses import Role, Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import PERCENTAGE, NoFreshRate, collects, distributes
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import FIRST_WAIT_MS, LONGEST_MS, MOST_TOPUPS, Distribution, hot_part
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.payout_line import Taken
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.current_wallets import wallets_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.usecases.treasury.topups import HotWalletShort, TopUps
from chalicelib.usecases.withdrawals.open_payouts import MOST_ADDED_UP, needed_by_payouts

log = logging.getLogger(__name__)

_ROLES: tuple[Role, ...] = ("hot", "collector", "cold", "topup")
Leg = tuple[Callable[[Origin, Coin, str, str, int], Move], Wallet, int]
"""The constructor of the move, to which wallet, how many units."""


@dataclass(frozen=True, slots=True)
class Held:
    """The wallets of a network, and what the ledger has there of one coin."""

    hot: Wallet
    collector: Wallet | None
    cold: Wallet | None
    payer: Wallet
    """Of top-ups."""
    units: dict[Role, int]
    records: dict[Role, Distribution]
    """As they were read first; absent where nothing was ever decided."""


class Distributor:
    """Of one network of accounts."""

    def __init__(self, context: NetworkContext, fees: MoveFees) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._fees = fees

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures. Asks for nothing where no coin of the network has a setting for it."""
        coins = self._store.catalogue(self._network.realm).coins_of(self._network.slug)
        coins = [c for c in coins if distributes(c)]
        if not coins:
            return
        wallets = dict(zip(_ROLES, wallets_of(self._store, self._network.id, _ROLES), strict=True))
        hot = wallets["hot"]
        if hot is None:
            return
        with Each(f"{self._network.id}: distribution") as each:
            for coin, held in self._held(coins, hot, wallets):
                if not more():
                    return
                each.take(f"hot {coin.slug}", partial(self._look, self._hot, "hot", coin, held))
                each.take(f"collector {coin.slug}", partial(self._look, self._collector, "collector", coin, held))

    def _look(self, look: Callable[[Coin, Held], bool], role: Role, coin: Coin, held: Held) -> None:
        """Note in a wallet's record, for operators, what its balance waits for; nothing once there is nothing to move."""
        wallet = held.hot if role == "hot" else held.collector
        if wallet is None:
            return
        try:
            if not look(coin, held) and role in held.records and held.records[role].reason is not None:
                self._say(self._record(wallet, coin), None)
        except NoFreshRate as error:
            self._say(self._record(wallet, coin), f"no_rate: {error}")

    def _say(self, record: Distribution, reason: str | None) -> None:
        if record.reason == reason:
            return
        log.info("%s: what %s has of %s waits: %s", record.network, record.address, record.asset, reason)
        self._store.commit([Save(replace(next_version(record), reason=reason))])

    def _held(self, coins: Sequence[Coin], hot: Wallet, wallets: dict[Role, Wallet | None]) -> list[tuple[Coin, Held]]:
        payer = wallets["topup"] or hot
        asked = {role: wallet for role, wallet in wallets.items() if role != "topup"}
        places = [(coin, role, wallet) for coin in coins for role, wallet in asked.items() if wallet is not None]
        keys = [{"network": self._network.id, "address": self._place(wallet), "asset": coin.asset} for coin, _, wallet in places]
        wanted: list[tuple[type[Any], dict[str, str]]] = [(kind, key) for key in keys for kind in (WalletBalance, Distribution)]
        found = self._store.get_many(wanted)
        units: dict[str, dict[Role, int]] = {coin.slug: dict.fromkeys(_ROLES, 0) for coin in coins}
        records: dict[str, dict[Role, Distribution]] = {coin.slug: {} for coin in coins}
        for (coin, role, _), balance, record in zip(places, found[::2], found[1::2], strict=True):
            units[coin.slug][role] = 0 if balance is None else balance.units
            if record is not None:
                records[coin.slug][role] = record
        held = partial(Held, hot, wallets["collector"], wallets["cold"], payer)
        return [(coin, held(units[coin.slug], records[coin.slug])) for coin in coins]

    def _collector(self, coin: Coin, held: Held) -> bool:
        """What the collector has gathered goes on, once it is enough: its part to the hot wallet, the rest to the cold one. False:
        there is nothing to move."""
        units, collector = held.units["collector"], held.collector
        if collector is None or coin.contract is None or not collects(coin) or units <= 0:
            return False
        least = self._fees.limit(coin, "collectServiceToColdThreshold")
        if units < (least or 1):
            return False
        record = self._ready(collector, coin)
        if record is None:
            return True
        share = coin.settings.get(PERCENTAGE)
        part = hot_part(units, None if share is None else str(share))
        if held.cold is None and part < units:
            log.warning("%s: %s has no cold wallet: all of it goes to the hot one", self._network.id, coin.slug)
            part = units
        legs: list[Leg] = [(Move.distribution, held.hot, part)] if part else []
        if held.cold is not None and part < units:
            legs.append((Move.cold, held.cold, units - part))
        self._plan(record, coin, collector, held.payer, legs, worth_it=least is None)
        return True

    def _hot(self, coin: Coin, held: Held) -> bool:
        """What is above the hot wallet's ceiling goes to the cold one. False: there is nothing to move."""
        units = held.units["hot"]
        ceiling = self._ceiling(coin, held)
        if ceiling is None or units <= ceiling:
            return False
        record = self._ready(held.hot, coin)
        if record is None:
            return True
        if held.cold is None:
            self._say(record, "no_wallet: no cold wallet is registered")
            return True
        floor = self._fees.limit(coin, "hotFloor") or 0  # withdrawals leave it
        taken = self._fees.spoken_for(held.hot, coin)
        needed = self._needed(coin, units - taken - floor)
        if needed is None:
            self._say(record, f"liquidity: more than {MOST_ADDED_UP} withdrawals are open")
            return True
        above = units - taken - max(ceiling, needed + floor)
        if coin.contract is None and above > 0:
            above -= self._fees.cost(coin, held.hot.address, held.cold.address, above)
        least = self._fees.limit(coin, "collectServiceToColdThreshold")
        if above < (least or 1):
            return False
        self._plan(record, coin, held.hot, held.payer, [(Move.cold, held.cold, above)], worth_it=least is None)
        return True

    def _ceiling(self, coin: Coin, held: Held) -> int | None:
        """The most that stays in the hot wallet: a number, or a share of the sum, where coins are gathered there."""
        ceiling = self._fees.limit(coin, "hotCeiling")
        gathered = collects(coin) and (coin.contract is None or held.collector is None)
        if ceiling is not None or not gathered or PERCENTAGE not in coin.settings:
            return ceiling
        return hot_part(held.units["hot"] + held.units["cold"], str(coin.settings[PERCENTAGE]))

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
            self._put_off(record, f"refused: {refused}")
            return
        if worth_it and self._fees.too_dear(coin, sum(units for _, _, units in legs), fee):
            self._say(record, "fee_share: the fee is too large a part of it")
            return
        if topup:
            if record.topups >= MOST_TOPUPS:
                self._put_off(record, "as many top-ups as there may be were not enough")
                return
            self._topup(record, payer, source, topup, sending)
            return
        moves = [
            make(self._origin(record, n), coin, source.address, wallet.address, units)
            for n, (make, wallet, units) in enumerate(legs, 1)
        ]
        news = News(self._clock.now_ms())
        changes = [change for move in moves for change in planned(news, move)]
        self._commit(replace(record, topups=0), moves, changes, news)

    def _topup(self, record: Distribution, payer: Wallet, source: Wallet, units: int, sending: int) -> None:
        news = News(self._clock.now_ms())
        try:
            topup = TopUps(self._fees).plan(self._origin(record, 1), payer, source.address, units, sending)
        except HotWalletShort:
            self._say(record, f"liquidity: a top-up of {units} units of {self._fees.native.slug}")
            return
        self._commit(replace(record, topups=record.topups + 1), [topup.move], topup.changes(news), news)

    def _origin(self, record: Distribution, n: int) -> Origin:
        return Origin(self._network.id, f"{self._network.id}|{record.id}", record.number + n, self._clock.now_ms())

    def _commit(self, record: Distribution, moves: Sequence[Move], changes: Sequence[Change], news: News) -> None:
        """`record` names `moves`, which `changes` plan."""
        ids = tuple(move.id for move in moves)
        after = replace(next_version(record), number=record.number + len(moves), moves=ids, reason=None)
        self._store.commit([Save(after), *changes, *news.emit()])

    def _ready(self, wallet: Wallet, coin: Coin) -> Distribution | None:
        """The wallet's record, where nothing is under way and nothing has to wait. What has come to rest is taken note of first."""
        return until_settled(lambda: self._at_rest(wallet, coin))

    def _at_rest(self, wallet: Wallet, coin: Coin) -> Distribution | None:
        record = self._record(wallet, coin)
        if record.moves:
            wanted = [(Move, {"network": self._network.id, "id": id}) for id in record.moves]
            moves: list[Move | None] = self._store.get_many(wanted)
            if any(move is not None and not move.at_rest for move in moves):
                return None
            bad = [move for move in moves if move is not None and move.state != "settled"]
            if bad:
                self._put_off(record, f"move {bad[0].id}: {bad[0].state}: {bad[0].reason}")
                return None
            record = replace(next_version(record), moves=(), tries=0, look_at=0)
            self._store.commit([Save(record)])
        return record if record.look_at <= self._clock.now_ms() else None

    def _put_off(self, record: Distribution, reason: str) -> None:
        """It came to nothing: an alarm, and another try after a while."""
        pause = min(FIRST_WAIT_MS * 2 ** min(record.tries, 20), 24 * LONGEST_MS)
        look_at = self._clock.now_ms() + pause
        after = replace(record, moves=(), topups=0, tries=record.tries + 1, look_at=look_at, reason=reason[:300])
        self._store.commit([Save(replace(after, version=version_after(record)))])
        log.error("ALARM %s: what %s has of %s can not go on: %s", record.network, record.address, record.asset, reason)

    def _record(self, wallet: Wallet, coin: Coin) -> Distribution:
        place = self._place(wallet)
        found = self._store.get(Distribution, network=self._network.id, address=place, asset=coin.asset)
        return found or Distribution(self._network.id, place, coin.asset)

    def _place(self, wallet: Wallet) -> str:
        return form_of(self._rules, self._network, wallet.address)
