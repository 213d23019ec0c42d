"""The order of outbox rows that tell of the same objects. Pure.

Each event has a number among those of its object, and a row's transaction could only commit after that of the row with the number
before. So the numbers order all rows of an object, whatever times their machines gave them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chalicelib.domain.ids import TenantId
from chalicelib.domain.work import OutboxRow


class Object(NamedTuple):
    """The object of an event."""

    tenant: TenantId
    id: str


def numbers_in(row: OutboxRow) -> dict[Object, int]:
    """The lowest event number of each object that `row` tells of."""
    found: dict[Object, int] = {}
    for event in row.events:
        of = Object(event.tenant, event.object_id)
        found[of] = min(found.get(of, event.sequence), event.sequence)
    return found


def goes_before(one: OutboxRow, other: OutboxRow) -> bool:
    """Whether `one` has an earlier event than `other` of the same object."""
    numbers = numbers_in(other)
    return any(of in numbers and number < numbers[of] for of, number in numbers_in(one).items())


def before_it(row: OutboxRow, others: Iterable[OutboxRow]) -> list[OutboxRow]:
    """Those of `others` that go before `row`, or before one that does, in the order in which they go."""
    left, found, front = list(others), list[OutboxRow](), [row]
    while front:
        front = [one for one in left if any(goes_before(one, other) for other in front)]
        left = [one for one in left if all(one is not other for other in front)]
        found += front
    return _in_order(found)


def _in_order(rows: list[OutboxRow]) -> list[OutboxRow]:
    """None behind one that it goes before. In a circle, which no commits can make, any one begins."""
    behind = {row.id: {other.id for other in rows if goes_before(other, row)} for row in rows}
    by_id, found = {row.id: row for row in rows}, list[OutboxRow]()
    while behind:
        first = next((id for id, before in behind.items() if not before), next(iter(behind)))
        del behind[first]
        for before in behind.values():
            before.discard(first)
        found.append(by_id[first])
    return found
