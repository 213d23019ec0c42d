"""A model of DynamoDB and of functions that write to it: items, partitions, conflicts of transactions, latencies, CPU.

It plays the commits of a block's payments, by workers side by side, in simulated time. Each constant stands here with its source.
Latencies are assumed, since they can not be measured without AWS: every result is shown with them and with twice them.
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from random import Random

GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide"
PARTITION_WRITES = 1_000.0
"""Write units a second of one partition: GUIDE/bp-partition-key-design.html."""
NEW_TABLE_PARTITIONS = 4
"""A new table on demand takes 4,000 write units a second: GUIDE/on-demand-capacity-mode.html."""
READ_MS = (4.0, 15.0)
"""p50 and p99 of a read, assumed: "single-digit milliseconds" is what DynamoDB promises (GUIDE/Introduction.html)."""
COMMIT_MS, COMMIT_ITEM_MS, COMMIT_P99 = 10.0, 0.6, 3.0
"""p50 of a transaction: so much, and so much more for each item; its p99 by its p50. Assumed: two phases of writes, items side
by side. How to measure it: https://www.alexdebrie.com/posts/dynamodb-transactions-performance (transactions of 5 and 25 items)."""
MESSAGE_MS = (50.0, 300.0)
"""p50 and p99 from SendMessage until a waiting function has the message: assumed."""
COLD_MS = 1_500.0
"""Every function of a fan-out starts cold: assumed, half as much again as tests/bench/bench_import.py measures for the poll."""
VCPU_MB = 1_769
"""Memory at which a function has one vCPU: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html."""
BACKOFF_MS, MOST_BACKOFF_MS = 5.0, 200.0
"""`usecases/base/retries.py`."""

Item = tuple[str, str]
"""Table and key."""


@dataclass(frozen=True)
class Shape:
    """What one payment's commit is made of. `own`: items of each payment alone, by table; `shared`: those of its merchant and coin
    that are written with a version or checked; `added`: those of them that are counted up (ADD), by how many shards each has.
    Units for each item: `units`. `reads`: calls before the commit, of which a group makes as many as a single. CPU in ms on a whole
    vCPU, for a payment and, in a group, for each further one."""

    own: tuple[str, ...]
    shared: tuple[str, ...]
    added: tuple[tuple[str, int], ...] = ()
    units: float = 2.0
    reads: int = 5
    cpu_ms: float = 7.0
    cpu_more_ms: float = 3.0

    def items(self, payments: int) -> int:
        return payments * len(self.own) + len(self.shared) + len(self.added) + 1

    def group(self, bound: int) -> int:
        """How many payments one transaction of `bound` items holds."""
        return max(n for n in range(1, PART + 1) if n == 1 or self.items(n) <= bound)


PART = 12
"""Deposits of a part of a block's list (`domain/chain.py`): each commit checks its own, and a group lies in one part."""


@dataclass(frozen=True)
class Plan:
    """How a block's payments are committed. `bound`: items of a transaction, 0 for singles. `ordered`: those of one merchant and
    coin one after the other, since they meet at its balance or at a shard. `partitions` of each table: a table is warmed to more
    before it needs them (GUIDE/warm-throughput.html)."""

    functions: int = 1
    threads: int = 1
    memory: int = 512
    bound: int = 0
    ordered: bool = False
    fan_out: bool = False
    partitions: int = NEW_TABLE_PARTITIONS
    slower: float = 1.0

    @property
    def speed(self) -> float:
        """The share of a vCPU; Python's threads use one at most."""
        return min(1.0, self.memory / VCPU_MB)


@dataclass
class Outcome:
    seconds: float
    payments: int
    commits: int = 0
    conflicts: int = 0
    written: dict[tuple[str, int], float] = field(default_factory=dict)
    cpu: float = 0.0

    @property
    def rate(self) -> float:
        return self.payments / self.seconds

    @property
    def hottest(self) -> float:
        """Write units a second of the partition that has most."""
        return max(self.written.values(), default=0.0) / self.seconds


@dataclass(frozen=True)
class Job:
    """Payments of one merchant and coin in one block that are committed together, by their numbers."""

    owner: int
    payments: tuple[int, ...]


