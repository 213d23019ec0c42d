"""bcoin as bitcoin's node in regtest: how it is found, installed and started. How it is made to answer as Core does: `bcoin.js`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.keeper import NODES_FOLDER, NodeMissing, find_node_js, installing, npm_install
from infra.local.utxo import UtxoNode

BCOIN_VERSION = "1.0.2"
_LAUNCHER = Path(__file__).with_name("bcoin.js")
# The one that bcoin asks for is compiled when it is installed, and nothing is compiled here.
_OVERRIDES = {"leveldown": "5.6.0"}


def find_bcoin(folder: Path = NODES_FOLDER) -> Path:
    """The folder with bcoin's `node_modules`: $BCOIN, or npm's package installed under `folder` (once, whoever else is at it).

    Raises NodeMissing.
    """
    if named := os.environ.get("BCOIN"):
        if not _has_bcoin(Path(named)):
            raise NodeMissing("$BCOIN names no folder with node_modules/bcoin")
        return Path(named)
    own = folder / "bcoin"
    with installing(folder):
        if not _has_bcoin(own):
            own.mkdir(exist_ok=True)
            npm_install(own, f"bcoin@{BCOIN_VERSION}", _OVERRIDES)
    return own


def _has_bcoin(folder: Path) -> bool:
    return (folder / "node_modules" / "bcoin" / "package.json").is_file()


class Bcoin(UtxoNode):
    """bcoin on a free port of 127.0.0.1, with a wallet that has coins. Starts at once; `stop` it, or use it in a `with`.

    Not as Core: no replacement by fee and no `testmempoolaccept`. Segwit is active after 432 blocks; `blocks` are mined at the
    start. Raises NodeMissing, and RuntimeError when it does not answer within 30 seconds.
    """

    name = "bcoin"
    slug = "bitcoin"

    def __init__(self, *, folder: Path | None = None, blocks: int = 440) -> None:
        self._blocks = blocks
        self._folder = folder or find_bcoin()
        self._program = find_node_js()
        self._start_somewhere(self._start, self._ready, seconds=120)

    def evict(self, txid: str) -> None:
        """Throw a transaction and what depends on it out of the mempool, as nodes do with what pays too little."""
        self.rpc.call("evictmempool", [txid])

    def _start(self, port: int) -> None:
        password = secrets.token_hex(16)
        self.url = f"http://node:{password}@127.0.0.1:{port}"
        self.rpc = JsonRpc(self.url)
        command = [self._program, str(_LAUNCHER), str(self._folder), str(port), str(self._blocks)]
        self._keep(command, {"BCOIN_PASSWORD": password})

    def _ready(self) -> bool | None:
        try:
            return self.rpc.call("getblockcount") is not None
        except (RpcError, Unavailable):
            return None  # it mines its first blocks (-28), or does not listen yet
