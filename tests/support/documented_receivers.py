"""The receivers of docs/webhooks.md as processes of their own, with the commands that the document gives."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

from infra.local.keeper import find_node_js, free_port
from infra.local.php import find_php

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"
LANGUAGES = ("python", "js", "php")
_RECEIVER = r"started with `([^`]+)`:\n```%s\n(.*?)^```"
SECONDS = 20
"""For one to listen, on a machine that has a lot to do."""


def command_and_code(language: str) -> tuple[list[str], str]:
    """What the document says of the receiver in `language`: the words of its command, and its code."""
    ((command, code),) = re.findall(_RECEIVER % language, DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return shlex.split(command), code


class Documented:
    """The receiver in `language` with `secret`, on `port` or a free one. Listens when made; `stop` it, or use it in a `with`.

    Its code lies in `folder`, of which it makes one of its own. Raises NodeMissing.
    """

    def __init__(self, language: str, secret: str, folder: Path, port: int | None = None) -> None:
        self.port = port or free_port()
        words, code = command_and_code(language)
        command = [word.replace("9000", str(self.port)) for word in words if not re.match(r"[A-Z_]+=", word)]
        given = {name for name, _, _ in (word.partition("=") for word in words if re.match(r"[A-Z_]+=", word))}
        program, environment = _program(language)
        folder.mkdir(parents=True)
        (folder / command[-1]).write_text(code, encoding="utf-8")
        values = {"PORT": str(self.port), "WEBHOOK_SECRET": secret}
        self._printed = folder / "printed"
        with self._printed.open("wb") as printed, (folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                [program, *command[1:]],
                cwd=folder,
                env={**os.environ, **environment, **{name: values[name] for name in given}},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=errors,
            )
        self._wait(folder / "errors")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def handled(self) -> list[str]:
        """What it has printed, line by line: it does so before it answers."""
        return self._printed.read_text(encoding="utf-8").splitlines()

    def stop(self) -> None:
        """End it. Safe to call twice."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self) -> Documented:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self, errors: Path) -> None:
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.01)
        self.stop()
        raise RuntimeError(f"the receiver does not listen: {errors.read_text()[-500:]}")


def _program(language: str) -> tuple[str, dict[str, str]]:
    if language == "php":
        program, environment = find_php()
        return str(program), environment
    return (sys.executable if language == "python" else find_node_js()), {}
