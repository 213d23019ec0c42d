"""Change, consolidation, top-ups, sweeps: what our own transactions bring to places of ours are no deposits (money rule 8).

What such a transaction moves is booked by whoever made it. The record is stored with its signature, before anything is sent, so
that no scanner can be first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Transfer
from chalicelib.domain.scanning.internal_transfers import POSITION
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import WHOLE_TRANSACTION
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.utxos import pays_from_coins


def from_others(store: Store, network: Network, transfers: Sequence[Transfer], watched: Mapping[str, Watched]) -> list[Transfer]:
    """Those of `transfers` that are not our own movements. One batch read, only where there are any that may be.

    On networks of coins only service wallets receive from us (change, consolidation). On networks of accounts everything that
    matched may be a top-up or a sweep; what was found in a balance is no transaction at all. `watched` by the storage form of
    the recipient. Raises Unavailable.
    """
    accounts = not pays_from_coins(network)

    def may_be(t: Transfer) -> bool:
        return not t.position.startswith(POSITION) if accounts else watched[t.recipient].role != "user"

    doubtful = sorted({t.txid for t in transfers if may_be(t)})
    if not doubtful:
        return list(transfers)
    found = store.get_many([(OwnTransaction, {"network": network.id, "txid": txid}) for txid in doubtful])
    ours = {(own.txid, position) for own in found if own is not None for position in own.positions}
    return [t for t in transfers if (t.txid, t.position) not in ours and (t.txid, WHOLE_TRANSACTION) not in ours]
