"""The stock of a payment link: pieces that invoices take and give back.

It lies in shards, so that many who open a link at once do not wait for each other. No shard is ever below zero: taking a piece has
that condition (`changes.Take`), so all of them together are never oversold.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SHARDS = 8
"""One transaction changes all of them beside their link. It is kept to ten items, which DynamoDB Local of 2020 takes, so that it is
tested there."""
MOST_PIECES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LinkStock:
    """One shard: `left` pieces. Moved by the store together with invoices, never saved."""

    link: str
    shard: str
    left: int = 0


def shard_key(link: str, shard: str) -> dict[str, str]:
    return {"link": link, "shard": shard}


def left_of(shards: Iterable[LinkStock]) -> int:
    """The pieces that are left in all."""
    return sum(shard.left for shard in shards)


def any_piece(shards: Iterable[LinkStock]) -> str | None:
    """A shard that has a piece, by chance, so that those who look at once look in different ones; None where nothing is left."""
    found = [shard for shard in shards if shard.left > 0]
    if not found:
        return None
    return random.choices(found, [shard.left for shard in found])[0].shard  # noqa: S311 - spreads takers, guards nothing


def moves(shards: Iterable[LinkStock], wanted: int) -> Mapping[str, int]:
    """What to add to each shard, or take where it is negative, so that `wanted` pieces are left in all, spread evenly; shards that
    stay are left out."""
    there = {str(number): 0 for number in range(SHARDS)} | {shard.shard: shard.left for shard in shards}
    each, rest = divmod(wanted, SHARDS)
    goal = {shard: each + (number < rest) for number, shard in enumerate(sorted(there))}
    return {shard: goal[shard] - left for shard, left in there.items() if goal[shard] != left}
