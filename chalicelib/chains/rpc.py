"""JSON-RPC over HTTP: the only way in which this project talks to a node.

`JsonRpc.call` and `JsonRpc.batch` are the whole interface, so that tests can make the n-th call of either fail, and so that
`providers.py` can put several nodes behind it. The URL may hold a provider's secret: it is never logged, never part of an error,
and cut out of what a node says before that is passed on. Import stays cheap: no chain library here.
"""

from __future__ import annotations

import gc
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

import orjson
import urllib3

from chalicelib.chains.node_ips import ForbiddenNodeIp, node_pool
from chalicelib.chains.rows import Rows, Thin, thinned
from chalicelib.usecases.ports.failures import Unanswered, Unavailable

T = TypeVar("T")
Request = tuple[str, Sequence[Any]]

_READS = re.compile(
    r"eth_(get|call$|blockNumber$|chainId$|estimateGas$|gasPrice$|feeHistory$|maxPriorityFeePerGas$)"
    r"|get(block|raw|best|mempool|txout|network)|estimatesmartfee$"
)
"""What may be sent a second time by the transport itself. Everything else is for its caller to repeat."""

_LIMIT_CODES = (-32005, 429)
"""EIP-1474: limit exceeded. Some providers answer with the HTTP status as the code."""
_TOO_MUCH = re.compile(
    r"more than \d+ (results|logs)|too many (results|logs|blocks)"
    r"|(response|result|query|batch|content)[^.]{0,40} (too (large|big)|size)"
    r"|(block|log|query) range|range (is )?too|exceeds? (the )?(max|limit)[^.]{0,40}(range|result|log|block|size)",
    re.IGNORECASE,
)
"""How nodes and providers say that an answer would be too large. They have no code in common for it."""
_NOT_SERVED = (400, 404, 405, 501)
DENIED = (401, 403)
"""Statuses of a server that refuses the credentials: RFC 9110, sections 15.5.2 and 15.5.4. Some say so of a method or a plan."""
_TOO_OFTEN = 429
_LARGE = frozenset({
    "eth_getLogs", "eth_getBlockReceipts", "eth_getBlockByNumber",
    "debug_traceBlockByHash", "debug_traceTransaction", "trace_block", "trace_transaction",
})  # fmt: skip
_GROWS_AFTER = 30
"""Batches that have to pass before a batch size that was cut is tried twice as large."""

MOST_BYTES = 64 << 20
"""No answer is read further: a stranger's transaction decides how large some are, and a function has half a gigabyte."""
MOST_TRACED = 24 << 20
"""The same of traces, receipts of a block, and transactions asked one by one: their small parts take several times the room once
they are read."""
MOST_TOGETHER = 24 << 20
"""The same of all answers to one batch, in however many parts it is asked: they are held until the last one is there. What is too
large for that may be asked for by itself."""
MOST_OF_ROWS = 256 << 20
"""The same of a list that is read row by row, and not held."""
SEARCH_AFTER = 32 << 20
"""Bytes of answers after which garbage is looked for. What is wrong with an answer is often in a cycle with the frames that hold it
(an error that a loop remembers until another node was asked), and Python counts objects, of which a large answer may be one."""
_IN_PARTS = ("debug_", "trace_", "getrawtransaction", "eth_getBlockReceipts")
_TOO_DEEP = "depth limit exceeded"
"""How orjson says that an answer nests deeper than it reads: a trace of calls in calls. That is no fault of the node."""

_WORDS = 300
_SHORTEST_PART = 4
"""Characters from which a secret is cut out of the middle of words, too."""
_PIECE = 1 << 18
AT_ONCE = 8
"""Connections to one node that are kept: as many requests may be under way at once."""


class Transport(Protocol):
    """One node, or several that stand in for each other."""

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        """The result of one request. Raises RpcError, Unavailable."""
        ...

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        """The results of several reads, in the order asked. Raises RpcError, Unavailable."""
        ...


