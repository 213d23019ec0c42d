"""How much was withdrawn lately: rolling windows over the last 24 hours and 30 days, exact while they are short.

A window is a list of (time in milliseconds since 1970, units). A long one is shortened by moving neighbours to the later one's
time: what is booked may count a little longer than its window, never shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chalicelib.domain.ids import AssetId, TenantId

DAY_MS = 24 * 3600 * 1000
MONTH_MS = 30 * DAY_MS
MOST_ENTRIES = 200
"""Entries of one window that are kept apart."""
MOST_IN_ALL = 4000
"""Entries of all addresses' windows together: the record stays under 150 KB."""

Entry = tuple[int, int]
Window = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Spent:
    """What one merchant withdrew of one asset: in all during a day, and during 30 days to each address that has limits.

    One record, saved beside the balance of the same merchant and asset: it meets no rival that the balance does not meet.
    """

    tenant: TenantId
    asset: AssetId
    day: tuple[tuple[int, int], ...] = ()
    limited: dict[str, list[list[int]]] = field(default_factory=dict)
    version: int = 0


def used(window: Window, now: int, span: int) -> int:
    """Units booked within `span` milliseconds before `now`."""
    return sum(units for at, units in window if at > now - span)


def booked(window: Window, now: int, units: int, span: int, most: int = MOST_ENTRIES) -> tuple[Entry, ...]:
    """`window` with `units` more, at `now`; what is out of the span is gone, and no more than `most` entries are left."""
    kept = sorted([*((at, n) for at, n in window if at > now - span), (now, units)])
    while len(kept) > max(1, most):
        place = min(range(len(kept) - 1), key=lambda i: kept[i + 1][0] - kept[i][0])
        kept[place : place + 2] = [(kept[place + 1][0], kept[place][1] + kept[place + 1][1])]
    return tuple(kept)


def returned(window: Window, at: int, units: int) -> tuple[Entry, ...]:
    """`window` without the `units` that were booked at `at`: taken from the entry that they lie in, and those behind it."""
    left, kept = units, []
    for time, found in window:
        taken = min(found, left) if time >= at else 0
        left -= taken
        if found > taken:
            kept.append((time, found - taken))
    return tuple(kept)


def with_payments(spent: Spent, now: int, payments: Sequence[tuple[str, int, bool]]) -> Spent:
    """`spent` after payments, each an address, units, and whether the address has limits; with the next version."""
    limited = {
        address: [list(entry) for entry in window]
        for address, window in spent.limited.items()
        if any(at > now - MONTH_MS for at, _ in window)
    }
    for address, units, has_limits in payments:
        if has_limits:
            most = max(1, min(MOST_ENTRIES, MOST_IN_ALL // (len(limited) + 1)))
            limited[address] = [list(entry) for entry in booked(limited.get(address, []), now, units, MONTH_MS, most)]
    total = sum(units for _, units, _ in payments)
    return Spent(spent.tenant, spent.asset, booked(spent.day, now, total, DAY_MS), limited, spent.version + 1)


def without_payment(spent: Spent, now: int, at: int, address: str, units: int, has_limits: bool) -> Spent:
    """`spent` as if a payment that `with_payments` booked at `at` had not been; with the next version.

    What has left a window already is not in it, and nothing else may be taken out in its place.
    """
    limited = dict(spent.limited)
    if has_limits and address in limited and at > now - MONTH_MS:
        limited[address] = [list(entry) for entry in returned(limited[address], at, units)]
    day = returned(spent.day, at, units) if at > now - DAY_MS else spent.day
    return Spent(spent.tenant, spent.asset, day, limited, spent.version + 1)
