"""Latencies that the models of tests/bench assume, since they can not be measured without AWS: each with its source, or with a
word that says why it is assumed. Every result stands beside the one at twice them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import NormalDist, fmean

_P99 = 2.326
"""Standard deviations from the median to the 99th percentile of a normal distribution."""
VCPU_MB = 1_769
"""Memory at which a function has one vCPU: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""
DECLARED = Path(__file__).resolve().parents[2] / ".chalice" / "config.json"


def memory(function: str) -> int:
    """MB of a function, as it is deployed. Raises KeyError."""
    return int(json.loads(DECLARED.read_text(encoding="utf-8"))["lambda_functions"][function]["lambda_memory_size"])


COLD = 0.01
"""https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html: typically under 1 % of invocations."""


@dataclass(frozen=True)
class Latency:
    """Milliseconds, log-normal. `source` says who measured it, or why it is assumed."""

    p50: float
    p99: float
    source: str

    @property
    def sigma(self) -> float:
        return math.log(self.p99 / self.p50) / _P99

    @property
    def mean(self) -> float:
        return self.p50 * math.exp(self.sigma**2 / 2)

    def slowest(self, of: int) -> float:
        """The mean of the slowest of so many, by 1,000 quantiles."""
        logs = NormalDist(math.log(self.p50), self.sigma)
        return fmean(math.exp(logs.inv_cdf(((n + 0.5) / 1_000) ** (1 / of))) for n in range(1_000))

    def draw(self, luck: Random, times: float = 1.0) -> float:
        """Milliseconds of one, `times` slower."""
        return times * luck.lognormvariate(math.log(self.p50), self.sigma)


COMMIT_MS, COMMIT_ITEM_MS, COMMIT_P99 = 10.0, 0.6, 3.0
"""p50 of a transaction: so much, and so much more for each item; its p99 by its p50. Assumed: two phases of writes, items side by
side (usenix.org/conference/atc23/presentation/idziorek); how to measure it, with transactions of 5 and of 25 items:
https://www.alexdebrie.com/posts/dynamodb-transactions-performance"""


def commit(items: int) -> Latency:
    """A transaction of so many items."""
    p50 = COMMIT_MS + COMMIT_ITEM_MS * items
    source = f"{items} items in two phases: usenix.org/conference/atc23/presentation/idziorek; assumed"
    return Latency(p50, p50 * COMMIT_P99, source)


QUEUE = Latency(
    16, 105, "SQS standard to Lambda, eu-west-1, 2022: bitesizedserverless.com/bite/serverless-messaging-latency-compared"
)
DELAY = Latency(100, 1_000, "end of a message's delay to its receipt; AWS promises whole seconds; assumed")
SEND = Latency(10, 60, "SendMessage; assumed as a write")
START = Latency(1_500, 3_000, "first start; our CPU in tests/bench/bench_cold_payout.py")
READ = Latency(4, 15, "single-digit ms: aws.amazon.com/blogs/database/understanding-amazon-dynamodb-latency")
WRITE = Latency(5, 20, "as READ; assumed")
PUT_OBJECT = Latency(100, 300, "docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html: 100 to 200 ms; assumed")
GET_OBJECT = Latency(100, 300, "the same; assumed")
SIGN = Latency(20, 80, "Sign of a key of KMS; AWS publishes no figure; assumed")
NODE = Latency(100, 400, "as tests/bench/bench_node_latency.py; assumed")
MEMPOOL = Latency(400, 2_000, "getrawmempool of some 50,000 ids, 3 MB; assumed")
RECEIVER = Latency(100, 500, "a merchant's answer; assumed")
