"""UTXO selection: branch and bound for a payment without change, else the largest first. Pure.

Everything is counted at one fee rate. A coin is worth its amount less what it costs to spend (its effective value); a coin that is
worth nothing is never spent. Branch and bound looks for coins whose worth meets the target so closely that leaving the rest to
the fee is cheaper than making change and spending it later; described in M. Erhardt, "An Evaluation of Coin Selection Strategies"
(2016), section 6.2, and used by Bitcoin Core since 0.17.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

STEPS = 20_000
"""Of the search. Each takes about half a microsecond; Core takes five times as many, at the speed of C++."""

MOST_WEIGHT = 400_000
"""Of a transaction that nodes relay (Core's MAX_STANDARD_TX_WEIGHT), in weight units (BIP-141)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A UTXO that may be spent: `amount` in units, `weight` of its signed input in weight units."""

    amount: int
    weight: int


@dataclass(frozen=True, slots=True)
class Change:
    """The output that takes the rest: its weight, what its coin weighs when it is spent, and below how much it is dust."""

    weight: int
    spend_weight: int
    dust: int


@dataclass(frozen=True, slots=True)
class Choice:
    """`chosen` are places in the list of candidates; `change` is 0 where there is none; `fee` is what is left over."""

    chosen: tuple[int, ...]
    change: int
    fee: int


def fee_for(weight: int, rate: int) -> int:
    """The fee of `weight` weight units at `rate` units per 1,000 vbytes, rounded up twice: vbytes, then units (BIP-141, Core)."""
    return -(-(-(-weight // 4) * rate) // 1000)


def worth(candidate: Candidate, rate: int) -> int:
    """Effective value: what the coin brings beyond its own fee. Rounded down, so that sums of it never promise too much."""
    return candidate.amount - fee_for(candidate.weight, rate)


def select(
    candidates: Sequence[Candidate], target: int, change: Change, rate: int, weigh: Callable[[Sequence[int], bool], int]
) -> Choice | None:
    """UTXOs that pay `target` units and the fee at `rate`, None where all together do not.

    `weigh` tells the weight of the whole transaction with those candidates, and with or without change. Of the two ways the one
    that costs less is taken, the change's later spending included.
    """
    useful = [place for place, candidate in enumerate(candidates) if worth(candidate, rate) > 0]
    useful.sort(key=lambda place: (-worth(candidates[place], rate), place))
    # The number of inputs takes two bytes more from 253 on.
    fixed = fee_for(weigh((), False) + (8 if len(useful) > 252 else 0), rate)
    later = fee_for(change.spend_weight, rate)
    window = fee_for(change.weight, rate) + max(later, change.dust)
    largest = _largest_first(candidates, useful, target, change, rate, weigh)
    exact = branch_and_bound([worth(candidates[place], rate) for place in useful], target + fixed, window)
    if exact is None:
        return largest
    chosen = tuple(useful[n] for n in exact)
    fee = sum(candidates[place].amount for place in chosen) - target
    if weigh(chosen, False) > MOST_WEIGHT:
        return largest
    if largest is not None and largest.fee + (later if largest.change else 0) < fee:
        return largest
    return Choice(chosen, 0, fee)


def _largest_first(
    candidates: Sequence[Candidate],
    useful: Sequence[int],
    target: int,
    change: Change,
    rate: int,
    weigh: Callable[[Sequence[int], bool], int],
) -> Choice | None:
    total, chosen = 0, []
    least = max(change.dust, fee_for(change.spend_weight, rate))
    for place in useful:
        chosen.append(place)
        total += candidates[place].amount
        left = total - target
        bare = weigh(chosen, False)
        if bare > MOST_WEIGHT:
            return None
        if left < fee_for(bare, rate):
            continue
        fee = fee_for(weigh(chosen, True), rate)
        if left - fee >= least:
            return Choice(tuple(chosen), left - fee, fee)
        # What is left would be dust, or cost more to spend than it is worth: the miners get it.
        return Choice(tuple(chosen), 0, left)
    return None


def branch_and_bound(values: Sequence[int], target: int, window: int, steps: int = STEPS) -> list[int] | None:
    """Places of some `values` (above zero, largest first) whose sum is in target .. target + window, as close as `steps` find.

    Depth first: take the next value, and when that leads nowhere go on without it. A branch ends where its sum is too large, or
    where even all that is left could not reach the target. A value equal to one just left out would only repeat its branch.
    """
    if target <= 0:
        return None
    left = [0] * (len(values) + 1)
    for place in range(len(values) - 1, -1, -1):
        left[place] = left[place + 1] + values[place]
    best: list[int] | None = None
    nearest = target + window + 1
    taken: list[int] = []
    total = place = 0
    for _ in range(steps):
        if total < target and total + left[place] >= target:
            taken.append(place)
            total += values[place]
            place += 1
            continue
        if target <= total < nearest:
            best, nearest = taken.copy(), total
            if total == target:
                break
        if not taken:
            break
        place = taken.pop()
        total -= values[place]
        place += 1
        while place < len(values) and values[place] == values[place - 1]:
            place += 1
    return best
