"""Seconds from a block, or from a mempool, to the delivered `transaction.detected`, and what busy networks cost. A simulation.

Run as a script: ``python tests/bench/bench_seconds.py``; bench_measured.py measures a local stack.

Plan and lease are the service's own (`chalicelib/domain/scanning/ticks.py`). Each wait is drawn from a lognormal distribution with
the p50 and p99 of `latencies.py`, in the second column of results with twice both. What is done is in `WORK`: a payment's CPU,
calls and items are those of docs/scale.md. Payments come at `RATE` a second, spread over the account networks and then all on one,
and belong to `MERCHANTS` with an endpoint each. On UTXO networks they are `COINS` a second: a third of what bitcoin's chain takes.
Each figure is of `SEEDS` runs together: a run has twenty of ethereum's blocks, and all lie alike between its ticks.
Budget: p95 of 5 s, and 8 s on UTXO networks, with the waits as they are.
"""

from __future__ import annotations

import heapq
import math
import random
import sys
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from chalicelib.domain.catalogue.catalogue import Network, default_networks  # noqa: E402
from chalicelib.domain.scanning.ticks import TickLease, is_late, planned  # noqa: E402
from chalicelib.usecases.base.side_by_side import AT_ONCE  # noqa: E402
from chalicelib.usecases.deposits.groups import MOST  # noqa: E402
from chalicelib.usecases.ports.changes import FEW_ITEMS  # noqa: E402
from chalicelib.usecases.scanning.sharing import FROM, SHARE  # noqa: E402
from tests.bench.costs import TABLE, parsed  # noqa: E402
from tests.bench.latencies import (  # noqa: E402
    COLD,
    DELAY,
    MEMPOOL,
    NODE,
    QUEUE,
    READ,
    RECEIVER,
    SEND,
    START,
    VCPU_MB,
    Latency,
    commit,
    memory,
)
from tests.bench.page import PAGE, between  # noqa: E402

RATE, COINS, MERCHANTS = 50, 2, 50
"""The rate is the goal. As many merchants, one payment a second each: assumed; fewer have larger groups and wait at an endpoint."""
MINUTES = 4
SEEDS = range(17, 27)
BUDGET_MS = {"evm": 5_000, "tron": 5_000, "utxo": 8_000}
MEMORY = {"poll": memory("poll_ethereum"), **{name: memory(name) for name in ("tick", "relay", "deliver")}}
"""MB."""
READING_S = 6.0
"""Seconds of a tick in which payments are recorded (`workers/tick.py`)."""


WAITS = {
    "queue": QUEUE,
    "delay": DELAY,
    "send": SEND,
    "cold": START,
    "read": READ,
    "transaction": commit(FEW_ITEMS),
    "node": NODE,
    "mempool": MEMPOOL,
    "receiver": RECEIVER,
}


def measured(name: str) -> tuple[float, float, list[int]]:
    """CPU in ms and calls of one payment, and its items: own, shared, counted up. Of bench_throughput.py, as the page has it."""
    rows = [line.strip("|").split("|") for line in between(PAGE.read_text(encoding="utf-8"), "throughput").splitlines()]
    (row,) = (row for row in rows if row[0] == name)
    return float(row[1]), float(row[2]), [int(count) for count in row[4].split(",")]


CPU_ALONE, CALLS, _ = measured("detection alone")
CPU_TOGETHER, _, ITEMS = measured("detection in groups")


@dataclass(frozen=True)
class Work:
    """Calls one after the other, and CPU of a whole vCPU in milliseconds."""

    reads: int = 0
    transactions: int = 0
    sends: int = 0
    nodes: int = 0
    cpu: float = 0.0

    def waits(self, luck: random.Random, times: float, items: int = FEW_ITEMS) -> float:
        """Milliseconds of its calls; a transaction has so many items."""
        return sum(kind.draw(luck, times) for kind, count in self._calls(items) for _ in range(count))

    def seconds(self, memory: int) -> float:
        """The mean, in a function with so many MB."""
        calls = sum(kind.mean * count for kind, count in self._calls(FEW_ITEMS))
        return (calls + self.cpu * VCPU_MB / memory) / 1_000

    def _calls(self, items: int) -> list[tuple[Latency, int]]:
        return [(READ, self.reads), (commit(items), self.transactions), (SEND, self.sends), (NODE, self.nodes)]


