"""The ledger's balances at our own addresses."""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store


def ledger_balance(store: Store, rules: AddressRules, network: Network, address: str, asset: AssetId) -> WalletBalance:
    """What the ledger has of a coin at one of our addresses (public spelling). Raises Unavailable."""
    place = form_of(rules, network, address)
    found = store.get(WalletBalance, network=network.id, address=place, asset=asset)
    return found or WalletBalance(network.id, place, asset)
