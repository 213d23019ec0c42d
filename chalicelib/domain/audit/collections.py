"""Audit rules of collections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chalicelib.domain.treasury.collections import LOOKED_AT, Collecting, Collection, Distribution, collection_work
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.work import Work


def collections_agree(
    collections: Sequence[Collection],
    collecting: Sequence[Collecting],
    distributions: Sequence[Distribution],
    moves: Sequence[Move],
    work: Sequence[Work],
) -> Iterable[str]:
    """Every violation, one sentence each."""
    planned = {move.id: move for move in moves}
    yield from _one_each(collections, collecting)
    found = {w for w in work if w.kind == "collection"}
    wanted = {collection_work(c): c for c in collections if c.state in LOOKED_AT}
    for missing in sorted(wanted.keys() - found, key=str):
        yield f"collection {missing.id} is {wanted[missing].state} and nobody will look at it again"
    for leftover in sorted(found - wanted.keys(), key=str):
        yield f"collection {leftover.id} has open work, and nothing is to be done"
    for collection in collections:
        yield from _moves_of(collection, planned)
    for distribution in distributions:
        for id in distribution.moves:
            if id not in planned:
                yield f"the distribution at {distribution.address} waits for {id}, which there is not"


def _one_each(collections: Sequence[Collection], collecting: Sequence[Collecting]) -> Iterable[str]:
    """Every address has at most one open collection of each coin, and its record names it."""
    named = [id for record in collecting for id in record.open.values()]
    not_ended = {c.id for c in collections if not c.ended}
    for id in sorted(set(named) ^ not_ended):
        yield f"collection {id} is under way, or its address says so, and the other disagrees"
    if len(named) != len(set(named)):
        yield "two addresses have the same collection"


def _moves_of(collection: Collection, planned: Mapping[str, Move]) -> Iterable[str]:
    if not collection.path:
        return  # of a network of coins: its sweep is a coin move
    name = f"collection {collection.id}"
    mine = [planned.get(id) for id in (*collection.topups, *collection.sweeps)]
    if any(move is None or move.owner != collection.id for move in mine):
        yield f"{name} names a move that is not there, or not its own"
    moving = [move for move in mine if move is not None and not move.at_rest]
    if sum(move.kind == "sweep" for move in moving) > 1:
        yield f"{name} has two sweeps on their way"
    sent = {"topup_sent": collection.topups, "sweep_sent": collection.sweeps, "swept": collection.sweeps}
    if not sent.get(collection.state, ("-",)):
        yield f"{name} is {collection.state} and sent nothing"
