"""Change and consolidation: outputs to our own wallets by our own transactions are no deposits (money rule 8).

What such a transaction moves is booked by whoever made it. The record is stored with its signature, before anything is sent, so
that no scanner can be first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalicelib.domain.addresses import Watched
from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Transfer
from chalicelib.domain.coins_held import OwnTransaction
from chalicelib.usecases.ports.store import Store


def from_others(store: Store, network: Network, transfers: Sequence[Transfer], watched: Mapping[str, Watched]) -> list[Transfer]:
    """Those of `transfers` that are not our own movements. One batch read, only where a service wallet received something.

    `watched` by the storage form of the recipient. Raises Unavailable.
    """
    if network.family != "utxo" or network.simulated:
        return list(transfers)
    doubtful = sorted({t.txid for t in transfers if watched[t.recipient].role != "user"})
    if not doubtful:
        return list(transfers)
    found = store.get_many([(OwnTransaction, {"network": network.id, "txid": txid}) for txid in doubtful])
    ours = {(own.txid, position) for own in found if own is not None for position in own.positions}
    return [t for t in transfers if (t.txid, t.position) not in ours]
