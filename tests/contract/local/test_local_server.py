"""The local HTTP front and the gateway behind it, over real sockets, against an app that answers with the event it was given."""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from chalice.app import Chalice, CORSConfig, Response

from infra.local.server import Server


def make_app() -> Chalice:
    app = Chalice("echo", configure_logs=False)

    def event() -> Any:
        request: Any = app.current_request
        return request.to_original_event()

    @app.route("/")
    def root() -> Any:
        return {"route": "root"}

    @app.route("/v1/things/{thing}", methods=["GET", "POST", "DELETE"])
    def one(thing: str) -> Any:
        return event()

    @app.route("/v1/things/special")
    def special() -> Any:
        return {"route": "special"}

    @app.route("/v1/things/special/parts/{part}")
    def special_part(part: str) -> Any:
        return {"route": "special part", "part": part}

    @app.route("/v1/things/{thing}/notes")
    def notes(thing: str) -> Any:
        return {"route": "notes", "thing": thing}

    @app.route("/v1/cors", cors=CORSConfig(allow_origin="https://shop.example"))
    def cors() -> Any:
        return {}

    @app.route("/v1/headers")
    def headers() -> Any:
        return Response(
            "ÿ".encode("latin-1"),
            {
                "Content-Type": "application/octet-stream",
                "Set-Cookie": ["a=1", "b=2"],
                "X-Split": "a\rX-Evil: 1",
                "Connection": "close",
            },
            201,
        )

    @app.route("/v1/slow/{seconds}")
    def slow(seconds: str) -> Any:
        time.sleep(float(seconds))
        request: Any = app.current_request
        return {"seconds": request.uri_params["seconds"]}

    @app.route("/v1/broken")
    def broken() -> Any:
        app.__dict__["missing"]  # raises
        return None

    return app


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server(make_app(), 0)
    running.start()
    yield running
    running.stop()


