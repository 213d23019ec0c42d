"""UTXOs returned to a wallet, because the block of the transaction that spent them fell out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.store import Store


def as_they_stand(store: Store, network: Network, coins: Sequence[HeldCoin]) -> list[HeldCoin]:
    """`coins` that were spent, those marked as gone whose own blocks fell out too: of a deposit, or of a transaction of ours.

    A later change to one of them writes the same record of held coins, and one of the two decides again. Raises Unavailable.
    """
    keys = [deposit_id(network.id, *_place(coin)) for coin in coins]
    deposits = store.get_many([(Deposit, {"id": key}) for key in keys])
    unsettled = _unsettled(store, network)
    return [
        replace(coin, gone=(deposit is not None and deposit.status != "confirmed") or _place(coin)[0] in unsettled)
        for coin, deposit in zip(coins, deposits, strict=True)
    ]


def _unsettled(store: Store, network: Network) -> set[str]:
    """Every transaction of ours that is signed and in no block, or in none that is deep enough. Raises TooNew for one that can not
    be read: its coins would count as spendable."""
    found: set[str] = set()
    for works in pages_of(store, "bundle", network.id):
        for bundle in store.get_many([(Bundle, {"id": work.id}) for work in works]):
            if bundle is not None and bundle.state == "signed":
                found.update(bundle.txids)
    for works in pages_of(store, "coinmove", network.id):
        for move in store.get_many([(CoinMove, {"network": network.id, "id": work.id}) for work in works]):
            if move is not None and move.state == "signed":
                found.update(move.txids)
    return found


def _place(coin: HeldCoin) -> tuple[str, str]:
    """The transaction and the position in it, as deposits name them."""
    txid, number = coin.outpoint.rsplit(":", 1)
    return txid, f"out:{number}"
