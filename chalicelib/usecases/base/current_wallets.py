"""The service wallets that have their roles now. `wallets/lookup` finds one by its address, retired ones too."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.addresses.addresses import SERVICE_ROLES, Role, Wallet, wallet_key
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.store import Store


def wallet_of(store: Store, network: NetworkId, role: Role) -> Wallet | None:
    """The wallet that has this role on a network now: one read. None where nobody registered one. Raises Unavailable."""
    return store.get(Wallet, network=network, role=role)


def wallets_of(store: Store, network: NetworkId, roles: Sequence[Role] = SERVICE_ROLES) -> list[Wallet | None]:
    """The wallet that has each of these roles on a network now: one batch read. Raises Unavailable."""
    return store.get_many([wallet_key(network, role) for role in roles])


def topup_wallet(store: Store, network: NetworkId) -> Wallet | None:
    """The wallet that pays top-ups: the one of that role, else the hot one; None where neither is registered. Raises
    Unavailable."""
    own, hot = wallets_of(store, network, ("topup", "hot"))
    return own or hot
