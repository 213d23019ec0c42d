"""Litecoin Core in regtest: how it is found, installed (without root, from Debian's archive) and started."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.usecases.ports.failures import Unavailable
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
            _unpack(folder)
    if not program.is_file():
        raise NodeMissing("Debian's package litecoind has no litecoind; set $LITECOIND to one")
    return program


def _unpack(folder: Path) -> None:
    """Debian's package and the libraries that this machine lacks, into `folder`/litecoin. Raises NodeMissing."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NodeMissing("litecoind is not here, and this is no Debian to take it from; set $LITECOIND to one (0.21 or newer)")
    work = folder / "litecoin.part"
    shutil.rmtree(work, ignore_errors=True)
    debs = work / "debs"
    debs.mkdir(parents=True)
    # Packages are only read and unpacked, by whoever we are: no lock, and no user of its own for the download.
    common = ["-q", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="]
    own = [*common, "-o", f"Dir::State::lists={work / 'lists'}", "-o", f"Dir::Cache={work / 'cache'}"]
    # The machine's own package lists first; they may be missing, or be older than what the archive has.
    error = _download(debs, common)
    if error is not None:
        (work / "lists" / "partial").mkdir(parents=True)
        (work / "cache" / "archives" / "partial").mkdir(parents=True)
        _run(["apt-get", *own, "update"], work)
        error = _download(debs, own)
    if error is not None:
        raise NodeMissing(f"litecoind is not here and apt-get has none: {error}")
    for deb in sorted(debs.glob("*.deb")):
        done = _run(["dpkg", "-x", str(deb), str(work / "root")], work)
        if done.returncode != 0:
            raise NodeMissing(f"dpkg could not unpack {deb.name}: {done.stderr.strip()[-300:]}")
    (work / "root").rename(folder / "litecoin")
    shutil.rmtree(work, ignore_errors=True)


def _download(debs: Path, options: list[str]) -> str | None:
    """Download litecoind and what would be installed with it; what went wrong, or None."""
    planned = _run(["apt-get", *options, "--simulate", "--no-install-recommends", "install", "litecoind"], debs)
    packages = re.findall(r"^Inst (\S+)", planned.stdout, re.MULTILINE)
    if planned.returncode != 0 or not packages:
        return planned.stderr.strip()[-300:] or "no package of that name"
    done = _run(["apt-get", *options, "download", *packages], debs)
    return None if done.returncode == 0 else done.stderr.strip()[-300:]


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment)


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
        libraries = [str(p) for p in self._program.parents[3].glob("usr/lib/*-linux-gnu")] if len(self._program.parents) > 4 else []
        before = [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p]
        environment = {"LD_LIBRARY_PATH": ":".join([*libraries, *before])} if libraries else {}
        self._keep([str(self._program), f"-datadir={data}"], environment, data)

    def _ready(self) -> bool | None:
        try:
            return self.rpc.call("getblockcount") is not None
        except (RpcError, Unavailable):
            return None  # it is loading (-28), or does not listen yet
