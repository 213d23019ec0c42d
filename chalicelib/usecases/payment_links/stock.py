"""The stock of payment links: how many pieces are left, and the changes that set it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.domain.payment_links.links import PaymentLink
from chalicelib.domain.payment_links.stock import LinkStock, left_of, moves, shard_key
from chalicelib.usecases.invoices.pieces import stock_keys
from chalicelib.usecases.ports.changes import Add, Change, Take
from chalicelib.usecases.ports.store import Store


@dataclass(frozen=True, slots=True)
class Stocked:
    """A link and the pieces that are left of it; None where it has no stock."""

    link: PaymentLink
    left: int | None


def stocked(store: Store, links: Sequence[PaymentLink]) -> list[Stocked]:
    """The links with what is left of each: one read for twelve of those that have a stock. Raises Unavailable."""
    keys = [key for link in links if link.stocked for key in stock_keys(link.id)]
    shards: list[LinkStock | None] = store.get_many(keys) if keys else []
    left: dict[str, int] = {}
    for shard in shards:
        if shard is not None:
            left[shard.link] = left.get(shard.link, 0) + shard.left
    return [Stocked(link, left.get(link.id, 0) if link.stocked else None) for link in links]


def filled(link: PaymentLink, shards: Sequence[LinkStock], wanted: int | None) -> list[Change]:
    """The changes of its shards after which `wanted` pieces are left; none where it has no stock."""
    if wanted is None or left_of(shards) == wanted:
        return []
    by_shard = moves(shards, wanted)
    adds: list[Change] = [Add(LinkStock, shard_key(link.id, shard), {"left": by}) for shard, by in by_shard.items() if by > 0]
    return [*adds, *(Take(LinkStock, shard_key(link.id, shard), "left", -by) for shard, by in by_shard.items() if by < 0)]
