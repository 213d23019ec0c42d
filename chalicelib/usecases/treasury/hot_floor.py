"""An alarm where a hot wallet falls below the `hotFloor` of a coin: once for each fall, on account and UTXO networks alike.

Part of the poll. By the ledger, as the payments are that wait below it; of several hot wallets by their sum, since each keeps its
part. That it was said is in the `Distribution` of the one in slot 0.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, limit_units
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import Distribution
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.treasury.consolidation.parts import open_moves
from chalicelib.usecases.wallets.utxos import pays_from_coins

log = logging.getLogger(__name__)


class HotFloor:
    """The floors of one network's hot wallet."""

    def __init__(self, context: NetworkContext, rates_of: RatesOf) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._rates_of = rates_of

    def look(self) -> None:
        """Raises Unavailable, Conflict. Asks for nothing where no coin of the network ever had a floor."""
        network = self._network
        coins = [c for c in self._store.catalogue(network.realm).coins_of(network.slug) if "hotFloor" in c.settings]
        hots = hot_wallets(self._store, network.id) if coins else []
        if not hots:
            return
        places = [form_of(self._rules, network, wallet.address) for wallet in hots]
        wanted: list[tuple[type[Any], dict[str, str]]] = []
        for coin in coins:
            keys = [{"network": network.id, "address": place, "asset": coin.asset} for place in places]
            wanted += [(Distribution, keys[0]), *((WalletBalance, key) for key in keys)]
        found = self._store.get_many(wanted)
        for number, coin in enumerate(coins):
            record, *balances = found[number * (len(hots) + 1) : (number + 1) * (len(hots) + 1)]
            units = sum(balance.units for balance in balances if balance is not None)
            self._look_at(hots[0], coin, units, record or Distribution(network.id, places[0], coin.asset))

    def _look_at(self, hot: Wallet, coin: Coin, units: int, record: Distribution) -> None:
        try:
            floor = limit_units(coin, "hotFloor", self._rates_of(self._network.realm), self._clock.now_ms())
        except NoFreshRate:
            return
        low = floor is not None and units < floor  # without a floor any more it is not low: the next one is compared anew
        if low == record.low or (low and self._on_the_way(hot)):
            return
        if low:
            # Said before it is noted: twice is better than never.
            log.error(
                "ALARM %s: the hot wallet has %d units of %s, less than its floor of %s", coin.network, units, coin.slug, floor
            )
        self._store.commit([Save(replace(next_version(record), low=low))])

    def _on_the_way(self, hot: Wallet) -> bool:
        """Whether coins of it are spent by a move of coins, whose change comes back: until then the ledger has less of them."""
        if not pays_from_coins(self._network):
            return False
        return any(move.wallet == hot.address and move.state != "settled" for move in open_moves(self._store, self._network.id))