WORK = {
    "begin": Work(reads=2, transactions=1, cpu=4),  # put back, lease
    "look": Work(reads=1, nodes=2, cpu=4),  # cursor; tip and the cursor's hash
    "blocks": Work(reads=6, transactions=1, nodes=3, cpu=25),  # catalogue, recipients, list; blocks, receipts, traces
    "pass": Work(transactions=1, cpu=4),
    "payment": Work(reads=round(CALLS) - 2, transactions=1, sends=1, cpu=CPU_ALONE),
    "row": Work(reads=2, transactions=3, sends=1, cpu=6),  # relay: events, deliveries
    "batch": Work(reads=6, transactions=2, cpu=8),  # deliver: lease, due deliveries, endpoint
    "end": Work(reads=1, transactions=1, cpu=3),  # confirm finds nothing; lease
}


@dataclass(frozen=True)
class How:
    """`threads` record at once, and up to `together` payments of a merchant in one transaction. Each but the first costs `in_group`
    of one payment's CPU, so that a payment of a whole group comes to what was measured."""

    threads: int
    together: int
    shares: bool = False
    in_group: float = (MOST * CPU_TOGETHER / CPU_ALONE - 1) / (MOST - 1)


def _shares(groups: list[list[Payment]]) -> list[list[list[Payment]]]:
    """Groups in shares of at most `SHARE` payments."""
    found: list[list[list[Payment]]] = [[]]
    for group in groups:
        if sum(map(len, found[-1])) + len(group) > SHARE:
            found.append([])
        found[-1].append(group)
    return found


@dataclass
class Payment:
    at: float
    merchant: int


