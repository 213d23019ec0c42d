"""Lambda: runs deployed functions in processes of their own, with the package, handler, settings, memory and time that AWS has of
each, and nothing of this checkout.

A process serves one event at a time. It ends when its function was given other code or other settings, at its time limit, and
when it fails to start; the next event has a new one.
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from infra.local import recursion
from infra.local.aws import ENVIRONMENT, REGION
from infra.rehearse.deployed import Deployed, deployed_function
from infra.rehearse.packages import Packages

AT_ONCE = 2
"""Processes of one function: a developer's machine has few cores."""
INIT_SECONDS = 10.0
"""What Lambda gives a function for its imports; then it begins again, within the event's time.
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html#runtimes-lifecycle-ib"""
PATIENCE = 4.0
"""How much longer a call may take here than on Lambda, where each function has a processor of its own. A function is told its true
limit, and may use the processor no longer than that."""
ANSWER = 6 * 1024 * 1024
"""Bytes of an answer. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")


class FunctionFailed(Exception):
    """The function raised, did not start, or took too long."""


@dataclass(frozen=True, slots=True)
class World:
    """What functions meet beside AWS: their folder, the port where AWS is, and names with a public address and the port of this
    machine that answers for them; the file with the certificates that are trusted."""

    folder: Path
    port: int
    names: dict[str, tuple[str, int]]
    trusted: str | None = None


@dataclass
class Figures:
    """What was seen of one function."""

    calls: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    """By what was said."""
    starts: int = 0
    memory_mb: float = 0.0
    memory_limit: int = 0
    init_seconds: float = 0.0
    codes: dict[str, int] = field(default_factory=dict)
    """Calls by the checksum of the code that was called."""


class Process:
    """One execution environment."""

    def __init__(self, deployed: Deployed, task: Path, world: World, log: Path) -> None:
        self.deployed = deployed
        own = world.folder / f"{deployed.name}-{secrets.token_hex(4)}"
        own.mkdir()
        with log.open("ab") as said:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [*without_privileges(), python(), "-I", "-S", str(_BOOTSTRAP)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                cwd=task,
                env=_environment(deployed, task, own, world),
            )
        self._in, self._out = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        self._left = b""
        began = time.monotonic()
        self._send({"task": str(task), "handler": deployed.handler, "aws": world.port, "names": world.names})
        answer = self._answer(time.monotonic() + INIT_SECONDS * PATIENCE)
        self.init_seconds = time.monotonic() - began
        self.memory_mb: float = answer["memory_mb"]
        self._cpu: float = answer["cpu"]
        if "ready" not in answer:
            self.end()
            raise FunctionFailed(f"{deployed.name} does not start: {answer['error']}")

    def call(self, event: Any, invocation: int) -> Any:
        """The function's answer to an event. Raises FunctionFailed; after its time is up the process has ended."""
        request = str(uuid.uuid4())
        trace = f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)};Parent={secrets.token_hex(8)};Sampled=0"
        trace += f";Lineage={secrets.token_hex(4)}:{invocation}"
        deployed = self.deployed
        self._send(
            {
                "event": event,
                "request": request,
                "arn": deployed.arn,
                "seconds": deployed.seconds,
                "ends": deployed.seconds * PATIENCE,
                "trace": trace,
            }
        )
        answer = self._answer(time.monotonic() + deployed.seconds * PATIENCE)
        before, self._cpu = self._cpu, answer["cpu"]
        self.memory_mb = answer["memory_mb"]
        if self._cpu - before > deployed.seconds:
            raise FunctionFailed(
                f"{deployed.name}: it took {self._cpu - before:.0f} seconds of a processor, and has {deployed.seconds:.0f}"
            )
        if "error" in answer:
            raise FunctionFailed(f"{deployed.name}: {answer['error']}")
        return answer["answer"]

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """End it at once, as Lambda does."""
        self._process.kill()
        self._process.wait()
        self._out.close()
        with contextlib.suppress(BrokenPipeError):  # what was not sent any more
            self._in.close()

    def _send(self, content: dict[str, Any]) -> None:
        try:
            self._in.write(json.dumps(content).encode() + b"\n")
            self._in.flush()
        except OSError as error:
            raise FunctionFailed(f"{self.deployed.name}: its process has ended") from error

    def _answer(self, deadline: float) -> dict[str, Any]:
        stream = self._out.fileno()
        while b"\n" not in self._left:
            if not select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.end()
                raise FunctionFailed(f"{self.deployed.name}: its time is up")
            part = os.read(stream, 1 << 20)
            if not part:
                self.end()
                raise FunctionFailed(f"{self.deployed.name}: its process ended by itself")
            self._left += part
            if len(self._left) > ANSWER:
                self.end()
                raise FunctionFailed(f"{self.deployed.name}: its answer is larger than 6 MB")
        line, _, self._left = self._left.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


