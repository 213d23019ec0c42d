"""Fair shares of a block: round robin over addresses, and a bound for each merchant, so that one stranger can not delay all
others.

A block of small outputs to one address costs little, and each of them costs us a transaction. So the first payment of every
address comes first, then the second of every address, and no merchant has more than `MOST_AT_ONCE` of a block before the scan goes
on: other functions are asked for the rest, and a rescan of that block records what they leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")

MOST_AT_ONCE = 200
"""Payments of one merchant in one block that the scan itself records; of one merchant that are credited before those of all
others."""
MOST_TO_ONE = 20
"""Payments to one address that are credited before those to all others."""
AT_LEAST = 100
"""Steps that every run takes, however late it is, so that each one gets further than the last."""


def in_turn(items: Sequence[T], address: Callable[[T], Hashable]) -> list[T]:
    """Round robin: the first item of every address, then the second of every address, and so on. Items of one address keep their
    order."""
    seen: Counter[Hashable] = Counter()
    places = []
    for item in items:
        places.append(seen[address(item)])
        seen[address(item)] += 1
    return [items[n] for n in sorted(range(len(items)), key=places.__getitem__)]


def shared_out(items: Sequence[T], owner: Callable[[T], Hashable], most: int) -> tuple[list[T], list[T]]:
    """The first `most` items of every owner, and those that are left out, in the order given."""
    seen: Counter[Hashable] = Counter()
    chosen, left = list[T](), list[T]()
    for item in items:
        seen[owner(item)] += 1
        (chosen if seen[owner(item)] <= most else left).append(item)
    return chosen, left
