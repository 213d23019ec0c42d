"""Carrying out jobs of redelivery, page by page, in the function `relay`. Touches webhooks, events and work only.

A page is a hundred events. Its deliveries follow from the events, the endpoint and the job, and how far the job has come is
written down last: a page that is done twice, or by two at once, makes nothing twice. A message is worked at for ten seconds, then
the job waits in the queue behind others. A page is 6 reads and 20 to 34 transactions, one after the other: 10,000 events are 100
pages, less than a dozen messages, and one job writes a few hundred units a second of its own tenant's partition at most.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Literal

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_id
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.redelivery import (
    PAGE,
    RedeliveryJob,
    Seen,
    fresh,
    job_of,
    made_again,
    needs_none,
    redelivery_work,
    times_of,
)
from chalicelib.domain.work import LANES, Work
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Close, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Page, Span, Store
from chalicelib.usecases.webhooks.endpoints import wake
from chalicelib.usecases.webhooks.making import Made, made_once

log = logging.getLogger(__name__)

RUN_MS = 10_000
"""No page is started after this; what is left waits in the queue."""
LOST_MS = 60_000
"""A job that nobody was at for so long is asked for again."""

Outcome = Literal["ended", "more", "overtaken"]


class RedeliveryRun:
    def __init__(self, store: Store, queues: Queues, clock: Clock) -> None:
        self._store, self._queues, self._clock = store, queues, clock

    def carry(self, tenant: TenantId, id: str) -> Outcome:
        """Go on with a job. Safe twice, at once, and late. `more`: time is up, and a message is on its way; `overtaken`: another
        worker has it. Raises Unavailable and Conflict: the message comes back, and the sweep finds the job anyway."""
        started = self._clock.now_ms()
        job = self._store.get(RedeliveryJob, tenant=tenant, id=id)
        while job is not None and job.status == "running":
            if self._clock.now_ms() - started >= RUN_MS:
                self._queues.redeliver(tenant, id)
                return "more"
            job = self._step(job)
            if job is None:
                return "overtaken"
        return "ended"

    def sweep(self) -> int:
        """Ask for jobs that no worker is on; the number of such jobs. Raises Unavailable."""
        asked = 0
        for lane in range(LANES):
            for works in pages_of(self._store, "redelivery", str(lane)):
                owners = [job_of(work) for work in works]
                jobs = each_of(self._store, [(RedeliveryJob, {"tenant": tenant, "id": id}) for tenant, id in owners])
                for work, job in zip(works, jobs, strict=True):
                    asked += self._swept(work, job)
        return asked

    def _swept(self, work: Work, job: RedeliveryJob | TooNew | None) -> bool:
        if isinstance(job, TooNew):
            return False  # the newer version goes on with it
        if job is None:
            log.error("ALARM redelivery %s is gone and was not finished", work.id)
            self._store.commit([Close(work)])
            return False
        lost = job.status == "running" and self._clock.now_ms() - job.touched_at >= LOST_MS
        if lost:
            self._queues.redeliver(job.tenant, job.id)
        return lost

    def _step(self, job: RedeliveryJob) -> RedeliveryJob | None:
        """Do a page; the job after it, None where another worker did it first."""
        endpoint = self._store.get(WebhookEndpoint, tenant=job.tenant, id=job.endpoint_id)
        if endpoint is None or not endpoint.enabled:
            reason = "the endpoint was deleted" if endpoint is None else "the endpoint is disabled"
            return until_settled(partial(self._cancelled, job, reason))
        page = self._store.page(EventRecord, limit=PAGE, after=job.after, span=Span(*job.span), tenant=job.tenant)
        made, skipped = until_settled(partial(self._sent_again, job, endpoint, page.items))
        if made:
            wake(self._queues, endpoint)
        after = page.items[-1].id if page.items else None
        return until_settled(partial(self._advanced, job, page, Seen(after, len(page.items), made, skipped)))

    def _sent_again(self, job: RedeliveryJob, endpoint: WebhookEndpoint, events: list[EventRecord]) -> tuple[int, int]:
        """Make what is to be sent; how many deliveries the job has made of these events, also before, and how many need none.

        Raises Conflict, Unavailable, and TooNew for a delivery in a form that only a newer version knows, which goes on with this
        job: whether that one is missed is not known here, and a job passes each event once.
        """
        now = self._clock.now_ms()
        # One whose time is over is left out, though the store may have it for days yet: what tells that it was delivered may be
        # forgotten, and it would count as missed. Deliveries are made when the event is, or later, and kept as long.
        mine = [event for event in events if job.is_about(event, endpoint) and event.ttl * 1000 > now]
        firsts = self._deliveries(job.tenant, [delivery_id(event.id, endpoint.id) for event in mine])
        own = self._deliveries(job.tenant, [delivery_id(event.id, endpoint.id, job.id) for event in mine])
        latest = self._deliveries(job.tenant, [first.again_id if first is not None else None for first in firsts])
        at = times_of(mine, now)
        made = skipped = 0
        wanted: list[Made] = []
        beside: dict[int, list[Change]] = {}
        for event, first, again, last in zip(mine, firsts, own, latest, strict=True):
            if again is not None or (first is not None and first.job_id == job.id):
                made += 1  # by this job, which was cut short, or is being done twice
            elif first is None:
                wanted.append(fresh(event, endpoint, at[event.id], job=job.id))
            elif needs_none(job.which, first, last):
                skipped += 1
            else:
                new, told = made_again(first, event, endpoint, at[event.id], job.id, job.id)
                beside[len(wanted)] = [Save(told)]
                wanted.append(new)
        # Parked deliveries are only looked for when the endpoint is unpaused: none may come after that.
        paused = Still(endpoint) if endpoint.paused else None
        stored = made_once(self._store, wanted, beside, only_if=paused)
        others = sum(isinstance(one, Delivery) and one.job_id != job.id for one in stored)
        return made + len(stored) - others, skipped + others

    def _deliveries(self, tenant: TenantId, ids: list[str | None] | list[str]) -> list[Delivery | None]:
        """Deliveries by their ids, None where there is none."""
        asked = [id for id in ids if id is not None]
        if not asked:
            return [None] * len(ids)
        found = iter(self._store.get_many([(Delivery, {"tenant": tenant, "id": id}) for id in asked]))
        return [None if id is None else next(found) for id in ids]

    def _advanced(self, job: RedeliveryJob, page: Page[EventRecord], seen: Seen) -> RedeliveryJob | None:
        """Store the progress of the job; None where another worker did."""
        stored = self._store.get(RedeliveryJob, tenant=job.tenant, id=job.id)
        if stored is None or stored.status == "done" or stored.after != job.after:
            return None
        after = stored.past(seen, page.next is None, self._clock.now_ms())
        changes: list[Change] = [Save(after)]
        if after.status == "done":
            changes.append(Close(redelivery_work(job)))
        self._store.commit(changes)
        return after

    def _cancelled(self, job: RedeliveryJob, reason: str) -> RedeliveryJob | None:
        stored = self._store.get(RedeliveryJob, tenant=job.tenant, id=job.id)
        if stored is None or stored.status != "running":
            return stored
        after = stored.cancelled(reason, self._clock.now_ms())
        self._store.commit([Save(after), Close(redelivery_work(job))])
        return after
