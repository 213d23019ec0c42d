"""Payments that meet at a record while they are recorded: those of one invoice, or of one address where there is none.

Each of them changes that record. Two at once would only refuse each other, so they are recorded one after the other, and those of
other invoices beside them. Groups of one merchant and coin follow each other too: side by side they would meet at its sums, which
lie in `totals.SHARDS` shards, and what is refused takes its write units all the same (`tests/bench/bench_throughput.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.chain import Transfer
from chalicelib.usecases.deposits.groups import Member

Lane = tuple[str, str]


def lane_of(transfer: Transfer, owner: Watched) -> Lane:
    """The lane of a payment to `owner`."""
    if owner.invoice_id is None:
        return "address", transfer.recipient
    return str(owner.tenant), owner.invoice_id


def member_lane(member: Member) -> Lane:
    return lane_of(member.transfer, member.owner)


def rounds(groups: Sequence[list[Member]]) -> list[list[list[Member]]]:
    """`groups` in rounds that are recorded one after the other. No two groups of a round meet, and what is of one lane keeps its
    order."""
    made: list[list[list[Member]]] = []
    next_round: defaultdict[Lane, int] = defaultdict(int)
    for group in groups:
        lanes = {member_lane(member) for member in group}
        own = max(next_round[lane] for lane in lanes)
        next_round.update((lane, own + 1) for lane in lanes)
        if own == len(made):
            made.append([])
        made[own].append(group)
    return made


def by_coin(groups: Sequence[list[Member]]) -> list[list[list[Member]]]:
    """`groups` in lanes: those of one merchant and coin one after the other. A payment that is recorded alone, and the operator's,
    is a lane."""
    lanes: dict[object, list[list[Member]]] = {}
    for place, group in enumerate(groups):
        tenant, contract = group[0].owner.tenant, group[0].transfer.contract
        lanes.setdefault(place if len(group) < 2 or tenant is None else (tenant, contract), []).append(group)
    return list(lanes.values())
