"""Recipients of UTXO transactions, as records spell them."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.coins import Output


def spelled(rules: AddressRules, network: Network, outputs: Sequence[Output]) -> list[tuple[str, int]]:
    """Recipients in their public spelling, with amounts, as `Bundle` compares them."""
    return [(rules.normalize(network.id, output.address), output.amount) for output in outputs]
