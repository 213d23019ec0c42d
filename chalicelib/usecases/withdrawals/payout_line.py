"""The payout line of a network: round robin over merchants, however many payouts one of them has waiting.

A message says that there is one more payout to make, not which (`line_command`). The worker that gets it takes the
next merchant that has one ready, behind the merchant that was served last, and that merchant's oldest. So a batch of a hundred is a
hundred turns, and another merchant's payment has the next one. Finding it is one page of open work, however much is open.

A network with several hot wallets has a turn (`PayoutLine`) for each: workers of different slots take from the same line, and leave
alone what is in another slot's hand. Where two take the same payout all the same, one of them begins it, and the other goes on with
that: a withdrawal names its wallet from then on.

A payout that was tried and has to wait leaves the line: with a stored reason (`payouts/checks`), or for half a minute. A payment
whose worker died goes first, since its nonce may hold up all others, but no more than `MOST_TRIES` times.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice

from chalicelib.domain.addresses.addresses import group_of, seat_of
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import newer_state, next_version
from chalicelib.domain.withdrawals.payout_line import IDLE_MS, READY, PayoutLine, aside_order, behind, merchant_in, payout_work
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.base.open_work import PAGE, is_open
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Close, Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import moved_in_line, payout_parts

log = logging.getLogger(__name__)

FEW = 10
"""Rows that the first look at a merchant's part of the line reads."""
MOST_TRIES = 3
"""How often in a row a payment is taken up that its workers die with."""


@dataclass
class Part:
    """One merchant's part of the line: the first `rows`, and whether there are `more`."""

    tenant: str
    rows: list[Work]
    more: bool


def parts(
    store: Store, network: NetworkId, part: str, after: str = "", upto: str | None = None, limit: int = FEW
) -> Iterator[Part]:
    """Merchants in a part of the lane (READY, WAITING or BEGUN) with their first rows, from behind the merchant `after` to `upto`,
    both in the order of their ids. A merchant with many rows costs one page."""
    place = Work("payout", network, behind(part, after) if after else part, "")
    end = behind(part, "~" if upto is None else upto)
    while True:
        page = store.open_work("payout", network, after=place, upto=end, limit=limit)
        found = [Part(tenant, list(rows), False) for tenant, rows in groupby(page, merchant_in)]
        if found:
            found[-1].more = len(page) == limit
            yield from found
        if len(page) < limit:
            return
        place = Work("payout", network, behind(part, found[-1].tenant), "")


def in_turns(store: Store, network: NetworkId, last: str) -> Iterator[Work]:
    """Ready payouts, round robin: the first of every merchant, beginning behind the merchant `last`, then the second of every
    merchant, and so on. Reads as far as the caller iterates."""
    again: list[Part] = []
    for each in chain(parts(store, network, READY, last), parts(store, network, READY, upto=last) if last else ()):
        yield each.rows[0]
        again.append(each)
    place = 0
    while again := [each for each in again if place + 1 < len(each.rows) or _more(store, network, each)]:
        place += 1
        for each in again:
            yield each.rows[place]


def _more(store: Store, network: NetworkId, part: Part) -> bool:
    """Read the merchant's next page behind the rows that are known; whether there was anything."""
    if not part.more:
        return False
    page = store.open_work("payout", network, after=part.rows[-1], upto=behind(READY, part.tenant), limit=PAGE)
    part.rows, part.more = [*part.rows, *page], len(page) == PAGE
    return bool(page)


class Line:
    """Needs no key; the function that signs asks it for the next payout."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._newer: dict[str, int] = {}
        """Until when payouts are passed over whose withdrawals have a state or a form that only a newer version knows."""

    def take(self, network: NetworkId, slot: int = 0, slots: int = 1) -> Work | None:
        """The next payout in the line for the hot wallet in `slot`, of so many `slots`; None where none is ready. The line then
        goes on to the next merchant. Raises Unavailable, and Conflict where other workers took the next payout at the same time
        too often."""
        return until_settled(lambda: self._take(network, slot, max(slots, slot + 1)))

    def _take(self, network: NetworkId, slot: int, slots: int) -> Work | None:
        names = [group_of(network, seat_of(number)) for number in range(slots)]
        found = each_of(self._store, [(PayoutLine, {"network": name}) for name in names])
        if isinstance(found[slot], TooNew):
            raise found[slot]
        line = found[slot] or PayoutLine(NetworkId(names[slot]), version=0)
        held = {other.hand for other in found if isinstance(other, PayoutLine) and other.network != line.network}
        left = self._left_behind(network, line)
        if left is not None and line.tries < MOST_TRIES:
            self._store.commit([Save(replace(next_version(line), tries=line.tries + 1))])
            return left
        if left is not None:
            log.error("ALARM %s: %s was given up %d times by a worker that died: others go first", network, left.id, line.tries)
            self.leave(left)
        work = self._free(in_turns(self._store, network, line.last), held)
        if work is None:
            return None
        hand = f"{work.order}#{work.id}"
        self._store.commit([Save(replace(next_version(line), last=merchant_in(work), hand=hand, tries=1))])
        return work

    def _free(self, ready: Iterator[Work], held: set[str]) -> Work | None:
        """The first that is in no other slot's hand. Where there is none, the first of all: the worker that had it in hand may have
        died, or works on it still, which does no harm."""
        now = self._clock.now_ms()
        mine = (work for work in ready if self._newer.get(work.id, 0) <= now)
        first = list(islice(mine, len(held) + 1))
        return next((work for work in first if f"{work.order}#{work.id}" not in held), first[0] if first else None)

    def _left_behind(self, network: NetworkId, line: PayoutLine) -> Work | None:
        """The payout last in hand, where it stands there still: its worker has died, or still works on it, which does no harm. A
        payout that left the line and came back stands elsewhere."""
        if not line.hand:
            return None
        order, _, id = line.hand.partition("#")
        work = Work("payout", network, order, id)
        tenant, withdrawal_id = payout_parts(work)
        try:
            found = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        except TooNew:
            self._pass_over(work)
            return None
        return work if found is not None and _open(found) and payout_work(found) == work else None

    def leave(self, work: Work) -> None:
        """After an attempt at a payout: where it stopped without a stored reason, others go before it for half a minute.

        Raises Conflict, Unavailable: then the next worker finds it in hand.
        """
        until_settled(lambda: self._leave(work))

    def _pass_over(self, work: Work) -> None:
        self._newer[work.id] = self._clock.now_ms() + IDLE_MS

    def _leave(self, work: Work) -> None:
        tenant, withdrawal_id = payout_parts(work)
        try:
            found = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        except TooNew:
            self._pass_over(work)
            return
        if found is not None and newer_state(found) is not None:
            self._pass_over(work)
        elif found is not None and _open(found) and payout_work(found) == work:
            due = aside_order(found, self._clock.now_ms() + IDLE_MS)
            self._store.commit(moved_in_line(found, replace(next_version(found), line=due)))
        elif is_open(self._store, work):
            # Read again, since it may have gone on between the two reads.
            again = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
            if again != found:
                raise Conflict(None)
            log.error("ALARM %s: the payout %s is open, and its withdrawal is not where it stands: taken out", work.lane, work.id)
            same = [] if found is None else [Save(next_version(found))]
            self._store.commit([Close(work), *same])


def _open(withdrawal: Withdrawal) -> bool:
    """Whether its payout is open."""
    return withdrawal.status in ("pending", "processing") and not withdrawal.waits_for_approval
