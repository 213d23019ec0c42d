"""Whether a deposit's UTXO is spent for good: by scanned blocks or the ledger, never by a node's silence (money rule 13)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.consolidations import MovedCoin
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.losses import Losses

log = logging.getLogger(__name__)

_NAMED = 3
"""So many of the coins that no node knows are named in one alarm."""


class SpentCoins:
    """Of one network of coins, for one look. Every method raises Unavailable."""

    def __init__(self, context: NetworkContext, payer: CoinPayer) -> None:
        self._network, self._store, self._rules, self._payer = context.network, context.store, context.rules, payer
        self._losses = Losses(context.network, context.reader, context.store)

    def spent(self, asset: AssetId, denied: Sequence[MovedCoin], scanned: Scanned) -> list[MovedCoin]:
        """Those of `denied`, coins of `asset` that the node denies, that are spent for good; none of them is a move's. Told with an
        alarm: those that others spent, and those that only nodes deny.

        Spent is a coin that was met as an input in a block deeper than reorganisations are followed; and one that its address does
        not have in the ledger, where a move of ours took it: nothing else takes it out of there. Every node has to deny it, too.
        """
        found: list[MovedCoin] = []
        unknown: list[str] = []
        for coin, balance in zip(denied, self._balances(asset, denied), strict=True):
            spender = self._losses.spender(coin.outpoint, scanned)
            taken = coin.height <= scanned.height - self._network.reorg_depth and balance < coin.amount
            if (spender is None and not taken) or not self._payer.denied([coin.outpoint]):
                unknown.append(f"{coin.outpoint} of {coin.address}")
                continue
            found.append(coin)
            if taken or self._store.get(OwnTransaction, network=self._network.id, txid=spender or "") is not None:
                log.info("%s: %s was asked for late: it is moved", self._network.id, coin.outpoint)
            else:
                log.error(
                    "ALARM %s: %s of %s is spent, and not by us: its key is known to others",
                    *(self._network.id, coin.outpoint, coin.address),
                )
        if unknown:
            log.error(
                "ALARM %s: no node knows %s, and nobody was seen to spend it: it waits (%d such coins)",
                *(self._network.id, ", ".join(unknown[:_NAMED]), len(unknown)),
            )
        return found

    def _balances(self, asset: AssetId, coins: Sequence[MovedCoin]) -> list[int]:
        places = [form_of(self._rules, self._network, coin.address) for coin in coins]
        keys = [(WalletBalance, {"network": self._network.id, "address": place, "asset": asset}) for place in places]
        found: list[WalletBalance | None] = self._store.get_many(keys) if keys else []
        return [0 if balance is None else balance.units for balance in found]
