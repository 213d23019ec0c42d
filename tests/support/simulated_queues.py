"""SQS and the Lambda functions behind it, in simulated time: as much of their behaviour as decides when a webhook is sent.

Standard queues: at least once, in no order, delays of whole seconds. What a function does not handle is shown again after the
visibility timeout, and ends in the dead letters when it was received five times.
docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues.html

Lambda takes up to ten messages at once, begins with five functions, adds up to 300 a minute while messages wait, and has no more
than the mapping's maximum concurrency.
docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
Fair queues: of what waits, the groups that have the fewest messages in flight come first.
docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html

Lambda counts the invocations of one chain: the SDK passes the trace header on with each message that a function sends. After 16 it
stops the next one, and answers the queue's mapping with a RecursiveInvocationException: the message's receive count grows, it is
shown again, is stopped again, and ends in the dead letters. How the headers of a batch become one AWS does not say: here the
longest chain of the batch counts for whatever is sent while the batch is handled.
docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Command
from chalicelib.usecases.base import message_chains
from chalicelib.usecases.ports.failures import Unavailable
from tests.support.simulated import Process, Simulation, Weather

BATCH = 10
VISIBILITY_MS = 360_000
MAX_RECEIVES = 5
FIRST, MORE_A_SECOND = 5, 5
ON_THE_WAY_MS, UNTIL_IT_RUNS_MS = 15, 10
LEFT_MS = 150_000
"""How late the schedule may go on with an endpoint whose chain of messages has ended."""
CHAIN = 16
"""Invocations of one chain that Lambda starts."""
_invocation: ContextVar[int] = ContextVar("invocation", default=0)
"""Which invocation of its chain a worker is in, as the trace header says: 0 for what nobody's message started."""


@dataclass(slots=True)
class Message:
    body: dict[str, Any]
    group: str
    invocation: int
    """Which invocation of its chain this message asks for."""
    ahead: int
    """What the service itself says of that."""
    receives: int = 0


