"""Service wallets by their address, those that were replaced too, and how one is replaced (`rotation` moves what is left there)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.addresses.addresses import SERVICE_ROLES, SERVICE_TYPE, Address, RetiredWallet, Wallet
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.changes import Change, Open, Save
from chalicelib.usecases.ports.store import Store


def wallet_at(store: Store, network: NetworkId, address: str) -> Wallet | None:
    """The service wallet with this address (as its record spells it), current or retired; None for any other address.

    Whoever finishes what was begun signs with the wallet that the order names, never with the one that has its role by now. Current
    ones are read first: one that is replaced between the two reads is found by the second. Raises Unavailable.
    """
    current: list[Wallet | None] = store.get_many([(Wallet, {"network": network, "role": role}) for role in SERVICE_ROLES])
    for wallet in current:
        if wallet is not None and wallet.address == address:
            return wallet
    retired = store.get(RetiredWallet, network=network, address=address)
    return None if retired is None else retired.wallet


def retired_wallets(store: Store, network: NetworkId) -> list[RetiredWallet]:
    """Every wallet of a network that was replaced: one for each rotation. Raises Unavailable."""
    found: list[RetiredWallet] = []
    after: str | None = None
    while True:
        page = store.page(RetiredWallet, limit=100, after=after, network=network)
        found += page.items
        if page.next is None:
            return found
        after = page.next


def quoted_for(store: Store, hot: Wallet) -> list[str]:
    """Whose payments fees are asked for, in that order: of the one that it replaced and that may still have the coins, and of the
    hot wallet. Of a wallet without coins a node tells no fee. Raises Unavailable."""
    draining = [old for old in retired_wallets(store, hot.network) if old.role == "hot" and old.drained_at is None]
    return [*([max(draining, key=lambda old: old.created_at).address] if draining else []), hot.address]


def retiring(present: Wallet, now_ms: int) -> list[Change]:
    """What goes into the transaction that puts another wallet in the place of `present`. What a cold wallet has is moved by its
    owner alone."""
    old = RetiredWallet.of(present, now_ms)
    if present.role == "cold":
        return [Save(replace(old, drained_at=now_ms))]
    return [Save(old), Open(old.drain)]


def guard_archived(store: Store, address: Address) -> None:
    """Raises BusinessRule for a service wallet that is in place, or was and is not drained: it has to stay in the lists."""
    if address.type == "user":
        return
    present = store.get(Wallet, network=address.network, role=address.type)
    if present is not None and present.address == address.address:
        raise BusinessRule("address", f"is the {SERVICE_TYPE[address.type]} wallet: replace it first")
    retired = store.get(RetiredWallet, network=address.network, address=address.address)
    if retired is not None and retired.drained_at is None:
        raise BusinessRule("address", f"is of a {SERVICE_TYPE[address.type]} wallet that was replaced and is not empty yet")
