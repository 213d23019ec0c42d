"""Nonces of an address that are allotted to open payments and open moves.

A nonce that the chain waits for and nobody has is a gap: whatever was signed behind it is never mined. So that is looked for where
something has waited too long (`Stuck`), and before gaps are filled (`usecases.treasury.nonce_gaps`).
"""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import order_of, payout_parts


def open_nonces(store: Store, network: Network, address: str) -> Iterator[int]:
    """One after the other, in no order, of an address as its records spell it. Raises Unavailable."""
    for works in pages_of(store, "move", network.id):
        moves: list[Move | None] = store.get_many([(Move, {"network": network.id, "id": work.id}) for work in works])
        yield from (move.nonce for move in moves if move is not None and move.source == address and move.nonce is not None)
    # Newly begun ones last: one that is signed meanwhile is found in one of the two.
    for kind in ("payout", "sent"):
        for works in pages_of(store, kind, network.id):
            wanted = [(PaymentOrder, {"id": order_of(*payout_parts(work))}) for work in works]
            orders: list[PaymentOrder | None] = store.get_many(wanted)
            yield from (order.nonce for order in orders if order is not None and order.wallet == address)
