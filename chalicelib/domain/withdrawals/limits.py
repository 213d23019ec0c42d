"""Withdrawal limits: rolling windows over the last 24 hours and 30 days, exact while they are short.

A window is a list of (time in milliseconds since 1970, units). A long one is shortened by moving neighbours to the later one's
time: a recorded amount may count a little longer than its window, never shorter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.versions import version_after

DAY_MS = 24 * 3600 * 1000
MONTH_MS = 30 * DAY_MS
MOST_ENTRIES = 200
"""Entries of one window that are kept apart."""
MOST_PAYEES = 1000
"""Addresses with limits whose windows lie in the shared record; every one beyond has a record of its own."""
MOST_IN_ALL = 3000
"""Entries of all these windows together. An entry takes up to 60 bytes, an address 100: the shared record stays under 300 KB of
the 400 that an item may have."""
MOST_OWN = 2
"""Records of single addresses that one request may write: a batch's transaction has room for two."""

Entry = tuple[int, int]
Window = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Spent:
    """Withdrawals of one merchant and asset: all of a day, those of them without signatures, and those of 30 days to each address
    that has limits.

    One record, saved beside the balance of the same merchant and asset: it has no conflicts that the balance does not have.
    """

    tenant: TenantId
    asset: AssetId
    day: tuple[tuple[int, int], ...] = ()
    limited: dict[str, list[list[int]]] = field(default_factory=dict)
    unsigned: tuple[tuple[int, int], ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True)
class PayeeSpent:
    """Withdrawals to one address with limits in 30 days, where the shared record had no room for them. Saved with `Spent`."""

    tenant: TenantId
    asset: AssetId
    address: str
    window: tuple[tuple[int, int], ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True)
class Paid:
    """One payment as the windows count it: `limited`, whether its address has limits; `signed`, whether signers have to sign it."""

    address: str
    units: int
    limited: bool
    signed: bool = False


def used(window: Window, now: int, span: int) -> int:
    """Units recorded within `span` milliseconds before `now`."""
    return sum(units for at, units in window if at > now - span)


def booked(window: Window, now: int, units: int, span: int, most: int = MOST_ENTRIES) -> tuple[Entry, ...]:
    """`window` with `units` more, at `now`; entries out of the span are gone, and no more than `most` entries are left."""
    return shortened([*((at, n) for at, n in window if at > now - span), (now, units)], most)


def shortened(window: Window, most: int) -> tuple[Entry, ...]:
    """`window` with no more than `most` entries (at least one): the closest neighbours become one, at the later one's time."""
    kept = sorted((at, units) for at, units in window)
    while len(kept) > max(1, most):
        place = min(range(len(kept) - 1), key=lambda i: kept[i + 1][0] - kept[i][0])
        kept[place : place + 2] = [(kept[place + 1][0], kept[place][1] + kept[place + 1][1])]
    return tuple(kept)


def returned(window: Window, at: int, units: int) -> tuple[Entry, ...]:
    """`window` without the `units` that were recorded at `at`: taken from the entry that they lie in, and those behind it."""
    left, kept = units, []
    for time, found in window:
        taken = min(found, left) if time >= at else 0
        left -= taken
        if found > taken:
            kept.append((time, found - taken))
    return tuple(kept)


def window_of(spent: Spent, own: PayeeSpent | None, address: str) -> list[Entry]:
    """The window of payments to `address` while it had limits, from the shared record or `own`, its own record."""
    shared = [(at, units) for at, units in spent.limited.get(address, [])]
    return shared if own is None else [*shared, *own.window]


def with_payments(
    spent: Spent, own: Mapping[str, PayeeSpent], now: int, payments: Sequence[Paid]
) -> tuple[Spent, dict[str, PayeeSpent]]:
    """`spent` after payments, and the records of single addresses that change, all with their next versions.

    `own` are the records of single addresses that there are. One that still counts is used on; so is what the shared record has.
    """
    limited = {
        address: [list(entry) for entry in window]
        for address, window in spent.limited.items()
        if any(at > now - MONTH_MS for at, _ in window)
    }
    apart: dict[str, PayeeSpent] = {}
    for paid in payments:
        if not paid.limited:
            continue
        record = apart.get(paid.address) or own.get(paid.address)
        alone = record is not None and used(record.window, now, MONTH_MS) > 0
        if alone or (paid.address not in limited and len(limited) >= MOST_PAYEES):
            before = own.get(paid.address) or PayeeSpent(spent.tenant, spent.asset, paid.address)
            window = booked((record or before).window, now, paid.units, MONTH_MS)
            apart[paid.address] = PayeeSpent(spent.tenant, spent.asset, paid.address, window, version_after(before))
        else:
            limited[paid.address] = [list(entry) for entry in booked(limited.get(paid.address, []), now, paid.units, MONTH_MS)]
    over = sum(len(window) for window in limited.values()) - MOST_IN_ALL
    while over > 0:
        longest = max(limited, key=lambda address: len(limited[address]))
        window = shortened(limited[longest], len(limited[longest]) // 2)
        over -= len(limited[longest]) - len(window)
        limited[longest] = [list(entry) for entry in window]
    day, unsigned = spent.day, spent.unsigned
    total, free = sum(paid.units for paid in payments), sum(paid.units for paid in payments if not paid.signed)
    day = booked(day, now, total, DAY_MS)
    if free:
        unsigned = booked(unsigned, now, free, DAY_MS)
    return Spent(spent.tenant, spent.asset, day, limited, unsigned, version_after(spent)), apart


def without_payment(spent: Spent, own: PayeeSpent | None, now: int, at: int, paid: Paid) -> tuple[Spent, PayeeSpent | None]:
    """`spent` without a payment that `with_payments` recorded at `at`, with the next version; and its address's own record, where
    that changes.

    An amount that has left a window already is not in it, and nothing else may be taken out in its place.
    """
    limited = dict(spent.limited)
    apart = None
    if paid.limited and at > now - MONTH_MS:
        window = limited.get(paid.address, [])
        there = sum(units for time, units in window if time >= at)
        if there:
            limited[paid.address] = [list(entry) for entry in returned(window, at, paid.units)]
        if own is not None and there < paid.units:
            apart = PayeeSpent(own.tenant, own.asset, own.address, returned(own.window, at, paid.units - there), version_after(own))
    day, unsigned = spent.day, spent.unsigned
    if at > now - DAY_MS:
        day = returned(day, at, paid.units)
        unsigned = unsigned if paid.signed else returned(unsigned, at, paid.units)
    return Spent(spent.tenant, spent.asset, day, limited, unsigned, version_after(spent)), apart
