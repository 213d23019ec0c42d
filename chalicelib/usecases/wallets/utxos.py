"""UTXOs of hot wallets, retired ones too: they follow their deposits in the deposits' own transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.domain.treasury.hot_utxos import HeldCoin, HeldCoins
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.lookup import wallet_at

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.deposits.deposits import Deposit


def pays_from_coins(network: Network) -> bool:
    """Whether payments of this network spend coins, many in one transaction. Simulated networks have accounts."""
    return network.family == "utxo" and not network.simulated


def coins_of(store: Store, network: Network, wallet: str) -> HeldCoins:
    """The UTXOs of the hot wallet `wallet` (public spelling). Raises Unavailable."""
    return store.get(HeldCoins, network=network.id, wallet=wallet) or HeldCoins(network.id, wallet)


def confirmed(store: Store, network: Network, deposit: Deposit) -> list[Change]:
    """The changes beside the confirmation of a deposit: a UTXO of the hot wallet can be spent from now on."""
    held = _held(store, network, deposit)
    if held is None:
        return []
    return [Save(held.came(HeldCoin(_outpoint(deposit), deposit.amount, deposit.block[0])).next())]


def taken_back(store: Store, network: Network, deposit: Deposit) -> list[Change]:
    """The changes beside the reversal of a confirmed deposit: the opposite of `confirmed`.

    Saved also where the coin is spent already: a transaction that returns the UTXO, because its spender's block fell out too,
    has to notice.
    """
    held = _held(store, network, deposit)
    return [] if held is None else [Save(held.taken_back(_outpoint(deposit)).next())]


def _held(store: Store, network: Network, deposit: Deposit) -> HeldCoins | None:
    if not pays_from_coins(network) or deposit.tenant is not None or not deposit.position.startswith("out:"):
        return None
    wallet = wallet_at(store, network.id, deposit.address)
    return coins_of(store, network, wallet.address) if wallet is not None and wallet.role == "hot" else None


def _outpoint(deposit: Deposit) -> str:
    return f"{deposit.txid}:{deposit.position.removeprefix('out:')}"
