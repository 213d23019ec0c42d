"""What sweeps brought from deposit addresses to service wallets while a run compared them.

The service wallets are read first, and an address hours later: what left the address in between is in the sum of neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chalicelib.domain.ids import AssetId, place_in_time
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move, operators
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.store import Listed, Span, Store

LONGEST_MS = 24 * 3600 * 1000
"""Lists are in the order in which moves were planned: one that was planned so long before is settled."""
_PAGE = 500


def swept_since(context: NetworkContext, assets: Sequence[AssetId], since: int) -> dict[AssetId, int]:
    """Units by asset that were settled at service wallets since then (milliseconds since 1970)."""
    return {asset: sum(_arrived(move, since) for move in _moves(context.store, asset, context, since)) for asset in assets}


def _moves(store: Store, asset: AssetId, context: NetworkContext, since: int) -> Iterator[object]:
    listed = Listed("tx", "asset", operators(context.network.realm), asset)
    after, span = None, Span(place_in_time(since - LONGEST_MS, ""))
    while True:
        found = store.places(listed, limit=_PAGE, after=after, span=span)
        yield from store.at(found.places)
        if not found.more:
            return
        after = found.places[-1].position


def _arrived(move: object, since: int) -> int:
    if isinstance(move, Move) and move.kind == "sweep" and move.state == "settled" and (move.confirmed_at or 0) >= since:
        return move.amount if move.arrived is None else move.arrived
    if isinstance(move, CoinMove) and move.state == "settled" and (move.confirmed_at or 0) >= since:
        paid = move.settled_attempt()
        return paid.amount if paid is not None and any(coin.deposit for coin in move.inputs) else 0
    return 0
