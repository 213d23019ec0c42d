"""anvil, the node of the EVM networks: how it is found, installed and started."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from chalicelib.chains.rpc import JsonRpc
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.keeper import NODES_FOLDER, Kept, NodeMissing, installing, npm_install

ANVIL_VERSION = "1.7.1"


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
    with installing(folder):
        program = _installed(folder)
        if program is None:
            npm_install(folder, f"@foundry-rs/anvil@{ANVIL_VERSION}")
            program = _installed(folder)
    if program is None:
        raise NodeMissing(f"npm has no anvil {ANVIL_VERSION} for {sys.platform} on {platform.machine()}; set $ANVIL to one")
    return program


def _installed(folder: Path) -> Path | None:
    # npm installs the package of the machine's own platform only; its launcher (a Node.js script) is of no use to us.
    found = sorted(folder.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"))
    return found[0] if found else None


class Anvil(Kept):
    """One anvil on a free port of 127.0.0.1. Starts at once; `stop` it, or use it in a `with`.

    `chain_id` as in the catalogue. With `block_time` (seconds) it mines by itself, and when asked by `mine`; with `mixed` also
    whenever a transaction arrives, as it does without a `block_time`. It remembers the states of the last `history` blocks, those
    that were taken back among them: older ones can not be reorganised. Raises NodeMissing, and RuntimeError when it does not
    answer within 10 seconds.
    """

    name = "anvil"

    def __init__(
        self,
        chain_id: int,
        *,
        block_time: float | None = None,
        mixed: bool = False,
        program: Path | None = None,
        history: int | None = None,
    ) -> None:
        self.chain_id = chain_id
        options = ["--host", "127.0.0.1", "--chain-id", str(chain_id), "--silent", "--accounts", "3", "--balance", "1000000000"]
        if block_time is not None:
            options += ["--block-time", f"{block_time:g}", *(["--mixed-mining"] if mixed else [])]
        if history is not None:
            options += ["--prune-history", str(history)]
        self._command = [str(program or find_anvil()), *options]
        self._start_somewhere(self._start, self._ready)

    def _start(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.rpc = JsonRpc(self.url)
        self._keep([*self._command, "--port", str(port)])

    def _ready(self) -> bool | None:
        try:
            # False where something else answers on its port.
            return int(self.rpc.call("eth_chainId"), 16) == self.chain_id
        except Unavailable:
            return None


def mine(rpc: JsonRpc, count: int = 1) -> None:
    """Mine `count` blocks at once."""
    rpc.call("anvil_mine", [hex(count)])
