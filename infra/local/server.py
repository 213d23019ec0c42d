"""The local stack's HTTP front: sockets for `gateway`, on 127.0.0.1, by waitress. What waitress itself refuses is JSON too.

`chalice local` would do this, but collapses repeated headers, fixes the source address and is slow on kept connections.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from chalice.app import Chalice
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError, get_header_lines
from waitress.server import create_server
from waitress.task import ErrorTask, WSGITask

from infra.local.gateway import BODY_LIMIT, Gateway, Reply, Request, refusal

HOST = "127.0.0.1"
THREADS = 8
_WAITRESS_LIMIT = 4 * BODY_LIMIT
"""Above the gateway's own limit, so that a client just over it reads its answer before the connection ends."""
_HEADERS = "gateway.headers"
Handle = Callable[[Request], Reply]


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """Keeps the headers as they came: WSGI folds repeated ones and drops underscores."""

    lines: list[tuple[str, str]] = []  # noqa: RUF012  # replaced for each request, shared only while empty

    def parse_header(self, header_plus: bytes) -> None:
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # urllib's, for an address like "http://[": waitress would drop the connection
            raise ParsingError("Bad URI") from error
        lines = get_header_lines(header_plus[header_plus.index(b"\r\n") + 2 :])
        pairs = (line.decode("latin-1").split(":", 1) for line in lines)
        self.lines = [(name.strip(), value.strip(" \t")) for name, value in pairs]


class _Task(WSGITask):  # type: ignore[misc]
    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[_HEADERS] = self.request.lines
        return environ


class _Refusal(ErrorTask):  # type: ignore[misc]
    """Not HTTP, or too large to be read: a 400 like any other."""

    def execute(self) -> None:
        error = self.request.error
        reply = refusal(" ".join(str(error.body).split()) or error.reason)
        self.status = _status_line(reply.status)
        self.response_headers.extend(reply.headers)
        self.set_close_on_finish()
        self.content_length = len(reply.body)
        self.write(reply.body)


class _Channel(HTTPChannel):  # type: ignore[misc]
    parser_class = _Parser
    task_class = _Task
    error_task_class = _Refusal


class Server:
    """One listening port, for an app or for another function that answers requests. Raises OSError when the port is taken. `port` 0
    takes a free one. `on_request` is called before each request is answered; a body has at most `limit` bytes."""

    def __init__(
        self,
        app: Chalice | Handle,
        port: int,
        *,
        stage: str = "local",
        threads: int = THREADS,
        on_request: Callable[[], None] | None = None,
        limit: int = _WAITRESS_LIMIT,
    ) -> None:
        self._on_request, self._limit = on_request, limit
        self._handle: Handle = Gateway(app, stage).handle if isinstance(app, Chalice) else app
        self._map: dict[int, Any] = {}
        self._server = create_server(
            self._wsgi,
            map=self._map,
            host=HOST,
            port=port,
            threads=threads,
            ident=None,
            max_request_body_size=limit,
            max_request_header_size=64 * 1024,
            clear_untrusted_proxy_headers=False,
            channel_timeout=60,
            connection_limit=500,
            # What is larger than usual is read in large pieces, and not by way of a file.
            recv_bytes=8192 if limit <= _WAITRESS_LIMIT else 1 << 20,
            inbuf_overflow=512 * 1024 if limit <= _WAITRESS_LIMIT else limit,
        )
        self._server.channel_class = _Channel
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        return int(self._server.effective_port)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait until the running requests are over (5 seconds at most), then close every connection and the port."""
        # The threads that serve pull the trigger too: they end before its descriptor is closed and may be someone else's.
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=5)
        if self._thread is None:
            wasyncore.close_all(self._map)
            return
        pulled = threading.Event()

        def close() -> None:
            # The loop may be awake already and come here before the pull below has written its byte.
            pulled.wait(timeout=5)
            wasyncore.close_all(self._map)

        # The loop's thread owns its sockets: it closes them, woken by the trigger.
        self._server.trigger.pull_trigger(close)
        pulled.set()
        self._thread.join(timeout=5)
        self._thread = None

    def _wsgi(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self._on_request is not None:
            self._on_request()
        target = environ["REQUEST_URI"]
        if not target.startswith("/"):
            # A proxy's absolute form, "GET http://host/path": only the path is ours.
            target = environ["PATH_INFO"] + (f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else "")
        body = environ["wsgi.input"].read(self._limit)
        request = Request(environ["REQUEST_METHOD"], target, environ[_HEADERS], body, environ["REMOTE_ADDR"])
        reply = self._handle(request)
        return _answer(reply, start_response, environ["REQUEST_METHOD"])


def _answer(reply: Reply, start_response: Callable[..., Any], method: str) -> Iterable[bytes]:
    headers = [(name, value.encode("utf-8").decode("latin-1")) for name, value in reply.headers]
    headers.append(("Content-Length", str(len(reply.body))))
    start_response(_status_line(reply.status), headers)
    return [] if method == "HEAD" else [reply.body]


def _status_line(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"
