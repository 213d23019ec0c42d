"""The messages of one run of the due sweep, to endpoints with something due. Reads endpoints, sends messages, changes nothing."""

from __future__ import annotations

import logging
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping

from chalicelib.domain.webhooks.deliveries import line_parts
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


class DueMessages:
    """`sent` counts them."""

    def __init__(self, store: Store, queues: Queues, clock: Clock) -> None:
        self._store, self._queues, self._clock = store, queues, clock
        self._at_once, self._parked = set[str](), set[str]()
        self.sent = 0

    def ask(self, times: Mapping[str, Iterable[int]], ms: int) -> None:
        """Send a message for each time (ms since 1970) of each line, for as long as `ms`. A line that had one without a delay in
        this run gets no other such. Raises Unavailable, when all were tried.

        Round robin over tenants: where time does not suffice for all, the many of one tenant do not stand before the few of
        another.
        """
        until = self._clock.now_ms() + ms
        endpoints = self.endpoints(times)
        wanted = [(at, random.random(), line) for line, of_one in times.items() for at in of_one]  # noqa: S311 - guards nothing
        rounds, before = [], Counter[str]()
        for at, any_order, line in sorted(wanted):
            tenant, _ = line_parts(line)
            rounds.append((before[tenant], any_order, line, at))
            before[tenant] += 1
        refused: Unavailable | None = None
        for place, (_, _, line, at) in enumerate(sorted(rounds)):
            now = self._clock.now_ms()
            if now >= until:
                log.warning("%d messages for webhook endpoints were not sent in time", len(rounds) - place)
                break
            try:
                self._ask(line, max(0, math.ceil((at - now) / 1000)), endpoints[line])
            except Unavailable as error:
                refused = error  # the other endpoints are asked for all the same
        if refused is not None:
            raise refused

    def ask_parked(self, line: str, endpoint: WebhookEndpoint | None) -> None:
        """Send a message for the parked deliveries of a line, one in this run. Raises Unavailable."""
        if line in self._parked:
            return
        self._queues.wake(*line_parts(line), failing=_failing(endpoint), held=True)
        self._parked.add(line)
        self.sent += 1

    def endpoints(self, lines: Iterable[str]) -> dict[str, WebhookEndpoint | None]:
        """The endpoints of these lines. Raises Unavailable."""
        owners = [(line, *line_parts(line)) for line in lines]
        found = known_of(self._store, [(WebhookEndpoint, {"tenant": tenant, "id": id}) for _, tenant, id in owners])
        return {line: endpoint for (line, _, _), endpoint in zip(owners, found, strict=True)}

    def _ask(self, line: str, delay: int, endpoint: WebhookEndpoint | None) -> None:
        if not delay and line in self._at_once:
            return
        self._queues.wake(*line_parts(line), delay, failing=_failing(endpoint))
        self.sent += 1
        if not delay:
            self._at_once.add(line)


def _failing(endpoint: WebhookEndpoint | None) -> bool:
    return endpoint is not None and endpoint.failing_since is not None
