"""Native twins: one payment that a block tells twice, as native coins and as a token that is the native coin under another face.

Such a token can not be registered (`usecases/catalogue/coins.py`); this is for one that was registered before, or that was made
into a face later. Where a transaction brings the same amount of both to the same address, the native coin is credited, and the
token's deposit is held until an operator has looked at it. Where the token was recorded before the native movement was seen (by a
node that does not trace), the native one is held. Paying the same amount of both by one transaction is rare, and then only waits
for the operator.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.native_faces import same_amount
from chalicelib.domain.chain import Transfer
from chalicelib.domain.deposits.deposits import NATIVE_TWIN, Deposit, deposit_id
from chalicelib.usecases.base.newer_states import each_readable
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


class Twins(NamedTuple):
    """Two movements of one transaction to one address, of the same amount. `slug` is the token's."""

    native: Transfer
    token: Transfer
    slug: str


def twins_in(transfers: Sequence[Transfer], contracts: Mapping[str, Coin], native: Coin) -> list[Twins]:
    """The twins among `transfers`, which are of one block and of known coins."""
    natives: dict[tuple[str, str], list[Transfer]] = defaultdict(list)
    for transfer in transfers:
        if transfer.contract is None:
            natives[transfer.txid, transfer.recipient].append(transfer)
    found = []
    for token in transfers:
        coin = None if token.contract is None else contracts[token.contract]
        if coin is not None:
            own = natives.get((token.txid, token.recipient), ())
            found += [
                Twins(n, token, coin.slug) for n in own if same_amount(n.amount, token.amount, native.decimals, coin.decimals)
            ]
    return found


def held_of(store: Store, network: Network, twins: Sequence[Twins], ids: Mapping[Transfer, str]) -> frozenset[Transfer]:
    """Which of `twins` are to be held: one of each pair. `ids` has the deposit ids of proven transfers. One batch read where
    there are twins. Raises Unavailable."""
    if not twins:
        return frozenset()

    def deposit(transfer: Transfer) -> str:
        return ids.get(transfer) or deposit_id(network.id, transfer.txid, transfer.position)

    wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": deposit(pair.token)}) for pair in twins]
    held = set()
    for pair, known in zip(twins, each_readable(store, wanted), strict=True):
        # One that only a newer version can read, or the archive can not give back, may be credited: its twin is held, which an
        # operator can release.
        read = isinstance(known, Deposit) and known.status != "orphaned" and NATIVE_TWIN not in known.flags
        first = read or isinstance(known, Exception)
        held.add(pair.native if first else pair.token)
        log.error(
            "ALARM %s: %s brings %s as much of the own coin as of %s, which may be the same: one of both is held",
            *(network.id, pair.token.txid, pair.token.recipient, pair.slug),
        )
    return frozenset(held)
