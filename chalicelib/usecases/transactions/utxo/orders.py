"""The order of a UTXO transaction, for the second reader: from records alone, arranged as our bytes are."""

from __future__ import annotations

from collections.abc import Iterable

from chalicelib.usecases.ports.coins import CoinPayer, Output, Unspent
from chalicelib.usecases.ports.second_reader import CoinOrder, OrderedCoin
from chalicelib.usecases.transactions.errors import OrderMismatch


def coin_order(payer: CoinPayer, unsigned: str, coins: Iterable[Unspent], outputs: Iterable[Output]) -> CoinOrder:
    """The order to spend all of `coins` for `outputs`. Of `unsigned` it takes the order of the inputs, which no record has and
    which changes no money, and what `CoinPayer.evidence` gives: the reader proves that by the coins' ids and addresses.

    Raises OrderMismatch where `unsigned` spends other coins.
    """
    ours = {coin.outpoint: coin for coin in coins}
    spent = payer.explain(unsigned).inputs
    if len(spent) != len(ours) or set(spent) != set(ours):
        raise OrderMismatch("the bytes spend other coins than those that were ordered")
    inputs = [
        OrderedCoin(outpoint, ours[outpoint].amount, ours[outpoint].address, previous, redeem)
        for outpoint, (previous, redeem) in zip(spent, payer.evidence(unsigned), strict=True)
    ]
    return CoinOrder(tuple(inputs), tuple(outputs))
