"""The due sweep's search for endpoints that are paused no more, and have parked deliveries still. Touches webhooks and work only.

Each of them has an obligation of its own, so that the parked deliveries of paused endpoints are never read. Where time does not
suffice for all, the next run goes on behind those that were seen.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.deliveries import line_parts
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.domain.work import HELD, Work
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.changes import Absent, Close, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.due_messages import DueMessages
from chalicelib.usecases.webhooks.due_search_time import lanes_in_turn

log = logging.getLogger(__name__)

UNHELD_MS = 5_000
"""How long this may take, messages and all."""
PAGE = 100


class UnheldSweep:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def run(self, messages: DueMessages) -> None:
        """Wake endpoints that go on, until they have no parked deliveries. Raises Failures: others are woken all the same."""
        before = self._store.get(SweepCursor, id="unheld") or SweepCursor("unheld", version=0)
        places = list(before.places)
        with Each("endpoints that are paused no more") as each:
            for lane, until in lanes_in_turn(self._clock, self._clock.now_ms() + UNHELD_MS):
                each.take(f"lane {lane}", partial(self._lane, each, lane, places, until, messages))
            if tuple(places) != before.places:
                after = replace(next_version(before), places=tuple(places))
                each.take("where the next run goes on", lambda: self._store.commit([Save(after)]))

    def _lane(self, each: Each, lane: str, places: list[str], until: int, messages: DueMessages) -> None:
        """See to the endpoints of a lane behind its place, as time suffices. Then its place is behind them, "" at the end."""
        while self._clock.now_ms() < until:
            page = self._store.open_work("unheld", lane, after=_work_at(lane, places[int(lane)]), limit=PAGE)
            endpoints = messages.endpoints([work.id for work in page])
            for work in page:
                if self._clock.now_ms() >= until:
                    break
                each.take(work.id, partial(self._see_to, work, endpoints[work.id], messages))
                places[int(lane)] = f"{work.order}#{work.id}"
            else:
                if len(page) < PAGE:
                    places[int(lane)] = ""
                    return
        log.warning("not all endpoints of lane %s that go on were looked at: the next run goes on there", lane)

    def _see_to(self, work: Work, endpoint: WebhookEndpoint | None, messages: DueMessages) -> None:
        """Close the obligation, unless parked deliveries are left. Deliveries are parked only for an endpoint that is stored as
        paused: while the endpoint stays as it was read, there are none."""
        tenant, id = line_parts(work.id)
        as_read = Absent(WebhookEndpoint, {"tenant": tenant, "id": id}) if endpoint is None else Still(endpoint)
        paused = endpoint is not None and endpoint.paused
        parked = Work("delivery", work.id, HELD, "")
        if paused or not self._store.open_work("delivery", work.id, after=parked, upto=f"{HELD}~", limit=1):
            self._store.commit([Close(work), as_read])
        else:
            messages.ask_parked(work.id, endpoint)


def _work_at(lane: str, place: str) -> Work | None:
    order, _, id = place.partition("#")
    return Work("unheld", lane, order, id) if place else None
