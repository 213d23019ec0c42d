"""A day of comparing balances, played step by step: each network's function with its schedule, its pages and what it asks
nodes, and tables whose partitions give no more than they have. bench_comparing.py computes the same on paper.

All networks begin at the same moment and go through the same hashes, so that they meet at the same partition: the worst that there
is. Waits are drawn from `latencies.py`; a page's, which no source tells, is assumed below. CPU is what bench_comparing.py measured.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from random import Random

from chalicelib.workers.compare import COMPARING, SECONDS
from tests.bench.dynamo_model import NEW_TABLE_PARTITIONS, Dynamo
from tests.bench.latencies import COLD, QUEUE, SEND, START, Latency

PARTITION_READS = 3_000.0
"""Read units a second of one partition: GUIDE/bp-partition-key-design.html (dynamo_model.GUIDE). Bursts are left out."""
PARTITION_BYTES = 10 * 1024**3
"""What a partition holds: docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.Partitions.html"""
PAGE_BYTES, READ_UNIT = 1 << 20, 4096
PAGE = Latency(100, 300, "a page of a megabyte; AWS promises single-digit ms for single items alone; assumed")
SCHEDULE_S = 300.0


@dataclass(frozen=True)
class Step:
    """What one step does, one after the other: `bytes` of a table from `place` on, a share of it, in `pages`; `reads` by key;
    `nodes` requests to a node, `together` of them at a time, each of which lasts at `least` so many seconds; `waits` seconds of
    many small reads; CPU in seconds of this function; a commit. `units`: read units by key, write units."""

    table: str
    bytes: float
    place: float
    pages: int = 1
    reads: int = 0
    nodes: int = 0
    together: int = 1
    least: float = 0.0
    waits: float = 0.0
    cpu: float = 0.0
    units: tuple[float, float] = (0.0, 0.0)


@dataclass
class Job:
    """One network's day: the steps of its comparison, and of its round over all addresses."""

    name: str
    comparison: Iterator[Step]
    round: Iterator[Step]
    ended: float = 0.0
    """Seconds after the day began."""
    worked: float = 0.0
    """Seconds of its function, cold starts with them."""
    calls: int = 0
    read_units: float = 0.0
    write_units: float = 0.0


class Tables(Dynamo):
    """Partitions that are read; `sizes` are the tables' bytes."""

    def __init__(self, random: Random, sizes: dict[str, float]) -> None:
        super().__init__(random, 1.0)
        self._count = {name: max(NEW_TABLE_PARTITIONS, math.ceil(size / PARTITION_BYTES)) for name, size in sizes.items()}
        self._until: dict[tuple[str, int], float] = {}
        self.held_up = 0.0
        """Seconds that readers waited for a partition, all together."""

    def page(self, now: float, table: str, place: float, size: float) -> float:
        """Seconds of reading so many bytes, eventually consistent, at this share of the table."""
        at = (table, min(int(place * self._count[table]), self._count[table] - 1))
        start = max(now, self._until.get(at, 0.0))
        self._until[at] = start + size / READ_UNIT / 2 / PARTITION_READS
        self.held_up += start - now
        return start - now + self.read() + self.latency(PAGE) * size / PAGE_BYTES


@dataclass
class Day:
    """Networks side by side. `node`: what a request to a node takes."""

    tables: Tables
    node: Latency
    random: Random
    now: float = 0.0

    def play(self, jobs: Iterable[Job]) -> None:
        heap: list[tuple[float, int, Generator[float]]] = [(0.0, n, self._function(job)) for n, job in enumerate(jobs)]
        heapq.heapify(heap)
        while heap:
            self.now, name, process = heapq.heappop(heap)
            for seconds in process:
                heapq.heappush(heap, (self.now + seconds, name, process))
                break

    def _function(self, job: Job) -> Generator[float]:
        """As `workers/compare.py`: of each schedule's period it begins steps for `SECONDS`, of which the comparison may take
        `COMPARING` where there is a round."""
        comparison, round_ = Steps(job.comparison), Steps(job.round)
        part = COMPARING if round_.left else 1.0
        while comparison.left or round_.left:
            yield math.ceil(self.now / SCHEDULE_S) * SCHEDULE_S - self.now
            yield self.tables.latency(SEND) + self.tables.latency(QUEUE)
            job.calls += 1
            start = self.now
            if job.calls == 1 or self.random.random() < COLD:
                yield self.tables.latency(START)
            for steps, until in ((comparison, start + part * SECONDS), (round_, start + SECONDS)):
                while steps.left and self.now < until:
                    yield from self._step(job, steps.take())
            job.worked += self.now - start
            job.ended = self.now
            if comparison.left or round_.left:
                yield 0.001  # the next schedule's, and not this one's again

    def _step(self, job: Job, step: Step) -> Generator[float]:
        yield sum(self.tables.read() for _ in range(1 + step.reads))
        for _ in range(step.pages):
            share = step.bytes / step.pages
            yield self.tables.page(self.now, step.table, step.place, share)
            job.read_units += share / READ_UNIT / 2
        yield self.asked(step) + step.waits + step.cpu
        key = ("chain", f"{job.name} {step.table}")
        took, _ = self.tables.commit(self.now, [key], {}, {"chain": step.units[1]})
        yield took
        job.read_units += step.units[0]
        job.write_units += step.units[1]

    def asked(self, step: Step) -> float:
        """Seconds until a step's last request to a node is answered: whoever of those at work is done takes the next one."""
        ends = [0.0] * min(step.together, step.nodes)
        for _ in range(step.nodes):
            heapq.heapreplace(ends, ends[0] + max(step.least, self.node.draw(self.random) / 1_000))
        return max(ends, default=0.0)


class Steps:
    """An iterator that can say whether something is left."""

    def __init__(self, steps: Iterator[Step]) -> None:
        self._steps = steps
        self._next = next(steps, None)

    @property
    def left(self) -> bool:
        return self._next is not None

    def take(self) -> Step:
        found, self._next = self._next, next(self._steps, None)
        if found is None:
            raise StopIteration
        return found
