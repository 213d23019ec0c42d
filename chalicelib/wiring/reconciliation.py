"""Reconciliation: the comparison of the books with the chain, its reports, adjustments of cold wallets."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.reconciliation.cold_adjusting import ColdAdjusting
    from chalicelib.usecases.reconciliation.comparisons import Looks
    from chalicelib.usecases.reconciliation.reports import Reconciliations
    from chalicelib.usecases.reconciliation.run import ReconciliationRun
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.parts import Parts


class ReconciliationWiring:
    def __init__(self, parts: Parts, chains: ChainWiring) -> None:
        self._parts, self._chains = parts, chains

    @cached_property
    def reconciliations(self) -> Reconciliations:
        from chalicelib.usecases.reconciliation.reports import Reconciliations

        return Reconciliations(self._parts.store, self._parts.clock)

    def comparison(self, network: Network) -> Looks:
        """The comparison of a network's places with the chain. Raises LookupError where this deployment has no node of it."""
        from chalicelib.usecases.reconciliation.accounts import LooksAtABlock, LooksAtNow
        from chalicelib.usecases.reconciliation.utxo import LooksAtCoins

        context = self._chains.context(network)
        if network.family == "utxo" and not network.simulated:
            return LooksAtCoins(context, self._chains.coin_witness(network))
        looks = LooksAtNow if network.simulated or network.family == "tron" else LooksAtABlock
        return looks(context)

    def reconciliation_run(self, network: Network) -> ReconciliationRun:
        """Raises LookupError for a network that this deployment has no node of."""
        from chalicelib.usecases.reconciliation.run import ReconciliationRun

        return ReconciliationRun(self._chains.context(network), self.comparison(network), self._parts.clock)

    def cold_adjusting(self, network: Network) -> ColdAdjusting:
        """Raises LookupError as above."""
        from chalicelib.usecases.reconciliation.cold_adjusting import ColdAdjusting

        return ColdAdjusting(self._chains.context(network), partial(self.comparison, network))
