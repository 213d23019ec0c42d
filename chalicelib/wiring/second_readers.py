"""Which second reader each network has (money rule 15). Only the functions that sign ask; their libraries are imported at first
use, since they are heavy and nothing else needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.settings import Settings
    from chalicelib.usecases.ports.second_reader import CoinOrder, Order, SecondReader


class SecondReaders:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def accounts(self, network: Network) -> SecondReader[Order] | None:
        """That of a network of accounts. None for a simulated one, which moves no money. Raises LookupError for any other."""
        if network.simulated:
            return None
        if network.family == "tron":
            from chalicelib.chains.tron.second_reader import TronSecondReader

            return TronSecondReader()
        if network.family != "evm" or network.chain_id is None:
            raise LookupError(f"{network.id} has no second reader of accounts")
        from chalicelib.chains.evm.second_reader import EvmSecondReader
        from chalicelib.chains.evm.transactions import terms

        return EvmSecondReader(network.chain_id, terms)

    def coins(self, network: Network) -> SecondReader[CoinOrder]:
        """That of bitcoin or litecoin: simulated ones pay from accounts."""
        from chalicelib.chains.utxo.second_reader import UtxoSecondReader

        return UtxoSecondReader(network.slug, self._settings.chain(network.id))
