"""Storage forms of addresses and token contracts: the one spelling in which they are compared, and which is part of keys.

`NetworkContext` gives the same where one network is at work.
"""

from __future__ import annotations

from collections.abc import Iterable

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.usecases.ports.addresses import AddressRules


def form_of(rules: AddressRules, network: Network, address: str) -> str:
    """The storage form of an address, or of a contract, on `network`. Not checked: `address` is in the public spelling."""
    return rules.storage_form(network.slug, address)


def form_or_none(rules: AddressRules, network: Network, address: str | None) -> str | None:
    """The same; None for what has no address, as the contract of a native coin."""
    return None if address is None else form_of(rules, network, address)


def same_place(rules: AddressRules, network: Network, one: str, other: str) -> bool:
    """Whether two spellings are one address."""
    return form_of(rules, network, one) == form_of(rules, network, other)


def account_at(rules: AddressRules, network: Network, address: str) -> str:
    """The account of one of our addresses in the book *where*."""
    return ledger.wallet(network.id, form_of(rules, network, address))


def tokens_by_form(rules: AddressRules, network: Network, coins: Iterable[Coin]) -> dict[str, Coin]:
    """The tokens among a network's coins, by the storage form of their contracts."""
    return {form_of(rules, network, coin.contract): coin for coin in coins if coin.contract is not None}
