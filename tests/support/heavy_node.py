"""Nodes whose blocks are as heavy as gas and size allow, over real sockets, and a reader of them in a process of its own.

The process tells its peak of resident memory: of that a function has 512 MB, all libraries included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC, bloom_mask

TOKEN = "0xdac17f958d2ee523a2206206994597c13d831ec7"
STRANGER = "0x" + "5a" * 20
OURS = "0x" + "0a" * 20

Told = Callable[[str, Any], bytes]
"""The JSON of what a node answers to a method with parameters."""


@contextmanager
def served(told: Told, seconds: float = 0.0) -> Iterator[str]:
    """The URL of a node that answers so: JSON-RPC at the root, Tron's HTTP at every other path. Each answer takes `seconds`
    besides, and several at the same time do not wait for each other."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(seconds)
            path = self.path.strip("/")
            if path:
                body = told(path, asked)
            elif isinstance(asked, list):
                body = b"[" + b",".join(_answer(each, told) for each in asked) + b"]"
            else:
                body = _answer(asked, told)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def handle(self) -> None:
            # Whoever reads no further than it has room for hangs up.
            try:
                super().handle()
            except ConnectionError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[assignment]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _answer(asked: dict[str, Any], told: Told) -> bytes:
    try:
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (asked["id"], told(asked["method"], asked["params"]))
    except OverflowError:
        return b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32005,"message":"query returned more than 10000 results"}}' % asked["id"]
    except LookupError:
        return b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no such method"}}' % asked["id"]


def read_apart(script: str, *args: str, seconds: float = 240.0) -> dict[str, Any]:
    """What a process of its own tells that runs `script` from tests/support: a line of JSON, with its `peak` in MB."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.support.{script}", *args],
        capture_output=True, timeout=seconds, check=False, text=True, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"the process ended with {done.returncode}: {done.stderr[-2_000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def name_of(number: int, what: str = "block") -> str:
    return "0x" + sha256(f"{what} {number}".encode()).hexdigest()


class EvmBlocks:
    """Blocks 1 to `blocks` of ethereum. Each has `transactions`, the first with `data` bytes of call data, and `logs` Transfer logs
    of one token, of `units` each, all in the first transaction. `ours`: that many transactions pay `OURS` one log besides; `bare`:
    logs of a stranger's contract, without topics, in each receipt."""

    def __init__(
        self, blocks: int, transactions: int = 1, logs: int = 0, units: int = 0, data: int = 0, ours: int = 0, bare: int = 0
    ) -> None:
        self.blocks, self.transactions, self.logs, self.units = blocks, max(transactions, ours), logs, units
        self.data, self.ours, self.bare = data, ours, bare
        bits = bloom_mask(TRANSFER_TOPIC) | bloom_mask(TOKEN)
        self._bloom = f"0x{bits:0512x}" if logs or ours else "0x" + "0" * 512
        self._of_hash = {name_of(number): number for number in range(blocks + 1)}

    def told(self, method: str, params: Any) -> bytes:
        if method == "eth_chainId":
            return b'"0x1"'
        if method == "eth_blockNumber":
            return b'"0x%x"' % self.blocks
        if method == "eth_getBlockByNumber":
            number = int(params[0], 16)
            return b"null" if number > self.blocks else self._block(number, params[1])
        if method == "eth_getLogs":
            return b"[" + b",".join(self._logs_of(self._of_hash[params[0]["blockHash"]])) + b"]"
        if method == "eth_getTransactionReceipt":
            return self._receipt(params[0])
        raise LookupError(method)

    def _txid(self, number: int, place: int) -> str:
        return f"0x{number:032x}{place:032x}"

    def _block(self, number: int, full: bool) -> bytes:
        txids = [self._txid(number, place) for place in range(self.transactions)]
        rows = ",".join(
            f'{{"hash":"{txid}","from":"{STRANGER}","to":"0x{number:020x}{place:020x}","value":"0x1","nonce":"0x{place:x}",'
            f'"blockHash":"{name_of(number)}","blockNumber":"{number:#x}","transactionIndex":"{place:#x}","gas":"0x5208",'
            f'"gasPrice":"0x3b9aca00","input":"0x{"00" * (self.data if place == 0 else 0)}","type":"0x0","v":"0x25",'
            f'"r":"{name_of(place, "r")}","s":"{name_of(place, "s")}"}}'
            for place, txid in enumerate(txids)
        ) if full else ",".join(f'"{txid}"' for txid in txids)  # fmt: skip
        return (
            f'{{"number":"{number:#x}","hash":"{name_of(number)}","parentHash":"{name_of(number - 1)}",'
            f'"timestamp":"{1_700_000_000 + 12 * number:#x}","logsBloom":"{self._bloom}","gasUsed":"0x1c9c380",'
            f'"transactions":[{rows}]}}'
        ).encode()

    def _row(self, number: int, txid: str, index: int, recipient: str, units: int) -> bytes:
        return (
            b'{"address":"%b","topics":["%b","0x000000000000000000000000%b","0x000000000000000000000000%b"],"data":"0x%064x",'
            b'"blockNumber":"0x%x","transactionHash":"%b","transactionIndex":"0x0","blockHash":"%b","logIndex":"0x%x","removed":false}'
        ) % (
            TOKEN.encode(), TRANSFER_TOPIC.encode(), STRANGER[2:].encode(), recipient[2:].encode(), units,
            number, txid.encode(), name_of(number).encode(), index,
        )  # fmt: skip

    def _logs_of(self, number: int) -> list[bytes]:
        first = self._txid(number, 0)
        rows = [self._row(number, first, n, f"0x{number:020x}{n:020x}", self.units) for n in range(self.logs)]
        each = self.bare + 1
        return rows + [
            self._row(number, self._txid(number, place), self.logs + (place + 1) * each - 1, OURS, 5_000_000)
            for place in range(self.ours)
        ]

    def _receipt(self, txid: str) -> bytes:
        number, place = int(txid[2:34], 16), int(txid[34:], 16)
        rows = self._logs_of(number)[: self.logs] if place == 0 else []
        if place < self.ours:
            start = self.logs + place * (self.bare + 1)
            bare = b'{"address":"%b","topics":[],"data":"0x","blockNumber":"0x%x","transactionHash":"%b",' % (
                STRANGER.encode(), number, txid.encode(),
            )  # fmt: skip
            bare += b'"transactionIndex":"0x0","blockHash":"%b","removed":false,"logIndex":"0x' % name_of(number).encode()
            rows += [bare + b'%x"}' % (start + n) for n in range(self.bare)]
            rows.append(self._row(number, txid, start + self.bare, OURS, 5_000_000))
        return (
            b'{"transactionHash":"%b","blockHash":"%b","blockNumber":"0x%x","status":"0x1","gasUsed":"0x5208",'
            b'"effectiveGasPrice":"0x1","logs":[%b],"logsBloom":"%b"}'
        ) % (txid.encode(), name_of(number).encode(), number, b",".join(rows), self._bloom.encode())  # fmt: skip
