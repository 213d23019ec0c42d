"""Redelivery on request: one delivery once more, and all events of a period.

The last is a job: this makes its record and its obligation, `usecases/webhooks/redelivery_run.py` carries it out. Touches webhooks,
events and work only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.times import iso
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_id, delivery_work
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import EARLY_MS, Turn
from chalicelib.domain.webhooks.redelivery import (
    KEPT_MS,
    MOST_JOBS,
    LatestRedelivery,
    RedeliveryJob,
    Which,
    latest_after,
    made_again,
    redelivery_work,
)
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Close, Open, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.delivery_lookup import delivery_at
from chalicelib.usecases.webhooks.endpoints import endpoint_of, registered, wake
from chalicelib.usecases.webhooks.making import Sent, check_enabled


@dataclass(frozen=True, slots=True)
class Wanted:
    """The events to send again: from `from_at` up to but without `to_at`, in milliseconds since 1970; None: until now.

    Events that are no longer kept are left out. `events` are names; None: what the endpoint subscribes to.
    """

    from_at: int
    to_at: int | None = None
    which: Which = "missed"
    events: tuple[str, ...] | None = None


class Redelivery:
    """Sends events again for a merchant. `realm_clock` is the time that events bear."""

    def __init__(self, store: Store, queues: Queues, clock: Clock, realm_clock: Clock) -> None:
        self._store, self._queues = store, queues
        self._clock, self._realm_clock = clock, realm_clock

    def redeliver(self, tenant: TenantId, id: str) -> Delivery:
        """Send a delivery's event to its endpoint once more, with all retries: a new delivery, or the same one at once where it
        still waits. Raises NotFound (the endpoint or the event is gone, too), BusinessRule."""
        return self.redelivering(tenant, id).run().delivery

    def redelivering(self, tenant: TenantId, id: str) -> Creation[Sent]:
        """What `redeliver` commits: nothing where the delivery is on its way."""

        def prepare() -> Prepared[Sent]:
            before = delivery_at(self._store, tenant, id)
            first_id = delivery_id(before.event_id, before.endpoint_id)
            endpoint, turn, event, first = self._store.get_many(
                [
                    (WebhookEndpoint, {"tenant": tenant, "id": before.endpoint_id}),
                    (Turn, {"tenant": tenant, "endpoint_id": before.endpoint_id}),
                    (EventRecord, {"tenant": tenant, "id": before.event_id}),
                    (Delivery, {"tenant": tenant, "id": first_id}),
                ]
            )
            if endpoint is None or event is None:
                raise NotFound("Delivery not found", {"id": id})
            check_enabled(endpoint)
            now = self._clock.now_ms()
            if before.status != "pending":
                after, changes = _again(before, first, event, endpoint, now)
            elif before.parked or before.due_at <= now + EARLY_MS:
                after, changes = before, []  # it is on its way: the worker that sends it must find it as it was
            else:
                after = before.hurried(now)
                changes = [Save(after), Close(delivery_work(before)), Open(delivery_work(after))]
            return Prepared(Sent(after, endpoint, turn), changes)

        return Creation(self._store, prepare, self._wake)

    def _wake(self, sent: Sent) -> None:
        wake(self._queues, sent.endpoint)

    def order(self, tenant: TenantId, endpoint_id: str, wanted: Wanted) -> RedeliveryJob:
        """Begin to send an endpoint the events of a period again.

        Raises NotFound, and BusinessRule: no events are kept of the period, the endpoint is disabled, a job is running for it, or
        it had as many as it may have in a day.
        """
        return self.ordering(tenant, endpoint_id, wanted).run()

    def ordering(self, tenant: TenantId, endpoint_id: str, wanted: Wanted) -> Creation[RedeliveryJob]:
        """What `order` commits."""

        def prepare() -> Prepared[RedeliveryJob]:
            endpoint = endpoint_of(self._store, tenant, registered(endpoint_id))
            check_enabled(endpoint)
            now = self._clock.now_ms()
            from_at, to_at = self._checked(wanted, now)
            names = wanted.events or endpoint.events
            for name in names:
                if "*" not in endpoint.events and name not in endpoint.events:
                    raise BusinessRule("events", f"this webhook is not told of {name}: let it subscribe to that first")
            latest = self._store.get(LatestRedelivery, tenant=tenant, endpoint_id=endpoint_id)
            if latest is not None:
                self._check_ended(tenant, latest.job_id)
                _check_count(latest, now)
            job = RedeliveryJob(
                tenant, new_id("rdl", now), endpoint_id, from_at, to_at, wanted.which, names, now, now,
                now // 1000 + KEEP_SECONDS,
            )  # fmt: skip
            return Prepared(job, [Save(job), Save(latest_after(latest, job)), Open(redelivery_work(job))])

        return Creation(self._store, prepare, lambda job: self._queues.redeliver(tenant, job.id))

    def job(self, tenant: TenantId, id: str) -> RedeliveryJob:
        """Raises NotFound."""
        found = self._store.get(RedeliveryJob, tenant=tenant, id=id)
        if found is None:
            raise NotFound("Redelivery not found", {"id": id})
        return found

    def cancel(self, tenant: TenantId, id: str) -> RedeliveryJob:
        """Make no more deliveries; those made are sent. A job that has ended stays as it is. Raises NotFound."""

        def decide() -> RedeliveryJob:
            job = self.job(tenant, id)
            if job.status != "running":
                return job
            after = job.cancelled("its owner cancelled it", self._clock.now_ms())
            self._store.commit([Save(after), Close(redelivery_work(job))])
            return after

        return until_settled(decide)

    def _check_ended(self, tenant: TenantId, job_id: str) -> None:
        running = self._store.get(RedeliveryJob, tenant=tenant, id=job_id)
        if running is not None and running.status == "running":
            raise BusinessRule("id", f"redelivery {running.id} is running for this webhook: wait for its end, or cancel it")

    def _checked(self, wanted: Wanted, machine_now: int) -> tuple[int, int]:
        """Where the time begins and ends. What has not happened yet is delivered anyway, so it ends now at the latest; what is kept
        no more can not be sent, so it begins no earlier than what is kept. A time in between is as long as it is.
        """
        now = self._realm_clock.now_ms()
        if wanted.to_at is not None and wanted.from_at >= wanted.to_at:
            _refuse("to", "must be later than from")
        if wanted.from_at >= now:
            _refuse("from", "must not be in the future")
        oldest = min(now, machine_now) - KEPT_MS
        to_at = now if wanted.to_at is None else min(wanted.to_at, now)
        if to_at <= oldest:
            _refuse("to", "events of that time are kept no more: it is more than 30 days ago")
        return max(wanted.from_at, oldest), to_at


def _again(
    before: Delivery, first: Delivery | None, event: EventRecord, endpoint: WebhookEndpoint, now: int
) -> tuple[Delivery, Sequence[Change]]:
    """A new delivery of what `before` was about, which has ended; every one knows the one that came after it."""
    after, told = made_again(before if first is None else first, event, endpoint, now, new_id("again", now))
    changes: list[Change] = [Save(after), Open(delivery_work(after)), Save(told)]
    if told.id != before.id:
        changes.append(Save(replace(next_version(before), again_id=after.id)))
    if after.held:
        changes.append(Still(endpoint))  # parked deliveries are only looked for when the endpoint is unpaused
    return after, changes


def _check_count(latest: LatestRedelivery, now: int) -> None:
    at = latest.next_at(now)
    if at > now:
        raise BusinessRule("id", f"at most {MOST_JOBS} redeliveries a webhook in 24 hours: the next one is allowed at {iso(at)}")


def _refuse(field: str, constraint: str) -> NoReturn:
    raise BusinessRule(field, constraint)