class Run:
    """One network for some minutes. Times in milliseconds from the first poll on."""

    def __init__(self, network: Network, how: How, rate: float, times: float, seed: int) -> None:
        self.network, self.how, self.rate, self.times, self.luck = network, how, rate, times, random.Random(seed)
        self.recorded: list[tuple[float, Payment]] = []
        self.coming: deque[Payment] = deque()

    def payments(self) -> list[Payment]:
        """As they come to be seen: with their block, or in the mempool."""
        found, length = [], MINUTES * 60_000.0
        if self.network.family == "utxo":
            at = 0.0
            while (at := at + self.luck.expovariate(COINS / 1000)) < length:
                found.append(Payment(at, self.luck.randrange(MERCHANTS)))
            return found
        block, at = self.network.block_time * 1000, self.luck.random() * self.network.block_time * 1000
        owed = 0.0
        while at < length:
            owed += self.rate * block / 1000
            found += [Payment(at, self.luck.randrange(MERCHANTS)) for _ in range(int(owed))]
            owed -= int(owed)
            at += block
        return found

    def latencies(self) -> list[float]:
        """Of each payment, to its webhook."""
        self.coming = deque(sorted(self.payments(), key=lambda payment: payment.at))
        left: list[Payment] = []
        lease, free = TickLease(self.network.id), 0.0
        for start, at in self._ticks():
            begun = start + self._work("begin", "tick")
            if is_late(at, int(start)) or start < free:
                continue
            taken = lease.taken(at, int(start))
            if taken is None:
                continue
            free, left = self._tick(begun, left)
            lease = replace(taken, done=True)
        return self._told()

    def _ticks(self) -> list[tuple[float, int]]:
        """When each one starts, and for when it was planned."""
        moments = [
            at for minute in range(MINUTES + 1) for at in planned(self.network.family, minute * 60_000 + 1, minute * 60_000, 10**9)
        ]
        started = []
        for at in moments:
            start = at + self._wait("delay") + self._wait("queue") + (self._wait("cold") if self.luck.random() < COLD else 0)
            started.append((start, at))
        return sorted(started)

    def _tick(self, now: float, left: list[Payment]) -> tuple[float, list[Payment]]:
        """When it has ended, and what it left."""
        utxo = self.network.family == "utxo"
        if utxo:
            now += self._wait("mempool")
        seen = left
        while self.coming and self.coming[0].at <= now:
            seen.append(self.coming.popleft())
        now += self._work("look", "tick")
        if seen:
            # Of a mempool twenty transactions a request, and as many of strangers as of ours.
            rounds = math.ceil(2 * len(seen) / 20)
            now += sum(self._wait("node") for _ in range(rounds)) if utxo else self._work("blocks", "tick")
        end, left = self._record(now, seen)
        if seen and not utxo:
            end += self._work("pass", "tick")
        return end + self._work("end", "tick"), left

    def _record(self, now: float, seen: list[Payment]) -> tuple[float, list[Payment]]:
        """When the last payment is recorded, and what there was no time for. A crowded block is shared out."""
        groups, ends, left = self._groups(seen), [now], []
        shared = self.network.family != "utxo" and len(seen) >= FROM and self.how.shares
        for place, share in enumerate(_shares(groups) if shared else [groups]):
            begin = now + place * self._wait("send") + (self._of_another() if place else 0.0)
            end, late = self._by_one(begin, share)
            ends.append(end)
            left += late
        return max(ends), left

    def _of_another(self) -> float:
        """What a function takes that is asked for a share, until it has read the block."""
        return self._wait("queue") + self._maybe_cold() + self._work("blocks", "tick")

    def _by_one(self, now: float, groups: list[list[Payment]]) -> tuple[float, list[Payment]]:
        lanes = [now] * (1 if self.network.family == "utxo" else self.how.threads)
        cpu, until, left = now, now + READING_S * 1000, []
        work, luck = WORK["payment"], self.luck
        for group in groups:
            begin = heapq.heappop(lanes)
            if begin > until:
                left += group
                heapq.heappush(lanes, begin)
                continue
            burnt = work.cpu * (1 + (len(group) - 1) * self.how.in_group) * VCPU_MB / MEMORY["tick"]
            cpu = max(cpu, begin) + burnt  # threads share one processor
            items = ITEMS[0] * len(group) + sum(ITEMS[1:]) + 1
            end = max(begin + burnt + work.waits(luck, self.times, items), cpu)
            heapq.heappush(lanes, end)
            self.recorded += [(end, payment) for payment in group]
        return max(lanes), left

    def _groups(self, seen: list[Payment]) -> list[list[Payment]]:
        if self.network.family == "utxo":
            return [[payment] for payment in seen]
        by: dict[int, list[Payment]] = defaultdict(list)
        for payment in seen:
            by[payment.merchant].append(payment)
        most = self.how.together
        return [its[start : start + most] for its in by.values() for start in range(0, len(its), most)]

    def _told(self) -> list[float]:
        """Relay and delivery. Functions are as many as are wanted; an endpoint has one batch of ten at a time."""
        due: dict[int, list[tuple[float, Payment]]] = defaultdict(list)
        for end, payment in self.recorded:
            told = end + self._wait("queue") + self._maybe_cold() + self._work("row", "relay")
            due[payment.merchant].append((told + self._wait("queue") + self._maybe_cold(), payment))
        took = []
        for of_one in due.values():
            deliveries, free = sorted(of_one, key=lambda entry: entry[0]), 0.0
            while deliveries:
                begin = max(free, deliveries[0][0])
                batch = [entry for entry in deliveries[:10] if entry[0] <= begin]
                del deliveries[: len(batch)]
                sent = begin + self._work("batch", "deliver")
                answers = [sent + self._wait("receiver") for _ in batch]
                took += [answer - payment.at for answer, (_, payment) in zip(answers, batch, strict=True)]
                free = max(answers) + self._wait("transaction")
        return took

    def _maybe_cold(self) -> float:
        return self._wait("cold") if self.luck.random() < COLD else 0.0

    def _wait(self, name: str) -> float:
        return WAITS[name].draw(self.luck, self.times)

    def _work(self, name: str, function: str) -> float:
        work = WORK[name]
        return work.waits(self.luck, self.times) + work.cpu * VCPU_MB / MEMORY[function]


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


HOWS = {
    "one after the other": How(1, 1),
    f"in groups of up to {MOST} of a merchant, {AT_ONCE} at once, shared out from {FROM} payments on, as the service does": How(
        AT_ONCE, MOST, True
    ),
}


def pooled(network: Network, how: How, rate: float, times: float) -> list[float]:
    """The latencies of all runs, in milliseconds."""
    return [took for seed in SEEDS for took in Run(network, how, rate, times, seed).latencies()]


def seconds(networks: list[Network], how: str, rate: float) -> bool:
    """Print the table; whether all hold the budget with the waits as they are."""
    kept = True
    print(f"\n{rate:.3g} payments a second on the network, those of a block recorded {how}:\n")
    print("|network|block s|a block's payments|p50 s|p95 s|p99 s|twice the waits: p95 s|budget s|")
    print("|---|---|---|---|---|---|---|---|")
    for network in networks:
        took, twice = (pooled(network, HOWS[how], rate, times) for times in (1, 2))
        budget = BUDGET_MS[network.family]
        kept = kept and percentile(took, 0.95) <= budget
        many = "mempool" if network.family == "utxo" else f"{rate * network.block_time:.0f}"
        found = "|".join(f"{percentile(took, part) / 1000:.1f}" for part in (0.5, 0.95, 0.99))
        print(f"|{network.slug}|{network.block_time:g}|{many}|{found}|{percentile(twice, 0.95) / 1000:.1f}|{budget / 1000:.0f}|")
    return kept


