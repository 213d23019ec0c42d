"""On-chain balances of the service wallets, read once a minute, so that reading a wallet asks no node."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Observed, OnChain, Wallet
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.current_wallets import current_wallets
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused, Unavailable
from chalicelib.usecases.wallets.utxos import coins_of, pays_from_coins

log = logging.getLogger(__name__)

EVERY_SECONDS = 60
MOST_COINS = 500
"""Of more coins (outputs) of a hot wallet the node is not asked: its balance is then not told."""


class BalanceObserver:
    """Reads the balances of one network. `coin_payer` is asked on UTXO networks, whose nodes know outputs and no addresses."""

    def __init__(self, context: NetworkContext, coin_payer: Callable[[Network], CoinPayer]) -> None:
        self._context, self._network, self._reader, self._store = context, context.network, context.reader, context.store
        self._clock, self._coin_payer = context.clock, coin_payer

    def look(self) -> None:
        """Read each wallet's on-chain balance of each active coin, and store them, where the last reading is a minute old.

        One call for each wallet and coin. A node that fails half-way leaves the balances of before. Raises Unavailable,
        Conflict.
        """
        before = self._store.get(Observed, network=self._network.id)
        now = self._clock.now_ms()
        if before is not None and now - before.at < EVERY_SECONDS * 1000:
            return
        wallets = current_wallets(self._store, self._network.id)
        coins = [coin for coin in self._context.coins() if coin.status == "ACTIVE"]
        found: list[OnChain] = []
        for wallet in wallets:
            for coin in coins:
                units = self._units(wallet, coin)
                if units is not None:
                    found.append(OnChain(wallet.address, coin.asset, units))
        version = version_after(before)
        self._store.commit([Save(Observed(self._network.id, now, tuple(found), version)), *self._slots(wallets)])

    def _slots(self, wallets: Sequence[Wallet]) -> list[Change]:
        """Say again how many slots there are, where an older version has stored the network without that."""
        there = 1 + max((wallet.slot for wallet in wallets), default=0)
        known: Network | None = self._store.get(Network, id=self._network.id) if there > self._network.payout_slots else None
        return [] if known is None else [Save(replace(next_version(known), payout_slots=there))]

    def _units(self, wallet: Wallet, coin: Coin) -> int | None:
        if not pays_from_coins(self._network):
            try:
                return self._reader.balance(wallet.address, coin.contract)
            except (Refused, ValueError, Unavailable) as error:
                if coin.contract is None:
                    raise
                # A contract that answers nonsense, or nothing, must not hide what the others say.
                log.warning("%s: the balance of %s can not be read: %s", self._network.id, coin.slug, error)
                return None
        if wallet.role != "hot":
            return None
        held = coins_of(self._store, self._network, wallet.address).coins
        if len(held) > MOST_COINS:
            return None
        if not held:
            return 0
        seen = self._coin_payer(self._network).unspent([coin.outpoint for coin in held])
        return sum(coin.amount for coin in seen if coin is not None)