def ask(server: Server, method: str, target: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, headers and the parsed body (or its bytes)."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    try:
        return answer.status, answer.headers, json.loads(raw)
    except ValueError:
        return answer.status, answer.headers, raw


def raw(server: Server, data: bytes) -> tuple[int, bytes]:
    """Status and everything that comes back for bytes that need not be HTTP."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as sock:
        received = b""
        # Who sends too much is answered before all is read: the system then resets the connection behind the answer, perhaps
        # before we have closed our side.
        with suppress(ConnectionResetError, BrokenPipeError):
            sock.sendall(data)
        with suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while chunk := sock.recv(65536):
                received += chunk
    assert received.startswith(b"HTTP/1."), received
    return int(received.split(b" ", 2)[1]), received


def test_the_event_is_the_gateways(server: Server) -> None:
    status, headers, event = ask(server, "POST", "/api/v1/things/a%2Fb%20%C3%A9?x=1&x=2&sum=a+b&empty=", b'{"a": 1}', X_Api_Key="k")
    assert status == 200
    assert (event["resource"], event["path"], event["httpMethod"]) == ("/v1/things/{thing}", "/v1/things/a%2Fb%20%C3%A9", "POST")
    assert event["pathParameters"] == {"thing": "a/b é"}
    assert event["multiValueQueryStringParameters"] == {"x": ["1", "2"], "sum": ["a b"], "empty": [""]}
    assert event["queryStringParameters"] == {"x": "2", "sum": "a b", "empty": ""}
    assert (event["body"], event["isBase64Encoded"]) == ('{"a": 1}', False)
    context = event["requestContext"]
    assert (context["resourcePath"], context["httpMethod"], context["stage"]) == ("/v1/things/{thing}", "POST", "local")
    assert context["identity"]["sourceIp"] == "127.0.0.1"
    assert context["requestId"] == headers["X-Request-Id"]
    assert event["headers"]["X-Api-Key"] == "k"


def test_nothing_sent_is_none(server: Server) -> None:
    _, _, event = ask(server, "GET", "/api/v1/things/a")
    assert (event["body"], event["multiValueQueryStringParameters"], event["queryStringParameters"]) == (None, None, None)


def test_the_source_address_is_the_sockets(server: Server) -> None:
    _, _, event = ask(server, "GET", "/api/v1/things/a", X_Forwarded_For="8.8.8.8", Forwarded="for=8.8.8.8", X_Real_IP="8.8.8.8")
    assert event["requestContext"]["identity"]["sourceIp"] == "127.0.0.1"
    assert event["headers"]["X-Forwarded-For"] == "8.8.8.8, 127.0.0.1"


def test_repeated_headers_stay_apart_and_those_of_the_connection_stay_behind(server: Server) -> None:
    request = b"GET /api/v1/things/a HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\nX_B: 3\r\nConnection: close\r\nTE: trailers\r\n\r\n"
    status, answer = raw(server, request)
    event = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    assert status == 200
    assert event["multiValueHeaders"]["X-A"] == ["1", "2"]
    assert event["headers"]["X-A"] == "2"
    assert event["headers"]["X_B"] == "3"
    assert not {"connection", "te"} & {name.lower() for name in event["headers"]}


def test_a_body_that_is_no_text_comes_as_base64(server: Server) -> None:
    _, _, event = ask(server, "POST", "/api/v1/things/a", b"\xff\xfe")
    assert (event["body"], event["isBase64Encoded"]) == ("//4=", True)


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("/api", {"route": "root"}),
        ("/api/", {"route": "root"}),
        ("/api/v1/things/special", {"route": "special"}),
        ("/api/v1/things/special/", {"route": "special"}),
        ("/api/v1/things/special/notes", {"route": "notes", "thing": "special"}),
        ("/api/v1/things/special/parts/7", {"route": "special part", "part": "7"}),
        ("/api/v1/things/%73pecial", {"route": "special"}),
        ("http://elsewhere.example/api/v1/things/special?x=1", {"route": "special"}),
    ],
)
def test_routes(server: Server, target: str, answer: Any) -> None:
    assert ask(server, "GET", target)[2] == answer


@pytest.mark.parametrize(
    "target", ["/", "/v1/things/a", "/apiv1/things/a", "/api/v2", "/api/v1/things", "/api//v1/things/a", "/api/v1/things//notes"]
)
def test_an_unknown_path_is_404_in_json(server: Server, target: str) -> None:
    status, headers, body = ask(server, "GET", target)
    assert status == 404
    assert body["error"]["code"] == "NOT_FOUND"
    assert set(body["error"]) == {"code", "message", "details"}
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Request-Id"]


def test_a_wrong_method_is_404_and_names_the_right_ones(server: Server) -> None:
    status, headers, body = ask(server, "PUT", "/api/v1/things/a")
    assert status == 404
    assert body["error"]["details"]["allowed"] == ["DELETE", "GET", "POST"]
    assert headers["Allow"] == "DELETE, GET, POST"


def test_head_is_get_without_the_body(server: Server) -> None:
    status, headers, body = ask(server, "HEAD", "/api/v1/things/special")
    assert (status, body) == (200, b"")
    assert headers["Content-Length"] == str(len('{"route":"special"}'))


def test_options_names_the_methods(server: Server) -> None:
    status, headers, body = ask(server, "OPTIONS", "/api/v1/things/a")
    assert (status, body, headers["Allow"]) == (200, b"", "DELETE, GET, POST, OPTIONS")
    _, headers, _ = ask(server, "OPTIONS", "/api/v1/cors")
    assert headers["Access-Control-Allow-Origin"] == "https://shop.example"


def test_answers_keep_repeated_headers_and_can_not_be_split(server: Server) -> None:
    status, headers, body = ask(server, "GET", "/api/v1/headers", Accept="application/octet-stream")
    assert (status, body) == (201, b"\xff")
    assert headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert headers["X-Split"] == "a X-Evil: 1"
    assert "X-Evil" not in headers
    assert headers["Connection"] is None


def test_a_fault_of_ours_is_500_and_tells_nothing(server: Server) -> None:
    status, headers, body = ask(server, "GET", "/api/v1/broken")
    assert status == 500
    assert "missing" not in json.dumps(body)
    assert headers["X-Request-Id"]


@pytest.mark.parametrize("size", [10 * 1024 * 1024 + 1, 41 * 1024 * 1024])
def test_a_body_over_ten_megabytes_is_400(server: Server, size: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(b"POST /api/v1/things/a HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
        if size < 20 * 1024 * 1024:
            sock.sendall(b"x" * size)
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        body = json.loads(answer.read())
    assert answer.status == 400
    assert body["error"]["code"] == "INVALID_PARAMETER"


def test_ten_megabytes_are_taken(server: Server) -> None:
    status, _, event = ask(server, "POST", "/api/v1/things/a", b"x" * (10 * 1024 * 1024))
    assert status == 200
    assert len(event["body"]) == 10 * 1024 * 1024


HOSTILE = [
    b"GARBAGE\r\n\r\n",
    b"\x00\x01\x02\r\n\r\n",
    b"GET \xff\xfe HTTP/1.1\r\n\r\n",
    b"GET http://[ HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /api/%zz HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /api/v1/things/%ff%00 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    b"GET /api/v1/things/../../../etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /api?" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /api?" + b"&" * 50_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /api?%ff=%fe&=&=== HTTP/1.1\r\nHost: h\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
    b"CONNECT host:80 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"BREW /api/v1/things/a HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST /api/v1/things/a HTTP/1.1\r\nContent-Length: abc\r\n\r\n",
    b"POST /api/v1/things/a HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/v1/things/a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST /api/v1/things/a HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST /api/v1/things/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    b"GET /api/v1/things/a HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n",
    b"GET /api/v1/things/a HTTP/1.1\r\n: no name\r\n\r\n",
    b"GET /api/v1/things/a HTTP/9.9\r\nHost: h\r\n\r\n",
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:40]))
def test_what_is_no_request_makes_no_500(server: Server, data: bytes) -> None:
    status, answer = raw(server, data)
    assert status in (200, 400, 404)
    assert b"x-request-id" in answer.lower()
    assert b"Traceback" not in answer


def test_chunked_bodies_are_read(server: Server) -> None:
    head = b"POST /api/v1/things/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    _, answer = raw(server, head + b"5\r\nhello\r\n0\r\n\r\n")
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["body"] == "hello"


def test_requests_at_once_do_not_mix(server: Server) -> None:
    """Chalice keeps the request on the app: without a request per thread, the slow one would see the quick one's."""
    answers: dict[str, Any] = {}
    order: list[str] = []

    def go(seconds: str) -> None:
        answers[seconds] = ask(server, "GET", f"/api/v1/slow/{seconds}")[2]
        order.append(seconds)

    threads = [threading.Thread(target=go, args=(f"0.{n}",)) for n in (4, 3, 2, 1)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert answers == {f"0.{n}": {"seconds": f"0.{n}"} for n in (1, 2, 3, 4)}
    assert order[0] != "0.4"  # one after the other, who came first would be first


def test_a_kept_connection_is_quick(server: Server) -> None:
    """No answer waits for a delayed acknowledgement (40 ms each): `chalice local` gives 23 a second for that reason."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    took = []
    for _ in range(200):
        began = time.monotonic()
        connection.request("GET", "/api/v1/things/special")
        assert connection.getresponse().read() == b'{"route":"special"}'
        took.append(time.monotonic() - began)
    assert statistics.median(took) < 0.035


def test_a_taken_port_is_refused_and_a_stopped_one_is_free() -> None:
    first = Server(make_app(), 0)
    first.start()
    with pytest.raises(OSError, match="in use"):
        Server(make_app(), first.port)
    first.stop()
    again = Server(make_app(), first.port)
    again.start()
    assert ask(again, "GET", "/api")[0] == 200
    again.stop()
    with pytest.raises(ConnectionRefusedError):
        ask(again, "GET", "/api")


def test_stop_survives_a_loop_that_is_awake_already() -> None:
    """A connection or a finished request may wake the loop between the order to close and the byte that carries it."""
    server = Server(make_app(), 0)
    server.start()
    trigger = server._server.trigger
    pull = trigger._physical_pull

    def pull_after_the_loop_woke() -> None:
        pull()
        time.sleep(0.1)
        pull()

    trigger._physical_pull = pull_after_the_loop_woke
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        ask(server, "GET", "/api")
