"""A bound for chains of messages: a message starts a function, which sends the next message, and so on.

Lambda counts the invocations of a chain by the trace header that the SDK passes on, and stops the one after the sixteenth or so:
the message then comes back until it ends in the dead letters. A schedule's invocation, or a request's, begins a new chain.
AWS Lambda developer guide, "Use Lambda recursive loop detection to prevent infinite loops":
https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html

So nothing here relies on a long chain. Each message says how many came before it in its chain, and at `MOST` nothing more is sent:
what it was about is open work, and the minute's schedules find it. The circles among our functions, what closes them, and who goes
on at the bound, how late (`tests/deploy/test_message_circles.py` holds the list against the rights to send):

- deliver and deliver_slow, by an endpoint's next lease, retries of up to 15 minutes and the end of a rest: `DueSweep`. A retry
  comes at its time where it waits for a minute or longer, else within a minute; the rest within two and a half minutes.
- deliver → relay → deliver, by a notice to the merchant's other endpoints: `Relay.sweep`, within 75 s.
- relay, by a job of redelivery that goes on after ten seconds: `RedeliveryRun.sweep`, within two minutes.
- scan_range, by the rest of a range: the poll, within two minutes.
- a tick is in no circle: it sends no tick, and nothing that it sends does.
- payout → relay → payout and collect → relay → collect, by the filler of a nonce that a dropped move leaves: the poll, which asks
  for whatever of ours stands still, within two minutes.

AWS does not say how the headers of a batch become one: the longest chain of a batch counts for whatever is sent meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Command
from chalicelib.usecases.ports.queues import AllQueues

log = logging.getLogger(__name__)

MOST = 10
"""Messages of one chain. A withdrawal's longest are eight: told, paid, told, delivered, and four retries."""
AHEAD = "ahead"
"""The attribute of a message that says how many of its chain came before it; the first has none."""
_ahead: ContextVar[int] = ContextVar("messages_before", default=0)


def before() -> int:
    """The number of earlier messages in the chain that led here; 0 where a request or a schedule began it."""
    return _ahead.get()


@contextmanager
def brought_by(number: int) -> Iterator[None]:
    """Run the block of the `with` statement as the work of a chain's `number`th message."""
    token = _ahead.set(number)
    try:
        yield
    finally:
        _ahead.reset(token)


def ended() -> bool:
    """Whether the chain has reached its bound, so that no further message may be sent."""
    return before() >= MOST


class BoundedQueues:
    """Every port of queues, on `queues`: sends no message that makes a chain too long."""

    def __init__(self, queues: AllQueues) -> None:
        self._queues = queues

    def kick(self, outbox_id: str, group: str | None = None) -> None:
        if self._may("the outbox row", outbox_id, room=2):
            self._queues.kick(outbox_id, group)

    def send(self, command: Command) -> None:
        if self._may("the command for", command.queue):
            self._queues.send(command)

    def wake(self, tenant: str, endpoint_id: str, delay_seconds: int = 0, *, failing: bool = False, held: bool = False) -> None:
        if self._may("the webhook endpoint", endpoint_id):
            self._queues.wake(tenant, endpoint_id, delay_seconds, failing=failing, held=held)

    def redeliver(self, tenant: str, job_id: str) -> None:
        if self._may("the redelivery", job_id, room=2):
            self._queues.redeliver(tenant, job_id)

    def scan(self, network: NetworkId, name: str) -> None:
        if self._may("the range", name):
            self._queues.scan(network, name)

    def tick(self, network: NetworkId, moments: Sequence[int], now: int) -> None:
        if self._may("the ticks of", network):
            self._queues.tick(network, moments, now)

    def record(self, share: dict[str, str]) -> None:
        if self._may("a share of payments of", share["network"]):
            self._queues.record(share)

    def compare(self, network: NetworkId) -> None:
        if self._may("the comparison of", network):
            self._queues.compare(network)

    def bury(self, delivery_id: str, tenant: str) -> None:
        self._queues.bury(delivery_id, tenant)  # nothing reads that queue

    def _may(self, what: str, id: str, room: int = 1) -> bool:
        """Whether there is room for `room` messages more: the relay's own have to reach whom they are for."""
        if before() + room <= MOST:
            return True
        log.info("no message for %s %s: %d came before it, the schedule goes on with it", what, id, before())
        return False
