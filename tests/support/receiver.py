"""A merchant's webhook receiver: a real HTTP server on 127.0.0.1 that behaves, or misbehaves, as told."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Behaviour = Callable[[socket.socket], None]


@dataclass(frozen=True, slots=True)
class Received:
    line: str
    headers: dict[str, str]
    body: bytes


def answer(status: int, body: bytes = b"", *headers: str) -> Behaviour:
    """A complete answer."""
    lines = [f"HTTP/1.1 {status} Text", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return lambda connection: connection.sendall("\r\n".join(lines).encode() + body)


def drip(before: bytes, piece: bytes, every: float, times: int) -> Behaviour:
    """`before` at once, then `piece` again and again."""

    def run(connection: socket.socket) -> None:
        connection.sendall(before)
        for _ in range(times):
            time.sleep(every)
            connection.sendall(piece)

    return run


def reset(connection: socket.socket) -> None:
    """End the connection with RST instead of an answer (SO_LINGER with zero seconds)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass
class Receiver:
    """`behaviours` are used up one per request; the last one stays."""

    behaviours: list[Behaviour] = field(default_factory=lambda: [answer(200, b"thanks")])
    tls: ssl.SSLContext | None = None
    received: list[Received] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Receiver:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        if self.tls is not None:
            self.tls.sni_callback = lambda _socket, name, _context: self.server_names.append(name)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def behave(self, *behaviours: Behaviour) -> None:
        self.behaviours = list(behaviours)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # stopped
            self.connections += 1
            threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with connection:
            try:
                if self.tls is not None:
                    connection = self.tls.wrap_socket(connection, server_side=True)
                self.received.append(_read(connection))
                behaviour = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
                behaviour(connection)
            except OSError:
                pass  # the sender hung up: some tests want just that
            finally:
                connection.close()


def _read(connection: socket.socket) -> Received:
    stream = connection.makefile("rb")
    line = stream.readline().decode().strip()
    headers: dict[str, str] = {}
    while header := stream.readline().decode().strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return Received(line, headers, stream.read(int(headers.get("content-length", "0"))))
