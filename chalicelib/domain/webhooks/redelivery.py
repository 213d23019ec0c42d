"""Redelivery: a job that sends an endpoint the events of a time range again. Pure: reads no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import TenantId, first_id
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, TEST_EVENT, EventRecord, WebhookEndpoint
from chalicelib.domain.work import Work, lane_of, time_order

RedeliveryStatus = Literal["running", "done", "cancelled"]
Which = Literal["missed", "all"]

PAGE = 100
"""Events that are looked at before what was done is written down."""
KEPT_MS = KEEP_SECONDS * 1000
"""How long events are kept."""
MOST_JOBS, JOBS_MS = 24, 86_400_000
"""Jobs that one endpoint can have started within so many milliseconds: each can bring all events of 30 days."""


@dataclass(frozen=True, slots=True)
class RedeliveryJob:
    """A job for events from `from_at` up to but without `to_at`, in the time of the tenant's realm, for one endpoint; `events` are
    the names ("*": all). Times in milliseconds since 1970, `ttl` in seconds.

    `after` is the last event that was looked at. `looked` counts the events of that time whatever their names, `made` the
    deliveries, `skipped` those of the endpoint's events that needed none. `touched_at`: a worker was at it.
    """

    tenant: TenantId
    id: str
    endpoint_id: str
    from_at: int
    to_at: int
    which: Which
    events: tuple[str, ...]
    created_at: int
    touched_at: int
    ttl: int
    status: RedeliveryStatus = "running"
    after: str | None = None
    looked: int = 0
    made: int = 0
    skipped: int = 0
    finished_at: int | None = None
    reason: str | None = None
    version: int = 1

    @property
    def span(self) -> tuple[str, str]:
        """Two ids that bound those of its events. No event has either: they are the beginnings of ids."""
        return first_id("evt", self.from_at), first_id("evt", self.to_at)

    def is_about(self, event: EventRecord, endpoint: WebhookEndpoint) -> bool:
        """Whether the job sends `event`: it has one of its names, and the endpoint still subscribes to it."""
        named = "*" in self.events or event.name in self.events
        return named and event.name != TEST_EVENT and endpoint.told_of(event)

    def past(self, page: Seen, last: bool, now: int) -> RedeliveryJob:
        """The job after a page; `last`: it was the last page. A job that was cancelled meanwhile stays cancelled."""
        told = replace(
            next_version(self), after=page.after or self.after, looked=self.looked + page.looked, made=self.made + page.made,
            skipped=self.skipped + page.skipped, touched_at=now,
        )  # fmt: skip
        return replace(told, status="done", finished_at=now) if last and self.status == "running" else told

    def cancelled(self, reason: str, now: int) -> RedeliveryJob:
        return replace(next_version(self), status="cancelled", reason=reason, finished_at=now)


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a page of events; `after` is the last one, None where there was none."""

    after: str | None
    looked: int
    made: int
    skipped: int


@dataclass(frozen=True, slots=True)
class LatestRedelivery:
    """An endpoint's latest job: the next job changes this record, so that of two at once one is refused.

    `begun` has the times of the latest ones, oldest first, in milliseconds since 1970; MOST_JOBS at most.
    """

    tenant: TenantId
    endpoint_id: str
    job_id: str
    ttl: int
    begun: tuple[int, ...] = ()
    version: int = 1

    def next_at(self, now: int) -> int:
        """The earliest start of the next job: `now`, or when the first of MOST_JOBS is no longer within the time that they are
        counted."""
        return now if len(self.begun) < MOST_JOBS else max(now, self.begun[-MOST_JOBS] + JOBS_MS)


def latest_after(before: LatestRedelivery | None, job: RedeliveryJob) -> LatestRedelivery:
    """The record of the endpoint's latest job, which is `job` now."""
    if before is None:
        return LatestRedelivery(job.tenant, job.endpoint_id, job.id, job.ttl, (job.created_at,))
    begun = (*before.begun, job.created_at)[-MOST_JOBS:]
    return replace(next_version(before), job_id=job.id, ttl=job.ttl, begun=begun)


def redelivery_work(job: RedeliveryJob) -> Work:
    """Open work: finish the job."""
    return Work("redelivery", lane_of(job.id), time_order(job.created_at), f"{job.tenant}|{job.id}")


def job_of(work: Work) -> tuple[TenantId, str]:
    """Tenant and id of the job that such a row names."""
    tenant, _, id = work.id.rpartition("|")
    return TenantId(tenant), id


def needs_none(which: Which, first: Delivery | None, latest: Delivery | None) -> bool:
    """Whether an event needs no further delivery: one waits, or it was delivered and the job asks for missed events alone.

    `first` is the event's first delivery to the endpoint, `latest` the one that was made of it last, where there is another.
    """
    made = [delivery for delivery in (first, latest) if delivery is not None]
    return any(d.status == "pending" or (which == "missed" and d.status == "delivered") for d in made)


def made_again(
    first: Delivery, event: EventRecord, endpoint: WebhookEndpoint, now: int, again: str, job: str | None = None
) -> tuple[Delivery, Delivery]:
    """Another delivery of an event whose last one has ended, and `first` as it is then. `again` names it; `job` is the job that
    wants it."""
    new = fresh(event, endpoint, now, again, job)
    new = replace(new, earlier_id=first.again_id or first.id)
    return new, replace(next_version(first), again_id=new.id)


def fresh(event: EventRecord, endpoint: WebhookEndpoint, now: int, again: str = "", job: str | None = None) -> Delivery:
    """A requested delivery: parked at once where the endpoint is paused."""
    return replace(delivery_for(event, endpoint, now, again), held=endpoint.paused, job_id=job)


def times_of(events: Sequence[EventRecord], now: int) -> dict[str, int]:
    """When the deliveries of a page's events are made, by event id, a millisecond apart: deliveries of one time have no order.
    Events of an object have that of their numbers, which ids made in one moment by two machines may not have."""
    places: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        places.setdefault(event.object_id, []).append(place)
    ordered = {of: iter(sorted((events[place] for place in those), key=lambda one: one.sequence)) for of, those in places.items()}
    return {next(ordered[event.object_id]).id: now + place for place, event in enumerate(events)}
