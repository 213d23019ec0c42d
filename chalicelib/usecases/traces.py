"""By what the scanner meets a transaction of ours in a block: its sender and nonce, the coins that it spends, or its id."""

from __future__ import annotations

from chalicelib.domain.bundles import Bundle
from chalicelib.domain.catalogue import Network
from chalicelib.domain.coin_moves import CoinMove
from chalicelib.domain.moves import Move
from chalicelib.domain.sightings import Ours, by_inputs, by_nonce, txid_subject
from chalicelib.domain.stakes import Stake
from chalicelib.domain.withdrawals import PaymentOrder
from chalicelib.usecases.losses import has_nonces
from chalicelib.usecases.ports.addresses import AddressRules

Record = PaymentOrder | Move | Stake | Bundle | CoinMove


def traces_of(network: Network, rules: AddressRules, record: Record) -> Ours:
    """By what the scanner would have met an attempt of `record`."""
    txids = tuple(txid for txid in record.txids if txid is not None)
    if isinstance(record, Bundle):
        return by_inputs(txids, record.coins)
    if isinstance(record, CoinMove):
        return by_inputs(txids, record.outpoints)
    if isinstance(record, Stake) or not has_nonces(network) or record.nonce is None:
        return Ours(txids, tuple(map(txid_subject, txids)))
    sender = record.wallet if isinstance(record, PaymentOrder) else record.source
    return by_nonce(txids, rules.storage_form(network.slug, sender), record.nonce)
