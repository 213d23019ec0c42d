"""Consolidations that an operator has to agree to (approveThreshold): each has a `Collection`, which is listed and decided on as
those of addresses are. It stands at the hot wallet's address, since its coins are at many; its one sweep is the coin move.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.catalogue import Network
from chalicelib.domain.coin_moves import CoinMove
from chalicelib.domain.collecting import Collecting, Collection, Ending, collection_work, ended
from chalicelib.domain.ids import asset_parts
from chalicelib.usecases.changes import Change, Close, Open, Save
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store


def asked(store: Store, rules: AddressRules, network: Network, move: CoinMove) -> tuple[CoinMove, list[Change]]:
    """`move`, waiting for its collection, and what makes that. Raises Unavailable."""
    record = _collecting(store, rules, network, move.recipient)
    id, record = record.begun(asset_parts(move.asset)[1])
    places = len({coin.address for coin in move.inputs})
    collection = Collection(
        id=id, network=move.network, asset=move.asset, address=move.recipient, path="", owner=move.tenant, amount=move.total,
        created_at=move.created_at, updated_at=move.created_at, look_at=move.created_at, state="waits_for_approval",
        detail=f"{len(move.inputs)} coins of {places} addresses, in one transaction", destination=move.recipient,
        fee=0 if move.newest is None else move.newest.fee,
    )  # fmt: skip
    waits = replace(move, state="waiting", newest=None, reason="approval", owner=id)
    return waits, [Save(collection), Save(record), Open(collection_work(collection))]


def decided(store: Store, move: CoinMove) -> Collection | None:
    """What became of the question; None where nobody had to be asked. Raises Unavailable."""
    return None if move.owner == move.id or move.wallet is not None else store.get(Collection, id=move.owner)


def sent(collection: Collection, move: CoinMove, now: int) -> Save:
    """The collection of a move that goes on."""
    fee = 0 if move.newest is None else move.newest.fee
    after = replace(collection, state="sweep_sent", sweeps=(move.id,), fee=fee, updated_at=now, version=collection.version + 1)
    return Save(after)


def closed(store: Store, rules: AddressRules, network: Network, move: CoinMove, how: Ending, now: int) -> list[Change]:
    """What ends the collection of a move that is at its end, if it has one that is not. Raises Unavailable."""
    collection = decided(store, move)
    if collection is None or collection.ended:
        return []
    after = ended(collection, how, now)
    attempt = move.settled_attempt()
    if attempt is not None:
        after = replace(after, txid=attempt.txid, arrived=attempt.amount, fee=attempt.fee)
    record = _collecting(store, rules, network, collection.address).without(collection.coin)
    return [Save(after), Save(record), Close(collection_work(collection))]


def _collecting(store: Store, rules: AddressRules, network: Network, address: str) -> Collecting:
    place = rules.storage_form(network.slug, address)
    return store.get(Collecting, network=network.id, address=place) or Collecting(network.id, place)
