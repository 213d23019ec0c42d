"""The operator: clones the project, and runs its commands in the clone as they are written in docs/operating.md."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.aws import ENVIRONMENT
from infra.rehearse.money import Failed

STAGE = "prod"
SECONDS = 900.0
_PINS = ("requirements.txt", "requirements-dev.txt")


@dataclass
class Operator:
    """Runs commands in a checkout with an environment's Python; `port` is where AWS is."""

    checkout: Path
    python: str
    port: int
    wheels: Path | None = None
    ran: list[tuple[str, float]] = field(default_factory=list)
    """Commands, with the seconds that each took."""

    def command(self, *words: str) -> str:
        """`python -m infra.cli --stage prod` with these words; what it wrote to its standard output, where records are.
        Raises Failed with all that it said."""
        return self.run([self.python, "-m", "infra.cli", "--stage", STAGE, *words], f"CLI {shlex.join(words)}")

    def run(self, command: list[str], shown: str) -> str:
        """Run a program in the checkout. Raises Failed."""
        print(f"  $ {shown}", flush=True)
        began = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.checkout,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        seconds = time.monotonic() - began
        self.ran.append((shown, seconds))
        said = done.stdout + done.stderr
        print(f"    {_last(done.stdout or done.stderr)}  ({seconds:.1f} s)", flush=True)
        for line in done.stderr.splitlines():
            print(f"      {line}", flush=True)
        if done.returncode != 0:
            raise Failed(f"{shown} has exit code {done.returncode}:\n{said[-6000:]}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """This machine's, without settings of the service and with AWS's place and credentials instead of its own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "GIT_", "PYTHON"))}
        pip = {} if self.wheels is None else {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        return {**kept, **ENVIRONMENT, **pip, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}


def url_of(said: str) -> str:
    """The API's address in what `deploy` said. Raises Failed."""
    found = re.search(r"https://[a-z0-9]+\.execute-api\.\S+", said)
    if found is None:
        raise Failed(f"deploy named no URL:\n{said[-3000:]}")
    return found[0]


def clone(source: Path, target: Path) -> str:
    """A clean clone of the commit that is checked out in `source`; the commit."""
    commit = git(source, "rev-parse", "HEAD").strip()
    git(source, "clone", "--quiet", "--local", "--no-checkout", str(source), str(target))
    git(target, "checkout", "--quiet", "-B", "rehearsal", commit)
    return commit


def uncommitted(source: Path) -> list[str]:
    """What the working tree has that no commit has, and a clone therefore has not."""
    return git(source, "status", "--porcelain").splitlines()


def git(folder: Path, *words: str) -> str:
    """Run git. Raises Failed."""
    who = ("-c", "user.name=Rehearsal", "-c", "user.email=rehearsal@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"git {shlex.join(words)}: {done.stderr.strip()}")
    return done.stdout


def same_pins(one: Path, other: Path) -> bool:
    """Whether two checkouts pin the same versions, so that one's environment is the other's."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in _PINS)


def wheels_of(checkout: Path, kept: Path) -> Path | None:
    """Where the tests of packaging keep the wheels of what is pinned (`tests/deploy/packing.py`), None where they have not run:
    pip then asks its index, as for an operator."""
    pinned = (checkout / _PINS[0]).read_bytes() + sys.version.encode()
    found = kept / hashlib.sha256(pinned).hexdigest()[:16]
    return found if found.is_dir() else None


def make_environment(checkout: Path, folder: Path) -> str:
    """A fresh environment with what a checkout pins; its Python. Raises Failed."""
    made = Operator(checkout, sys.executable, 0)
    made.run([getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(folder)], "python3 -m venv .venv")
    python = str(folder / "bin" / "python")
    made.run([python, "-m", "pip", "install", "-qq", "-r", "requirements-dev.txt"], "pip install -r requirements-dev.txt")
    return python


def _last(said: str) -> str:
    text = " ".join(said.split()) if said.startswith("{") else said
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:140] if lines else "(nothing said)"
