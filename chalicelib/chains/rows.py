"""Streamed parsing of a long list in an answer, some rows at a time: only the rows that the caller keeps stay in memory.

Whatever gas pays for is in such a list: one block may have 80,000 logs, which are 50 MB of JSON and 150 MB once it is parsed.

The rows have to be flat objects, as logs are. The text is cut between two of them, and every part has to be JSON by itself: so what
is read is what the whole says. An answer that is cut otherwise, or spelled otherwise, is as good as no JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

Thin = Callable[[list[Any]], list[Any]]
"""What is kept of some rows."""

_AT_ONCE = 1 << 20
"""Bytes of rows that are parsed at once."""
_MOST_HELD = 64 << 20
"""Bytes of a row, or of what stands before the list."""
_END = re.compile(rb"\}\s*\]")


class Rows:
    """An answer of JSON-RPC whose `result`, or the list `under` that name in it, has the rows. Feed it, then take `answer`."""

    def __init__(self, thin: Thin, under: str | None = None) -> None:
        self._thin, self._under = thin, under
        self._begin = re.compile(rb'"%b"\s*:\s*\[(?=\s*\{)' % (under or "result").encode())
        self._head: bytes | None = None
        self._rest = bytearray()
        self._kept: list[Any] = []

    def feed(self, piece: bytes) -> None:
        """Raises ValueError where a part is no JSON or a row too large, and what `thin` raises."""
        self._rest += piece
        if self._head is None and (begin := self._begin.search(self._rest)) is not None:
            self._head = bytes(self._rest[: begin.end()])
            del self._rest[: begin.end()]
        if self._head is not None and len(self._rest) >= _AT_ONCE and (cut := self._rest.rfind(b"},{")) > 0:
            self._keep(self._rest[: cut + 1])
            del self._rest[: cut + 2]
        if len(self._rest) > _MOST_HELD:
            raise ValueError("a row is larger than any")

    def answer(self) -> Any:
        """The answer, with the kept rows in place of all. Raises ValueError where it is no JSON."""
        if self._head is None:
            return thinned(orjson.loads(self._rest), self._thin, self._under)
        end = _END.search(self._rest)
        if end is None:
            raise ValueError("a list of rows does not end")
        self._keep(self._rest[: end.start() + 1])
        told = orjson.loads(self._head + self._rest[end.start() + 1 :])
        around, key = (told, "result") if self._under is None else (told["result"], self._under)
        if around[key] != []:
            raise ValueError("a list of rows is not where it should be")
        around[key] = self._kept
        return told

    def _keep(self, rows: bytearray) -> None:
        self._kept += self._thin(orjson.loads(b"[" + rows + b"]"))


def thinned(told: Any, thin: Thin, under: str | None = None) -> Any:
    """An answer that was read whole, with the rows that `thin` keeps; unchanged where there are none."""
    around, key = (told, "result") if under is None else (told.get("result") if isinstance(told, dict) else None, under)
    if isinstance(around, dict) and isinstance(around.get(key), list):
        around[key] = thin(around[key])
    return told
