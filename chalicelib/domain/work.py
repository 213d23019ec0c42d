"""Open work: every unfinished step has a row, written in the transaction that causes the step, and removed by the one that
finishes it. Clocks and queues only make it happen sooner: a step left by a crash or a lost message is found here, and a store with
no open work has nothing stuck in it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.events import Event

WorkKind = Literal[
    "outbox", "deposit", "batch", "approval", "payout", "sent", "settled", "expiry", "delivery", "rescan", "stake",
    "staked", "bundle", "glimpse", "range", "move", "moved", "collectable", "collection", "coinmove", "coinmoved", "drain",
    "loan", "redelivery", "unheld", "stray", "givenup",
]  # fmt: skip
"""`batch`: one whose withdrawals are not all stored yet; `approval`: a withdrawal that somebody has to agree to; `payout`: one
that has to be signed (its order: `domain.withdrawals.payout_line`); `sent`: one that is signed and has to be settled; `settled`:
one that is settled, and watched while a reorganisation could still undo it; `rescan`: blocks that have to be looked at again;
`stake`: TRX that have to be staked; `staked`: TRX that are, watched as long as what is settled;
`bundle`: a transaction of several payments that is not finished; `glimpse`: a payment that was seen before it was in a block;
`range`: blocks of a backlog that have to be scanned; `move`: coins that have to go from one place of ours to another; `moved`: ones
that did, watched as long as what is settled; `coinmove`, `coinmoved`: the same on networks of coins; `collectable`: an address
whose coins may have to be collected (of networks of coins: a deposit that is not spent); `collection`: one that is under way, found
by when it is next looked at; `drain`: a wallet that was replaced and is not empty; `loan`: energy that was lent and is
not back yet; `redelivery`: a job that sends an endpoint the events of a time again; `unheld`: an endpoint that is paused no more,
whose put-aside deliveries have to be sent or cancelled; `stray`: a payment on the wrong network that is the operator's merchant's,
and whose withdrawal is not ordered yet; `givenup`: a transaction
of ours that an operator gave up, while it has to be ended, or may be mined after all."""
LANES = 8
"""Lanes of the kinds that belong to no network, so that no partition gets all writes."""
NOTICE = "note"
"""What the id of an outbox row begins with that tells of nothing but webhook endpoints. Whoever sends webhooks may write these
rows and no others: it talks to strangers, and is not to tell merchants of payments, or to order any."""
HELD = "held"
"""What the `order` of work begins with that waits for no time: behind all times, as text."""


@dataclass(frozen=True, slots=True)
class Work:
    """A row of open work. `lane` groups the rows that one worker reads (a network, a shard); `order` sorts within it; `id`
    names the record."""

    kind: WorkKind
    lane: str
    order: str
    id: str


@dataclass(frozen=True, slots=True)
class Command:
    """A message for a queue, sent after the commit when the outbox is emptied. It may be sent twice."""

    queue: Literal["payouts", "collections", "collectable"]
    """`collectable` is no queue: whoever empties the outbox opens the work of that kind, in the lane `group`."""
    group: str
    body: dict[str, str]


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """The messages of one transaction: events for the merchant, commands for queues. `at` in milliseconds since 1970."""

    id: str
    at: int
    events: tuple[Event, ...]
    commands: tuple[Command, ...] = ()

    @property
    def is_forged(self) -> bool:
        """Whether its id is that of a notice, and it has more messages than a notice may."""
        notice = self.id.startswith(f"{NOTICE}_")
        return notice and (bool(self.commands) or not all(event.name.startswith("webhook.") for event in self.events))

    @property
    def tenant(self) -> TenantId | None:
        """The merchant of its events, where all are one merchant's."""
        tenants = {event.tenant for event in self.events}
        return tenants.pop() if len(tenants) == 1 else None


def lane_of(id: str) -> str:
    """The lane, "0" to "7", that work on `id` lies in: always the same one for the same id."""
    return str(int.from_bytes(hashlib.sha256(id.encode()).digest()[:2], "big") % LANES)


def time_order(at: int) -> str:
    """`at` (milliseconds since 1970) as an `order`: sorts as text the way the times do."""
    return f"{at:015d}"


def held_order(since: int) -> str:
    """The `order` of work without a due time: sorted among its kind by `since` (milliseconds since 1970)."""
    return f"{HELD}{time_order(since)}"


def is_held(work: Work) -> bool:
    """Whether the work has no due time."""
    return work.order.startswith(HELD)


def time_lane(work: Work) -> str | None:
    """The lane in which work of many owners is found by its due time; None for work without one, and for kinds whose own lanes
    are enough."""
    return lane_of(work.id) if work.kind == "delivery" and not is_held(work) else None


def outbox_work(row: OutboxRow) -> Work:
    """Open work: send the messages of `row`."""
    return Work("outbox", lane_of(row.id), time_order(row.at), row.id)