class Function:
    """A queue and the function that its messages start. `handle` gets the body of each message."""

    def __init__(
        self, simulation: Simulation, weather: Weather, handle: Callable[[dict[str, Any]], object], most: int, *, dies: float = 0.0
    ) -> None:
        self._simulation, self._weather, self._handle = simulation, weather, handle
        self._most, self._dies = most, dies
        self._ready: dict[str, deque[Message]] = defaultdict(deque)
        self._waiting = 0
        self._flying: Counter[str] = Counter()
        self._busy = 0
        self._scaled, self._scaling = FIRST, False
        self.sent = self.received = self.invocations = self.deaths = self.failures = self.most_busy = 0
        self.stopped = self.longest = 0
        """Invocations that Lambda did not start, and the longest chain that it did."""
        self.dead: list[Message] = []
        self.delayed: list[tuple[dict[str, Any], int, int]] = []
        """Bodies that the queue itself brought late: when it should have, and when it did."""

    def send(self, body: dict[str, Any], group: str = "", delay_seconds: int = 0) -> None:
        if not isinstance(delay_seconds, int) or not 0 <= delay_seconds <= 900:
            raise ValueError(f"SQS refuses a delay of {delay_seconds}")
        weather, now = self._weather, self._simulation.now
        if weather.random.random() < weather.refused:
            self.delayed.append((body, now, now + 135_000))  # the schedule finds it: a minute's grace, and the next run
            raise Unavailable("the queue did not answer")
        self.sent += 1
        due = now + delay_seconds * 1000 + ON_THE_WAY_MS
        copies = 2 if weather.random.random() < weather.twice else 1
        for copy in range(copies):
            late = weather.random.randrange(weather.late_ms) if copy or weather.random.random() < weather.late else 0
            if late and not copy:
                self.delayed.append((body, due, due + late))
            self._arrive_at(due + late, Message(body, group, _invocation.get() + 1, message_chains.before()))

    def _arrive_at(self, when: int, message: Message) -> None:
        self._simulation.at(when, lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        self._ready[message.group].append(message)
        self._waiting += 1
        self._dispatch()

    def _dispatch(self) -> None:
        while self._waiting and self._busy < min(self._most, self._scaled):
            batch = [self._next() for _ in range(min(BATCH, self._waiting))]
            self._busy += 1
            self.invocations += 1
            self.most_busy = max(self.most_busy, self._busy)
            self._simulation.start(lambda batch=batch: self._invoke(batch))  # type: ignore[misc]
        if not self._busy:
            self._scaled = FIRST
        if self._waiting and self._scaled < self._most and not self._scaling:
            self._scaling = True
            self._simulation.at(self._simulation.now + 1_000, self._scale)

    def _scale(self) -> None:
        self._scaling = False
        self._scaled += MORE_A_SECOND
        self._dispatch()

    def _next(self) -> Message:
        group = min((group for group, messages in self._ready.items() if messages), key=lambda group: self._flying[group])
        self._flying[group] += 1
        self._waiting -= 1
        return self._ready[group].popleft()

    def _invoke(self, batch: list[Message]) -> None:
        self._simulation.sleep(UNTIL_IT_RUNS_MS)
        self.received += len(batch)
        chain = max(message.invocation for message in batch)
        if chain > CHAIN:
            self.stopped += 1
            self._ended(batch, set())
            return
        self.longest = max(self.longest, chain)
        handled: set[int] = set()

        def run(place: int) -> None:
            try:
                self._handle(batch[place].body)
            except Exception:  # noqa: BLE001 - whatever it is, the message comes back
                self.failures += 1
            else:
                handled.add(place)

        def work() -> None:
            _invocation.set(chain)
            with message_chains.brought_by(1 + max(message.ahead for message in batch)):  # as workers/batches.py does
                self._simulation.together([lambda place=place: run(place) for place in range(len(batch))])  # type: ignore[misc]
            self._ended(batch, handled)

        process = Process()
        if self._weather.random.random() < self._dies:
            self._simulation.at(self._simulation.now + self._weather.random.randrange(200), lambda: self._die(process, batch))
        self._simulation.start(work, process)

    def _die(self, process: Process, batch: list[Message]) -> None:
        if process.threads:
            self.deaths += 1
            self._simulation.kill(process)
            self._ended(batch, set())

    def _ended(self, batch: list[Message], handled: set[int]) -> None:
        self._busy -= 1
        for place, message in enumerate(batch):
            self._flying[message.group] -= 1
            if place not in handled:
                message.receives += 1
                if message.receives >= MAX_RECEIVES:
                    self.dead.append(message)
                else:
                    self._arrive_at(self._simulation.now + VISIBILITY_MS, message)
        self._dispatch()


class SimulatedQueues:
    """The port AllQueues, on functions that are given later: they need the store, and the store needs the queues."""

    def __init__(self) -> None:
        self.relay: Function
        self.deliver: Function
        self.deliver_slow: Function
        self.buried: list[str] = []

    def kick(self, outbox_id: str, group: str | None = None) -> None:
        with suppress(Unavailable):  # the sweep tells it
            self.relay.send({"id": outbox_id}, group or "")

    def send(self, command: Command) -> None:
        raise AssertionError("nothing here is paid")

    def wake(self, tenant: str, endpoint_id: str, delay_seconds: int = 0, *, failing: bool = False, held: bool = False) -> None:
        body = {"tenant": tenant, "endpoint": endpoint_id, **({"held": "yes"} if held else {})}
        (self.deliver_slow if failing else self.deliver).send(body, tenant, delay_seconds)

    def redeliver(self, tenant: str, job_id: str) -> None:
        raise AssertionError("nothing here is sent again")

    def scan(self, network: NetworkId, name: str) -> None:
        raise AssertionError("nothing here is scanned")

    def compare(self, network: NetworkId) -> None:
        raise AssertionError("nothing here is compared")

    def tick(self, network: NetworkId, moments: Sequence[int], now: int) -> None:
        raise AssertionError("nobody here waits for a payment")

    def bury(self, delivery_id: str, tenant: str) -> None:
        self.buried.append(delivery_id)


class BoundedQueues(message_chains.BoundedQueues):
    """As they are in the service, on simulated ones; what it leaves to the schedule counts as late (`Function.delayed`)."""

    def __init__(self, queues: SimulatedQueues, clock: Simulation) -> None:
        super().__init__(queues)
        self._simulated, self._clock = queues, clock
        self.left = 0

    def wake(self, tenant: str, endpoint_id: str, delay_seconds: int = 0, *, failing: bool = False, held: bool = False) -> None:
        if message_chains.ended():
            self.left += 1
            now = self._clock.now
            self._simulated.deliver.delayed.append(({"endpoint": endpoint_id}, now, now + delay_seconds * 1000 + LEFT_MS))
        super().wake(tenant, endpoint_id, delay_seconds, failing=failing, held=held)
