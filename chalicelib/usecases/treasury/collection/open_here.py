"""Which collections of one deposit address are open."""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.collections import Collecting
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store


def open_at(store: Store, rules: AddressRules, network: Network, address: str) -> Collecting:
    """The open collections of `address` (public spelling). Raises Unavailable."""
    place = form_of(rules, network, address)
    return store.get(Collecting, network=network.id, address=place) or Collecting(network.id, place)
