"""Idle payouts: those that no worker handles are put in line again, and asked for. Needs no key, so that a schedule may run it.

A run reads a bounded part of waiting payouts, and of begun ones that did not go on: up to `ASKED_AT_ONCE` merchants with as many
rows each, for `SECONDS` at most, from where the run before stopped. It reads the withdrawals that it asks for, and one page of the
line itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.versions import newer_state, next_version
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.domain.withdrawals.payout_line import (
    BEFORE_LINES,
    BEGUN,
    IDLE_MS,
    READY,
    RETRY_MS,
    WAITING,
    aside_order,
    behind,
    payout_work,
    ready_order,
    time_in,
)  # fmt: skip
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.fairness import in_turn
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.open_work import PAGE
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.payout_line import parts
from chalicelib.usecases.withdrawals.steps import line_command, moved_in_line, payout_command, payout_parts

log = logging.getLogger(__name__)

ASKED_AT_ONCE = 50
SECONDS = 1.0
"""How long a run looks at a network's merchants: sixteen networks of both realms are within housekeeping's minute."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look(Generic[T]):
    """The rows found, and the position of the last one; "" at the end of a round."""

    found: list[T]
    place: str


class IdleRetries:
    """Finds payouts that no worker is on, and asks for them again. Needs no key."""

    def __init__(self, store: Store, queues: Queues, clock: Clock, watch: Callable[[], float] = time.monotonic) -> None:
        self._store, self._queues, self._clock, self._watch = store, queues, clock, watch

    def sweep(self, network: NetworkId, slots: int = 1) -> int:
        """Put payouts in line that have waited for long enough, a bounded number at a time, round robin over merchants and the
        oldest first: one merchant's thousands delay no other. Then ask for those, and for payouts in line whose message was lost;
        the number of messages sent, over so many `slots` (`Network.payout_slots`). Raises Unavailable.

        While payments are stopped nothing is asked for; stopped payouts are asked for as soon as payments go on.
        """
        if stopped(self._store, network_parts(network)[0]):
            return 0
        now, place = self._clock.now_ms(), f"payouts|{network}"
        before = self._store.get(SweepCursor, id=place) or SweepCursor(place, ("", ""), version=0)
        waiting, begun = self._due(network, now, before.places[0]), self._idle(network, now, before.places[1])
        self._remember(before, (waiting.place, begun.place))
        for withdrawal in begun.found:
            self._queues.send(payout_command(withdrawal))
        old = self._store.open_work("payout", network, upto=BEFORE_LINES, limit=ASKED_AT_ONCE)
        due = in_turn([*waiting.found, *old], lambda work: payout_parts(work)[0])[:ASKED_AT_ONCE]
        asked = [ready for work in due if (ready := self._put_in_line(work, now)) is not None]
        if len(asked) < ASKED_AT_ONCE:
            first = Work("payout", network, READY, "")
            there = self._store.open_work("payout", network, after=first, upto=behind(READY, "~"), limit=PAGE)
            asked += [work for work in there if now - time_in(work) >= IDLE_MS and work not in asked]
        for work in asked[:ASKED_AT_ONCE]:
            # Each time in another slot: the one that it was asked for in may have no money, or a worker that died.
            self._queues.send(line_command(work, slots, now // 60_000))
        return min(len(asked), ASKED_AT_ONCE) + len(begun.found)

    def _due(self, network: NetworkId, now: int, place: str) -> Look[Work]:
        """Payouts that have waited for long enough: first rows of merchants, from behind the one that the run before came to,
        around
        to it again, as far as time goes."""
        until = self._watch() + SECONDS
        look = partial(parts, self._store, network, WAITING, limit=ASKED_AT_ONCE)
        found: list[Work] = []
        merchants = 0
        for each in chain(look(place), look(upto=place) if place else ()):
            due = [work for work in each.rows if time_in(work) <= now]
            found += due
            merchants += bool(due)
            if merchants >= ASKED_AT_ONCE or self._watch() >= until:
                return Look(found, each.tenant)
        return Look(found, "")

    def _idle(self, network: NetworkId, now: int, place: str) -> Look[Withdrawal]:
        """The next page of begun payouts that stand still. `place` is a row's order and id."""
        order, _, id = (place or BEGUN).partition("#")
        first = Work("payout", network, order, id)
        page = self._store.open_work("payout", network, after=first, upto=behind(BEGUN, "~"), limit=ASKED_AT_ONCE)
        keys = [dict(zip(("tenant", "id"), payout_parts(work), strict=True)) for work in page]
        found: list[Withdrawal | None] = known_of(self._store, [(Withdrawal, key) for key in keys]) if keys else []
        last = f"{page[-1].order}#{page[-1].id}" if len(page) == ASKED_AT_ONCE else ""
        return Look([w for w in found if w is not None and _stands_still(w, now)], last)

    def _remember(self, cursor: SweepCursor, places: tuple[str, str]) -> None:
        if places == cursor.places:
            return
        try:
            self._store.commit([Save(replace(next_version(cursor), places=places))])
        except Conflict:
            log.info("%s: another run of the sweep was first", cursor.id)

    def _put_in_line(self, work: Work, now: int) -> Work | None:
        """Its place in line; None where it left its place meanwhile, or was started: that is asked for by name. None too where its
        withdrawal has a state or a form that only a newer version knows, so that others do not wait for it."""
        tenant, withdrawal_id = payout_parts(work)
        (before,) = known_of(self._store, [(Withdrawal, {"tenant": tenant, "id": withdrawal_id})])
        if before is None or payout_work(before) != work or newer_state(before) is not None:
            return None
        order = ready_order(tenant, now) if before.status == "pending" else aside_order(before, now)
        after = replace(next_version(before), line=order)
        try:
            self._store.commit(moved_in_line(before, after))
        except Conflict:
            return None  # another worker is at it, or has ended it
        return payout_work(after) if before.status == "pending" else None


def _stands_still(withdrawal: Withdrawal, now: int) -> bool:
    waits = withdrawal.pending_reason in ("liquidity", "risk", "fees", "suspended")
    return withdrawal.status == "processing" and now - withdrawal.updated_at >= (RETRY_MS if waits else IDLE_MS)
