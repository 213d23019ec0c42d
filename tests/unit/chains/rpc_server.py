"""An HTTP server on this machine that answers JSON-RPC as a test says."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

SECRET = "k3yOfTheProvider77"


@dataclass
class Answer:
    """What the server sends: a status and bytes; `close` ends the connection afterwards without a word in the headers."""

    body: bytes
    status: int = 200
    close: bool = False
    nothing: bool = False
    headers: str = ""


@dataclass
class Server:
    """Answers each request with `reply`, which gets what was asked. Notes the requests and the connections."""

    reply: Callable[[Any], Answer]
    asked: list[Any] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v3/{SECRET}?apikey={SECRET}"

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with contextlib.suppress(ConnectionError), client, client.makefile("rb") as stream:
            while first := stream.readline():
                length, head = 0, first
                while (line := stream.readline()) not in (b"\r\n", b""):
                    head += line
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                self.heads.append(head)
                self.asked.append(json.loads(stream.read(length)))
                answer = self.reply(self.asked[-1])
                if not answer.nothing:
                    status = f"HTTP/1.1 {answer.status} Said\r\n{answer.headers}Content-Length: {len(answer.body)}\r\n\r\n"
                    client.sendall(status.encode() + answer.body)
                if answer.close or answer.nothing:
                    return


@contextmanager
def server(reply: Callable[[Any], Answer]) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = Server(reply, port=listener.getsockname()[1])
        thread = threading.Thread(target=serving.serve, args=(listener,), daemon=True)
        thread.start()
        yield serving
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def result(request: Any, value: Any = "0x1") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "result": value}


def says(value: Any, status: int = 200, **more: Any) -> Answer:
    return Answer(json.dumps(value).encode(), status, **more)
