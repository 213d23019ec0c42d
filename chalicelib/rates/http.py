"""One bounded GET of JSON from a provider: no redirects, no retries, limited bytes and seconds, numbers exact."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NoReturn

import urllib3

from chalicelib.encoding.json_depth import deeper_than
from chalicelib.usecases.ports.failures import Unavailable

MOST_BYTES = 2 * 1024 * 1024
MOST_DEPTH = 32
SECONDS = 10.0
"""For the whole answer."""
_CHUNK = 64 * 1024


class JsonGet:
    """`url` is the base, without the path. `headers` may hold a provider's key: they never get into an error."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, seconds: float = SECONDS) -> None:
        if not url.startswith(("https://", "http://")):
            raise ValueError("the URL of a provider of rates must be http:// or https://")
        self._url, self._seconds = url.rstrip("/"), seconds
        timeout = urllib3.Timeout(connect=min(3.0, seconds), read=seconds)
        sent = {"Accept": "application/json", "User-Agent": "crypto-gateway", **(headers or {})}
        self._pool = urllib3.PoolManager(headers=sent, retries=False, timeout=timeout)

    def get(self, path: str, query: Mapping[str, str]) -> Any:
        """The parsed answer, numbers with a point as Decimal. Raises Unavailable for any other answer."""
        until = time.monotonic() + self._seconds
        try:
            response = self._pool.request(
                "GET", self._url + path, fields=dict(query), redirect=False, preload_content=False, decode_content=False
            )
            try:
                if response.status != 200:
                    raise Unavailable(f"answers HTTP {response.status}")
                body = self._body(response, until)
            finally:
                response.close()
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"can not be reached ({type(error).__name__})") from None
        try:
            text = body.decode("utf-8")
            if deeper_than(text, MOST_DEPTH):
                raise ValueError("too deep")
            return json.loads(text, parse_float=Decimal, parse_constant=_no_number)
        except (ValueError, ArithmeticError) as error:
            raise Unavailable("answers what is no JSON") from error

    def _body(self, response: urllib3.BaseHTTPResponse, until: float) -> bytes:
        body = b""
        while chunk := response.read1(_CHUNK):
            body += chunk
            if len(body) > MOST_BYTES:
                raise Unavailable(f"answers more than {MOST_BYTES} bytes")
            if time.monotonic() > until:
                raise Unavailable("answers too slowly")
        return body


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")
