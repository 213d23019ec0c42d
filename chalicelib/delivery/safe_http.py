"""`delivery_attempts.Sender` over urllib3, for URLs that strangers chose (server-side request forgery, OWASP A10:2021).

The name is resolved once, every address is checked, and the connection is made to a checked address, so that a second
answer of the resolver can not redirect it. No redirects, no proxies from the environment, no connection is kept. One deadline
holds for everything together: resolving, connecting, TLS, sending, and an answer that comes byte by byte.
"""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from chalicelib.delivery import resolve
from chalicelib.delivery.guarded import GuardedSocket
from chalicelib.domain.webhooks.deliveries import ATTEMPT_SECONDS
from chalicelib.domain.webhooks.urls import default_port, url_problems
from chalicelib.usecases.webhooks.delivery_attempts import Answer

MAX_READ = 64 * 1024
"""Bytes of an answer that are read at most, headers included."""
CONNECT_SECONDS = 4.0
"""For one address to answer, and again for TLS, so that the next address still has its turn. Never beyond the deadline."""

log = logging.getLogger(__name__)

# It warns of malformed headers with the whole URL, and a receiver's path is often what keeps strangers out.
logging.getLogger("urllib3.connection").setLevel(logging.ERROR)


class _Failed(Exception):
    """No answer; the message is for the merchant."""


class _Https(HTTPSConnection):
    """TLS has the time that connecting left of the deadline (time.monotonic): urllib3 would give both the same time over again."""

    deadline = 0.0

    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        left = self.deadline - time.monotonic()
        if left <= 0:
            made.close()
            raise TimeoutError("deadline passed")
        made.settimeout(min(CONNECT_SECONDS, left))
        return made


