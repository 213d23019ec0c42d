"""A merchant's receiver in a process of its own, on its own core where there is one: it answers 200, at once or late.

Run as a script it serves until its standard input ends. The path says after how many milliseconds it answers: `/100/hook`. It
keeps when the first byte of each request came; `/seen` gives that, and forgets it. Times are of CLOCK_MONOTONIC, which all
processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[2]
NAME = "shop.example"


@dataclass(frozen=True, slots=True)
class Receiver:
    """Ports for http and https, and the certificate to trust."""

    port: int
    tls_port: int
    certificate: str

    def url(self, milliseconds: int = 0, *, part: str = "hook") -> str:
        return f"http://127.0.0.1:{self.port}/{milliseconds}/{part}"

    def seen(self) -> list[tuple[str, float]]:
        """Event id and time of the first byte (seconds, monotonic) of what came since the last look."""
        with urlopen(f"http://127.0.0.1:{self.port}/seen", timeout=20) as answer:
            return [(id, at) for id, at in json.load(answer)]


@contextmanager
def receiver() -> Iterator[Receiver]:
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "cert.pem"
        _make_certificate(certificate)
        child = subprocess.Popen(
            [sys.executable, __file__, str(certificate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield Receiver(*json.loads(child.stdout.readline()), str(certificate))
        finally:
            child.stdin.close()
            child.wait(timeout=20)


def _make_certificate(path: Path) -> None:
    """An ECDSA certificate, as most sites have, and its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))


class _Seen:
    def __init__(self) -> None:
        self.all: list[tuple[str, float]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, until it ends or asks for that."""
        try:
            while first := await reader.read(1):
                at = time.monotonic()
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
                await reader.readexactly(int(headers.get("content-length", "0")))
                body = b""
                path = head.split(" ", 2)[1]
                if path == "/seen":
                    body, self.all = json.dumps(self.all).encode(), []
                else:
                    self.all.append((headers.get("webhook-id", ""), at))
                    wait = int(path.split("/")[1])
                    if wait:
                        await asyncio.sleep(wait / 1000)
                ends = headers.get("connection") == "close"
                told = "Connection: close\r\n" if ends else ""
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{told}\r\n".encode() + body)
                await writer.drain()
                if ends:
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _serve(certificate: str) -> None:
    seen = _Seen()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    plain = await asyncio.start_server(seen.serve, "127.0.0.1", 0, backlog=1024)
    secure = await asyncio.start_server(seen.serve, "127.0.0.1", 0, backlog=1024, ssl=tls)
    print(json.dumps([server.sockets[0].getsockname()[1] for server in (plain, secure)]), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    asyncio.run(_serve(sys.argv[1]))
