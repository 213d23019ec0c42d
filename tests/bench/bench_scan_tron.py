"""CPU of scanning Tron blocks of the main network's size, as a ratio to the floor: the same calls, raw, and orjson.

Run as a script: ``python tests/bench/bench_scan_tron.py``. Budget: at most 2. A block of 300 transactions as they come on the main
network: USDT's transfers, TRX transfers, delegations of resources, calls of other contracts with several logs. The shapes are those
of java-tron's answers; the strict node's would be too small. They are told by a process of its own, whose CPU does not count.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson
import urllib3

from chalicelib.chains.evm.abi import TRANSFER_TOPIC
from chalicelib.chains.tron import values
from chalicelib.chains.tron.http import TronHttp
from chalicelib.chains.tron.reader import TronReader
from chalicelib.chains.tron.transactions import Reference, Unsigned
from chalicelib.chains.tron.values import address, hex_address
from chalicelib.domain.catalogue import Network, default_networks

BLOCKS, FIRST = 10, 77_000_000
TRANSFERS, TOKENS, CALLS, OTHERS = 90, 130, 30, 50
ROUNDS = 15
USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
RANDOM = random.Random(300)
SOME = ["41" + RANDOM.randbytes(20).hex() for _ in range(60)]
"""Exchanges and services, which are in every block."""


def somebody() -> str:
    return RANDOM.choice(SOME) if RANDOM.random() < 0.35 else "41" + RANDOM.randbytes(20).hex()


def block_id(number: int) -> str:
    return f"{number:016x}" + hashlib.sha256(b"%d" % number).hexdigest()[:48]


def transaction(number: int, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A transaction as wallet/getblockbylimitnext tells it, and its info."""
    when = 1_760_000_000_000 + (number - FIRST) * 3_000
    reference = Reference(RANDOM.randbytes(2), RANDOM.randbytes(8), when + 60_000, when - RANDOM.randrange(1, 3_000))
    sender, recipient, units = somebody(), somebody(), RANDOM.randrange(1, 10**10)
    token = kind in ("token", "call")
    made = Unsigned(
        "TriggerSmartContract" if token else "TransferContract", address(sender), units, reference, address(recipient),
        USDT if token else None, fee_limit=10**8 if token else 0,
    ).json(RANDOM.randbytes(65))  # fmt: skip
    del made["visible"]
    made["ret"] = [{"contractRet": "SUCCESS"}]
    info: dict[str, Any] = {
        "id": made["txID"], "blockNumber": number, "blockTimeStamp": when, "contractResult": [""],
        "receipt": {"net_usage": 268},
    }  # fmt: skip
    if kind == "other":
        contract = made["raw_data"]["contract"][0]
        contract["type"], contract["parameter"]["type_url"] = "DelegateResourceContract", "type.googleapis.com/protocol.Delegate"
        contract["parameter"]["value"] = {
            "balance": units, "resource": "ENERGY", "receiver_address": recipient, "owner_address": sender,
        }  # fmt: skip
    if token:
        usage = {
            "energy_usage": 5_000,
            "energy_usage_total": 64_285,
            "net_usage": 345,
            "result": "SUCCESS",
            "energy_penalty_total": 49_635,
        }
        info |= {"contract_address": hex_address(USDT), "contractResult": ["0" * 64], "receipt": usage}
        log = {
            "address": hex_address(USDT)[2:],
            "topics": [TRANSFER_TOPIC[2:], "0" * 24 + sender[2:], "0" * 24 + recipient[2:]],
            "data": f"{units:064x}",
        }
        info["log"] = [log]
    if kind == "call":
        other = {"address": RANDOM.randbytes(20).hex(), "topics": [RANDOM.randbytes(32).hex()], "data": RANDOM.randbytes(160).hex()}
        inner = {
            "hash": RANDOM.randbytes(32).hex(), "caller_address": sender, "transferTo_address": recipient,
            "callValueInfo": [{}], "note": b"call".hex(),
        }  # fmt: skip
        info["log"] = [other, other, *info["log"], other]
        info["internal_transactions"] = [inner] * 6
    if kind == "transfer":
        made["raw_data"]["contract"][0]["parameter"]["value"] |= {
            "owner_address": address(sender),
            "to_address": address(recipient),
        }
    return made, info


