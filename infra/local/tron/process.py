"""The node as a process of its own, for tests and `make run NODES=1`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import urllib3

ROOT = Path(__file__).resolve().parents[3]
# As for anvil (infra/local/nodes.py): the shell ends the node when our end of the pipe is gone, however that came about.
_KEEPER = '"$@" </dev/null & node=$!; exec >/dev/null; read -r _; kill $node 2>/dev/null; wait $node'


class Http:
    """The node's HTTP API: `call("wallet/getnowblock", {...})`. Raises RuntimeError with the answer where it is not 200."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool = urllib3.PoolManager(maxsize=8, timeout=30)

    def call(self, path: str, params: dict[str, Any] | None = None) -> Any:
        """POST `params` as JSON; the JSON answered."""
        answer = self._pool.request("POST", f"{self.url}/{path}", body=orjson.dumps(params or {}), retries=False)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.data.decode()[:500]}")
        return orjson.loads(answer.data)


class TronNode:
    """A Tron test node on a free port of 127.0.0.1. Starts at once; `stop` it, or use it in a `with`.

    With `block_seconds` it mines by itself, otherwise when asked and for every payment of the faucet. It has USDT at the contract
    address of the real network. Raises RuntimeError when it does not start.
    """

    def __init__(self, *, block_seconds: float = 0) -> None:
        command = [sys.executable, "-m", "infra.local.tron", "--port", "0", "--block-seconds", f"{block_seconds:g}"]
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=ROOT,
        )
        assert self._keeper.stdout is not None  # noqa: S101
        self.url = self._keeper.stdout.readline().decode().strip()
        self._keeper.stdout.close()
        if not self.url:
            self.stop()
            raise RuntimeError("the Tron test node does not start")
        self.http = Http(self.url)

    def call(self, path: str, **params: Any) -> Any:
        """One request: `call("wallet/getblockbynum", num=3)`."""
        return self.http.call(path, params)

    def mine(self, count: int = 1) -> int:
        """Append blocks; the number of the head."""
        return int(self.call("dev/mine", count=count)["number"])

    def faucet(self, address: str, amount: str | int, coin: str = "TRX") -> str:
        """Pay `amount` whole coins from the rich account; the transaction's id."""
        return str(self.call("dev/faucet", address=address, coin=coin, amount=str(amount))["txid"])

    def reorg(self, depth: int, *, remine: bool = False) -> int:
        """Replace the last blocks by another branch, one longer; the number of the head."""
        return int(self.call("dev/reorg", depth=depth, remine=remine)["number"])

    def token(self, **how: Any) -> str:
        """Deploy a TRC-20 token (see `dev.py`); its contract's address."""
        return str(self.call("dev/token", **how)["contract"])

    def stop(self) -> None:
        """End it and wait until it is gone. Safe to call twice."""
        assert self._keeper.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.close()
        try:
            self._keeper.wait(timeout=5)
        except subprocess.TimeoutExpired:
            # A group of its own, made above: nothing but the shell and this node is in it.
            os.killpg(self._keeper.pid, signal.SIGKILL)
            self._keeper.wait(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
