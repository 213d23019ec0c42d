"""How many payments a second go to the archive: CPU and calls measured, waits assumed (latencies.py).

Run as a script: ``python tests/bench/bench_archive.py``. Invoices of one merchant, each paid in a block of its own and a year old,
go away in the real rounds on the local stack; the slope between few and many is a payment's. A call that is made in a thread of
`side_by_side` waits beside as many others as there are threads, every other one waits alone; CPU is that of the function's memory,
and nothing is gained where CPU and waits overlap. A run may begin pages for 240 of 300 seconds.
Budget: 12 a second for one merchant, a million a day.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.update({"STAGE": "local", "SANDBOX_BLOCK_SECONDS": "0", "ARCHIVE_AFTER_DAYS": "400"})

from botocore.client import BaseClient  # noqa: E402

from chalicelib.usecases.base.side_by_side import AT_ONCE  # noqa: E402
from tests.bench.accounting import accounted  # noqa: E402
from tests.bench.bench_requests import started  # noqa: E402
from tests.bench.latencies import GET_OBJECT, PUT_OBJECT, READ, VCPU_MB, WRITE, commit  # noqa: E402
from tests.support.stack import Stack  # noqa: E402

FEW, MANY = 10, 50
ROUNDS = 3
BUDGET = 12.0
DUTY = 240 / 300
DAYS = 403
S3 = {"PutObject": PUT_OBJECT, "GetObject": GET_OBJECT}
WRITES = ("PutItem", "UpdateItem", "DeleteItem")


def old(stack: Stack, keys: Any, count: int) -> None:
    """So many invoices, completed a year ago, in blocks that no reorganisation reaches."""
    from chalicelib.wiring import services

    stack.reset()
    chain = services().simulated(services().catalogue("test").networks["ethereum"].id)
    for _ in range(count):
        body = {"currency": "usdt", "network": "ethereum", "amount": "5"}
        address = stack.call("POST", "/v1/invoices", next(keys), body).json["address"]
        pay = {"address": address, "network": "ethereum", "coin": "usdt", "amount": "5"}
        assert stack.call("POST", "/v1/sandbox/deposits", next(keys), pay).status == 201
    for blocks, seconds in ((90, 0), (1, DAYS * 86_400 - services().clock.now_ms() // 1_000 % 86_400)):
        services().clock.shift_ms += seconds * 1_000
        chain.mine(blocks)
        stack.drain(only=("poll_ethereum",), hurry=True)


def archived(count: int) -> tuple[float, Counter[str], float]:
    """CPU in ms without moto's, calls by operation, and milliseconds of waits for `count` payments, all of a round's run."""
    from chalicelib.domain.archive.payments import SAID_MS
    from chalicelib.wiring import services

    rounds, waits, calls, lock = services().archive_rounds("test"), [0.0], Counter[str](), threading.Lock()
    rounds.work(lambda: True)
    services().clock.shift_ms += SAID_MS
    with accounted() as account:
        counting = BaseClient._make_api_call

        def counted(self: Any, operation: str, sent: Any) -> Any:
            items = len(sent.get("TransactItems", ()))
            wait = S3.get(operation) or (commit(items) if items else WRITE if operation in WRITES else READ)
            beside = threading.current_thread().name.startswith("step")
            with lock:
                waits[0] += wait.mean / (AT_ONCE if beside else 1)
                calls[operation] += 1
            return counting(self, operation, sent)

        BaseClient._make_api_call = counted  # type: ignore[method-assign]
        try:
            began = time.process_time()
            done = rounds.work(lambda: True)
            spent = time.process_time() - began - account.moto
        finally:
            BaseClient._make_api_call = counting  # type: ignore[method-assign]
    assert done == count, (done, count)
    return spent * 1_000, calls, waits[0]


def main() -> int:
    stack, made = started()
    logging.disable(logging.ERROR)
    stack.drain(only=("poll_ethereum",), hurry=True)
    stack._fresh = stack.snapshot()
    keys, found = cycle(made), []
    for count in (FEW, MANY):
        figures = []
        for _ in range(ROUNDS):
            old(stack, keys, count)
            figures.append(archived(count))
        # The least: what disturbs on a shared machine only adds.
        found.append((min(cpu for cpu, _, _ in figures), *figures[-1][1:]))
    (cpu, calls, waits), (cpu_many, calls_many, waits_many) = found
    each = MANY - FEW
    cpu, waits = (cpu_many - cpu) / each, (waits_many - waits) / each
    shown = ", ".join(f"{name} {(calls_many[name] - calls[name]) / each:.2f}" for name in sorted({*calls, *calls_many}))
    print(f"a payment: {cpu:.1f} ms CPU; {shown}")
    memory = json.loads((ROOT / ".chalice" / "config.json").read_text())["lambda_functions"]["archive"]["lambda_memory_size"]
    share, rates = min(1.0, memory / VCPU_MB), []
    for times in (1, 2):
        took = cpu / share + times * waits
        rates.append(1_000 / took * DUTY)
        print(
            f"{times} x latencies, {memory} MB: CPU {cpu / share:.1f} ms, waits {times * waits:.1f} ms: "
            f"{1_000 / took:.1f} a second, {rates[-1]:.1f} with the pauses between runs"
        )
    print(f"\n|function|payments/s|\n|---|---|\n|archive|{rates[0]:.0f}|\n")
    print(f"archive: {rates[0]:.1f} a second (budget {BUDGET:g})")
    return 0 if rates[0] > BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
