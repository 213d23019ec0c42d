"""Moves under way: what of the operator's coins is on its way between our own addresses, found by its open work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.utxos import pays_from_coins

MOST = 200
"""Of one network: a network has far fewer on an ordinary day."""
MoveStatus = Literal["planned", "built", "signed", "replacing", "lost"]
ShownKind = Literal["topup", "sweep", "distribution", "cold", "drain", "delegation", "undelegation", "filler", "consolidation"]


def open_moves(store: Store, networks: Sequence[Network]) -> list[Move | CoinMove]:
    """The moves of these networks that are not at their end, oldest first in each: the first `MOST` of each network.
    Without those in a form that only a newer version knows.

    Raises Unavailable.
    """
    wanted: list[tuple[type[Any], dict[str, str]]] = []
    for network in networks:
        coins = pays_from_coins(network)
        for work in store.open_work("coinmove" if coins else "move", network.id, limit=MOST):
            wanted.append((CoinMove if coins else Move, {"network": network.id, "id": work.id}))
    return [found for found in (known_of(store, wanted) if wanted else []) if found is not None]


def move_status(move: Move | CoinMove) -> MoveStatus:
    """How far an open move is."""
    if move.state == "dead":
        return "lost"
    if move.renew:
        return "replacing"
    if move.state == "signed":
        return "signed"
    return "built" if move.state == "built" and (not isinstance(move, Move) or move.nonce is not None) else "planned"
