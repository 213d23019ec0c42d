"""The receivers that docs/webhooks.md links, as processes of their own, with the commands that the document gives."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from infra.local.keeper import find_node_js, free_port
from infra.local.php import find_php

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"
LANGUAGES = ("python", "js", "php")
SUFFIXES = {"python": "py", "js": "js", "php": "php"}
_RECEIVER = r"\[receiver\.%s\]\(([^)]+)\), started with `([^`]+)`"
SECONDS = 20
"""For one to listen, on a machine that has a lot to do."""


def command_and_program(language: str) -> tuple[list[str], Path]:
    """What the document says of the receiver in `language`: the words of its command, and the file that it links."""
    ((linked, command),) = re.findall(_RECEIVER % SUFFIXES[language], DOCUMENT.read_text(encoding="utf-8"))
    program = DOCUMENT.parent / linked
    words = shlex.split(command)
    if DOCUMENT.parents[1] / words[-1] != program:
        raise ValueError(f"{words[-1]} is not what the document links")
    return words, program


class Documented:
    """The receiver in `language` with `secret`, on `port` or a free one. Listens when made; `stop` it, or use it in a `with`.

    A copy of its code runs in `folder`, which it makes. Raises NodeMissing.
    """

    def __init__(self, language: str, secret: str, folder: Path, port: int | None = None) -> None:
        self.port = port or free_port()
        words, source = command_and_program(language)
        command = [word.replace("9000", str(self.port)) for word in words[:-1] if not re.match(r"[A-Z_]+=", word)]
        given = {name for name, _, _ in (word.partition("=") for word in words if re.match(r"[A-Z_]+=", word))}
        program, environment = program_of(language)
        folder.mkdir(parents=True)
        shutil.copy(source, folder)
        values = {"PORT": str(self.port), "WEBHOOK_SECRET": secret}
        self._printed = folder / "printed"
        with self._printed.open("wb") as printed, (folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                [program, *command[1:], source.name],
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


def program_of(language: str) -> tuple[str, dict[str, str]]:
    """What runs a program in `language`, and what it needs in its environment. Raises NodeMissing."""
    if language == "php":
        program, environment = find_php()
        return str(program), environment
    return (sys.executable if language == "python" else find_node_js()), {}