class RpcError(Exception):
    """The node understood the request and answered with an error object: its `code` and `message`, and `data` if any."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} (code {code})")
        self.code = code
        self.message = message
        self.data = data


class TooMuch(Unavailable):
    """The node refuses a request because its answer would be too large: asking for less may be answered."""


class TooMuchTogether(TooMuch):
    """The answers to one batch are larger together than there is room for: fewer requests at once may be answered."""


@runtime_checkable
class Streams(Protocol):
    """A transport that can read a long list without holding it."""

    def rows(self, method: str, params: Sequence[Any], thin: Thin, under: str | None = None) -> Any:
        """As `Transport.call`; of the rows of the result, or of the list `under` that name in it, what `thin` keeps."""
        ...


def rows_of(rpc: Transport, method: str, params: Sequence[Any], thin: Thin, under: str | None = None) -> Any:
    """The result of one request, with what `thin` keeps in the place of its rows: whatever the transport can. `thin` is given some
    rows at a time. Raises RpcError, Unavailable, and what `thin` raises."""
    if isinstance(rpc, Streams):
        return rpc.rows(method, params, thin, under)
    return thinned({"result": rpc.call(method, params)}, thin, under)["result"]


class _Room:
    """How many bytes of answers a batch, or several at the same time, may still hold."""

    def __init__(self) -> None:
        self._left = MOST_TOGETHER // _sharers.get()
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        with self._lock:
            if size > self._left:
                raise TooMuchTogether(f"the answers to a batch are larger than {MOST_TOGETHER >> 20} MB together")
            self._left -= size

    def give_back(self, size: int) -> None:
        with self._lock:
            self._left += size


class _Unsearched:
    """Bytes of answers since garbage was last looked for, of the whole process."""

    def __init__(self) -> None:
        self._bytes = 0
        self._first = True
        self._lock = threading.Lock()

    def count(self, size: int) -> None:
        with self._lock:
            self._bytes += size

    def search(self) -> None:
        with self._lock:
            if self._bytes < SEARCH_AFTER:
                return
            self._bytes, first = 0, self._first
            self._first = False
        gc.collect()
        if first:
            gc.freeze()  # modules and classes stay: to go through them each time would cost a tenth of reading small blocks


_unsearched = _Unsearched()
_shared: ContextVar[_Room | None] = ContextVar("room", default=None)
_sharers: ContextVar[int] = ContextVar("sharers", default=1)


@contextmanager
def shared_by(readers: int) -> Iterator[None]:
    """Let a batch that is asked in this context hold its part of what one may: so many are read at the same time."""
    token = _sharers.set(max(1, readers))
    try:
        yield
    finally:
        _sharers.reset(token)


@contextmanager
def one_room() -> Iterator[None]:
    """Let all batches that are asked in this context, in whichever thread, hold as much together as one of them may. Whoever asks
    for several at the same time needs no more memory so than for one after the other."""
    token = _shared.set(_Room())
    try:
        yield
    finally:
        _shared.reset(token)


class Limited(Unanswered):
    """The node answers that it was asked too often: less at once may be answered."""


class NotServed(Unanswered):
    """The server answers with an HTTP status that says no to the request as such, and nothing of JSON-RPC: a method or a plan."""


class Denied(NotServed):
    """The server refuses the credentials."""


class _TooMany(Exception):
    """The node refused the batch as a whole, which a smaller one may cure."""


class JsonRpc:
    """One node. Safe to share between threads; connections are kept alive.

    `connect_timeout` and `timeout` (for each read from the socket) in seconds; `batch_size` is the most requests sent in one batch.
    A user name and password in `url` are sent as HTTP basic authentication. `place_allowed` is shown the address that a connection
    was made to, before anything is sent there. `hidden` are more secrets than `secrets_of` finds in the URL.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 15.0,
        connect_timeout: float = 3.0,
        batch_size: int = 50,
        place_allowed: Callable[[str], bool] | None = None,
        hidden: Iterable[str] = (),
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the node's URL must be http:// or https:// with a host")
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if parts.username is not None:
            headers |= urllib3.make_headers(basic_auth=f"{unquote(parts.username)}:{unquote(parts.password or '')}")
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
        self._secrets = secrets_of(url, hidden)
        self._patience = 2 * timeout
        self._batch_size = self._most = batch_size
        self._passed = 0
        self._pool = node_pool(headers, AT_ONCE, connect_timeout, timeout, place_allowed)

    def __repr__(self) -> str:
        return "JsonRpc(...)"

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        """The result of one request. Raises RpcError where the node answers an error, Unavailable where it does not answer."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._exchange(body, again=_READS.match(method) is not None)
        if not isinstance(answer, dict) or answer.get("id", 1) != 1:
            raise Unavailable(f"the node's answer to {method} is no JSON-RPC answer")
        return self._result(answer, method)

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        """The results of several reads, in the order asked, in as few round trips as `batch_size` allows.

        Raises RpcError for the first request that the node answers with an error, Unavailable as `call` does. A batch that the
        node refuses as too large is sent again in halves, and those that follow are as small for a while. The parts of a split
        batch may see different heads of the chain. Raises TooMuchTogether where all parts are larger than `MOST_TOGETHER`.
        """
        results: list[Any] = []
        room = _shared.get() or _Room()
        while len(results) < len(requests):
            results += self._batch(requests[len(results) : len(results) + self._batch_size], room)
        return results

    def rows(self, method: str, params: Sequence[Any], thin: Thin, under: str | None = None) -> Any:
        """As `call`; of the rows of the result, or of the list `under` that name in it, what `thin` keeps. Raises that, too."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._exchange(body, again=True, rows=lambda: Rows(thin, under))
        if not isinstance(answer, dict) or answer.get("id", 1) != 1:
            raise Unavailable(f"the node's answer to {method} is no JSON-RPC answer")
        return self._result(answer, method)

    def _batch(self, requests: Sequence[Request], room: _Room) -> list[Any]:
        try:
            results = self._batch_once(requests, room)
        except TooMuchTogether:
            raise  # halves of it are as large together
        except (_TooMany, TooMuch) as error:
            if len(requests) == 1:
                if isinstance(error, TooMuch):
                    raise
                raise Unavailable(f"the node refuses {requests[0][0]}: {error}") from None
        else:
            self._grow(len(requests))
            return results
        middle = len(requests) // 2
        self._batch_size, self._passed = max(1, min(self._batch_size, middle)), 0
        return self._batch(requests[:middle], room) + self._batch(requests[middle:], room)

    def _grow(self, size: int) -> None:
        """Try larger batches again after a while: what was refused may have been one heavy block."""
        if self._batch_size < self._most and size >= self._batch_size:
            self._passed += 1
            if self._passed >= _GROWS_AFTER:
                self._batch_size, self._passed = min(self._most, self._batch_size * 2), 0

    def _batch_once(self, requests: Sequence[Request], room: _Room) -> list[Any]:
        body = [{"jsonrpc": "2.0", "id": n, "method": method, "params": params} for n, (method, params) in enumerate(requests)]
        answers = self._exchange(body, again=all(_READS.match(method) for method, _ in requests), room=room)
        if isinstance(answers, dict) and "error" in answers:
            try:
                self._result(answers, "a batch")
            except RpcError as error:
                raise _TooMany(str(error)) from None
        if not isinstance(answers, list):
            raise Unavailable("the node's answer to a batch is no list")
        by_id = {answer.get("id"): answer for answer in answers if isinstance(answer, dict)}
        if len(answers) != len(requests) or any(n not in by_id for n in range(len(requests))):
            raise Unavailable(f"the node answered {len(answers)} of {len(requests)} requests, or others than were asked")
        return [self._result(by_id[n], method) for n, (method, _) in enumerate(requests)]

    def _result(self, answer: dict[str, Any], method: str) -> Any:
        error = answer.get("error")
        if error is None:
            if "result" not in answer:
                raise Unavailable(f"the node's answer to {method} has neither result nor error")
            return answer["result"]
        code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, None)
        if not isinstance(code, int) or not isinstance(message, str):
            raise Unavailable(f"the node's answer to {method} is an error without code and message")
        message = self._redacted(message)
        if _TOO_MUCH.search(message) and (code in _LIMIT_CODES or method in _LARGE):
            raise TooMuch(f"the node refuses {method}: {message} (code {code})")
        if code in _LIMIT_CODES:
            raise Limited(f"the node's limit is reached: {message} (code {code})")
        raise RpcError(code, message, error.get("data"))

    def _exchange(self, body: Any, *, again: bool, room: _Room | None = None, rows: Callable[[], Rows] | None = None) -> Any:
        """Send, and parse the answer. `again`: once more when a kept-alive connection turns out to be closed."""
        data = orjson.dumps(body)
        methods = [each["method"] for each in (body if isinstance(body, list) else [body])]
        most = MOST_TRACED if any(method.startswith(_IN_PARTS) for method in methods) else MOST_BYTES

        def post() -> tuple[int, bytes, Rows | None]:
            read = None if rows is None else rows()
            return *self._post(data, most, room, read), read

        status, content, read = sent(post, again)
        try:
            answer = orjson.loads(content) if read is None else read.answer()
        except (ValueError, KeyError, TypeError) as error:
            if str(error).startswith(_TOO_DEEP):
                raise TooMuch("the node's answer nests deeper than is read") from None
            answer = None
        if status == 413:
            raise _TooMany("HTTP 413") if isinstance(body, list) else TooMuch("the node answers HTTP 413")
        # Bitcoin's and Litecoin's node answers its JSON-RPC errors with 500 and 404; other nodes use 400.
        if status != 200 and not (status in (400, 404, 500) and isinstance(answer, dict) and answer.get("error")):
            raise _kind(status)(f"the node answers HTTP {status}")
        if answer is None:
            raise Unavailable("the node's answer is not JSON")
        return answer

    def _post(self, data: bytes, most: int, room: _Room | None, rows: Rows | None) -> tuple[int, bytes]:
        if rows is not None:
            try:
                return posted(self._pool, self._url, data, MOST_OF_ROWS, self._patience, rows.feed)
            except ValueError:
                raise Unavailable("the node's answer is not JSON") from None
        if room is None:
            return posted(self._pool, self._url, data, most, self._patience)
        pieces: list[bytes] = []

        def hold(piece: bytes) -> None:
            room.take(len(piece))
            pieces.append(piece)

        try:
            status, _ = posted(self._pool, self._url, data, most, self._patience, hold)
        except BaseException:
            # What is let go makes room for the halves of this batch, and for the others.
            room.give_back(sum(map(len, pieces)))
            raise
        return status, b"".join(pieces)

    def _redacted(self, text: str) -> str:
        return redacted(text, self._secrets)[:_WORDS]


