"""What AWS does without being asked: fires the app's schedules and feeds its queues' messages to their consumers.

`Pump` does it in the background for the local stack. `drain` does it at once and in a fixed order for tests.
Both call the app's own handlers, found on the app, with the events that AWS would send.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from chalice.app import Chalice
from moto.sqs.models import Message

from infra.local import queues
from infra.local.pace import REST_SECONDS, Pace
from infra.local.queues import Consumer, Schedule, Sources
from infra.local.repairs import rows

Order = Literal["normal", "reversed", "twice", "late"]

POLL_SECONDS = 1.0
OTHER_SECONDS = 3.0
RATES_SECONDS = 60.0
"""Whoever has set a provider asks it as often as the deployed service would. Nobody needs to compare the books more often."""
QUIET_SECONDS = 3.0
"""How rarely a schedule fires that found nothing to do, while nothing else in the store changes either."""
_TICK = 0.05
_SAME_AGAIN = 60.0
_PARALLEL = {"deliver": 8, "deliver_slow": 4, "tick": 8}
"""Calls of one consumer at a time, elsewhere 4. Webhooks wait for other people's machines."""

log = logging.getLogger(__name__)


def _period(name: str) -> float:
    if name in ("rates", "reconciliation", "archive"):
        return RATES_SECONDS
    return POLL_SECONDS if name.startswith("poll_") else OTHER_SECONDS


