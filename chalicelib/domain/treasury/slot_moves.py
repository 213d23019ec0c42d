"""How much moves between hot wallets, and from which of them, for a payout that is larger than each. Pure.

Merchants decide how large their withdrawals are, and may cancel them: so a move brings at least a part of what was asked for, and
is worth its fee (money rule 14). What is moved too early serves the next payout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.treasury.collections import Distribution

PART = 6
"""At least so many times smaller than what was asked for is what moves, where the others have it: a merchant who lets the fullest
wallet lack a hair again and again finds the others empty after a few rounds."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a hot wallet can give, or gives: `units` of the coin, for a `fee` in units of the native one. `record`: of its lots."""

    wallet: Wallet
    record: Distribution
    units: int
    fee: int


def rounded_up(given: Sequence[Given], lack: int, asked: int, dear: Callable[[int, int], bool]) -> list[Given]:
    """Who gives how much, `lack` units together or more; none where even all that there is would be too `dear`, which says so of
    units and fees. The `given` have together what lacks."""
    most = sum(each.units for each in given)
    total = min(max(lack, asked // PART), most)
    while True:
        parts = shared(given, total)
        if not dear(total, sum(each.fee for each in parts)):
            return parts
        if total >= most:
            return []
        total = min(2 * total, most)


def shared(given: Sequence[Given], total: int) -> list[Given]:
    """The fullest first. Each keeps half of what it has, so that it goes on paying beside the others, unless more is needed."""
    halves = [each.units // 2 for each in given]
    least = halves if sum(halves) >= total else [each.units for each in given]
    parts: list[Given] = []
    for each, units in sorted(zip(given, least, strict=True), key=lambda pair: -pair[1]):
        taken = min(units, total - sum(part.units for part in parts))
        if taken > 0:
            parts.append(replace(each, units=taken))
    return parts
