"""What a warm request costs: CPU and calls of AWS; and what the local server does on one core.

Run as a script: ``python tests/bench/bench_requests.py``.

CPU is the function's alone: the time that moto takes to play AWS is measured apart and left out. Beside it stands the floor of the
same run: the very same calls, made again by bare botocore clients. What a paid invoice is billed: `bench_invoice.py`.
Budget: a request's CPU at most 3 times the floor.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"})

from infra.local.aws import start_aws  # noqa: E402
from tests.bench.accounting import accounted, again  # noqa: E402
from tests.support.stack import Stack, first_stack  # noqa: E402

ROUNDS = 100
KEYS = 60  # a test key may ask 100 times a minute
BUDGET = 3.0
SECONDS = 4.0
INVOICE = {"currency": "eth", "network": "ethereum", "amount": "0.05", "description": "a thing"}


def started() -> tuple[Stack, list[str]]:
    """The service, and keys enough for all requests of this run."""
    from chalicelib.domain.ids import MerchantId
    from chalicelib.settings import Settings
    from chalicelib.wiring import services
    from infra.bootstrap import make_key

    logging.disable(logging.WARNING)
    stack = first_stack(start_aws(Settings.from_environment()))
    merchant = services().gate.admit(_hash(stack.keys["client_test"]), "test", "standard", services().clock.now_ms())
    assert merchant is not None
    owner = MerchantId(merchant.key.merchant)
    return stack, [make_key(services(), owner, "test", "client", ["full"], "bench") for _ in range(KEYS)]


def _hash(key: str) -> str:
    from chalicelib.usecases.merchants.access import hash_key

    return hash_key(key)


class Events:
    """Catches the events that the gateway makes, so that the app can be called without it."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.app = stack._gateway._app
        self.caught: list[Any] = []

    def __call__(self, event: Any, context: Any) -> Any:
        self.caught.append((event, context))
        return self.app(event, context)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.app, name)

    def of(self, *request: Any) -> tuple[Any, Any]:
        self.stack._gateway._app = self  # type: ignore[assignment]
        try:
            answer = self.stack.call(*request)
        finally:
            self.stack._gateway._app = self.app
        assert answer.status in (200, 201), answer.body
        return self.caught.pop()


def cpu(stack: Stack, keys: Iterator[str]) -> bool:
    """Print each request's CPU and calls; whether the budget is kept."""
    events = Events(stack)
    made = [stack.call("POST", "/v1/invoices", next(keys), INVOICE).json for _ in range(20)]
    many = 20 + 2 * (ROUNDS + 10)
    kinds: dict[str, Callable[[], tuple[Any, ...]]] = {
        "list 20 of 20": lambda: ("GET", "/v1/invoices/getAll?limit=20", next(keys)),
        "get an invoice": lambda: ("GET", f"/v1/invoices?id={made[0]['id']}", next(keys)),
        "balances": lambda: ("GET", "/v1/balances", next(keys)),
        "create an invoice": lambda: ("POST", "/v1/invoices", next(keys), INVOICE),
        f"list 20 of {many}": lambda: ("GET", "/v1/invoices/getAll?limit=20", next(keys)),
        "list 20 by cursor": lambda: ("GET", f"/v1/invoices/getAll?limit=20&cursor={behind}", next(keys)),
    }
    kept, behind = True, ""
    print(f"{'':18} {'CPU':>8} {'botocore':>9} {'ours':>8} {'calls':>6} {'floor':>8} {'x floor':>8}   (milliseconds, medians)")
    for name, request in kinds.items():
        total, inside, calls, floor = [], [], [], []
        if "cursor" in name:
            listed = stack.call("GET", "/v1/invoices/getAll?limit=20", next(keys)).json
            assert listed["meta"]["pagination"]["total"] == many
            behind = listed["meta"]["pagination"]["next_cursor"]
        for turn in range(ROUNDS + 10):
            event, context = events.of(*request())
            with accounted() as account:
                began = time.thread_time()
                answer = events.app(event, context)
                spent = time.thread_time() - began - account.moto
            assert answer["statusCode"] in (200, 201), answer
            least = again(account.sent)
            if turn >= 10:
                total.append(spent * 1000)
                inside.append(account.seconds * 1000)
                calls.append(account.calls.total())
                floor.append(least * 1000)
        figures = [statistics.median(values) for values in (total, inside, floor)]
        ratio = figures[0] / figures[2]
        kept = kept and ratio <= BUDGET
        print(
            f"{name:18} {figures[0]:8.2f} {figures[1]:9.2f} {figures[0] - figures[1]:8.2f} {statistics.mean(calls):6.2f} "
            f"{figures[2]:8.2f} {ratio:8.2f}"
        )
    return kept


def serve() -> None:
    """The child: the local server on one core, until its standard input ends."""
    from infra.local.server import Server

    stack, keys = started()
    made = stack.call("POST", "/v1/invoices", keys[0], INVOICE).json
    server = Server(stack.app, 0)
    server.start()
    print(json.dumps({"port": server.port, "keys": keys, "invoice": made["id"]}), flush=True)
    sys.stdin.read()
    server.stop()


def throughput() -> None:
    """Print requests a second over kept connections, with the server on one core and this process on another."""
    cores = sorted(os.sched_getaffinity(0))
    child = subprocess.Popen(
        ["taskset", "-c", str(cores[-1]), sys.executable, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        told = json.loads(child.stdout.readline())
        for name, path, body in (
            ("health", "/api/v1/health", None),
            ("get an invoice", f"/api/v1/invoices?id={told['invoice']}", None),
            ("create an invoice", "/api/v1/invoices", json.dumps(INVOICE)),
        ):
            rates = []
            for connections in (1, 4):
                counts = [0] * connections
                until = time.monotonic() + SECONDS
                part = max(1, len(told["keys"]) // connections)
                work = [
                    threading.Thread(
                        target=_ask, args=(told["port"], path, body, told["keys"][n * part : (n + 1) * part], until, counts, n)
                    )
                    for n in range(connections)
                ]
                for thread in work:
                    thread.start()
                for thread in work:
                    thread.join()
                rates.append(f"{sum(counts) / SECONDS:.0f} a second over {connections}")
            print(f"local server, one core, {name}: {', '.join(rates)} kept connections (moto's work is in it)")
    finally:
        child.stdin.close()
        child.wait(timeout=20)


def _ask(port: int, path: str, body: str | None, keys: list[str], until: float, counts: list[int], place: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for key in cycle(keys):
        if time.monotonic() >= until:
            break
        headers = {"X-Api-Key": key, "Content-Type": "application/json"}
        connection.request("POST" if body else "GET", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status in (200, 201):
            counts[place] += 1
        elif answer.status != 429:
            raise AssertionError(answer.status)
    connection.close()


def main() -> int:
    if "--serve" in sys.argv:
        serve()
        return 0
    stack, keys = started()
    kept = cpu(stack, cycle(keys))
    stack.aws.stop()
    throughput()
    print(f"budget {BUDGET} x the floor: {'kept' if kept else 'BROKEN'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
