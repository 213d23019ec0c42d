"""Recovery: finding addresses again, and the first steps after tables were restored to a point in time."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.ids import TenantId
    from chalicelib.usecases.recovery.addresses import AddressRecovery, Pools
    from chalicelib.usecases.recovery.point_in_time import PointInTimeRecovery
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.custody import CustodyWiring
    from chalicelib.wiring.deposits import DepositWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.wallets import WalletWiring


class RecoveryWiring:
    def __init__(
        self, parts: Parts, chains: ChainWiring, custody: CustodyWiring, wallets: WalletWiring, deposits: DepositWiring
    ) -> None:
        self._parts, self._chains, self._custody, self._wallets, self._deposits = parts, chains, custody, wallets, deposits

    def restorer(self, network: Network, owner: TenantId) -> AddressRecovery:
        """The search for a network's addresses after a loss, for `owner`."""
        from chalicelib.usecases.recovery.addresses import AddressRecovery

        return AddressRecovery(self._chains.context(network), self._custody.deriver, owner)

    @cached_property
    def pools(self) -> Pools:
        from chalicelib.custody.derive import pool_of
        from chalicelib.usecases.recovery.addresses import Pools

        return Pools(self._parts.store, self._wallets.ceilings, pool_of)

    def after_restore(self, network: Network) -> PointInTimeRecovery:
        """For account networks."""
        from chalicelib.usecases.recovery.point_in_time import PointInTimeRecovery

        payer, deposits = self._chains.payer(network), self._deposits.deposits(network.realm)
        return PointInTimeRecovery(self._chains.context(network), payer, deposits)
