"""Once a minute: endpoints where something is due that no message brings. Touches webhooks, work and queues only.

Messages of SQS wait fifteen minutes at most. What waits longer is found here in the minute before it is due, by the index of work
in the order of time, and gets a message with exactly the delay that is left. That obligation is stored anyway, with the change
that causes it, so nothing more has to be made, paid for, or removed for a long wait; a one-time schedule of EventBridge would be
a second place for the same fact, with quotas and rights of its own.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from chalicelib.domain.deliveries import due_of, line_parts
from chalicelib.domain.webhooks import WebhookEndpoint
from chalicelib.domain.work import HELD, LANES, Work, time_order
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Span, Store

log = logging.getLogger(__name__)

AHEAD_MS = 90_000
"""How far ahead of its time a long wait is brought: until the next run, and somewhat beyond."""
GRACE_MS = 60_000
"""How long a message may be on its way before it is taken for lost."""
SWEEP_MS = 15_000
PAGE = 1_000


@dataclass(slots=True)
class _Line:
    """What is known of one endpoint: the delays to ask for (seconds), and whether something is put aside."""

    delays: set[int] = field(default_factory=set)
    held: bool = False


class DeliverySweep:
    def __init__(self, store: Store, queues: Queues, clock: Clock) -> None:
        self._store, self._queues, self._clock = store, queues, clock

    def run(self) -> int:
        """Ask for what is due; how many messages were sent. Raises Unavailable; what it did not come to, the next one does."""
        start = self._clock.now_ms()
        lines: dict[str, _Line] = {}
        lanes = [str(lane) for lane in range(LANES)]
        random.shuffle(lanes)
        for lane in lanes:
            for work in self._works(lane, Span(None, f"{time_order(start + AHEAD_MS)}#~"), start):
                left = int(work.order) - start
                if left <= -GRACE_MS:
                    lines.setdefault(work.lane, _Line()).delays.add(0)
                elif due_of(work.id).scheduled:
                    lines.setdefault(work.lane, _Line()).delays.add(max(0, math.ceil(left / 1000)))
            for work in self._works(lane, Span(f"{HELD}#", f"{HELD}#~"), start):
                lines.setdefault(work.lane, _Line()).held = True
        return self._ask(lines, start)

    def _works(self, lane: str, span: Span, start: int) -> Iterator[Work]:
        after: str | None = None
        while self._clock.now_ms() - start < SWEEP_MS:
            page = self._store.work_by_time("delivery", lane, limit=PAGE, span=span, after=after)
            yield from page.items
            after = page.next
            if after is None:
                return
        log.error("ALARM the sweep of webhook deliveries did not come to the end of lane %s in its time", lane)

    def _ask(self, lines: dict[str, _Line], start: int) -> int:
        asked = 0
        owners = [line_parts(line) for line in lines]
        found = self._store.get_many([(WebhookEndpoint, {"tenant": tenant, "id": id}) for tenant, id in owners])
        endpoints: dict[str, WebhookEndpoint | None] = dict(zip(lines, found, strict=True))
        order = list(lines)
        random.shuffle(order)
        for line in order:
            tenant, id = line_parts(line)
            endpoint, due = endpoints[line], lines[line]
            failing = endpoint is not None and endpoint.failing_since is not None
            # What is put aside for a paused endpoint stays where it is.
            held = due.held and (endpoint is None or endpoint.status != "paused")
            for delay in sorted(due.delays | ({0} if held else set())):
                if self._clock.now_ms() - start > 2 * SWEEP_MS:
                    return asked
                self._queues.wake(tenant, id, delay, failing=failing, held=held and delay == 0)
                asked += 1
        return asked
