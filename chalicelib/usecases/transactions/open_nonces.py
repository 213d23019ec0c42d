"""Nonces of an address that are allotted to open payments and open moves.

A nonce that the chain waits for and nobody has is a gap: whatever was signed behind it is never mined. So that is looked for where
something has waited too long (`Stuck`), and before gaps are filled (`usecases.treasury.nonce_gaps`).

A record in a form that only a newer version knows keeps its nonce: `NonceUse` was stored with the allotment. A filler has none, and
a second one for its nonce would have its id.
"""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import order_of, payout_parts


def open_nonces(store: Store, network: Network, address: str) -> Iterator[int]:
    """One after the other, in no order, of an address as its records spell it. Raises Unavailable."""
    for works in pages_of(store, "move", network.id):
        moves = each_of(store, [(Move, {"network": network.id, "id": work.id}) for work in works])
        for work, move in zip(works, moves, strict=True):
            if isinstance(move, TooNew):
                yield from _allotted(store, work.id, address)
            elif move is not None and move.source == address and move.nonce is not None:
                yield move.nonce
    # Newly begun ones last: one that is signed meanwhile is found in one of the two.
    for kind in ("payout", "sent"):
        for works in pages_of(store, kind, network.id):
            ids = [order_of(*payout_parts(work)) for work in works]
            orders = each_of(store, [(PaymentOrder, {"id": id}) for id in ids])
            for id, order in zip(ids, orders, strict=True):
                if isinstance(order, TooNew):
                    yield from _allotted(store, id, address)
                elif order is not None and order.wallet == address:
                    yield order.nonce


def _allotted(store: Store, owner: str, address: str) -> Iterator[int]:
    """The nonce of `address` that was allotted to an order or a move which this version can not read, if any was."""
    use = store.get(NonceUse, owner=owner)
    if use is not None and use.wallet == address:
        yield use.nonce
