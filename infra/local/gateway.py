"""What API Gateway does for a REST API: finds the route, builds the proxy event, calls the app, reads its answer.

No sockets here: the HTTP front (`server`) and the tests' in-process client (`tests/support/stack.py`) both come through this
module, so that what the tests see is what a client sees.
Event format: AWS, "Lambda proxy integrations in API Gateway", input and output format of a Lambda function for proxy integration.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import re
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

from chalice.app import Chalice, RouteEntry

from chalicelib.web import files

PREFIX = "/api"
"""Deployed, `api` is the API Gateway stage, so it is in the address and in no route."""
_SHELLS = ("/portal", "/console")
"""Pages whose modules are read anew when they were changed: nobody starts the stack again for each line."""
BODY_LIMIT = 10 * 1024 * 1024
"""Bytes. Source: API Gateway quotas, payload size."""
COMPRESSED_FROM = 1024
"""Bytes: `minimum_compression_size` in `.chalice/config.json`."""
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
"""Meant for the next machine only. Source: RFC 9110 section 7.6.1."""
_COUNTED_AGAIN = frozenset(("content-length", "date", "server"))

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """As it came: `target` is the raw path and query, `headers` in their order, repeated ones apart."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    source_ip: str


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass(slots=True)
class _Node:
    """One path part of the routes. A static child wins over the parameter, as API Gateway prefers the most specific resource."""

    children: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    route: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The Lambda context that handlers may look at."""

    function_name: str
    aws_request_id: str
    deadline: float
    memory_limit_in_mb: int = 512
    function_version: str = "$LATEST"

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:local:000000000000:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.deadline - time.monotonic()) * 1000))


def context(function_name: str, seconds: float) -> Context:
    """The context of one call that may take `seconds`."""
    return Context(function_name, str(uuid.uuid4()), time.monotonic() + seconds)


class _PerThread:
    """Chalice keeps the request on the app, which is right in a Lambda, where one runs at a time. Here each thread has its own."""

    _local = threading.local()

    @property
    def current_request(self) -> Any:
        return getattr(self._local, "request", None)

    @current_request.setter
    def current_request(self, value: Any) -> None:
        self._local.request = value

    @property
    def lambda_context(self) -> Any:
        return getattr(self._local, "context", None)

    @lambda_context.setter
    def lambda_context(self, value: Any) -> None:
        self._local.context = value


def for_threads(app: Chalice) -> Chalice:
    """Make `app` safe to call from several threads at once. May be called again."""
    if not isinstance(app, _PerThread):
        app.__class__ = type("LocalChalice", (_PerThread, app.__class__), {})
    return app


class Served(Protocol):
    """What a gateway calls: by path and method what it serves. A Chalice app, or the deployed functions behind an API."""

    @property
    def routes(self) -> Mapping[str, Mapping[str, Any]]: ...

    def __call__(self, event: dict[str, Any], context: Context) -> dict[str, Any]: ...


class Gateway:
    """Serves the routes of one app. Safe for threads, where the app is: a Chalice app is made so."""

    def __init__(self, app: Chalice | Served, stage: str = "local") -> None:
        self._app: Any = for_threads(app) if isinstance(app, Chalice) else app
        self._stage = stage
        self._root = _tree(app.routes)

    def handle(self, request: Request) -> Reply:
        """Answer one request. Whatever comes in, what goes out has a published status; a fault of ours is a 500. It is compressed
        where the client takes that."""
        return _compressed(self._plain(request), request)

    def _plain(self, request: Request) -> Reply:
        request_id = str(uuid.uuid4())
        try:
            return self._handle(request, request_id)
        except Exception:
            log.exception("request %s failed", request_id)
            return _error(500, "INTERNAL_ERROR", "Something went wrong on our side", {}, request_id)

    def _handle(self, request: Request, request_id: str) -> Reply:
        path, _, query = request.target.partition("?")
        if len(request.body) > BODY_LIMIT:
            return refusal("The body is larger than 10 MB", request_id)
        found = self._match(path)
        if found is None:
            return _error(404, "NOT_FOUND", "There is nothing at this path", {"path": unquote(path)}, request_id)
        route, parameters = found
        entries = self._app.routes[route]
        method = "GET" if request.method == "HEAD" and "HEAD" not in entries else request.method
        allowed = sorted(entries)
        if method not in entries:
            if method == "OPTIONS":
                return Reply(200, [*_options(entries, allowed), ("X-Request-Id", request_id)], b"")
            message = f"{request.method} does not work here; {' and '.join(allowed)} do{'es' if len(allowed) == 1 else ''}"
            reply = _error(404, "NOT_FOUND", message, {"path": unquote(path), "allowed": allowed}, request_id)
            reply.headers.append(("Allow", ", ".join(allowed)))
            return reply
        if route in _SHELLS:
            files.read_again()
        event = self._event(request, method, path, query, route, parameters, request_id)
        return _reply(self._app(event, context("api", 29)), request_id)

    def _match(self, path: str) -> tuple[str, dict[str, str]] | None:
        """The route of a raw path, and its parameters decoded. One slash at the end does not count."""
        if not (path == PREFIX or path.startswith(PREFIX + "/")):
            return None
        rest = path[len(PREFIX) :].removesuffix("/")
        parts = [unquote(part) for part in rest.split("/")[1:]]
        values: list[str] = []
        route = _walk(self._root, parts, values)
        if route is None:
            return None
        names = [part[1:-1] for part in route.split("/") if part.startswith("{")]
        return route, dict(zip(names, values, strict=True))

    def _event(
        self, request: Request, method: str, path: str, query: str, route: str, parameters: dict[str, str], request_id: str
    ) -> dict[str, Any]:
        forwarded = ", ".join([value for name, value in request.headers if name.lower() == "x-forwarded-for"] + [request.source_ip])
        headers = _grouped(
            (name, value)
            for name, value in request.headers
            if name.lower() not in _HOP_BY_HOP and name.lower() != "x-forwarded-for"
        )
        headers["X-Forwarded-For"] = [forwarded]
        headers["X-Forwarded-Proto"] = ["http"]
        queries = _grouped(parse_qsl(query, keep_blank_values=True, errors="replace"), fold=False)
        body, encoded = _text(request.body)
        return {
            "resource": route,
            "path": path[len(PREFIX) :] or "/",
            "httpMethod": method,
            "headers": {name: values[-1] for name, values in headers.items()},
            "multiValueHeaders": headers,
            "queryStringParameters": {name: values[-1] for name, values in queries.items()} or None,
            "multiValueQueryStringParameters": queries or None,
            "pathParameters": parameters or None,
            "stageVariables": None,
            "requestContext": {
                "accountId": "000000000000",
                "apiId": "local",
                "resourceId": "local",
                "resourcePath": route,
                "httpMethod": method,
                "path": path,
                "stage": self._stage,
                "protocol": "HTTP/1.1",
                "requestId": request_id,
                "requestTimeEpoch": int(time.time() * 1000),
                "identity": {"sourceIp": request.source_ip, "userAgent": headers.get("User-Agent", [None])[-1]},
            },
            "body": body,
            "isBase64Encoded": encoded,
        }


def _compressed(reply: Reply, request: Request) -> Reply:
    """What API Gateway makes of an answer of some size for a client that takes gzip; it looks at no content type.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-gzip-compression-decompression.html
    """
    accepted = ",".join(value for name, value in request.headers if name.lower() == "accept-encoding")
    takes = [part.partition(";") for part in accepted.lower().replace(" ", "").split(",")]
    wanted = any(name in ("gzip", "*") and not re.fullmatch(r"q=0(\.0*)?", weight) for name, _, weight in takes)
    if not wanted or len(reply.body) < COMPRESSED_FROM or any(name.lower() == "content-encoding" for name, _ in reply.headers):
        return reply
    return Reply(reply.status, [*reply.headers, ("Content-Encoding", "gzip")], gzip.compress(reply.body, 6, mtime=0))


def refusal(message: str, request_id: str | None = None) -> Reply:
    """A 400 for what no route ever sees: a body too large, a request that is not HTTP."""
    details = [{"field": "request", "value": None, "constraints": [message]}]
    return _error(400, "INVALID_PARAMETER", message, details, request_id or str(uuid.uuid4()))


def _error(status: int, code: str, message: str, details: Any, request_id: str) -> Reply:
    body = json.dumps({"error": {"code": code, "message": message, "details": details}}).encode()
    return Reply(status, [("Content-Type", "application/json"), ("X-Request-Id", request_id)], body)


def _tree(routes: Mapping[str, Any]) -> _Node:
    root = _Node()
    for route in routes:
        node = root
        for part in route.strip("/").split("/") if route != "/" else ():
            if part.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.children.setdefault(part, _Node())
        node.route = route
    return root


def _walk(node: _Node, parts: list[str], values: list[str]) -> str | None:
    if not parts:
        return node.route
    child = node.children.get(parts[0])
    if child is not None:
        route = _walk(child, parts[1:], values)
        if route is not None:
            return route
    if node.parameter is not None and parts[0]:
        values.append(parts[0])
        route = _walk(node.parameter, parts[1:], values)
        if route is not None:
            return route
        values.pop()
    return None


def _options(entries: Mapping[str, RouteEntry], allowed: list[str]) -> list[tuple[str, str]]:
    """What an OPTIONS request is told: the methods, and the CORS headers where the route has them."""
    headers = [("Allow", ", ".join([*allowed, "OPTIONS"]))]
    cors = next((entry.cors for entry in entries.values() if entry.cors is not None), None)
    if cors is not None:
        headers += [(name, str(value)) for name, value in cors.get_access_control_headers().items()]
        headers.append(("Access-Control-Allow-Methods", ", ".join([*allowed, "OPTIONS"])))
    return headers


def _grouped(pairs: Iterable[tuple[str, str]], *, fold: bool = True) -> dict[str, list[str]]:
    """Values by name, in order. With `fold`, names that differ in case alone are one, spelt as the first."""
    spelling: dict[str, str] = {}
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        key = spelling.setdefault(name.lower(), name) if fold else name
        grouped.setdefault(key, []).append(value)
    return grouped


def _text(body: bytes) -> tuple[str | None, bool]:
    """The event's body, and whether it is base64: where the bytes are no UTF-8."""
    if not body:
        return None, False
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode("ascii"), True


