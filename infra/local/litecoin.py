"""Litecoin Core in regtest: how it is found, installed (without root, from Debian's archive) and started."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path

from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.usecases.ports.failures import Unavailable
from infra.local import debian
from infra.local.keeper import NODES_FOLDER, NodeMissing, installing
from infra.local.utxo import UtxoNode

# /usr/bin/litecoind of Debian is a script round this one.
_DEBIANS = Path("/usr/lib/litecoin/litecoind")

_CONFIGURATION = """regtest=1
[regtest]
server=1
listen=0
connect=0
dnsseed=0
rpcbind=127.0.0.1
rpcallowip=127.0.0.1
rpcport={port}
rpcuser=node
rpcpassword={password}
txindex=1
fallbackfee=0.0002
vbparams=mweb:-2:0
mempoolreplacement=1
walletrbf=1
keypool=20
printtoconsole=0
"""


def find_litecoind(folder: Path = NODES_FOLDER) -> Path:
    """The litecoind program: $LITECOIND, Debian's, the PATH's, or Debian's package unpacked in `folder` (once, whoever is at it).

    Raises NodeMissing.
    """
    if named := os.environ.get("LITECOIND"):
        if not Path(named).is_file():
            raise NodeMissing("$LITECOIND names no file")
        return Path(named)
    if _DEBIANS.is_file():
        return _DEBIANS
    if on_path := shutil.which("litecoind"):
        return Path(on_path)
    program = folder / "litecoin" / _DEBIANS.relative_to("/")
    with installing(folder):
        if not program.is_file():
            try:
                debian.unpack(folder, "litecoin", "litecoind")
            except NodeMissing as error:
                raise NodeMissing(f"litecoind is not here, and {error}; set $LITECOIND to one (0.21 or newer)") from error
    if not program.is_file():
        raise NodeMissing("Debian's package litecoind has no litecoind; set $LITECOIND to one")
    return program


class Litecoin(UtxoNode):
    """Litecoin Core on a free port of 127.0.0.1, with a wallet that has coins. Starts at once; `stop` it, or use it in a `with`.

    The customer has the reward of the first 100 of `blocks`. It has what Core has: replacement by fee (the customer's payments
    signal it), `testmempoolaccept`, stale blocks that are known.
    Raises NodeMissing, and RuntimeError when it does not answer within 20 seconds.
    """

    name = "litecoind"
    slug = "litecoin"

    def __init__(self, *, program: Path | None = None, blocks: int = 240) -> None:
        self._program = program or find_litecoind()
        self._start_somewhere(self._start, self._ready, seconds=20)
        self.rpc.call("createwallet", ["customer"])
        self.rpc.call("generatetoaddress", [100, self.new_address()])
        self.mine(blocks - 100)

    def bump_fee(self, txid: str) -> str:
        """Replace a payment of the customer that waits by one that pays more (BIP-125); the new one's id."""
        return str(self.rpc.call("bumpfee", [txid])["txid"])

    def _start(self, port: int) -> None:
        data, password = Path(tempfile.mkdtemp(prefix="litecoin-")), secrets.token_hex(16)
        (data / "litecoin.conf").write_text(_CONFIGURATION.format(port=port, password=password))
        self.url = f"http://node:{password}@127.0.0.1:{port}"
        self.rpc = JsonRpc(self.url)
        # Unpacked under a folder of ours, its libraries are there too.
        environment = debian.with_libraries(self._program.parents[3]) if len(self._program.parents) > 4 else {}
        self._keep([str(self._program), f"-datadir={data}"], environment, data)

    def _ready(self) -> bool | None:
        try:
            return self.rpc.call("getblockcount") is not None
        except (RpcError, Unavailable):
            return None  # it is loading (-28), or does not listen yet
