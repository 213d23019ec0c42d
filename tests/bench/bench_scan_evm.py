"""CPU of scanning an EVM block with 200 native and 200 token transfers, as a ratio to the floor: the same calls, raw, and orjson.

Run as a script: ``python tests/bench/bench_scan_evm.py``. Budget: at most 2, aim 1.5. The block is a real one, mined by anvil.
The answers are then replayed by a process of their own, so that the node's CPU and pace do not count.
"""

from __future__ import annotations

import multiprocessing
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson
import urllib3

from chalicelib.chains.evm.abi import TRANSFER_TOPIC
from chalicelib.chains.evm.logs import LogReader
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.catalogue import Network, default_networks
from infra.local.nodes import Anvil, deploy_token, dev_account
from infra.local.tokens import call_data, send

TRANSFERS = 200
BLOCKS = 5
ROUNDS = 15


class Recorder(JsonRpc):
    """Keeps what was asked and answered."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.exchanges: list[tuple[Any, Any]] = []

    def _exchange(self, body: Any, *, again: bool) -> Any:
        answer = super()._exchange(body, again=again)
        self.exchanges.append((body, answer))
        return answer


def mined_blocks(node: Anvil) -> tuple[int, int, list[str]]:
    """Mine the blocks; the first, the last, and the two tokens."""
    rpc = node.rpc
    tokens = [deploy_token(rpc, "USDT", "Tether USD", 6, True), deploy_token(rpc, "USDC", "USD Coin", 6)]
    for token in tokens:
        send(rpc, token, data=call_data("mint(address,uint256)", dev_account(rpc), 10**15))
    rpc.call("evm_setAutomine", [False])
    first = int(rpc.call("eth_blockNumber"), 16) + 1
    for _ in range(BLOCKS):
        for n in range(TRANSFERS):
            send(rpc, "0x" + secrets.token_hex(20), value=10**15 + n, gas=21_000)
            send(
                rpc, tokens[n % 2], data=call_data("transfer(address,uint256)", "0x" + secrets.token_hex(20), 1000 + n), gas=100_000
            )
        rpc.call("evm_mine")
    return first, first + BLOCKS - 1, tokens


def replay(answers: dict[bytes, bytes], ready: Connection) -> None:
    """A server that answers from memory, on kept-alive connections."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready.send(listener.getsockname()[1])
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, answers), daemon=True).start()


def serve(client: socket.socket, answers: dict[bytes, bytes]) -> None:
    with client, client.makefile("rb") as stream:
        while stream.readline():
            length = 0
            while (head := stream.readline()) not in (b"\r\n", b""):
                if head.lower().startswith(b"content-length:"):
                    length = int(head.split(b":")[1])
            answer = answers[stream.read(length)]
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)


def raw_scan(url: str, bodies: list[bytes]) -> Callable[[], object]:
    pool = urllib3.PoolManager(headers={"Content-Type": "application/json"}, retries=False)

    def scan() -> object:
        return [orjson.loads(pool.request("POST", url, body=body).data) for body in bodies]

    return scan


def milliseconds(*works: Callable[[], object]) -> list[float]:
    """CPU of one call of each in ms, the best of rounds that take turns."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            started = time.process_time()
            for _ in range(4):
                work()
            best[place] = min(best[place], (time.process_time() - started) / 4 * 1000)
    return best


def main() -> float:
    ethereum: Network = next(network for network in default_networks("live") if network.slug == "ethereum")
    # A trace is one exchange more, whose cost is the node's; this node takes minutes for such a block.
    network = replace(ethereum, tracing="off")
    with Anvil(1) as node:
        first, last, tokens = mined_blocks(node)
        recorder = Recorder(node.url)
        blocks = EvmReader(network, recorder, LogReader(network.slug, recorder, audited=0.0)).blocks(first, last, tokens)
    for block in blocks:
        native = sum(transfer.contract is None for transfer in block.transfers)
        assert (native, len(block.transfers) - native) == (TRANSFERS, TRANSFERS), "the node did not mine what was sent"
    bodies = [orjson.dumps(asked) for asked, _ in recorder.exchanges]
    answers = {body: orjson.dumps(answer) for body, (_, answer) in zip(bodies, recorder.exchanges, strict=True)}
    assert TRANSFER_TOPIC.encode() in bodies[1], "the second exchange is not the logs"
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=replay, args=(answers, theirs), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/"
        rpc = JsonRpc(url)
        # Only what was recorded can be asked: no block is drawn for a look at its receipts.
        reader = EvmReader(network, rpc, LogReader(network.slug, rpc, audited=0.0))
        base, scan = milliseconds(raw_scan(url, bodies), lambda: reader.blocks(first, last, tokens))
    finally:
        server.terminate()
        server.join()
    size = sum(map(len, answers.values())) / BLOCKS / 1000
    print(f"block of 2 x {TRANSFERS} transfers ({size:.0f} kB): raw {base / BLOCKS:.2f} ms, reader {scan / BLOCKS:.2f} ms")
    print(f"ratio {scan / base:.2f} (budget 2, aim 1.5)")
    return scan / base


if __name__ == "__main__":
    sys.exit(main() > 2)
