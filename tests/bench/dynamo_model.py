"""A model of DynamoDB and of functions that write to it: items, partitions, conflicts of transactions, latencies, CPU.

It plays the commits of a block's payments, by workers side by side, in simulated time. Each constant stands here with its source,
latencies in `latencies.py`: every result is shown with them and with twice them. A function of a fan-out starts cold. It asks
a node for a block's hash, or for the block, its proofs and its hash.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from chalicelib.usecases.deposits import groups
from chalicelib.usecases.scanning import block_lists
from tests.bench.latencies import NODE, QUEUE, READ, SEND, START, VCPU_MB, Latency, commit

GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide"
PARTITION_WRITES = 1_000.0
"""Write units a second of one partition: GUIDE/bp-partition-key-design.html."""
NEW_TABLE_PARTITIONS = 4
"""A new table on demand takes 4,000 write units a second: GUIDE/on-demand-capacity-mode.html."""
TRANSACTED = 2.0
"""Write units of an item of up to 1 kB in a transaction: GUIDE/transaction-apis.html."""
BACKOFF_MS, MOST_BACKOFF_MS = 5.0, 200.0
"""`usecases/base/retries.py`."""
BUSY_TRIES, BUSY_MS, HEARD_S = 6, 20.0, 2.0
"""A transaction that met another one is sent again (`store/dynamo.py`); for how long the outbox is used (`store/unheard.py`)."""
GROUP_TRIES, GROUP_MS = 4, 50.0
"""`usecases/deposits/groups.py`: of a group whose balance has moved on."""

Item = tuple[str, str]
"""Table and key. What stands before a `|` in the key is its partition key: such items lie together."""


OF_MERCHANT = " of a merchant"


@dataclass(frozen=True)
class Shape:
    """What one payment's commit is made of. `own`: items of each payment alone, by table and, where payments have one partition key
    for them, its prefix: with OF_MERCHANT behind it one for each merchant, else one for the network. DynamoDB may split such a
    partition by its sort keys (GUIDE/bp-partition-key-design.html), and that is not counted on. `shared`: those of its merchant
    and coin that are written with a version; `checked`: those that only set a condition, without which it is sent again where it
    met another there; `added`: those that are counted up (ADD), by how many shards each has; `indexed`: rows of indexes that it
    moves, by index, prefix as in `own`, and their units: an index whose partition is full holds its table up
    (GUIDE/gsi-throttling.html). `units`: write units of an item, by table. `reads`: calls before the commit, of which a group makes
    as many as a single. CPU in ms on a whole vCPU, for a payment and, in a group, for each further one. `nodes`: what a function
    asks a node before it begins with a message."""

    own: tuple[tuple[str, str], ...]
    shared: tuple[str, ...]
    added: tuple[tuple[str, int], ...] = ()
    units: Mapping[str, float] = field(default_factory=dict)
    reads: int = 5
    cpu_ms: float = 7.0
    cpu_more_ms: float = 3.0
    checked: tuple[str, ...] = ()
    nodes: int = 1
    indexed: tuple[tuple[str, str, float], ...] = ()

    def items(self, payments: int) -> int:
        return payments * len(self.own) + len(self.shared) + len(self.checked) + len(self.added) + 1

    def group(self, bound: int) -> int:
        """How many payments one transaction of `bound` items holds."""
        return max(n for n in range(1, groups.MOST + 1) if n == 1 or self.items(n) <= bound)


@dataclass(frozen=True)
class Plan:
    """How a block's payments are committed. `bound`: items of a transaction, 0 for singles. `ordered`: those of one merchant and
    coin one after the other, a lane: all of them where they meet at a version, its balance, else those of a message
    (`usecases/scanning/recording_lanes.py`). `share`: payments of a message, which cuts no lane; a function takes a message after
    the other, its threads the lanes of one. `partitions` of each table: a table is warmed to more before it needs them
    (GUIDE/warm-throughput.html)."""

    functions: int = 1
    threads: int = 1
    memory: int = 512
    bound: int = 0
    ordered: bool = False
    share: int = 0
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
    together: dict[str, float] = field(default_factory=dict)
    """Write units of each partition key that payments have together."""
    cpu: float = 0.0

    @property
    def rate(self) -> float:
        return self.payments / self.seconds

    @property
    def hottest(self) -> float:
        """Write units a second of the partition that has most."""
        return max(self.written.values(), default=0.0) / self.seconds

    @property
    def hottest_key(self) -> tuple[str, float]:
        """The prefix of the partition key that has most, and its write units a second."""
        key = max(self.together, key=lambda key: self.together[key], default="")
        return re.sub(r" \d+$", "", key), self.together.get(key, 0.0) / self.seconds


@dataclass(frozen=True)
class Job:
    """Payments of one merchant and coin in one block that are committed together, by their numbers."""

    owner: int
    payments: tuple[int, ...]


Lane = tuple[Job, ...]
"""One after the other."""


def messages_of(lanes: Iterable[Lane], share: int) -> list[list[Lane]]:
    """`lanes` in messages of at most `share` payments, or of one lane (`usecases/scanning/sharing.py`)."""
    messages: list[list[Lane]] = []
    room = 0
    for lane in lanes:
        size = sum(len(job.payments) for job in lane)
        if not messages or size > room:
            messages.append([])
            room = share
        messages[-1].append(lane)
        room -= size
    return messages


class Dynamo:
    """Items under a transaction, their versions, and what each partition has left."""

    def __init__(self, random: Random, slower: float, partitions: int = NEW_TABLE_PARTITIONS) -> None:
        self.random, self.slower, self.partitions = random, slower, partitions
        self.busy: dict[Item, float] = {}
        self.versions: dict[Item, int] = {}
        self.free: dict[tuple[str, int], float] = {}
        self.written: dict[tuple[str, int], float] = {}
        self.together: dict[str, float] = {}
        self.met: set[Item] = set()
        """Items at which the last refused transaction met another; none where a version had moved on."""

    def latency(self, of: Latency) -> float:
        """In seconds."""
        return of.draw(self.random, self.slower) / 1_000

    def read(self) -> float:
        return self.latency(READ)

    def commit(
        self,
        now: float,
        items: list[Item],
        seen: dict[Item, int],
        units: Mapping[str, float],
        indexed: Iterable[tuple[Item, float]] = (),
    ) -> tuple[float, bool]:
        """Seconds that a transaction takes, and whether it was done. `seen`: versions that it was decided by. `units`: write units
        of an item, by table; TRANSACTED where none are told. `indexed`: rows of indexes, and their units."""
        own = [(item, units.get(item[0], TRANSACTED)) for item in items]
        wait = max((self._taken(now, item, taken) for item, taken in (*own, *indexed)), default=0.0)
        took = wait + self.latency(commit(len(items)))
        # Whoever comes second to an item is refused, also where one of the two only checks it:
        # GUIDE/transaction-apis.html, "Transaction conflict handling".
        moved = any(self.versions.get(item, 0) != version for item, version in seen.items())
        self.met = set() if moved else {item for item in items if self.busy.get(item, 0.0) > now}
        if moved or self.met:
            return took / 2, False
        for item in items:
            self.busy[item] = now + took
        for item in seen:
            self.versions[item] = self.versions.get(item, 0) + 1
        return took, True

    def _taken(self, now: float, item: Item, units: float) -> float:
        """Take an item's units of its partition; seconds until it has them. Bursts are left out: it gives its units a second and no
        more."""
        table, key = item
        partition_key, _, one_of_many = key.partition("|")
        place = (table, zlib.crc32(partition_key.encode()) % self.partitions)
        start = max(now, self.free.get(place, 0.0))
        self.free[place] = start + units / PARTITION_WRITES
        self.written[place] = self.written.get(place, 0.0) + units
        if one_of_many:
            key = f"{table} {partition_key}" if "." in table else partition_key
            self.together[key] = self.together.get(key, 0.0) + units
        return start - now


Process = Generator[float]


class Play:
    """A block's payments on their way into the store. `numbers`: payments of each merchant and coin."""

    def __init__(self, shape: Shape, plan: Plan, numbers: Iterable[int], seed: int = 1) -> None:
        self.shape, self.plan, self.random = shape, plan, Random(seed)
        self.dynamo = Dynamo(self.random, plan.slower, plan.partitions)
        self.now, self.done, self.commits, self.conflicts, self.cpu = 0.0, 0, 0, 0, 0.0
        self.cpus = [0.0] * plan.functions
        self.taken: list[deque[Lane]] = [deque() for _ in range(plan.functions)]
        self.open = [0] * plan.functions
        """Lanes of the message that a function has, those not begun and those not done."""
        self.heard: dict[tuple[int, int], float] = {}
        self.prepared: dict[Job, float] = {}
        """When what a group is decided by is read, where that is done while the one before it is committed."""
        lanes: list[Lane] = []
        size = shape.group(plan.bound) if plan.bound else 1
        first = 0
        for owner, count in enumerate(numbers):
            until = first + count
            jobs = tuple(Job(owner, tuple(range(begin, min(begin + size, until)))) for begin in range(first, until, size))
            lanes += self._lanes(jobs)
            first = until
        self.payments = first
        if not plan.bound:  # neighbours meet at their part of the block's list
            self.random.shuffle(lanes)
        self.queue = deque(messages_of(lanes, plan.share))

    def _lanes(self, jobs: tuple[Job, ...]) -> list[Lane]:
        if not self.plan.ordered:
            return [(job,) for job in jobs]
        if self.shape.shared or not self.plan.share:
            return [jobs]
        size = max(1, self.plan.share // len(jobs[0].payments))
        return [jobs[place : place + size] for place in range(0, len(jobs), size)]

    def run(self) -> Outcome:
        heap: list[tuple[float, int, Process]] = []
        for function in range(self.plan.functions):
            start = 0.0
            if self.plan.fan_out:
                start = sum(self.dynamo.latency(each) for each in (SEND, QUEUE, START))
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
        return Outcome(self.now, self.payments, self.commits, self.conflicts, self.dynamo.written, self.dynamo.together, self.cpu)

    def _worker(self, function: int) -> Process:
        while self.queue or self.open[function]:
            if not self.taken[function]:
                if self.open[function] and self.plan.share:
                    yield 0.005  # its other threads have what is left of the message
                    continue
                message = self.queue.popleft() if self.queue else []
                self.open[function] += len(message)
                if self.plan.share:
                    for _ in range(self.shape.nodes):
                        yield self.dynamo.latency(NODE)
                self.taken[function] += message
            if self.taken[function]:
                lane = self.taken[function].popleft()
                for place, job in enumerate(lane):
                    yield from self._work(function, job, lane[place + 1] if place + 1 < len(lane) else None)
                self.open[function] -= 1
            elif not self.queue:
                return

    def _prepare(self, function: int, job: Job) -> float:
        """Seconds of all reads but the balance's, and of what is decided by them, while the group before is committed."""
        reads = sum(self.dynamo.read() for _ in range(self.shape.reads - 1))
        return reads + self._compute(function, self._slice_ms(job) * self.shape.reads)

    def _slice_ms(self, job: Job) -> float:
        """Of its CPU, before each read and before the commit."""
        return (self.shape.cpu_ms + self.shape.cpu_more_ms * (len(job.payments) - 1)) / (self.shape.reads + 1)

    def _work(self, function: int, job: Job, behind: Job | None = None) -> Process:
        """Read, decide, commit; a group whose balance goes on moving is committed one by one, and a single tries again. `behind` is
        the next one of its lane."""
        attempt = 0
        while True:
            slice_ms, prepared = self._slice_ms(job), self.prepared.pop(job, None)
            seen: dict[Item, int] = {}
            if prepared is not None:
                yield max(0.0, prepared - self.now)
            for call in range(self.shape.reads if prepared is None else 1):
                if prepared is None:
                    yield self._compute(function, slice_ms)
                if call == 0:
                    seen = {item: self.dynamo.versions.get(item, 0) for item in self._versioned(job)}
                yield self.dynamo.read()
            yield self._compute(function, slice_ms)
            if behind is not None and behind not in self.prepared and len(job.payments) > 1 < len(behind.payments):
                self.prepared[behind] = self.now + self._prepare(function, behind)
            committed = yield from self._commit(function, job, seen)
            if committed:
                return
            if len(job.payments) == 1:
                yield self.random.uniform(0, min(MOST_BACKOFF_MS, BACKOFF_MS * 2**attempt)) / 1_000
            elif seen and attempt + 1 < GROUP_TRIES:
                yield self.random.uniform(0, GROUP_MS) / 1_000
            else:
                for payment in job.payments:
                    yield from self._work(function, Job(job.owner, (payment,)))
                return
            attempt += 1

    def _commit(self, function: int, job: Job, seen: dict[Item, int]) -> Generator[float, None, bool]:
        """Whether it is done. Where it met another transaction it is sent again, without the items that it only checks where it was
        there that they met: its events go by the outbox then, and so do the next ones of this function."""
        place = (function, job.owner)
        for attempt in range(BUSY_TRIES):
            checks = {(table, f"{table} of {job.owner}, checked") for table in self.shape.checked}
            if self.heard.get(place, 0.0) > self.now:
                checks = set()
            items = [*self._items(job), *checks]
            took, committed = self.dynamo.commit(self.now, items, seen, self.shape.units, self._indexed(job))
            met = set(self.dynamo.met)
            yield took
            if committed:
                self.commits += 1
                self.done += len(job.payments)
                return True
            self.conflicts += 1
            if not met:
                return False
            if met <= checks:
                self.heard[place] = self.now + HEARD_S
            else:
                yield self.random.uniform(0, BUSY_MS * 2**attempt) / 1_000
        return False

    def _compute(self, function: int, ms: float) -> float:
        """Until the function's one processor has done so much: threads share it."""
        work = ms / self.plan.speed / 1_000
        self.cpu += ms / 1_000
        self.cpus[function] = max(self.now, self.cpus[function]) + work
        return self.cpus[function] - self.now

    def _versioned(self, job: Job) -> list[Item]:
        return [(table, f"{table} of {job.owner}") for table in self.shape.shared]

    def _indexed(self, job: Job) -> list[tuple[Item, float]]:
        rows = enumerate(self.shape.indexed)
        return [((index, f"{_lies(in_, job)}{n}/{place}"), units) for place, (index, in_, units) in rows for n in job.payments]

    def _items(self, job: Job) -> list[Item]:
        placed = enumerate(self.shape.own)
        own = [(table, f"{_lies(together, job)}{n}/{place}") for place, (table, together) in placed for n in job.payments]
        added = [
            (table, f"{table} {place} of {job.owner}, {zlib.crc32(str(job.payments[0]).encode()) % shards}")
            for place, (table, shards) in enumerate(self.shape.added)
        ]
        part = f"of {job.payments[0]} on" if len(job.payments) > 1 else job.payments[0] // block_lists.MOST
        return [*own, *self._versioned(job), *added, ("chain", f"part {part}")]


def _lies(together: str, job: Job) -> str:
    """What comes before an item's own key."""
    return f"{together} {job.owner}|" if together.endswith(OF_MERCHANT) else f"{together}|" if together else ""