def chain() -> dict[bytes, bytes]:
    """The answers by request: path, a blank, the body."""
    told, answers = [], {}
    for number in range(FIRST, FIRST + BLOCKS):
        kinds = ["transfer"] * TRANSFERS + ["token"] * TOKENS + ["call"] * CALLS + ["other"] * OTHERS
        RANDOM.shuffle(kinds)
        rows = [transaction(number, kind) for kind in kinds]
        told.append(header(number) | {"transactions": [made for made, _ in rows]})
        answers[_key("gettransactioninfobyblocknum", {"num": number})] = orjson.dumps([info for _, info in rows])
    answers[_key("getblockbylimitnext", {"startNum": FIRST, "endNum": FIRST + BLOCKS, "visible": True})] = orjson.dumps(
        {"block": told}
    )
    answers[_key("getblock", {"id_or_num": "0", "detail": False})] = orjson.dumps(header(0))
    return answers


def header(number: int) -> dict[str, Any]:
    raw = {
        "number": number, "txTrieRoot": RANDOM.randbytes(32).hex(), "witness_address": SOME[0], "parentHash": block_id(number - 1),
        "version": 31, "timestamp": 1_760_000_000_000 + (number - FIRST) * 3_000,
    }  # fmt: skip
    if not number:
        raw = {"timestamp": 1, "parentHash": "0" * 64}
    return {"blockID": block_id(number), "block_header": {"raw_data": raw, "witness_signature": RANDOM.randbytes(65).hex()}}


def _key(path: str, body: dict[str, Any]) -> bytes:
    return f"/wallet/{path} ".encode() + orjson.dumps(body)


def replay(answers: dict[bytes, bytes], ready: Connection) -> None:
    """A server that answers from memory, on kept-alive connections."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready.send(listener.getsockname()[1])
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, answers), daemon=True).start()


def serve(client: socket.socket, answers: dict[bytes, bytes]) -> None:
    with client, client.makefile("rb") as stream:
        while line := stream.readline():
            length = 0
            while (head := stream.readline()) not in (b"\r\n", b""):
                if head.lower().startswith(b"content-length:"):
                    length = int(head.split(b":")[1])
            answer = answers[line.split()[1] + b" " + stream.read(length)]
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)


def raw_scan(url: str, requests: list[bytes]) -> Callable[[], object]:
    pool = urllib3.PoolManager(headers={"Content-Type": "application/json"}, retries=False)
    asked = [request.split(b" ", 1) for request in requests]

    def scan() -> object:
        return [orjson.loads(pool.request("POST", url + path.decode(), body=body).data) for path, body in asked]

    return scan


def milliseconds(*works: Callable[[], object]) -> list[float]:
    """CPU of one call of each in ms, the best of rounds that take turns. Nothing is remembered from one round to the next."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            values._known.clear()
            started = time.process_time()
            work()
            best[place] = min(best[place], (time.process_time() - started) * 1000)
    return best


def main() -> float:
    network: Network = next(network for network in default_networks("live") if network.slug == "tron")
    answers = chain()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=replay, args=(answers, theirs), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}"
        reader = TronReader(network, TronHttp(url), None)
        blocks = reader.blocks(FIRST, FIRST + BLOCKS - 1, {USDT})
        assert [len(block.transfers) for block in blocks] == [TRANSFERS + TOKENS + CALLS] * BLOCKS
        base, scan = milliseconds(raw_scan(url, list(answers)), lambda: reader.blocks(FIRST, FIRST + BLOCKS - 1, {USDT}))
    finally:
        server.terminate()
        server.join()
    count, size = TRANSFERS + TOKENS + CALLS + OTHERS, sum(map(len, answers.values())) / BLOCKS / 1000
    print(f"block of {count} transactions ({size:.0f} kB): raw {base / BLOCKS:.2f} ms, reader {scan / BLOCKS:.2f} ms")
    print(f"ratio {scan / base:.2f} (budget 2)")
    return scan / base


if __name__ == "__main__":
    sys.exit(main() > 2)