# Prices of us-east-1: aws.amazon.com/lambda/pricing, /sqs/pricing, /dynamodb/pricing/on-demand.
REQUEST, GB_SECOND, MESSAGE, WRITE, READ_UNIT = 0.2e-6, 1.66667e-5, 0.4e-6, 0.625e-6, 0.125e-6
POLLS = 30.4 * 1_440
"""Of a month."""
IDLE = ("poll: nothing is new", "poll: nothing is new, live")
"""Steps of costs.md: a poll of both realms. Its calls are all reads."""
_COSTS = parsed(TABLE.read_text(encoding="utf-8"))
POLL = Work(reads=sum(sum(_COSTS[step].calls.values()) for step in IDLE), nodes=8, cpu=100)
"""Where nothing is to do, not even a block; requests to nodes and CPU assumed."""
POLL_UNITS = sum(sum(_COSTS[step].reads.values()) for step in IDLE)
"""Read units of that."""
TICK = ("begin", "look", "end")
BLOCKS = ("blocks", "pass")
"""What a tick does, and what it does besides where there is a block: parts of `WORK`."""
BLOCK_REQUESTS = {"evm": 3, "tron": 2, "utxo": 1}
"""Blocks with transactions, their logs or receipts, and traces on EVM: a request may have many blocks, and providers count each
call in it. A second node is asked as often."""


def month(network: Network, busy: bool) -> tuple[float, float]:
    """US dollars, and a node's requests. Ticks of a whole month, each of which finds the blocks of its seconds."""
    blocks = POLLS * 60 / network.block_time
    ticks = POLLS * len(planned(network.family, 0, 0, 10**9)) if busy else 0.0
    passing = min(blocks, POLLS + ticks)
    # A transaction costs two units for each KB: an item of the hashes that it remembers, some 90 bytes each.
    cursor = 2 * math.ceil((300 + 90 * (network.reorg_depth + 1)) / 1024)
    functions = POLLS * (REQUEST + POLL.seconds(MEMORY["poll"]) * MEMORY["poll"] / 1024 * GB_SECOND)
    looks, reads = (sum(WORK[part].seconds(MEMORY["tick"]) for part in parts) for parts in (TICK, BLOCKS))
    ended = looks + reads * min(1.0, blocks / max(1.0, ticks))
    functions += ticks * (REQUEST + ended * MEMORY["tick"] / 1024 * GB_SECOND)
    messages = ticks * (0.1 + 2) * MESSAGE  # sent by tens; received, deleted
    store = (POLLS * POLL_UNITS + ticks * (4 + cursor / 4)) * READ_UNIT + (
        passing * cursor + ticks * 4 + (POLLS * 2 if busy else 0)
    ) * WRITE
    requests = blocks * BLOCK_REQUESTS[network.family] + (POLLS + ticks) * 2 + (ticks if network.family == "utxo" else 0)
    return functions + messages + store, requests


def prices(networks: list[Network]) -> None:
    print("\nA month (us-east-1, on paper), without the payments' own cost:\n")
    print("|network|idle USD|busy day and night USD|a node's requests idle, millions|busy, millions|")
    print("|---|---|---|---|---|")
    sums = [0.0] * 4
    for network in networks:
        (idle, few), (busy, many) = month(network, False), month(network, True)
        row = [idle, busy, few / 1e6, many / 1e6]
        sums = [have + more for have, more in zip(sums, row, strict=True)]
        print(f"|{network.slug}|{'|'.join(f'{value:.1f}' for value in row)}|")
    print(f"|all|{'|'.join(f'{value:.1f}' for value in sums)}|")


def main() -> None:
    networks = default_networks("live")
    print("|wait|p50 ms|p99 ms|source|\n|---|---|---|---|")
    for name, wait in WAITS.items():
        print(f"|{name}|{wait.p50:g}|{wait.p99:g}|{wait.source}|")
    before, now = HOWS
    accounts = [network for network in networks if network.family != "utxo"]
    seconds(accounts, before, RATE / len(accounts))
    kept = seconds(networks, now, RATE / len(accounts))
    kept = seconds(accounts, now, RATE) and kept
    prices(networks)
    if not kept:
        raise SystemExit("p95 is over the budget")


if __name__ == "__main__":
    main()
