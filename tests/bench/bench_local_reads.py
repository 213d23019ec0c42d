"""How many reads the local stack answers a second with one client and with four, while schedules and queues run as in `make run`;
and what it takes of a core where nobody asks.

Run as a script: ``python tests/bench/bench_local_reads.py``.

The stack runs in a process of its own, which says how much CPU it took. Clients keep their connections and ask one thing after
another; they take turns with one client and four, so that a machine that is busy with something else is so for both.
Budget: four clients are answered at least 0.95 times as many reads a second as one (as many, by what three rounds tell), and a
stack at rest takes 5 % of a core.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import cycle
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

KEYS = 200  # a test key may ask 100 times a minute
ROUNDS = 3
SECONDS = 3.0
BUDGET = 0.95
RESTING = 5
"""Percent of a core, as tests/contract/local/test_resting.py has it."""
READS = {"get an invoice": "/api/v1/invoices?id={invoice}", "list 20": "/api/v1/invoices/getAll?limit=20"}
INVOICE = {"currency": "eth", "network": "ethereum", "amount": "0.05"}


def serve() -> None:
    """The child: what `infra.local.run` starts, with keys enough, until its standard input ends."""
    os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "1"})
    from infra.local.pump import Pump
    from infra.local.server import Server
    from tests.bench import bench_requests

    bench_requests.KEYS = KEYS
    os.environ["SANDBOX_BLOCK_SECONDS"] = "1"
    stack, keys = bench_requests.started()
    made = [stack.call("POST", "/v1/invoices", key, INVOICE).json["id"] for key in keys[:40]]
    server, pump = Server(stack.app, 0), Pump(stack.app)
    server.start()
    pump.start()
    print(json.dumps({"port": server.port, "keys": keys, "invoice": made[0], "pid": os.getpid()}), flush=True)
    sys.stdin.read()
    pump.stop()
    server.stop()


class Clients:
    """`count` threads that ask `path` for so many seconds, each with keys of its own."""

    def __init__(self, told: dict[str, Any], path: str, count: int, seconds: float) -> None:
        self.told, self.path, self.seconds = told, path, seconds
        self.answers = [0] * count
        self.took: list[float] = []

    def run(self) -> float:
        """Answers a second."""
        part = len(self.told["keys"]) // len(self.answers)
        keys = [self.told["keys"][n * part : (n + 1) * part] for n in range(len(self.answers))]
        threads = [threading.Thread(target=self._ask, args=(n, each)) for n, each in enumerate(keys)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(self.answers) / (time.monotonic() - began)

    def _ask(self, place: int, keys: list[str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.told["port"], timeout=30)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until = time.monotonic() + self.seconds
        for key in cycle(keys):
            began = time.monotonic()
            if began >= until:
                break
            connection.request("GET", self.path, headers={"X-Api-Key": key})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            self.answers[place] += 1
            self.took.append(time.monotonic() - began)
        connection.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resting() -> float:
    """Percent of a core that `make run` takes in a minute, once it has rested for a while: a process that runs nothing else."""
    from infra.local.pace import REST_AFTER
    from tests.support.running import Running, free_port

    with tempfile.TemporaryDirectory() as folder:
        running = Running(Path(folder), free_port(), SANDBOX_BLOCK_SECONDS="1")
        try:
            running.wait_until_up()
            time.sleep(REST_AFTER + 5)
            before, began = cpu_seconds(running.process.pid), time.monotonic()
            time.sleep(60)
            return 100 * (cpu_seconds(running.process.pid) - before) / (time.monotonic() - began)
        finally:
            running.kill()


def main() -> int:
    if "--serve" in sys.argv:
        serve()
        return 0
    child = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdin is not None
    assert child.stdout is not None
    kept = True
    try:
        told = json.loads(child.stdout.readline())
        for name, template in READS.items():
            path = template.format(**told)
            rates: dict[int, list[float]] = {1: [], 4: []}
            dear: dict[int, list[float]] = {1: [], 4: []}
            for _ in range(ROUNDS):
                for count, found in rates.items():
                    clients, before = Clients(told, path, count, SECONDS), cpu_seconds(told["pid"])
                    found.append(clients.run())
                    dear[count].append(1000 * (cpu_seconds(told["pid"]) - before) / sum(clients.answers))
            one, four = (statistics.median(rates[count]) for count in (1, 4))
            ours = {count: statistics.median(values) for count, values in dear.items()}
            kept = kept and four >= BUDGET * one
            print(
                f"{name}: one client {one:.0f} a second, four {four:.0f} ({four / one:.2f} of it, budget {BUDGET}); CPU of the"
                f" process {ours[1]:.1f} and {ours[4]:.1f} ms an answer, schedules included",
                flush=True,
            )
    finally:
        child.stdin.close()
        child.wait(timeout=20)
    share = resting()
    print(f"at rest: {share:.1f} % of a core (budget {RESTING})")
    return 0 if kept and share <= RESTING else 1


if __name__ == "__main__":
    sys.exit(main())