def _kind(status: int) -> type[Unanswered]:
    if status in DENIED:
        return Denied
    return Limited if status == _TOO_OFTEN else NotServed if status in _NOT_SERVED else Unanswered


def sent(post: Callable[[], T], again: bool) -> T:
    """What `post` gives; with `again`, of a second try where the connection broke. Raises Unanswered, and what `post` raises beside
    urllib3's errors."""
    try:
        return post()
    except urllib3.exceptions.ProtocolError as error:
        # A server may close an idle connection just as we write to it. Whether it read the request is unknown then.
        if not again:
            raise Unanswered(f"the connection to the node broke ({type(error).__name__})") from None
    except urllib3.exceptions.HTTPError as error:
        raise Unanswered(f"the node can not be reached ({type(error).__name__})") from None
    try:
        return post()
    except urllib3.exceptions.HTTPError as error:
        raise Unanswered(f"the node can not be reached ({type(error).__name__})") from None


def posted(
    pool: urllib3.PoolManager,
    url: str,
    data: bytes,
    most: int,
    patience: float,
    into: Callable[[bytes], None] | None = None,
) -> tuple[int, bytes]:
    """Status and body of the answer to a POST. The socket's timeout is for each read: a peer that sends a byte a second meets the
    deadline after `patience` seconds. With `into` the body goes there piece by piece, and none is given back.

    Raises TooMuch for a body of more than `most` bytes, Unavailable, what `into` raises, and urllib3's errors.
    """
    _unsearched.search()  # before the next answer needs the room
    deadline, size = time.monotonic() + patience, 0
    try:
        response = pool.request("POST", url, body=data, redirect=False, preload_content=False)
    except ForbiddenNodeIp:
        raise Unanswered("the node's name leads to an address where no node may be") from None
    pieces: list[bytes] = []
    keep = pieces.append if into is None else into
    try:
        while piece := response.read1(_PIECE):
            size += len(piece)
            if size > most:
                raise TooMuch(f"the node's answer is larger than {most >> 20} MB")
            if time.monotonic() > deadline:
                raise Unanswered("the node's answer does not end in time")
            keep(piece)
    except BaseException:
        response.close()
        raise
    finally:
        _unsearched.count(size)
    response.release_conn()
    return response.status, b"".join(pieces)


def secrets_of(url: str, hidden: Iterable[str] = ()) -> list[str]:
    """The parts of a URL that may be a provider's key, longest first: user, password and query values, whatever their length, and
    path segments, query names and host labels of 8 characters and more. `hidden` are among them."""
    parts = urlsplit(url)
    always = {parts.username or "", parts.password or "", *hidden}
    always |= {pair.partition("=")[2] or pair for pair in parts.query.split("&")}
    long = {*(parts.hostname or "").split("."), *re.split(r"[/?&=]", f"{parts.path}?{parts.query}")}
    found = always | {unquote(part) for part in always} | {unquote_plus(part) for part in always}
    found |= {part for part in long | {unquote(part) for part in long} if len(part) >= 8}
    return sorted(found - {""}, key=len, reverse=True)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """`text` without `secrets`. Very short ones are cut out where they stand by themselves: in the middle of a word they tell
    nothing, and the words are needed to know what the node means."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_PART:
            text = text.replace(secret, "***")
        else:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", "***", text)
    return text
