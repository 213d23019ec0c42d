"""Open work: every unfinished step has a row, written in the transaction that causes the step, and removed by the one that
finishes it. Clocks and queues only make it happen sooner: a step left by a crash or a lost message is found here, and a store with
no open work has nothing stuck in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import TenantId, derived_id, made_at
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.hooks import Hooked

WorkKind = Literal[
    "outbox", "deposit", "batch", "approval", "payout", "sent", "settled", "expiry", "delivery", "rescan", "stake",
    "staked", "bundle", "glimpse", "range", "move", "moved", "collectable", "collection", "coinmove", "coinmoved", "drain",
    "loan", "redelivery", "unheld", "stray", "givenup",
    "refund", "unpriced", "lookout",
]  # fmt: skip
"""What still has to happen, by kind.

- `outbox`: events and commands have to be sent
- `deposit`: a deposit waits for its confirmations
- `expiry`: an open invoice has to expire in time
- `delivery`: a webhook has to be sent
- `batch`: its withdrawals are not all stored yet
- `approval`: a withdrawal waits for signers or the operator
- `payout`: a withdrawal has to be signed (its order: `domain.withdrawals.payout_line`)
- `sent`: a withdrawal is signed and has to be settled
- `settled`: a withdrawal is settled, and a reorganisation could still undo it
- `rescan`: blocks have to be scanned again
- `stake`, `staked`: TRX have to be staked; are staked, and a reorganisation could still undo it
- `bundle`: a transaction of several payments is not finished
- `glimpse`: a mempool transaction is not in a block yet
- `range`: blocks of a backlog have to be scanned
- `move`, `moved`: coins have to go from one address of ours to another; did, and a reorganisation could still undo it
- `coinmove`, `coinmoved`: the same on UTXO networks
- `collectable`: an address (on UTXO networks an unspent deposit) may have coins to collect
- `collection`: one is in flight, ordered by when it is next looked at
- `drain`: a replaced wallet is not empty
- `loan`: lent energy is not back yet
- `redelivery`: a job sends an endpoint the events of a time again
- `unheld`: an endpoint is paused no more, and its parked deliveries have to be sent or cancelled
- `stray`: a payment on the wrong network is the operator's merchant's, and its withdrawal is not ordered yet
- `unpriced`: a deposit waits for the rate at which it counts for its invoice
- `givenup`: an operator gave up a transaction of ours, which has to be ended, or may be mined after all
- `lookout`: an endpoint's first deliveries, which no index shows, have to be looked for once more, at this time
- `refund`: a claim link has to expire in time, or a refund with an address has no withdrawal yet
"""
LANES = 8
"""Lanes of the kinds that belong to no network, so that no partition gets all writes."""
NOTICE = "note"
"""The beginning of the id of an outbox row that tells of webhook endpoints alone. The function that sends webhooks may
write these rows and no others: it talks to strangers, and is not to tell merchants of payments, or to order any."""
ONE_ITEM = "row"
"""The beginning of the id of an outbox row that is its own obligation: one item, which is found by its lane as by its id."""
_TWO_ITEMS = "out"
HELD = "held"
"""The beginning of the `order` of work that waits for no time: behind all times, as text."""
TIME_DIGITS = 15
"""Digits of a time in an `order`: all orders of deliveries end with one."""
BEHIND = "wait"
"""The same of a delivery that waits for an earlier one of its object: behind parked ones."""
_TAG = 4
"""Characters for an object in the id of an outbox row."""


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
    """`collectable` is no queue: the relay opens the work of that kind, in the lane `group`."""
    group: str
    body: dict[str, str]


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """The messages of one transaction: events for the merchant, commands for queues. `at` in milliseconds since 1970.

    `hooks` are the webhooks that invoices among the events' objects, or refunds, have of their own; None where none has. `apart`:
    the events were stored in the same transaction, and are here without their data; None: the relay stores them. A relay of an
    older version tells what it knows of a row, and removes it: what each relay has to heed takes another form of rows
    (`store.models.NEEDS`). Nothing stores a row over another one: it has no version, and is there as it was committed until it is
    removed.
    """

    id: str
    at: int
    events: tuple[Event, ...]
    commands: tuple[Command, ...] = ()
    hooks: tuple[Hooked, ...] | None = None
    apart: bool | None = None

    @property
    def is_forged(self) -> bool:
        """Whether its id is that of a notice, and it has more messages than a notice may."""
        notice = self.id.startswith(f"{NOTICE}_")
        return notice and (
            bool(self.commands) or bool(self.hooks) or not all(event.name.startswith("webhook.") for event in self.events)
        )

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
    return f"{at:0{TIME_DIGITS}d}"


def held_order(since: int) -> str:
    """The `order` of work without a due time: sorted among its kind by `since` (milliseconds since 1970)."""
    return f"{HELD}{time_order(since)}"


def is_held(work: Work) -> bool:
    """Whether the work has no due time."""
    return work.order.startswith((HELD, BEHIND))


def time_lane(work: Work) -> str | None:
    """The lane in which work of many owners is found by its due time; None for work without one, and for kinds whose own lanes
    are enough."""
    return lane_of(work.id) if work.kind == "delivery" and not is_held(work) else None


def outbox_id(id: str, events: Sequence[Event]) -> str:
    """The id of an outbox row with these events: `id`, their merchant's lane, and a tag for each object.

    So the open rows of an object lie in one lane and are found without reading them. A row of several merchants keeps `id`.
    """
    tenants = {event.tenant for event in events}
    if len(tenants) != 1:
        return id
    return f"{id}-{lane_of(tenants.pop())}{''.join(dict.fromkeys(map(object_tag, events)))}"


def object_tag(event: Event) -> str:
    """The tag of the object that `event` is about. Two objects may have the same one."""
    return derived_id("tag", event.tenant, event.object_id)[-_TAG:]


def tags_in(outbox_id: str) -> frozenset[str]:
    """The tags of the objects that a row tells of; none for an id that `outbox_id` did not make."""
    tags = outbox_id.partition("-")[2][1:]
    return frozenset(tags[start : start + _TAG] for start in range(0, len(tags), _TAG))


def outbox_work(row: OutboxRow) -> Work:
    """Open work: send the messages of `row`."""
    return Work("outbox", _outbox_lane(row.id), time_order(row.at), row.id)


def is_one_item(outbox_id: str) -> bool:
    """Whether this is the id of an outbox row that is its own obligation. One that tells no time is none of ours."""
    return outbox_id.startswith(f"{ONE_ITEM}_") and _time_in(outbox_id) is not None


def as_one_item(row: OutboxRow) -> OutboxRow:
    """`row` under an id by which it is its own obligation. As it is where its id does not tell its time, and where it is a notice:
    what sends webhooks may write obligations of the outbox, and rows of notices alone."""
    prefix, _, rest = row.id.partition("_")
    fits = prefix == _TWO_ITEMS and _time_in(row.id) == row.at
    return replace(row, id=f"{ONE_ITEM}_{rest}") if fits else row


def with_events_apart(row: OutboxRow) -> OutboxRow:
    """`row` as it lies beside its events, which are stored in its transaction."""
    return replace(row, events=tuple(replace(event, data={}, more={}) for event in row.events), apart=True)


def one_item_work(outbox_id: str) -> Work:
    """The obligation that an outbox row of one item is, by its id alone. Raises ValueError for another id."""
    return Work("outbox", _outbox_lane(outbox_id), time_order(made_at(outbox_id)), outbox_id)


def _time_in(id: str) -> int | None:
    try:
        return made_at(id)
    except ValueError:
        return None


def _outbox_lane(outbox_id: str) -> str:
    return outbox_id.partition("-")[2][:1] or lane_of(outbox_id)