class Functions:
    """All functions. Safe for threads."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.packages = Packages(world.folder)
        self.figures: dict[str, Figures] = {}
        self._idle: dict[str, list[Process]] = {}
        self._busy: set[Process] = set()
        self._free: dict[str, threading.Semaphore] = {}
        self._lock = threading.Lock()

    def call(self, name: str, event: Any) -> Any:
        """Have a function answer an event. Raises FunctionFailed; LookupError where there is none of that name."""
        with self._lock:
            free = self._free.setdefault(name, threading.Semaphore(AT_ONCE))
            figures = self.figures.setdefault(name, Figures())
        with free:
            try:
                return self._call(name, event, figures)
            except FunctionFailed as error:
                said = str(error)[:2000]
                figures.failures[said] = figures.failures.get(said, 0) + 1
                raise

    def log(self, name: str) -> Path:
        """What a function printed."""
        return self.world.folder / f"{name}.log"

    def end(self) -> None:
        """End all processes."""
        with self._lock:
            every = [*self._busy, *(each for idle in self._idle.values() for each in idle)]
            self._idle.clear()
        for process in every:
            process.end()

    def _call(self, name: str, event: Any, figures: Figures) -> Any:
        deployed = deployed_function(name)
        if deployed.stopped:
            raise FunctionFailed(f"{name} is stopped: TooManyRequestsException")
        process = self._process(deployed, figures)
        figures.calls += 1
        figures.codes[deployed.code] = figures.codes.get(deployed.code, 0) + 1
        figures.memory_limit = deployed.memory
        try:
            # A function that may call itself without end is not counted (PutFunctionRecursionConfig).
            answer = process.call(event, 1 if deployed.circles else max(1, recursion.invocation()))
        finally:
            figures.memory_mb = max(figures.memory_mb, process.memory_mb)
            with self._lock:
                self._busy.discard(process)
                if process.alive:
                    self._idle.setdefault(name, []).append(process)
        return answer

    def _process(self, deployed: Deployed, figures: Figures) -> Process:
        """An idle process of this version, or a new one; those of other versions end."""
        with self._lock:
            idle = self._idle.pop(deployed.name, [])
            fit = [each for each in idle if each.deployed.version == deployed.version and each.alive]
            taken = fit[-1] if fit else None
            self._idle[deployed.name] = fit[:-1]
            if taken is not None:
                self._busy.add(taken)
        for each in idle:
            if each not in fit:
                each.end()
        if taken is not None:
            return taken
        package = self.packages.of(deployed.code, deployed.content)
        made = Process(deployed, package, self.world, self.log(deployed.name))
        figures.starts += 1
        figures.init_seconds = max(figures.init_seconds, made.init_seconds)
        with self._lock:
            self._busy.add(made)
        return made


def python() -> str:
    """The Python that runs functions: this one, without what is installed into its environment."""
    return str(getattr(sys, "_base_executable", sys.executable))


@functools.cache
def without_privileges() -> list[str]:
    """What a command begins with, so that root, too, can not write what is read-only; nothing where no program does that."""
    program = shutil.which("setpriv")
    if os.geteuid() != 0 or program is None:
        return []
    command = [program, "--bounding-set=-all", "--inh-caps=-all"]
    tried = subprocess.run([*command, python(), "-I", "-S", "-c", "import json"], capture_output=True, check=False)
    return command if tried.returncode == 0 else []


def _environment(deployed: Deployed, task: Path, own: Path, world: World) -> dict[str, str]:
    """The function's own variables, those that Lambda sets, and of this machine where AWS is and whom to trust.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    """
    of_lambda = {
        "_HANDLER": deployed.handler,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_LAMBDA_FUNCTION_NAME": deployed.name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(deployed.memory),
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_ACCESS_KEY_ID": deployed.name,
        "AWS_SECRET_ACCESS_KEY": ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
        "AWS_SESSION_TOKEN": ENVIRONMENT["AWS_SESSION_TOKEN"],
        "LANG": "en_US.UTF-8",
        "LAMBDA_TASK_ROOT": str(task),
        "LD_LIBRARY_PATH": str(task / "lib"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TZ": ":UTC",
        # No folder that can be written, as /home/sbx_user… on Lambda.
        "HOME": str(task / "home"),
    }
    here = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{world.port}", "TMPDIR": str(own), "AWS_EC2_METADATA_DISABLED": "true"}
    if world.trusted is not None:
        here["SSL_CERT_FILE"] = world.trusted
    return {**deployed.variables, **of_lambda, **here}
