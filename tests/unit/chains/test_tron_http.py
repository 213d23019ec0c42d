"""Tron's HTTP interface: where keys go, what is repeated, and that no secret is ever told. Against servers of our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from chalicelib.chains.rpc import RpcError, TooMuch
from chalicelib.chains.tron import http
from chalicelib.chains.tron.http import TronHttp
from chalicelib.usecases.ports.failures import Unavailable

KEY = "0e5b6f0c-secret-key-of-ours"
Answer = tuple[int, bytes]


class Server(ThreadingHTTPServer):
    """Answers what `say` says; remembers paths, headers and bodies. `hang_up`: so many requests get no answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.say: Callable[[str, Any], Answer] = lambda path, body: (200, b"{}")
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.hang_up = 0

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        if self.server.hang_up:
            self.server.hang_up -= 1
            self.close_connection = True
            return
        status, content = self.server.say(self.path, body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def test_the_key_is_a_header_and_nowhere_else(server: Server):
    node = TronHttp(f"http://{KEY}@127.0.0.1:{server.port}/")
    node.call("wallet/getblock", {"detail": False})
    ((path, headers, body),) = server.asked
    assert (path, body, headers["tron-pro-api-key"]) == ("/wallet/getblock", {"detail": False}, KEY)
    assert "authorization" not in headers
    assert KEY not in repr(node)


def test_basic_authentication_paths_and_queries(server: Server):
    TronHttp(f"http://user:{KEY}@127.0.0.1:{server.port}/v2/tron/?apikey=abc").call("wallet/getnowblock")
    ((path, headers, body),) = server.asked
    assert (path, body) == ("/v2/tron/wallet/getnowblock?apikey=abc", {})
    assert headers["authorization"].startswith("Basic ")
    assert "tron-pro-api-key" not in headers


def test_without_a_key_nobody_elses_is_sent(server: Server):
    TronHttp(f"http://127.0.0.1:{server.port}").call("wallet/getnowblock")
    assert not {"tron-pro-api-key", "authorization"} & server.asked[0][1].keys()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, b'{"Error": "class org.tron.core.exception.X : bad ' + KEY.encode() + b'"}'), RpcError),
        ((200, b"<html>"), Unavailable),
        ((429, b"{}"), Unavailable),
        ((403, b'{"Error": "' + KEY.encode() + b'"}'), Unavailable),
        ((302, b""), Unavailable),
        ((503, b""), Unavailable),
    ],
)
def test_errors_do_not_tell_the_key(server: Server, answer: Answer, error: type[Exception]):
    server.say = lambda path, body: answer
    with pytest.raises(error) as raised:
        TronHttp(f"http://{KEY}@127.0.0.1:{server.port}/{KEY}").call("wallet/getblock")
    assert KEY not in str(raised.value)
    assert len(server.asked) == 1


def test_a_read_is_repeated_once_and_a_payment_is_not(server: Server):
    node = TronHttp(f"http://{KEY}@127.0.0.1:{server.port}")
    server.hang_up = 1
    assert node.call("wallet/getblock") == {}
    server.hang_up, before = 1, len(server.asked)
    with pytest.raises(Unavailable) as raised:
        node.call("wallet/broadcasttransaction", {"raw_data": {}})
    assert len(server.asked) == before + 1
    assert KEY not in str(raised.value)


def test_nobody_there():
    with pytest.raises(Unavailable, match="can not be reached"):
        TronHttp(f"http://{KEY}@127.0.0.1:9/{KEY}").call("wallet/getblock")


def test_batches_keep_the_order(server: Server):
    server.say = lambda path, body: (200, json.dumps({"num": body["num"]}).encode())
    node = TronHttp(f"http://127.0.0.1:{server.port}")
    assert [answer["num"] for answer in node.batch([("wallet/x", {"num": n}) for n in range(20)])] == list(range(20))
    assert node.batch([]) == []
    server.say = lambda path, body: (500 if body["num"] == 3 else 200, b"{}")
    with pytest.raises(Unavailable):
        node.batch([("wallet/x", {"num": n}) for n in range(5)])


def test_forbidden_places_are_told_nothing(server: Server):
    with pytest.raises(Unavailable, match="no node may be"):
        TronHttp(f"http://127.0.0.1:{server.port}", place_allowed=lambda ip: False).call("wallet/getblock")
    assert server.asked == []


def test_only_http():
    for url in ("ftp://node.example", "node.example", "https://"):
        with pytest.raises(ValueError, match="http"):
            TronHttp(url)


def test_an_answer_is_read_no_further_than_there_is_room(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "MOST_BYTES", 1_000)
    server.say = lambda path, body: (200, b'"' + b"x" * 2_000 + b'"')
    with pytest.raises(TooMuch, match="larger"):
        TronHttp(f"http://127.0.0.1:{server.port}").call("wallet/getblock")
