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
        """That of a network of accounts. None for one of the test realm, which moves no money. Raises LookupError for any other.

        By the network's id alone, and its chain id by the published list: what else its record says may have been altered.
        """
        if network.realm == "test":
            return None
        if network.slug == "tron":
            from chalicelib.chains.tron.second_reader import TronSecondReader

            return TronSecondReader()
        from chalicelib.domain.catalogue.catalogue import published_chain_id

        chain_id = published_chain_id(network.slug)
        if chain_id is None:
            raise LookupError(f"{network.id} has no second reader of accounts")
        from chalicelib.chains.evm.second_reader import EvmSecondReader
        from chalicelib.chains.evm.transactions import terms

        return EvmSecondReader(chain_id, terms)

    def coins(self, network: Network) -> SecondReader[CoinOrder]:
        """That of bitcoin or litecoin: simulated ones pay from accounts."""
        from chalicelib.chains.utxo.second_reader import UtxoSecondReader

        return UtxoSecondReader(network.slug, self._settings.chain(network.id))