class SafeHttpSender:
    """`allow_private` (the local stack) lets http and private addresses pass, never link-local or metadata ones. `tls` says which
    certificates are trusted."""

    def __init__(self, *, allow_private: bool = False, seconds: float = ATTEMPT_SECONDS, tls: ssl.SSLContext | None = None) -> None:
        self._allow_private = allow_private
        self._seconds = seconds
        self._tls = tls
        self._known: set[str] = set()

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """POST `body` to `url`. Raises nothing for faults of the receiver: they are in the answer.

        The status decides. When it has come in time, with its headers, what is missing of the answer's body (too long, too slow,
        broken off, nonsense) makes no failure of it: the receiver has said that it has the message. Headers that can not be read
        (more than 100, or past the limit of bytes) are no answer.
        """
        start = time.monotonic()
        try:
            status, beginning, retry_after = self._post(url, headers, body, start + self._seconds)
        except _Failed as failure:
            return Answer(None, b"", _ms_since(start), str(failure))
        return Answer(status, beginning, _ms_since(start), retry_after=retry_after)

    def _post(self, url: str, headers: Mapping[str, str], body: bytes, deadline: float) -> tuple[int, bytes, str | None]:
        # Looked at again although it was when registered: a setting, or a rule, may have become stricter since.
        problems = url_problems(url, allow_private=self._allow_private)
        if problems:
            raise _Failed("the URL is not allowed: " + "; ".join(problems))
        parts = urlsplit(url)
        connection = self._connect(parts, deadline)
        guarded = GuardedSocket(connection.sock, deadline, MAX_READ)
        try:
            connection.sock = guarded
            return self._exchange(connection, parts, headers, body)
        except (TimeoutError, urllib3.exceptions.TimeoutError):
            raise _Failed(f"no answer within {self._seconds:g} seconds") from None
        except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise _Failed(f"the connection broke, or the answer was not HTTP ({type(error).__name__})") from error
        except _Failed:
            raise
        except Exception as error:  # a receiver is not to choose what its attempt, and those beside it, come to
            self._tell_once(error)
            raise _Failed(f"the answer could not be read ({type(error).__name__})") from error
        finally:
            connection.close()
            guarded.hang_up()

    def _connect(self, parts: SplitResult, deadline: float) -> HTTPConnection:
        host, port = parts.hostname or "", parts.port or default_port(parts)
        problem = "no connection"
        for address in self._addresses(host, port, deadline):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            connection = self._connection(parts.scheme, host, address, port, deadline)
            failure = self._failure(connection)
            if failure is None:
                return connection
            connection.close()
            problem = failure
        raise _Failed(problem)

    def _addresses(self, host: str, port: int, deadline: float) -> Sequence[str]:
        """The addresses of the host that a connection may be made to. Raises _Failed where there is none."""
        try:
            return resolve.addresses(host, port, seconds=deadline - time.monotonic(), allow_private=self._allow_private)
        except resolve.NotAllowed:
            if self._allow_private:
                raise _Failed("the host has a link-local or metadata address") from None
            raise _Failed("the host does not have a public address") from None
        except resolve.NotFound:
            raise _Failed("the host's name does not resolve") from None

    def _failure(self, connection: HTTPConnection) -> str | None:
        """Why there is no connection; None: there is one."""
        try:
            connection.connect()
        except (ssl.SSLError, urllib3.exceptions.SSLError) as error:
            return f"TLS failed ({_tls_reason(error)})"
        except urllib3.exceptions.NewConnectionError:  # for urllib3 a kind of timeout, so it comes first
            return "no connection: refused or unreachable"
        except (TimeoutError, urllib3.exceptions.TimeoutError):
            return "no connection in time"
        except (OSError, urllib3.exceptions.HTTPError) as error:
            return f"no connection ({type(error).__name__})"
        except Exception as error:  # noqa: BLE001 - nothing that a receiver does is raised
            self._tell_once(error)
            return f"no connection ({type(error).__name__})"
        return None

    def _connection(self, scheme: str, host: str, address: str, port: int, deadline: float) -> HTTPConnection:
        seconds = max(0.001, min(CONNECT_SECONDS, deadline - time.monotonic()))  # 0 would mean: do not wait at all
        if scheme == "http":
            return HTTPConnection(address, port, timeout=seconds)
        if self._tls is None:
            self._tls = ssl.create_default_context()
        # Connected to the checked address; name indication and certificate are those of the host's name.
        made = _Https(
            address,
            port,
            timeout=seconds,
            ssl_context=self._tls,
            cert_reqs=ssl.CERT_REQUIRED,
            server_hostname=host,
            assert_hostname=None,
        )
        made.deadline = deadline
        return made

    def _exchange(
        self, connection: HTTPConnection, parts: SplitResult, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes, str | None]:
        """Status, body as far as it comes, and the header Retry-After."""
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sent = {"host": _host_header(parts), "connection": "close", **headers}
        connection.request("POST", target, body=body, headers=sent, preload_content=False, decode_content=False)
        answer = connection.getresponse()
        if answer.status < 200:
            raise _Failed(f"the answer has no final status ({answer.status})")
        return answer.status, self._read(answer), answer.headers.get("retry-after")

    def _read(self, answer: Any) -> bytes:
        """The body as far as it comes. Never unpacked: a small answer could be made to fill the memory."""
        pieces = []
        # Whatever ends it: the status has come, and it decides; the body is only shown.
        try:
            while piece := answer.read1(MAX_READ, decode_content=False):
                pieces.append(piece)
        except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError, ValueError):
            pass
        except Exception as error:  # noqa: BLE001 - nothing that a receiver does is raised
            self._tell_once(error)
        return b"".join(pieces)

    def _tell_once(self, error: Exception) -> None:
        """Its kind alone: what it says, or where it came from, could hold the URL, or what the receiver wants in the log."""
        kind = type(error).__name__
        if kind not in self._known:
            self._known.add(kind)
            log.warning("a receiver made an attempt end in %s; further ones are not logged", kind)


def _host_header(parts: SplitResult) -> str:
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, default_port(parts)) else f"{host}:{parts.port}"


def _tls_reason(error: Exception) -> str:
    return getattr(error, "verify_message", None) or getattr(error, "reason", None) or type(error).__name__


def _ms_since(start: float) -> int:
    return round((time.monotonic() - start) * 1000)
