"""Looks up service wallets by address, retired ones too, and retires one (`rotation` moves the rest of its balance)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.addresses.addresses import SERVICE_TYPE, Address, RetiredWallet, Wallet
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.base.current_wallets import current_wallets
from chalicelib.usecases.ports.changes import Change, Open, Save
from chalicelib.usecases.ports.store import Store


def wallet_at(store: Store, network: NetworkId, address: str) -> Wallet | None:
    """The service wallet with this address (as its record spells it), current or retired; None for any other address.

    An order in flight is signed with the wallet that it names, never with the one that has its role by now. Current ones are
    read first: one that is replaced between the two reads is found by the second. Raises Unavailable.
    """
    for wallet in current_wallets(store, network):
        if wallet.address == address:
            return wallet
    retired = store.get(RetiredWallet, network=network, address=address)
    return None if retired is None else retired.wallet


def retired_wallets(store: Store, network: NetworkId) -> list[RetiredWallet]:
    """Every retired wallet of a network: one for each rotation. Raises Unavailable."""
    found: list[RetiredWallet] = []
    after: str | None = None
    while True:
        page = store.page(RetiredWallet, limit=100, after=after, network=network)
        found += page.items
        if page.next is None:
            return found
        after = page.next


def retiring(present: Wallet, now_ms: int) -> list[Change]:
    """The changes of a transaction that puts another wallet in the place of `present`. A cold wallet's coins are moved by its
    owner alone."""
    old = RetiredWallet.of(present, now_ms)
    if present.role == "cold":
        return [Save(replace(old, drained_at=now_ms))]
    return [Save(old), Open(old.drain)]


def guard_archived(store: Store, address: Address) -> None:
    """Raises BusinessRule for a service wallet that is current, or retired and not drained: it has to stay in the lists."""
    if address.type == "user":
        return
    present = current_wallets(store, address.network)
    if any((wallet.role, wallet.address) == (address.type, address.address) for wallet in present):
        raise BusinessRule("address", f"is the {SERVICE_TYPE[address.type]} wallet: replace it first")
    retired = store.get(RetiredWallet, network=address.network, address=address.address)
    if retired is not None and retired.drained_at is None:
        raise BusinessRule("address", f"is of a {SERVICE_TYPE[address.type]} wallet that was replaced and is not empty yet")
