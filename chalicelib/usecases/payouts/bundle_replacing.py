"""Bundles as the engine of UTXO transactions replaces them: the same payments, at least the same coins, a fee that is worth it."""

from __future__ import annotations

import logging

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.hot_utxos import MOST_INPUTS, HeldCoins
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.usecases.payouts.bundle_building import BundleBuilding
from chalicelib.usecases.payouts.fees import WORTH_MORE
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.utxo.kinds import Means
from chalicelib.usecases.wallets.utxos import coins_of

log = logging.getLogger(__name__)


class ReplacedBundle:
    """One bundle of `wallet` that may have to be replaced."""

    def __init__(self, store: Store, building: BundleBuilding, network: Network, wallet: Wallet) -> None:
        self._store, self._building, self.network, self._wallet = store, building, network, wallet
        self._held: HeldCoins | None = None

    def means(self, bundle: Bundle) -> Means:
        newest = bundle.latest
        # As they were read first: a coin that is taken meanwhile makes the reservation a conflict. Those of a replacement that was
        # taken back are free again.
        self._held = held = coins_of(self._store, self.network, self._wallet.address).only(bundle.id, bundle.coins)
        reserved = {coin.outpoint: coin.amount for coin in held.reserved(bundle.id)}
        signed_for = all(reserved.get(coin.outpoint) == coin.amount for coin in newest.inputs)
        known = {coin.outpoint: coin for coin in held.coins} | bundle.coins
        more = self._building.spendable(self.network, self._wallet, held, MOST_INPUTS - len(newest.inputs))
        unlike = () if signed_for else ("the reservation of what was signed",)
        return Means(self._wallet.address, bundle.priority, list(known.values()), more, unlike)

    def forged(self, bundle: Bundle, names: str) -> None:
        log.error("ALARM %s: bundle %s differs from what was signed in %s", self.network.id, bundle.id, names)

    def affordable(self, bundle: Bundle, fee: int) -> bool:
        """Whether it is worth its share to one of its payments: the others do not hold that one up."""
        if len(self._building.denied(self.network, bundle, bundle.payouts, fee)) < len(bundle.payouts):
            return True
        log.warning("ALARM %s: %s is stuck and is not replaced for %d: %s", self.network.id, bundle.id, fee, WORTH_MORE)
        return False

    def taken(self, bundle: Bundle) -> list[Change]:
        held = self._held or coins_of(self._store, self.network, self._wallet.address)
        return [Save(held.reserve(bundle.id, [coin.outpoint for coin in bundle.latest.inputs]).next())]
