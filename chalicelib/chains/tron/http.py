"""Tron's HTTP interface: POST with JSON, one path per question ("wallet/getnowblock").

The same two methods as `chains/rpc.py::JsonRpc`, so that what stands over several providers serves both. The URL may hold a
provider's secret: it is never logged, never part of an error, and cut out of what a node says before that is passed on. A user
name without a password in the URL is the API key of TronGrid's kind, sent as the header TRON-PRO-API-KEY; with a password both
are HTTP basic authentication; a query goes with every request. Without a key there is none: nobody else's is used.
Import stays cheap: no chain library here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import orjson
import urllib3

from chalicelib.chains.node_ips import node_pool
from chalicelib.chains.rpc import (
    DENIED,
    MOST_BYTES,
    MOST_TOGETHER,
    Denied,
    RpcError,
    TooMuchTogether,
    posted,
    redacted,
    secrets_of,
    sent,
)
from chalicelib.chains.tron.values import words
from chalicelib.usecases.ports.failures import Unanswered, Unavailable

Request = tuple[str, Mapping[str, Any] | Sequence[Any]]

_WRITES = ("wallet/broadcasttransaction", "wallet/broadcasthex")
"""What is never sent a second time by the transport itself: its caller repeats it."""
_AT_ONCE, _KEPT = 4, 32
"""Requests of a batch at a time, and connections: whoever compares addresses asks so often at once."""
_WORDS = 300


class TronHttp:
    """One node. Safe to share between threads; connections are kept alive.

    `connect_timeout` and `timeout` (for each read from the socket) in seconds. `place_allowed` and `hidden` as in `JsonRpc`.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 15.0,
        connect_timeout: float = 3.0,
        place_allowed: Callable[[str], bool] | None = None,
        hidden: Iterable[str] = (),
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the node's URL must be http:// or https:// with a host")
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if parts.password:
            headers |= urllib3.make_headers(basic_auth=f"{unquote(parts.username or '')}:{unquote(parts.password)}")
        elif parts.username:
            headers["TRON-PRO-API-KEY"] = unquote(parts.username)
        self._base = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], path="", query="", fragment=""))
        self._prefix, self._query = parts.path.rstrip("/"), f"?{parts.query}" if parts.query else ""
        self._secrets = secrets_of(url, hidden)
        self._patience = 2 * timeout
        self._pool = node_pool(headers, _KEPT, connect_timeout, timeout, place_allowed)

    def __repr__(self) -> str:
        return "TronHttp(...)"

    def call(self, method: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> Any:
        """The answer to one request. Raises RpcError where the node answers an error, Unavailable where it does not answer."""
        return self._answer(method, *self._exchange(method, orjson.dumps(params or {})))

    def _answer(self, method: str, status: int, content: bytes) -> Any:
        if status != 200:
            raise (Denied if status in DENIED else Unanswered)(f"the node answers HTTP {status}")
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            raise Unavailable(f"the node's answer to {method} is not JSON") from None
        if isinstance(answer, dict) and "Error" in answer:
            raise RpcError(0, self._redacted(words(answer["Error"])))
        return answer

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        """The answers to several reads, in the order asked; a few are under way at once, since there is no batch in this
        interface. Raises as `call` does, and TooMuchTogether where they are larger than there is room for. Each may see another
        head of the chain.
        """
        if len(requests) < 2:
            return [self.call(*request) for request in requests]
        left = MOST_TOGETHER

        def told(request: Request) -> tuple[int, bytes]:
            nonlocal left
            if left <= 0:
                raise _too_much()
            answer = self._exchange(request[0], orjson.dumps(request[1] or {}))
            left -= len(answer[1])
            return answer

        # Threads wait for the node, no more: parsing in them would only have them wait for each other.
        with ThreadPoolExecutor(min(_AT_ONCE, len(requests))) as pool:
            answers = list(pool.map(told, requests))
        if left < 0:
            raise _too_much()
        answers.reverse()
        return [self._answer(method, *answers.pop()) for method, _ in requests]

    def _exchange(self, method: str, body: bytes) -> tuple[int, bytes]:
        url = f"{self._base}{self._prefix}/{method}{self._query}"
        return sent(lambda: posted(self._pool, url, body, MOST_BYTES, self._patience), again=method not in _WRITES)

    def _redacted(self, text: str) -> str:
        return redacted(text, self._secrets)[:_WORDS]


def _too_much() -> TooMuchTogether:
    return TooMuchTogether(f"the answers to some requests are larger than {MOST_TOGETHER >> 20} MB together")
