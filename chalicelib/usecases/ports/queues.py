"""Wake-up calls for workers. `store/queues.py` fits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Command

COMPARISON_VERSION = 1
"""Of the messages that ask for a network to be compared; another version's are dropped."""


class Queues(Protocol):
    """Wake-up calls. Losing one delays, it never loses: the work is in the store."""

    def kick(self, outbox_id: str, group: str | None = None) -> None:
        """Ask for an outbox row to be told now. Never raises: the sweep finds the row anyway. `group`: the merchant whose it is;
        who has many rows holds up nobody who has few."""
        ...

    def send(self, command: Command) -> None:
        """Raises Unavailable."""
        ...

    def wake(self, tenant: str, endpoint_id: str, delay_seconds: int = 0, *, failing: bool = False, held: bool = False) -> None:
        """Ask for an endpoint's due deliveries to be sent, after `delay_seconds` (at most 900). Raises Unavailable.

        `failing` ones wait in a queue of their own. `held`: look at parked deliveries as well.
        """
        ...

    def redeliver(self, tenant: str, job_id: str) -> None:
        """Ask for a job of redelivery to go on. Never raises: the sweep finds it anyway."""
        ...


class RangeQueue(Protocol):
    """Wake-up calls for the workers that scan ranges of a backlog. Losing one delays, it never loses."""

    def scan(self, network: NetworkId, name: str) -> None:
        """Ask for the range of that name. Raises Unavailable."""
        ...


class TickQueue(Protocol):
    """Messages that look at a network between two minute's polls. Losing one costs seconds: the poll reads the same blocks."""

    def tick(self, network: NetworkId, moments: Sequence[int], now: int) -> None:
        """Ask for ticks at these moments, which lie at most 15 minutes behind `now`; milliseconds since 1970. Raises Unavailable,
        where some of them may be sent."""
        ...


class RecordQueue(Protocol):
    """Wake-up calls for the workers that record and credit payments beside a poll. Losing one delays, it never loses."""

    def record(self, share: dict[str, str]) -> None:
        """Ask for a share of payments (`usecases.scanning.sharing`). Raises Unavailable."""
        ...


class ScanQueue(RangeQueue, RecordQueue, Protocol):
    """What a scan asks others for."""


class ComparisonQueue(Protocol):
    """Wake-up calls for the functions that compare a network. Losing one delays, it never loses."""

    def compare(self, network: NetworkId) -> None:
        """Ask for the comparison of a network to go on. Raises Unavailable."""
        ...


class AllQueues(Queues, ScanQueue, TickQueue, ComparisonQueue, Protocol):
    """Every message that this service sends."""

    def bury(self, delivery_id: str, tenant: str) -> None:
        """Put a delivery that failed for good in the dead-letter queue. May come twice. Raises Unavailable."""
        ...
