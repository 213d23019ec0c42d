"""Which service wallet an address is of: one that is in its role now, or one that was replaced (`rotation`)."""

from __future__ import annotations

from chalicelib.domain.addresses import RetiredWallet, Role, Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.store import Store

ROLES: tuple[Role, ...] = ("hot", "collector", "cold")


def wallet_at(store: Store, network: NetworkId, address: str) -> Wallet | None:
    """The service wallet with this address (as its record spells it), current or retired; None for any other address.

    Whoever finishes what was begun signs with the wallet that the order names, never with the one that has its role by now. Current
    ones are read first: one that is replaced between the two reads is found by the second. Raises Unavailable.
    """
    current: list[Wallet | None] = store.get_many([(Wallet, {"network": network, "role": role}) for role in ROLES])
    for wallet in current:
        if wallet is not None and wallet.address == address:
            return wallet
    retired = store.get(RetiredWallet, network=network, address=address)
    return None if retired is None else retired.wallet
