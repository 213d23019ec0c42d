"""Which service wallets sign: the current ones, and retired ones for what was started with them. A cold wallet has no key here.

The one answer for whoever signs, watches senders, drains, or quotes fees.
"""

from __future__ import annotations

from collections.abc import Collection

from chalicelib.domain.addresses.addresses import RetiredWallet, Role, Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.base.current_wallets import current_wallets
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.lookup import retired_wallets, wallet_at

PAY: tuple[Role, ...] = ("hot",)
SIGN: tuple[Role, ...] = ("hot", "collector", "topup")


def signing_wallet(store: Store, network: NetworkId, address: str | None, roles: Collection[Role] = PAY) -> Wallet | None:
    """The service wallet that signs what names `address` (as its record spells it), whoever has its role by now.

    None for any other address, and for a wallet whose role is none of `roles`. Raises Unavailable.
    """
    wallet = None if address is None else wallet_at(store, network, address)
    return wallet if wallet is not None and wallet.role in roles else None


def signing_wallets(store: Store, network: NetworkId) -> list[Wallet]:
    """Every wallet of a network that signs, or has signed. Raises Unavailable.

    Current ones are read first: one that is replaced between the two reads is in the second.
    """
    current = current_wallets(store, network)
    retired = [old.wallet for old in retired_wallets(store, network)]
    return [wallet for wallet in (*current, *retired) if wallet.role in SIGN]


def draining(store: Store, network: NetworkId, role: Role) -> list[RetiredWallet]:
    """The retired wallets of a role that are not drained: some of their transactions may be in flight, some balance may be left.
    Raises Unavailable."""
    return [old for old in retired_wallets(store, network) if old.role == role and old.drained_at is None]


def quoted_for(store: Store, hot: Wallet) -> list[str]:
    """The wallets whose payments fees are quoted for, in order: the retired one that may still have the coins, then the hot
    wallet. A node quotes no fee for a wallet without coins. Raises Unavailable."""
    retired = draining(store, hot.network, "hot")
    return [*([max(retired, key=lambda old: old.created_at).address] if retired else []), hot.address]
