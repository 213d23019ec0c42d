"""The context that the use cases of one network share: the wiring makes it once per run."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store


@dataclass(frozen=True, slots=True)
class NetworkContext:
    """One network with its ports. `clock` is the time of the network's realm."""

    network: Network
    reader: ChainReader
    store: Store
    rules: AddressRules
    clock: Clock
