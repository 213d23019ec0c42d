"""Comparison of addresses in transactions: two spellings of one address are equal."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.coins import Output


def same_place(rules: AddressRules, network: Network, one: str, other: str) -> bool:
    """Whether two spellings are one address."""
    return rules.storage_form(network.slug, one) == rules.storage_form(network.slug, other)


def spelled(rules: AddressRules, network: Network, outputs: Sequence[Output]) -> list[tuple[str, int]]:
    """Recipients in their public spelling, with amounts, as `Bundle` compares them."""
    return [(rules.normalize(network.id, output.address), output.amount) for output in outputs]
