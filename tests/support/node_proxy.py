"""A real node behind a proxy that spoils some of its answers, over real sockets: it lags, lies, garbles, refuses, hangs, drops."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import urllib3

Request = dict[str, Any]


class Refusal(Exception):
    """The request is answered with an error object."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


@dataclass
class Fault:
    """Honest as it stands. `change` gets method, parameters and the node's result, and gives the result to tell; may raise Refusal.

    `raw` is sent instead of any answer; `drop` closes the connection without one; `hang` waits for the proxy's end, or for `heal`.
    """

    change: Callable[[str, list[Any], Any], Any] = lambda method, params, result: result
    raw: bytes | None = None
    drop: bool = False
    hang: bool = False
    status: int = 200
    most: int | None = None
    """The largest batch that is taken; larger ones get HTTP 413."""


@dataclass
class NodeProxy:
    """JSON-RPC, with whatever credentials the caller has, and Tron's HTTP: there `change` gets a path for a method.

    Use it in a `with`. `fault` may be set at any time; `asked` are the methods that arrived, `batches` the sizes of batches."""

    target: str
    fault: Fault = field(default_factory=Fault)
    asked: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> Self:
        proxy, pool = self, urllib3.PoolManager(retries=False)
        self._healed = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Header and body in one segment: else Nagle and delayed acknowledgements make every answer 40 ms late.
            wbufsize = -1

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name: value for name, value in self.headers.items() if name.lower() == "authorization"}
                answer = proxy._answer(asked, self.path.strip("/"), headers, pool)
                if answer is None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, body = answer
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._healed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def heal(self) -> None:
        """Be an honest node again; who waits for an answer gets it."""
        self.fault = Fault()
        self._healed.set()
        self._healed = threading.Event()

    def _answer(self, asked: Any, path: str, headers: dict[str, str], pool: urllib3.PoolManager) -> tuple[int, bytes] | None:
        fault, many = self.fault, isinstance(asked, list)
        self.asked += [request.get("method", path) for request in (asked if many else [asked])]
        if many:
            self.batches.append(len(asked))
        if fault.hang:
            self._healed.wait(30)
        if fault.drop:
            return None
        if fault.raw is not None:
            return fault.status, fault.raw
        if many and fault.most is not None and len(asked) > fault.most:
            return 413, b""
        target = f"{self.target.rstrip('/')}/{path}" if path else self.target
        told = json.loads(pool.request("POST", target, json=asked, headers=headers).data)
        if path:
            # Tron's way: the path is the question, and the answer is bare.
            return 200, json.dumps(fault.change(path, asked, told)).encode()
        spoilt = (
            [self._spoilt(fault, *pair) for pair in zip(asked, told, strict=True)] if many else self._spoilt(fault, asked, told)
        )
        return 200, json.dumps(spoilt).encode()

    def _spoilt(self, fault: Fault, request: Request, answer: Request) -> Request:
        if "result" not in answer:
            return answer
        try:
            return answer | {"result": fault.change(request["method"], request.get("params", []), answer["result"])}
        except Refusal as refusal:
            return {"jsonrpc": "2.0", "id": answer["id"], "error": refusal.error}


def lagging(blocks: int, tip: Callable[[], int]) -> Fault:
    """A node that is so many blocks behind."""

    def change(method: str, params: list[Any], result: Any) -> Any:
        newest = tip() - blocks
        if method == "eth_blockNumber":
            return hex(newest)
        where = (result or {}).get("number") or (result or {}).get("blockNumber") if isinstance(result, dict) else None
        return None if where is not None and int(where, 16) > newest else result

    return Fault(change)


def without_logs_to(address: str) -> Fault:
    """Leaves the logs of transfers to `address` out of eth_getLogs; its receipts are honest."""
    topic = "0x" + address.lower().removeprefix("0x").rjust(64, "0")

    def change(method: str, params: list[Any], result: Any) -> Any:
        return [row for row in result if topic not in row["topics"]] if method == "eth_getLogs" else result

    return Fault(change)


def refusing(*methods: str, code: int = -32005, message: str = "query returned more than 10000 results") -> Fault:
    """Answers these methods with an error."""

    def change(method: str, params: list[Any], result: Any) -> Any:
        if method in methods:
            raise Refusal(code, message)
        return result

    return Fault(change)
