"""Events of a merchant without webhook endpoints: stored in the transaction of their change, without an outbox row.

Nobody is told of them, so the relay would have nothing to do but to move them. That nobody listens is a condition of that very
transaction, on the count of the merchant's endpoints, which registering one changes: an endpoint that is registered a moment before
misses nothing. Where the condition fails, or another transaction is at the count at the same time, the events go by the outbox, as
they always may: so the count, one item of a merchant, is never what its payments wait for.

A version without this puts every event in the outbox; the two may run side by side, since both leave the same records behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.work import NOTICE, OutboxRow
from chalicelib.store.schema import key_of
from chalicelib.usecases.ports.changes import Change, Emit, Save
from chalicelib.usecases.ports.clock import Clock

OF = "webhooks"
LISTENS_SECONDS = 60.0
"""How long a process uses the outbox for a merchant before it asks again who listens."""
BUSY_SECONDS = 2.0
"""The same where only another transaction was at the count: one of AWS's transactions lasts some 20 ms, and many that meet at an
item are refused in turn.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling"""
REMEMBERED = 10_000
FEW_EVENTS = 8
"""Of more, those of a group of payments, a transaction holds the outbox row alone, compressed: 24 events take some 6 write units
there and one each where the relay stores them, but two each in the transaction. Nor do groups of one merchant, in functions side
by side, meet at the count. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html"""
MOST_DIRECT = 100
"""Items of a transaction with all its events: as many as AWS takes, of 4 MB in all.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""


class Heard(Exception):
    """The events of a transaction have to go by the outbox: nothing was committed. `for_seconds`: the next ones of the merchant as
    well. None of them where the transaction has too many items, which says nothing of who listens."""

    def __init__(self, for_seconds: float) -> None:
        super().__init__("somebody may listen")
        self.for_seconds = for_seconds


def may_be_direct(row: OutboxRow) -> bool:
    """Whether the events of `row` may be stored directly where nobody listens: they are few, one merchant's, no object of theirs
    has a webhook of its own, and no queue gets a command. Notices are of the function that sends webhooks, which may not write
    events."""
    return (
        row.tenant is not None
        and not row.hooks
        and len(row.events) <= FEW_EVENTS
        and not row.id.startswith(f"{NOTICE}_")
        and all(command.queue == "collectable" for command in row.commands)
    )


class Listeners:
    """What a process remembers of the merchants that have endpoints. Safe to share between threads."""

    def __init__(self, read: Callable[[TenantId], Tally | None], clock: Clock | None = None) -> None:
        """`read` gives the count of a merchant's endpoints."""
        self._read, self._clock = read, clock
        self._until: dict[TenantId, float] = {}
        """Until when the outbox is used, by merchant; 0 where nobody listened when that was asked."""
        self._lock = threading.Lock()

    def direct(self, changes: Sequence[Change]) -> Emit | None:
        """The change of `changes` whose events are stored directly; None where they go by the outbox. Raises Unavailable."""
        emits = [change for change in changes if isinstance(change, Emit)]
        if len(emits) != 1 or not may_be_direct(emits[0].row):
            return None
        tenant = emits[0].row.tenant
        return emits[0] if tenant is not None and self._unheard(tenant) else None

    def heard(self, tenant: TenantId | None, seconds: float) -> None:
        """Use the outbox for this merchant's next events."""
        if tenant is not None:
            self._remember(tenant, time.monotonic() + seconds)

    def now_ms(self) -> int:
        """The machines' time, in milliseconds since 1970."""
        return time.time_ns() // 1_000_000 if self._clock is None else self._clock.now_ms()

    def saw(self, changes: Sequence[Change]) -> None:
        """This process committed `changes`: where they count endpoints, who listens is asked again."""
        for change in changes:
            if isinstance(change, Save) and isinstance(change.record, Tally):
                with self._lock:
                    self._until.pop(change.record.tenant, None)

    def forget(self) -> None:
        """Ask of every merchant again."""
        self._until.clear()

    def _unheard(self, tenant: TenantId) -> bool:
        until = self._until.get(tenant)
        if until is None or 0 < until <= time.monotonic():
            until = time.monotonic() + LISTENS_SECONDS if self._listens(tenant) else 0.0
            self._remember(tenant, until)
        return until == 0.0

    def _listens(self, tenant: TenantId) -> bool:
        try:
            tally = self._read(tenant)
        except LookupError:  # altered, which is an alarm already; payments do not wait for its repair
            return True
        return tally is not None and tally.count > 0

    def _remember(self, tenant: TenantId, until: float) -> None:
        with self._lock:
            if len(self._until) >= REMEMBERED:
                self._until.clear()
            self._until[tenant] = until


def put_in(plan: Any, change: Emit, open_: Callable[..., None], now_ms: int) -> None:
    """What the relay makes of an outbox row where its merchant has no endpoint, on the condition that this is so. `open_` puts
    work in, which may be open already. Events are kept from `now_ms` on, the machines' time: the test realm's may be
    years ahead."""
    from chalicelib.usecases.wallets.sweep_candidates import hint_work

    row = change.row
    tally: Any = plan.models.of(Tally)
    nobody = tally.pk.does_not_exist() | (tally.f_count == 0)
    plan.check(change, tally, key_of(Tally, {"tenant": str(row.tenant), "of": OF}), nobody)
    put_events(plan, change, now_ms)
    # A transaction may have an item only once. One that is open is put over, also what a newer version put there: no condition,
    # which would fail the payment, and no update, since the roles may only put obligations. A hint is its key: what is to be
    # collected is read from the ledger, and any version may have opened it, so that nobody can rest on more.
    for command in {(each.group, each.body["id"]): each for each in row.commands}.values():
        open_(plan, change, hint_work(NetworkId(command.group), command.body["id"]), anew=False)


def put_events(plan: Any, change: Emit, now_ms: int) -> None:
    """Put the events of a row in the transaction, as the relay would store them."""
    from chalicelib.domain.times import iso
    from chalicelib.domain.webhooks.endpoints import event_record

    for event in change.row.events:
        item = plan.models.item(event_record(event, iso(event.at), now_ms))
        plan.put(change, item, type(item).pk.does_not_exist())
