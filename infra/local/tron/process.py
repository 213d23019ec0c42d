"""The node as a process of its own, for tests and `make run NODES=1`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from infra.local.keeper import Kept

ROOT = Path(__file__).resolve().parents[3]


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


class TronNode(Kept):
    """A Tron test node on a free port of 127.0.0.1. Starts at once; `stop` it, or use it in a `with`.

    With `block_seconds` it mines by itself, otherwise when asked and for every payment of the faucet. It has USDT at the contract
    address of the real network. Raises RuntimeError when it does not answer within 10 seconds.
    """

    name = "the Tron test node"

    def __init__(self, *, block_seconds: float = 0) -> None:
        self._block_seconds = block_seconds
        self._start_somewhere(self._start, self._ready)

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

    def _start(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.http = Http(self.url)
        options = ["--port", str(port), "--block-seconds", f"{self._block_seconds:g}"]
        self._keep([sys.executable, "-m", "infra.local.tron", *options], {"PYTHONPATH": str(ROOT)})

    def _ready(self) -> bool | None:
        try:
            # Another node may have taken the port in between.
            return bool(self.call("dev/pid")["pid"] == self.pid)
        except HTTPError:
            return None
