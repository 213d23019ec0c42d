"""Service wallets, deposit addresses, and their on-chain balances."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.addresses.addresses import Addresses
    from chalicelib.usecases.addresses.index_ceilings import IndexCeilings
    from chalicelib.usecases.wallets.observed_balances import BalanceObserver
    from chalicelib.usecases.wallets.service_wallets import Wallets
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.custody import CustodyWiring
    from chalicelib.wiring.parts import Parts


class WalletWiring:
    def __init__(self, parts: Parts, chains: ChainWiring, custody: CustodyWiring) -> None:
        self._parts, self._chains, self._custody = parts, chains, custody

    @cached_property
    def wallets(self) -> Wallets:
        from chalicelib.usecases.wallets.service_wallets import Wallets

        return Wallets(self._parts.store, self._custody.wallet_keys, self._parts.rules, self._parts.realm_clock)

    @cached_property
    def addresses(self) -> Addresses:
        from chalicelib.custody.derive import pool_of
        from chalicelib.usecases.addresses.addresses import Addresses

        parts, deriver = self._parts, self._custody.deriver
        return Addresses(parts.store, deriver, parts.rules, parts.realm_clock, pool_of, parts.settings.addresses_per_day)

    @cached_property
    def ceilings(self) -> IndexCeilings:
        from chalicelib.custody.derive import POOLS
        from chalicelib.store.ceilings import SsmCeilings
        from chalicelib.usecases.addresses.index_ceilings import IndexCeilings

        parts = self._parts
        return IndexCeilings(parts.store, SsmCeilings(parts.settings, lambda: parts.client("ssm")), POOLS)

    def observer(self, network: Network) -> BalanceObserver:
        from chalicelib.usecases.wallets.observed_balances import BalanceObserver

        return BalanceObserver(self._chains.context(network), self._chains.coin_payer)
