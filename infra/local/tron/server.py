"""HTTP for the node: threads, connections that stay open, one lock round every request, and the clock that mines."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from infra.local.tron.api import Api
from infra.local.tron.chain import Chain
from infra.local.tron.dev import BadRequest, Dev

MAX_BODY = 4 * 1024 * 1024


class Server(ThreadingHTTPServer):
    """The node on 127.0.0.1. Mines every `block_seconds`; with 0 only when asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, block_seconds: float) -> None:
        self.chain = Chain()
        self.api = Api(self.chain)
        self.dev = Dev(self.chain, self.api, mines=block_seconds > 0)
        self.lock = threading.Lock()
        self._block_seconds = block_seconds
        self._stopped = threading.Event()
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        """Begin to mine. The requests are served by `serve_forever`."""
        if self._block_seconds > 0:
            threading.Thread(target=self._mine, daemon=True).start()

    def shutdown(self) -> None:
        self._stopped.set()
        super().shutdown()

    def answer(self, path: str, params: dict[str, Any]) -> tuple[int, Any]:
        """Status and JSON."""
        family, _, name = path.strip("/").partition("/")
        with self.lock:
            try:
                if family == "dev" and self.dev.knows(name):
                    return 200, self.dev.answer(name, params)
                if family in {"wallet", "walletsolidity"} and self.api.knows(family, name):
                    return 200, self.api.answer(family, name, params)
            except BadRequest as error:
                return 400, {"Error": str(error)}
            except Exception as error:  # noqa: BLE001 - a fault of the node's own is told to the test, not to a closed pipe
                return 500, {"Error": f"{type(error).__name__}: {error}"}
        return 404, {"Error": f"no such endpoint: {path}"}

    def _mine(self) -> None:
        while not self._stopped.wait(self._block_seconds):
            with self.lock:
                if not self.dev.held:
                    self.chain.mine()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        if split.path.startswith("/dev"):
            self._send(405, {"Error": "POST"})
        else:
            self._send(*self.server.answer(split.path, dict(parse_qsl(split.query))))

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
            self._send(413, {"Error": "Payload Too Large"})
            return
        body = self.rfile.read(length)
        try:
            params = orjson.loads(body) if body.strip() else {}
            if not isinstance(params, dict):
                raise TypeError("not an object")
        except (orjson.JSONDecodeError, TypeError) as error:
            self._send(200, {"Error": f"class org.tron.json.JSONException : {error}"})
            return
        self._send(*self.server.answer(urlsplit(self.path).path, params))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: nobody reads it."""

    def _send(self, status: int, answer: Any) -> None:
        body = orjson.dumps(answer)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
