"""The local stack as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Running:
    """One `python -m infra.local.run`, or another module that does the same."""

    def __init__(self, folder: Path, port: int, module: str = "infra.local.run", **environment: str) -> None:
        self.folder, self.port = folder, port
        self.began = time.monotonic()
        variables = {**os.environ, "PORT": str(port), "RUNTIME_FOLDER": str(folder), **environment}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_up(self) -> dict[str, Any]:
        """What runtime-<port>.json says, once it is there."""
        while not self.own.exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() - self.began < 180
            time.sleep(0.02)
        content: dict[str, Any] = json.loads(self.own.read_text())
        return content

    def printed(self) -> list[str]:
        """The lines of the welcome."""
        assert self.process.stdout is not None
        lines: list[str] = []
        while not any("getByExternalId" in line for line in lines):
            lines.append(self.process.stdout.readline().rstrip("\n"))
        return lines

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Exit code, and what it wrote to stderr. Raises TimeoutExpired where it does not end."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors

    @property
    def own(self) -> Path:
        return self.folder / f"runtime-{self.port}.json"

    def kill(self) -> None:
        """End it by force, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