class Calm:
    """Counts failures by name and logs each in one line, the same one at most once a minute."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._last: dict[str, tuple[str, float]] = {}

    def failed(self, name: str, error: Exception) -> None:
        self.counts[name] += 1
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        before, at = self._last.get(name, ("", 0.0))
        if text != before or time.monotonic() - at > _SAME_AGAIN:
            self._last[name] = (text, time.monotonic())
            log.warning("%s failed (%d so far): %s", name, self.counts[name], text)
        log.debug("%s failed", name, exc_info=error)


@dataclass(slots=True)
class _Timer:
    schedule: Schedule
    every: float
    fixed: bool = False
    """It fires each so many seconds as EventBridge does, whether the last run has ended or not."""
    begun: float = -math.inf
    busy: bool = False
    ended: float = 0.0
    quiet: bool = False
    """The last run changed nothing in the store."""
    seen: int = 0

    def due(self, now: float, least: float = 0.0) -> bool:
        if self.fixed:
            return now - self.begun >= self.every
        rest = max(self.every, QUIET_SECONDS) if self.quiet and rows.latest() == self.seen else self.every
        rest = max(rest, least)
        return not self.busy and now - self.ended >= rest


class Pump:
    """Background threads for one app, or for what stands of it. `every` gives a schedule's period in seconds by its name; `pace`
    says when it may rest. `deployed`: the others fire as on AWS, each minute or rarer: only ticks and messages are quick."""

    def __init__(
        self, app: Chalice | Sources, every: Mapping[str, float] | None = None, pace: Pace | None = None, *, deployed: bool = False
    ) -> None:
        sources = app if isinstance(app, Sources) else Sources(queues.schedules(app), queues.consumers(app))
        self._pace = pace
        periods = every or {}
        self._timers = [
            _Timer(s, periods.get(s.name, s.seconds if deployed else _period(s.name)), fixed=deployed) for s in sources.schedules
        ]
        self._consumers = sources.consumers
        self._free = {c.name: threading.Semaphore(_PARALLEL.get(c.name, 4)) for c in self._consumers}
        self._calm = Calm()
        self._stopping = threading.Event()
        self._running: set[threading.Thread] = set()
        self._main: threading.Thread | None = None

    @property
    def failures(self) -> Counter[str]:
        """How often each handler failed since the start."""
        return self._calm.counts

    def start(self) -> None:
        self._stopping.clear()
        self._main = threading.Thread(target=self._loop, name="pump", daemon=True)
        self._main.start()

    def stop(self, seconds: float = 1.5) -> None:
        """Start nothing more, and give what runs `seconds` to end. What does not is a daemon thread and ends with the process."""
        self._stopping.set()
        deadline = time.monotonic() + seconds
        for thread in [self._main, *self._running]:
            if thread is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        self._main = None

    def _loop(self) -> None:
        while not self._stopping.wait(_TICK):
            try:
                self._tick(time.monotonic())
            except Exception as error:  # noqa: BLE001  # counted and logged; without the loop nothing would happen any more
                self._calm.failed("pump", error)

    def _tick(self, now: float) -> None:
        least = REST_SECONDS if self._pace is not None and self._pace.rests() else 0.0
        for timer in self._timers:
            if timer.due(now, least):
                timer.busy, timer.begun = True, now
                self._spawn(timer.schedule.name, partial(self._fire, timer))
        for consumer in self._consumers:
            self._feed(consumer)

    def _feed(self, consumer: Consumer) -> None:
        free = self._free[consumer.name]
        while consumer.waiting() and free.acquire(blocking=False):
            messages = consumer.receive()
            if not messages:
                free.release()
                return
            self._spawn(consumer.name, partial(self._consume, consumer, messages))

    def _spawn(self, name: str, job: Callable[[], None]) -> None:
        def run() -> None:
            try:
                job()
            finally:
                self._running.discard(threading.current_thread())

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._running.add(thread)
        thread.start()

    def _fire(self, timer: _Timer) -> None:
        before = rows.latest()
        timer.quiet = False
        try:
            timer.schedule.fire()
            timer.quiet = rows.latest() == before
        except Exception as error:  # noqa: BLE001  # counted and logged; the schedule fires again
            self._calm.failed(timer.schedule.name, error)
        finally:
            timer.seen = rows.latest()
            timer.ended = time.monotonic()
            timer.busy = False

    def _consume(self, consumer: Consumer, messages: list[Message]) -> None:
        try:
            failed = consumer.call(messages)
            consumer.delete(m for m in messages if m.id not in failed)
        except Exception as error:  # noqa: BLE001  # counted and logged; SQS shows the message again after its timeout
            self._calm.failed(consumer.name, error)
        finally:
            self._free[consumer.name].release()


@dataclass(slots=True)
class Drained:
    """What a drain did. `settled`: a whole round found nothing more to do."""

    settled: bool = False
    rounds: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Exception]] = field(default_factory=list)


def drain(
    app: Chalice,
    *,
    order: Order = "normal",
    only: Collection[str] | None = None,
    failures: Literal["raise", "count"] = "raise",
    hurry: bool = False,
    rounds: int = 30,
    batch: int = 1,
) -> Drained:
    """Fire every schedule and work off every message, again and again, until a round changes nothing; `rounds` at most.

    `order`: "reversed" takes consumers before schedules, the last of each first, and newest messages first (within a FIFO
    group the order stays, as SQS promises); "twice" gives each message twice in a row; "late" gives each once more after
    everything has settled. `only`: names of the handlers to call. `failures`: "raise" ends with the first exception of a
    handler; "count" keeps it in the result, makes its messages visible at once and goes on. `hurry`: delayed messages count
    as due. `batch`: how many messages a consumer gets at most, where it takes so many; consumers handle the messages of a batch
    in threads, so with one at a time everything happens in one thread and in the same order each time. Without waiting.
    """
    work = _Drain(app, order, only, failures, batch, Drained())
    done = work.done
    late_ones_given = order != "late"
    while done.rounds < rounds:
        done.rounds += 1
        if hurry:
            for consumer in work.consumers:
                consumer.hurry()
        if work.round():
            continue
        if late_ones_given:
            done.settled = True
            return done
        late_ones_given = True
        for consumer, message in list(work.handled):
            _, error = work.give(consumer, [message])
            if error is not None:
                work.failed(consumer.name, error)
    return done


class _Drain:
    def __init__(
        self,
        app: Chalice,
        order: Order,
        only: Collection[str] | None,
        failures: Literal["raise", "count"],
        batch: int,
        done: Drained,
    ) -> None:
        self.schedules = [s for s in queues.schedules(app) if only is None or s.name in only]
        self.consumers = [c for c in queues.consumers(app) if only is None or c.name in only]
        self.order = order
        self.failures = failures
        self.batch = batch
        self.done = done
        self.handled: list[tuple[Consumer, Message]] = []

    def round(self) -> bool:
        """All schedules once and all messages; whether anything changed, or failed and has to be tried again."""
        before, calls, failed = rows.latest(), self._messages_handled(), len(self.done.failures)
        if self.order == "reversed":
            self._consume()
            for schedule in reversed(self.schedules):
                self._fire(schedule)
        else:
            for schedule in self.schedules:
                self._fire(schedule)
            self._consume()
        return rows.latest() != before or self._messages_handled() != calls or len(self.done.failures) != failed

    def _messages_handled(self) -> int:
        return sum(self.done.calls[c.name] for c in self.consumers)

    def _fire(self, schedule: Schedule) -> None:
        self.done.calls[schedule.name] += 1
        try:
            schedule.fire()
        except Exception as error:  # noqa: BLE001  # raised again or kept, see failed
            self.failed(schedule.name, error)

    def _consume(self) -> None:
        """What is in the queues, and what that puts there. A message that failed is left for the next round."""
        retry: list[tuple[Consumer, list[Message]]] = []
        reverse = self.order == "reversed"
        try:
            busy = True
            while busy:
                busy = False
                for consumer in reversed(self.consumers) if reverse else self.consumers:
                    messages = consumer.receive(self.batch, newest_first=reverse)
                    if not messages:
                        continue
                    busy = True
                    retry.append((consumer, messages))
                    failed, error = self.give(consumer, messages)
                    good = [message for message in messages if message.id not in failed]
                    consumer.delete(good)
                    self.handled += [(consumer, message) for message in good]
                    retry[-1] = (consumer, [message for message in messages if message.id in failed])
                    if error is not None:
                        self.failed(consumer.name, error)
        finally:
            for consumer, messages in retry:
                consumer.release(messages)

    def give(self, consumer: Consumer, messages: list[Message]) -> tuple[set[str], Exception | None]:
        """Call the consumer; the ids of those that failed, and why."""
        failed: set[str] = set()
        for _ in range(2 if self.order == "twice" else 1):
            self.done.calls[consumer.name] += 1
            try:
                failed |= consumer.call(messages)
            except Exception as error:  # noqa: BLE001  # raised again or kept, see failed
                return {message.id for message in messages}, error
            if failed:
                return failed, RuntimeError(f"{consumer.name} reports {len(failed)} of {len(messages)} messages as failed")
        return failed, None

    def failed(self, name: str, error: Exception) -> None:
        if self.failures == "raise":
            raise error
        self.done.failures.append((name, error))
