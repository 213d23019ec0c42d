"""Which of an endpoint's due parcels are sent with a batch. Reads and changes nothing.

A parcel is sent whole or not at all. What it has keeps its place in the order of events all the same: nothing later of one of its
objects is sent before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.ordering import Blockers, object_key
from chalicelib.domain.webhooks.parcels import Parcel
from chalicelib.usecases.webhooks.ordering import Ordering, Pair, Plan


@dataclass(frozen=True, slots=True)
class Packed:
    """What to do with due deliveries and parcels: `sent` parcels are part of the plan's batch, others are to `unpack`; `left` stay
    due, beside what the plan leaves."""

    plan: Plan
    sent: list[Parcel]
    unpack: list[Parcel]
    left: int


def packed(ordering: Ordering, due: Sequence[Pair], parcels: Sequence[Parcel], blockers: Blockers, *, whole: bool) -> Packed:
    """Plan the sending of `due`, those of `parcels` among them. A parcel that has to wait for what is sent now stays as it is. It
    is unpacked where a blocker holds it up, or more is due than was read (not `whole`)."""
    parts = {parcel: [pair for pair in due if pair[0].id in parcel.delivery_ids] for parcel in parcels}
    batch, waiting = list(due), dict[str, int]()
    held = [parcel for parcel in parcels if any(_held_up(event, blockers) for _, event in parts[parcel])]
    late, out = list(held), list[Parcel]()
    while True:
        out += late
        for parcel in late:
            _wait(waiting, (event for _, event in parts[parcel]))
        behind = [pair for pair in batch if waiting.get(object_key(pair[1].object_id), pair[1].sequence) < pair[1].sequence]
        gone = {pair[0].id for parcel in out for pair in parts[parcel]} | {pair[0].id for pair in behind}
        late = [parcel for parcel in parcels if parcel not in out and not gone.isdisjoint(parcel.delivery_ids)]
        if late:
            continue
        batch = [pair for pair in batch if pair[0].id not in gone]
        plan = ordering.plan(batch, blockers, whole=whole)
        sent = {delivery.id for delivery, _ in plan.batch}
        late = [parcel for parcel in parcels if parcel not in out and not sent.issuperset(parcel.delivery_ids)]
        if not late:
            break
    unpack = held if whole and (plan.batch or held) else out
    return Packed(plan, [parcel for parcel in parcels if parcel not in out], unpack, len(due) - len(batch))


def _held_up(event: EventRecord, blockers: Blockers) -> bool:
    return blockers.holds_up(object_key(event.object_id), event.sequence)


def _wait(waiting: dict[str, int], events: Iterable[EventRecord]) -> None:
    """Note the lowest number of an event of each object that is not sent now."""
    for event in events:
        of = object_key(event.object_id)
        waiting[of] = min(waiting.get(of, event.sequence), event.sequence)
