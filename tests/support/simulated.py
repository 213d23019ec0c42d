"""Simulated time: workers that wait run beside each other, and a day passes as fast as its events can be computed.

Every worker is a greenlet. Whatever takes time in it (a store's answer, a receiver's) hands over to the next one in the order of
simulated time, so all of them work on the same store as processes would, each step of one between steps of others.
"""

from __future__ import annotations

import gc
import heapq
from collections.abc import Callable, Sequence
from contextvars import copy_context
from random import Random
from typing import Any, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from chalicelib.domain.work import Work
from chalicelib.usecases.ports.changes import Change, Emit
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import EVERYWHERE, Page, Span
from tests.support.memory_store import MemoryStore

T = TypeVar("T")


class Process:
    """What dies together: a function's process, with all the threads in it."""

    def __init__(self) -> None:
        self.threads: set[greenlet] = set()


class Simulation:
    """The hub: it runs whoever is next. Times in milliseconds."""

    def __init__(self, start: int) -> None:
        self.now = start
        self._heap: list[tuple[int, int, Any]] = []
        self._count = 0
        self._until = start
        self._hub = getcurrent()
        self._of: dict[greenlet, Process] = {}

    def now_ms(self) -> int:
        return self.now

    def at(self, when: int, act: Callable[[], object]) -> None:
        """Do `act`, which takes no time, or begins something with `start`."""
        self._count += 1
        heapq.heappush(self._heap, (max(when, self.now), self._count, act))

    def start(self, work: Callable[[], object], process: Process | None = None) -> Process:
        """Run `work` beside everything else, from now on."""
        process = process or Process()
        self._spawn(work, process)
        return process

    def sleep(self, ms: int) -> None:
        """The worker that calls waits."""
        end = self.now + ms
        if end <= self._until and (not self._heap or self._heap[0][0] > end):
            self.now = end  # nobody else has anything to do before
            return
        self._count += 1
        heapq.heappush(self._heap, (end, self._count, getcurrent()))
        self._hub.switch()

    def together(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """What `usecases.webhooks.leases.in_threads` does: all at once, until the last has ended. Raises what the first failed one
        raised."""
        if len(jobs) == 1:
            return [jobs[0]()]
        caller, process = getcurrent(), self._of[getcurrent()]
        results: list[Any] = [None] * len(jobs)
        errors: list[Exception | None] = [None] * len(jobs)
        left = len(jobs)

        def run(place: int) -> None:
            nonlocal left
            try:
                results[place] = jobs[place]()
            except Exception as error:  # noqa: BLE001 - raised where all have ended
                errors[place] = error
            left -= 1
            if not left:
                self._resume(caller)

        for place in range(len(jobs)):
            self._spawn(lambda place=place: run(place), process)  # type: ignore[misc]
        self._hub.switch()
        for error in errors:
            if error is not None:
                raise error
        return results

    def kill(self, process: Process) -> None:
        """End all of a process where it stands. Only from the hub (`at`)."""
        for thread in list(process.threads):
            thread.throw(GreenletExit)

    def run(self, until: int) -> None:
        """Everything up to and with `until`."""
        heap, self._until = self._heap, until
        collected = gc.isenabled()
        gc.disable()  # next to nothing here is garbage of its kind, and looking for it takes a tenth of the time
        try:
            while heap and heap[0][0] <= until:
                when, _, what = heapq.heappop(heap)
                self.now = when
                if isinstance(what, greenlet):
                    if not what.dead:
                        what.switch()
                else:
                    what()
        finally:
            if collected:
                gc.enable()
        self.now = until

    def _spawn(self, work: Callable[[], object], process: Process) -> None:
        def body() -> None:
            try:
                work()
            finally:
                process.threads.discard(getcurrent())
                del self._of[getcurrent()]

        thread = greenlet(body, self._hub)
        thread.gr_context = copy_context()  # as workers/batches.py and usecases/webhooks/leases.py hand theirs to threads
        process.threads.add(thread)
        self._of[thread] = process
        self._resume(thread)

    def _resume(self, thread: greenlet) -> None:
        self._count += 1
        heapq.heappush(self._heap, (self.now, self._count, thread))


class SimulatedStore(MemoryStore):
    """A store that takes its time to answer, and asks for outbox rows to be told as the real one does.

    `answer_ms` of a commit's time are behind its effect: it may be committed although nobody is there any more to hear of it.
    `down` says of a moment whether the store answers then.
    """

    def __init__(
        self,
        simulation: Simulation,
        kick: Callable[[str, str | None], None],
        *,
        read_ms: int = 4,
        commit_ms: int = 8,
        answer_ms: int = 4,
    ) -> None:
        super().__init__()
        self._simulation, self._kick = simulation, kick
        self._read_ms, self._commit_ms, self._answer_ms = read_ms, commit_ms, answer_ms
        self.down: Callable[[int], bool] = lambda _: False

    def get(self, kind: type[Any], /, **key: str) -> Any:
        self._read()
        return super().get(kind, **key)

    def get_many(self, wanted: Sequence[Any], /) -> list[Any]:
        self._read()
        return [MemoryStore.get(self, kind, **key) for kind, key in wanted]

    def page(self, kind: type[Any], /, **how: Any) -> Page[Any]:
        self._read()
        return super().page(kind, **how)

    def open_work(self, kind: str, lane: str, **how: Any) -> list[Any]:
        self._read()
        return super().open_work(kind, lane, **how)

    def work_by_time(self, kind: str, lane: str, /, *, limit: int, span: Span = EVERYWHERE, after: str | None = None) -> Page[Any]:
        self._read()
        return super().work_by_time(kind, lane, limit=limit, span=span, after=after)

    def commit(self, changes: Sequence[Change], /) -> None:
        self._simulation.sleep(self._commit_ms - self._answer_ms)
        self._answer()
        self.commit_now(changes)
        if self._answer_ms:
            self._simulation.sleep(self._answer_ms)
            self._answer()

    def open(self, work: Work, /) -> None:
        self._read()
        super().open(work)
        self._read()

    def commit_now(self, changes: Sequence[Change], /) -> None:
        """In no time, from anywhere."""
        super().commit(changes)
        for change in changes:
            if isinstance(change, Emit):
                self._kick(change.row.id, change.row.tenant)

    def _read(self) -> None:
        self._simulation.sleep(self._read_ms)
        self._answer()

    def _answer(self) -> None:
        if self.down(self._simulation.now):
            raise Unavailable("the store did not answer")


class Weather:
    """What a network does to messages, by a seed: parts of them come twice or late (`late_ms` at most), or could not be sent."""

    def __init__(self, seed: int, *, twice: float = 0.01, late: float = 0.003, late_ms: int = 8_000, refused: float = 0.0) -> None:
        self.random = Random(seed)
        self.twice, self.late, self.late_ms, self.refused = twice, late, late_ms, refused
