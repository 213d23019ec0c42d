"""How the scanner recognises a transaction of ours in a block: its sender and nonce, the coins that it spends, or its id."""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.sightings import Ours, by_inputs, by_nonce, txid_subject
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.transactions.losses import has_nonces

Record = PaymentOrder | Move | Stake | Bundle | CoinMove


def traces_of(network: Network, rules: AddressRules, record: Record) -> Ours:
    """The subjects under which a sighting of any attempt of `record` is stored, without lifetimes (`losses.sent_from` has them)."""
    txids = tuple(txid for txid in record.txids if txid is not None)
    if isinstance(record, Bundle):
        return by_inputs(txids, record.coins)
    if isinstance(record, CoinMove):
        return by_inputs(txids, record.outpoints)
    if isinstance(record, Stake) or not has_nonces(network) or record.nonce is None:
        return Ours(txids, tuple(map(txid_subject, txids)))
    sender = record.wallet if isinstance(record, PaymentOrder) else record.source
    return by_nonce(txids, form_of(rules, network, sender), record.nonce)