def _reply(answer: dict[str, Any], request_id: str) -> Reply:
    """What the client gets of a proxy answer: both kinds of headers, content type JSON where none is named."""
    pairs = [(name, value) for name, values in (answer.get("multiValueHeaders") or {}).items() for value in values]
    repeated = {(name.lower(), str(value)) for name, value in pairs}
    # A pair in both maps is one header. Source: AWS, output format of a Lambda function for proxy integration.
    pairs += [pair for pair in (answer.get("headers") or {}).items() if (pair[0].lower(), str(pair[1])) not in repeated]
    dropped = _HOP_BY_HOP | _COUNTED_AGAIN
    headers = [(name, _one_line(str(value))) for name, value in pairs if name.lower() not in dropped]
    present = {name.lower() for name, _ in headers}
    if "content-type" not in present:
        headers.append(("Content-Type", "application/json"))
    if "x-request-id" not in present:
        headers.append(("X-Request-Id", request_id))
    body = answer.get("body") or ""
    raw = base64.b64decode(body) if answer.get("isBase64Encoded") else body if isinstance(body, bytes) else body.encode("utf-8")
    return Reply(int(answer["statusCode"]), headers, raw)


def _one_line(value: str) -> str:
    """A header's value as it may go on the wire: control characters would end the header, so they become spaces."""
    return "".join(" " if ord(character) < 32 or ord(character) == 127 else character for character in value)
