"""Reads the bytes of a UTXO transaction and compares them with the record that orders it. No record is taken at its word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.utxo_attempts import Attempts, Contents, M
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.coins import CoinPayer, Output, Unspent
from chalicelib.usecases.transactions.errors import OrderMismatch


def unspent_by(record: Attempts[M], attempt: M) -> list[Unspent]:
    """The coins that an attempt of `record` spends, as payers know them."""
    return [Unspent(coin.outpoint, coin.address, coin.amount, coin.height) for coin in record.spends(attempt)]


def spelled(rules: AddressRules, network: Network, outputs: Sequence[Output]) -> list[tuple[str, int]]:
    """Recipients in their public spelling, as records have them, with amounts."""
    return [(rules.normalize(network.id, output.address), output.amount) for output in outputs]


def attempt_of(
    payer: CoinPayer, rules: AddressRules, network: Network, record: Attempts[M], unsigned: str, coins: Iterable[HeldCoin]
) -> M:
    """The attempt that `unsigned` is, told from its bytes alone. Raises OrderMismatch unless it spends none but `coins` and does
    what `record` orders."""
    known = {coin.outpoint: coin for coin in coins}
    try:
        does = payer.explain(unsigned)
        if not set(does.inputs) <= set(known):
            raise ValueError("it would spend other coins than its own")
        inputs = tuple(replace(known[outpoint], reserved_by=None, gone=False) for outpoint in does.inputs)
        outputs = spelled(rules, network, does.outputs)
        if sum(coin.amount for coin in inputs) - sum(amount for _, amount in outputs) != does.fee:
            raise ValueError("it would spend coins of other amounts")
        return record.attempt_of(Contents(does.unsigned, inputs, outputs, does.fee, does.vsize))
    except ValueError as error:
        raise OrderMismatch(f"{record.id}: {error}") from error
