"""A socket with a deadline and a limit. Sockets time out per operation: a peer that sends a byte a second never meets that."""

from __future__ import annotations

import io
import re
import socket
import time
from typing import Any

_INFORMATIONAL = re.compile(rb"HTTP/\S+[ \t]+1(?!01)[0-9]{2}(?![0-9])")
_BARE_CR = re.compile(rb"\r(?!\n)")


class GuardedSocket:
    """The socket interface of http.client and urllib3, over `sock`: nothing after `deadline` (time.monotonic), and the connection
    seems to end once `limit` bytes were read. TimeoutError after the deadline.
    """

    def __init__(self, sock: socket.socket, deadline: float, limit: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self._left = limit

    def settimeout(self, seconds: float | None) -> None:
        """Without effect: the deadline decides."""

    def sendall(self, data: Any) -> None:
        # One sendall has one timeout for all of it (docs.python.org/3/library/socket.html#socket.socket.sendall).
        self._sock.settimeout(self._remaining())
        self._sock.sendall(data)

    def receive(self, buffer: memoryview) -> int:
        """Read into `buffer`: how many bytes, 0 at the end or at the limit."""
        size = min(len(buffer), self._left)
        if size == 0:
            return 0
        self._sock.settimeout(self._remaining())
        count = self._sock.recv_into(buffer[:size])
        self._left -= count
        return count

    def makefile(self, mode: str, *args: Any, **kwargs: Any) -> io.BufferedReader:
        """For reading only, which is all that http.client asks for."""
        if mode != "rb":
            raise ValueError(f"mode {mode!r}: only rb")
        return _Lines(_Reader(self))

    def close(self) -> None:
        """Without effect: http.client closes before the body is read where the answer says "Connection: close"."""

    def hang_up(self) -> None:
        """Close the connection."""
        self._sock.close()

    def _remaining(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("deadline passed")
        return left


class _Reader(io.RawIOBase):
    def __init__(self, guarded: GuardedSocket) -> None:
        self._guarded = guarded

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._guarded.receive(memoryview(buffer))


class _Lines(io.BufferedReader):
    """Gives http.client the lines of an answer as RFC 9110 and 9112 want them read, which it does not do itself.

    Informational answers before the final one are skipped, however many the limits of bytes and time let pass (RFC 9110 section
    15.2; http.client skips 100 alone). 101 is none of them: nobody asked for another protocol. A CR without LF becomes a space
    (RFC 9112 section 2.2): http.client's parser takes it for the end of a line, and what follows an empty one for a message
    within the message, as deep as the receiver likes.
    """

    _final = False

    def readline(self, size: int | None = -1, /) -> bytes:
        line = self._line(size)
        while not self._final and _INFORMATIONAL.match(line):
            while self._line(size) not in (b"\r\n", b"\n", b""):
                pass
            line = self._line(size)
        self._final = True
        return line

    def _line(self, size: int | None) -> bytes:
        return _BARE_CR.sub(b" ", super().readline(size))
