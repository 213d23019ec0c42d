"""The service wallets that have their roles now. `wallets/lookup` finds one by its address, retired ones too."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.addresses.addresses import MOST_SLOTS, SERVICE_ROLES, Role, Wallet, place_of, wallet_key
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.store import Store


def wallet_of(store: Store, network: NetworkId, role: Role, slot: int = 0) -> Wallet | None:
    """The wallet that has this role and slot on a network now: one read. None where nobody registered one. Raises Unavailable."""
    return store.get(Wallet, network=network, role=place_of(role, slot))


def wallets_of(store: Store, network: NetworkId, roles: Sequence[Role] = SERVICE_ROLES) -> list[Wallet | None]:
    """The wallet in slot 0 of each of these roles on a network now: one batch read. Raises Unavailable."""
    return store.get_many([wallet_key(network, role) for role in roles])


def current_wallets(store: Store, network: NetworkId) -> list[Wallet]:
    """Every wallet of a network that has a role now, in the order of roles and slots: one read. Raises Unavailable."""
    found = store.page(Wallet, limit=MOST_SLOTS * len(SERVICE_ROLES), network=network).items
    known = [wallet for wallet in found if wallet.role in SERVICE_ROLES]  # a later version may know more roles
    return sorted(known, key=lambda wallet: (SERVICE_ROLES.index(wallet.role), wallet.slot))


def hot_wallets(store: Store, network: NetworkId) -> list[Wallet]:
    """The hot wallets of a network, by slot: one read. None without a hot wallet in slot 0, which the others stand beside. Raises
    Unavailable."""
    found = [wallet for wallet in current_wallets(store, network) if wallet.role == "hot"]
    return found if found and found[0].slot == 0 else []


def topup_wallet(store: Store, network: NetworkId) -> Wallet | None:
    """The wallet that pays top-ups: the one of that role, else the hot one; None where neither is registered. Raises
    Unavailable."""
    own, hot = wallets_of(store, network, ("topup", "hot"))
    return own or hot
