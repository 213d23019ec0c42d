"""A node's answers, played by a process of its own: what a scan costs then is the scan's CPU, and not the node's pace.

The floor of every ratio is the same requests sent raw, with orjson on the answers. Both are measured in turns, in one run.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import orjson
import urllib3

from chalicelib.chains.rpc import JsonRpc

BUDGET = 2.0
ROUNDS = 40

Request = tuple[str, bytes]
"""Path and body."""


class Recorder(JsonRpc):
    """Answers by `told`, which gets method and params; keeps what was asked and answered, as bytes."""

    def __init__(self, told: Callable[[str, Any], Any]) -> None:
        super().__init__("http://127.0.0.1:1")
        self._told = told
        self.answers: dict[Request, bytes] = {}

    def _exchange(self, body: Any, *, again: bool, **_: Any) -> Any:
        rows = body if isinstance(body, list) else [body]
        told = [{"jsonrpc": "2.0", "id": row["id"], "result": self._told(row["method"], row["params"])} for row in rows]
        answer = told if isinstance(body, list) else told[0]
        self.answers["/", orjson.dumps(body)] = orjson.dumps(answer)
        return answer


@contextmanager
def replayed(answers: dict[Request, bytes]) -> Iterator[str]:
    """The URL of a server that answers so, on kept-alive connections."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=_serve_all, args=(answers, theirs), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        server.terminate()
        server.join()


def _serve_all(answers: dict[Request, bytes], ready: Connection) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    ready.send(listener.getsockname()[1])
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_serve, args=(client, answers), daemon=True).start()


def _serve(client: socket.socket, answers: dict[Request, bytes]) -> None:
    with client, client.makefile("rb") as stream:
        while line := stream.readline():
            length = 0
            while (head := stream.readline()) not in (b"\r\n", b""):
                if head.lower().startswith(b"content-length:"):
                    length = int(head.split(b":")[1])
            answer = answers[line.split()[1].decode(), stream.read(length)]
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)


def ratio_of(what: str, answers: dict[Request, bytes], count: int, scan_at: Callable[[str], Callable[[], object]]) -> float:
    """What the scan of `count` blocks costs, by the floor; printed. `scan_at` makes the scan for the server's URL."""
    with replayed(answers) as url:
        pool = urllib3.PoolManager(headers={"Content-Type": "application/json"}, retries=False)

        def raw() -> object:
            return [orjson.loads(pool.request("POST", url + path, body=body).data) for path, body in answers]

        floor, scan, ratio = measured(raw, scan_at(url))
    size = sum(map(len, answers.values())) / count / 1000
    print(
        f"{what} ({size:,.0f} kB): raw {floor / count:.2f} ms, reader {scan / count:.2f} ms,"
        f" ratio {ratio:.2f} (budget {BUDGET:g}, aim 1.5)"
    )
    return ratio


def measured(floor: Callable[[], object], work: Callable[[], object]) -> tuple[float, float, float]:
    """CPU of one call of each in ms, and the second by the first: medians of rounds that take turns.

    Of each round's own ratio, since a shared machine is slow for both and then quick for both.
    """
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        floor()
        between = time.process_time()
        work()
        rounds.append((between - began, time.process_time() - between))
    floors, works = zip(*rounds, strict=True)
    ratio = statistics.median(after / before for before, after in rounds)
    return statistics.median(floors) * 1000, statistics.median(works) * 1000, ratio
