"""The context that the use cases of one network share: the wiring makes it once per run."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.usecases.base.address_forms import form_of, form_or_none, tokens_by_form
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

    def form(self, address: str) -> str:
        """The storage form of an address or contract: for comparing and for keys."""
        return form_of(self.rules, self.network, address)

    def contract_form(self, contract: str | None) -> str | None:
        """The storage form of a coin's contract; None for the native coin, which has none."""
        return form_or_none(self.rules, self.network, contract)

    def tokens(self) -> dict[str, Coin]:
        """The network's tokens by the storage form of their contracts."""
        return tokens_by_form(self.rules, self.network, self.coins())

    def coins(self) -> list[Coin]:
        """The network's coins."""
        return self.store.catalogue(self.network.realm).coins_of(self.network.slug)

    def native(self) -> Coin:
        """The network's native coin."""
        return self.store.catalogue(self.network.realm).native(self.network.slug)
