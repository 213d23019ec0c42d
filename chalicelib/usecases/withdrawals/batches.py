"""Stores a batch's withdrawals, in small transactions that two workers can not do twice."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.withdrawals.batches import WithdrawalBatch, batch_parts, batch_work
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.base.open_work import is_open, pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.ports.changes import Change, Close, Conflict
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import started

log = logging.getLogger(__name__)

SWEEP_AGE_MS = 15_000
"""How long the request that made a batch is left alone with it."""
_ITEMS = 7  # ten in a transaction, less two for the outbox and one for the end of the obligation


class BatchMaker:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def expand(self, batch: WithdrawalBatch) -> None:
        """Store all withdrawals of `batch` that are not stored yet. Safe twice and at once. Raises Conflict, Unavailable."""
        steps = list(_steps(batch.members()))
        for number, members in enumerate(steps, 1):
            self._make(batch, members, last=number == len(steps))

    def sweep(self, network: NetworkId) -> int:
        """Store the withdrawals that batches still lack, oldest batch first; the number of batches. Raises Unavailable,
        Failures."""
        done = 0
        with Each(f"{network}: batches") as each:
            for works in pages_of(self._store, "batch", network, upto=time_order(self._clock.now_ms() - SWEEP_AGE_MS)):
                for work in works:
                    each.take(work.id, partial(self._go_on, work))
                    done += 1
        return done

    def _go_on(self, work: Work) -> None:
        tenant, batch_id = batch_parts(work)
        batch = self._store.get(WithdrawalBatch, tenant=tenant, id=batch_id)
        if batch is None:
            raise LookupError(f"{work.id} is open and there is no such batch")
        self.expand(batch)

    def _make(self, batch: WithdrawalBatch, members: Sequence[Withdrawal], last: bool) -> None:
        """One step. Its withdrawals conflict where they are there already; then what is missing is found out, and made."""
        views = Views(self._store.catalogue(network_parts(batch.network)[0]))
        missing = list(members)

        def decide() -> None:
            news = News(self._clock.now_ms())
            changes: list[Change] = [change for member in missing for change in started(news, views, member)]
            changes += [*news.emit(), *([Close(batch_work(batch))] if last else [])]
            if not changes:
                return
            try:
                self._store.commit(changes)
            except Conflict:
                found = self._store.get_many([(Withdrawal, {"tenant": m.tenant, "id": m.id}) for m in members])
                missing[:] = [member for member, there in zip(members, found, strict=True) if there is None]
                if missing or not last or is_open(self._store, batch_work(batch)):
                    raise

        until_settled(decide)


def _steps(members: Sequence[Withdrawal]) -> Iterator[list[Withdrawal]]:
    """Groups that fit into a transaction: the same ones for every caller."""
    step: list[Withdrawal] = []
    size = 0
    for member in members:
        items = 3 if member.waits_for_approval else 2
        if size + items > _ITEMS:
            yield step
            step, size = [], 0
        step.append(member)
        size += items
    yield step
