"""A socket with a deadline and a limit. Sockets time out per operation: a peer that sends a byte a second never meets that."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class GuardedSocket:
    """What http.client and urllib3 need of a socket, over `sock`: nothing after `deadline` (time.monotonic), and the
    connection seems to end once `limit` bytes were read. TimeoutError after the deadline.
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
        return io.BufferedReader(_Reader(self))

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