class Dynamo:
    """Items under a transaction, their versions, and what each partition has left."""

    def __init__(self, random: Random, slower: float, partitions: int = NEW_TABLE_PARTITIONS) -> None:
        self.random, self.slower, self.partitions = random, slower, partitions
        self.busy: dict[Item, float] = {}
        self.versions: dict[Item, int] = {}
        self.free: dict[tuple[str, int], float] = {}
        self.written: dict[tuple[str, int], float] = {}

    def latency(self, p50: float, p99: float) -> float:
        """Log-normal, in seconds."""
        sigma = math.log(p99 / p50) / 2.326
        return self.random.lognormvariate(math.log(p50), sigma) * self.slower / 1_000

    def read(self) -> float:
        return self.latency(*READ_MS)

    def commit(self, now: float, items: list[Item], seen: dict[Item, int], units: float) -> tuple[float, bool]:
        """Seconds that a transaction takes, and whether it was done. `seen`: versions that it was decided by."""
        wait = 0.0
        for table, key in items:
            place = (table, zlib.crc32(key.encode()) % self.partitions)
            # Bursts are left out: a partition gives its units a second and no more.
            start = max(now, self.free.get(place, 0.0))
            self.free[place] = start + units / PARTITION_WRITES
            self.written[place] = self.written.get(place, 0.0) + units
            wait = max(wait, start - now)
        p50 = COMMIT_MS + COMMIT_ITEM_MS * len(items)
        took = wait + self.latency(p50, p50 * COMMIT_P99)
        # Whoever comes second to an item is refused, also where one of the two only checks it:
        # GUIDE/transaction-apis.html, "Transaction conflict handling".
        refused = any(self.busy.get(item, 0.0) > now for item in items)
        refused = refused or any(self.versions.get(item, 0) != version for item, version in seen.items())
        if refused:
            return took / 2, False
        for item in items:
            self.busy[item] = now + took
        for item in seen:
            self.versions[item] = self.versions.get(item, 0) + 1
        return took, True


Process = Generator[float]


class Play:
    """A block's payments on their way into the store. `numbers`: payments of each merchant and coin."""

    def __init__(self, shape: Shape, plan: Plan, numbers: Iterable[int], seed: int = 1) -> None:
        self.shape, self.plan, self.random = shape, plan, Random(seed)
        self.dynamo = Dynamo(self.random, plan.slower, plan.partitions)
        self.now, self.done, self.commits, self.conflicts, self.cpu = 0.0, 0, 0, 0, 0.0
        self.cpus = [0.0] * plan.functions
        self.queue: deque[tuple[Job, ...]] = deque()
        size = shape.group(plan.bound) if plan.bound else 1
        first = 0
        for owner, count in enumerate(numbers):
            until = first + count
            jobs = tuple(Job(owner, tuple(range(begin, min(begin + size, until)))) for begin in range(first, until, size))
            self.queue += [jobs] if plan.ordered else [(job,) for job in jobs]
            first = until
        self.payments = first
        if not plan.ordered:  # neighbours meet at their part of the block's list
            self.random.shuffle(self.queue)

    def run(self) -> Outcome:
        heap: list[tuple[float, int, Process]] = []
        for function in range(self.plan.functions):
            start = 0.0
            if self.plan.fan_out:
                start = COLD_MS * self.plan.slower / 1_000 + self.dynamo.latency(*MESSAGE_MS)
            for thread in range(self.plan.threads):
                heap.append((start, function * 1_000 + thread, self._worker(function)))
        heapq.heapify(heap)
        while heap:
            self.now, name, process = heapq.heappop(heap)
            for seconds in process:
                heapq.heappush(heap, (self.now + seconds, name, process))
                break
        if self.done != self.payments:
            raise AssertionError(f"{self.done} of {self.payments} were committed")
        return Outcome(self.now, self.payments, self.commits, self.conflicts, self.dynamo.written, self.cpu)

    def _worker(self, function: int) -> Process:
        while self.queue:
            for job in self.queue.popleft():
                yield from self._work(function, job)

    def _work(self, function: int, job: Job) -> Process:
        """Read, decide, commit; after a conflict a group is split into singles, and a single tries again."""
        attempt = 0
        while True:
            slice_ms = (self.shape.cpu_ms + self.shape.cpu_more_ms * (len(job.payments) - 1)) / (self.shape.reads + 1)
            seen: dict[Item, int] = {}
            for call in range(self.shape.reads):
                yield self._compute(function, slice_ms)
                if call == 0:
                    seen = {item: self.dynamo.versions.get(item, 0) for item in self._versioned(job)}
                yield self.dynamo.read()
            yield self._compute(function, slice_ms)
            took, committed = self.dynamo.commit(self.now, self._items(job), seen, self.shape.units)
            yield took
            if committed:
                self.commits += 1
                self.done += len(job.payments)
                return
            self.conflicts += 1
            if len(job.payments) > 1:
                self.queue += [(Job(job.owner, (payment,)),) for payment in job.payments]
                return
            yield self.random.uniform(0, min(MOST_BACKOFF_MS, BACKOFF_MS * 2**attempt)) / 1_000
            attempt += 1

    def _compute(self, function: int, ms: float) -> float:
        """Until the function's one processor has done so much: threads share it."""
        work = ms / self.plan.speed / 1_000
        self.cpu += ms / 1_000
        self.cpus[function] = max(self.now, self.cpus[function]) + work
        return self.cpus[function] - self.now

    def _versioned(self, job: Job) -> list[Item]:
        return [(table, f"{table} of {job.owner}") for table in self.shape.shared]

    def _items(self, job: Job) -> list[Item]:
        own = [(table, f"{n}/{place}") for n in job.payments for place, table in enumerate(self.shape.own)]
        added = [
            (table, f"{table} {place} of {job.owner}, {zlib.crc32(str(job.payments[0]).encode()) % shards}")
            for place, (table, shards) in enumerate(self.shape.added)
        ]
        part = f"of {job.payments[0]} on" if len(job.payments) > 1 else job.payments[0] // PART
        return [*own, *self._versioned(job), *added, ("chain", f"part {part}")]
