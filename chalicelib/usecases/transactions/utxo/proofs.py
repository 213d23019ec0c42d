"""UTXO attempts in flight, read from their signed bytes alone: a replacement may be signed only on this ground (money rules 5
and 7).

A replacement is signed because something with the same inputs was signed before. A record that says so may have been altered; our
own signatures can not have been. So the first attempt is taken apart: it spends coins of ours that are reserved, signed for by the
keys of their addresses, and it pays those whom the new one pays.
"""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.utxo_attempts import Attempts, Contents, M
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.transactions.utxo.reading import spelled, unspent_by


def unproved(payer: CoinPayer, rules: AddressRules, network: Network, record: Attempts[M], attempt: M) -> list[str]:
    """In what an attempt of `record` is not what was signed; nothing where it is. That its coins are reserved, the caller asks."""
    coins = unspent_by(record, attempt)
    if attempt.raw is None:
        return ["what was signed"]
    try:
        found = payer.proved(attempt.raw, coins)
        paid = spelled(rules, network, found.outputs)
    except ValueError:
        return ["what was signed"]
    if found.txid != attempt.txid:
        return ["what was signed"]
    spent = tuple(HeldCoin(coin.outpoint, coin.amount, coin.height) for coin in coins)
    fee = sum(coin.amount for coin in coins) - sum(amount for _, amount in paid)
    try:
        made = record.attempt_of(Contents("", spent, paid, fee, attempt.vsize))
    except ValueError:
        return ["whom the signed bytes pay"]
    if (made.positions, record.pays(made)) != (attempt.positions, record.pays(attempt)):
        return ["what the signed bytes pay"]
    return [] if fee == attempt.fee else ["the fee of what was signed"]
