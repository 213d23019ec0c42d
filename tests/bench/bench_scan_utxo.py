"""CPU of scanning a UTXO block with 400 and with 3,000 transactions, as a ratio to the floor: the same calls, raw, and orjson.

Run as a script: ``python tests/bench/bench_scan_utxo.py``. Budget: at most 2, aim 1.5. The blocks are made here in the shape of
Bitcoin Core's verbosity 2, with two inputs and two outputs a transaction: less JSON round each output than the main chain has, so
the ratio is on the safe side.
They are served by a process of their own, so that the node's CPU and pace do not count.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.utxo.facts import GENESIS
from chalicelib.chains.utxo.headers import merkle_root
from chalicelib.chains.utxo.reader import UtxoReader
from chalicelib.chains.utxo.transactions import double_sha256
from chalicelib.domain.catalogue import default_networks
from chalicelib.encoding.bech32 import encode_segwit
from tests.bench.bench_scan_evm import milliseconds, raw_scan, replay

BUDGET = 2.0
HEIGHT = 900_000


class Recorder(JsonRpc):
    """Answers from one block, and keeps what was asked and answered."""

    def __init__(self, block: dict[str, Any]) -> None:
        super().__init__("http://127.0.0.1:1")
        self._block = block
        self.exchanges: list[tuple[Any, Any]] = []

    def _exchange(self, body: Any, *, again: bool) -> Any:
        answer = [{"jsonrpc": "2.0", "id": asked["id"], "result": self._result_of(asked)} for asked in body]
        self.exchanges.append((body, answer))
        return answer

    def _result_of(self, asked: Any) -> Any:
        if asked["method"] == "getblockhash" and asked["params"] == [0]:
            return next(iter(GENESIS["bitcoin", "main"]))
        return {"getblockcount": HEIGHT, "getblockhash": self._block["hash"], "getblock": self._block}[asked["method"]]


def block_of(count: int, source: random.Random) -> dict[str, Any]:
    transactions: list[dict[str, Any]] = []
    for n in range(count):
        vout = []
        for place in range(2):
            program = source.randbytes(20)
            script = {
                "asm": f"0 {program.hex()}", "desc": f"addr({encode_segwit('bc', 0, program)})#{source.randbytes(4).hex()}",
                "hex": "0014" + program.hex(), "address": encode_segwit("bc", 0, program), "type": "witness_v0_keyhash",
            }  # fmt: skip
            vout.append({"value": source.randrange(10**10) / 10**8, "n": place, "scriptPubKey": script})
        vin = [
            {
                "txid": source.randbytes(32).hex(), "vout": source.randrange(9), "scriptSig": {"asm": "", "hex": ""},
                "txinwitness": [source.randbytes(72).hex(), source.randbytes(33).hex()], "sequence": 4294967293,
            }
            for _ in range(2)
        ]  # fmt: skip
        if n == 0:
            vin = [{"coinbase": source.randbytes(40).hex(), "sequence": 4294967295}]
        transactions.append(
            {
                "txid": source.randbytes(32).hex(), "hash": source.randbytes(32).hex(), "version": 2, "size": 372, "vsize": 209,
                "weight": 833, "locktime": 0, "vin": vin, "vout": vout, "fee": 0.00001, "hex": source.randbytes(372).hex(),
            }
        )  # fmt: skip
    root = merkle_root([transaction["txid"] for transaction in transactions])
    ends = [part.to_bytes(4, "little") for part in (536870912, 1_780_000_000, 0x1D00FFFF, 7)]
    header = ends[0] + bytes(32) + root + b"".join(ends[1:])
    return {
        "hash": double_sha256(header)[::-1].hex(), "confirmations": 1, "height": HEIGHT, "version": 536870912, "bits": "1d00ffff",
        "nonce": 7, "merkleroot": root[::-1].hex(), "time": 1_780_000_000, "nTx": count, "previousblockhash": "00" * 32,
        "size": 372 * count, "weight": 833 * count, "tx": transactions,
    }  # fmt: skip


def ratio_of(count: int) -> float:
    network = next(network for network in default_networks("live") if network.slug == "bitcoin")
    recorder = Recorder(block_of(count, random.Random(count)))
    (block,) = UtxoReader(network, recorder).blocks(HEIGHT, HEIGHT, ())
    assert len(block.transfers) >= 2 * (count - 1) - 1, "outputs are missing"
    bodies = [orjson.dumps(asked) for asked, _ in recorder.exchanges]
    answers = {body: orjson.dumps(answer) for body, (_, answer) in zip(bodies, recorder.exchanges, strict=True)}
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=replay, args=(answers, theirs), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/"
        reader = UtxoReader(network, JsonRpc(url))
        base, scan = milliseconds(raw_scan(url, bodies), lambda: reader.blocks(HEIGHT, HEIGHT, ()))
    finally:
        server.terminate()
        server.join()
    size = sum(map(len, answers.values())) / 1_000_000
    watched = {f"bc1q{n}" for n in range(100_000)}
    started = time.process_time()
    matched = [transfer for transfer in block.transfers if transfer.recipient in watched]
    matching = (time.process_time() - started) * 1000
    print(
        f"block of {count} transactions ({size:.1f} MB): raw {base:.2f} ms, reader {scan:.2f} ms, ratio {scan / base:.2f}"
        f" (budget {BUDGET:g}, aim 1.5); matching {len(block.transfers)} outputs against 100,000 addresses {matching:.2f} ms"
    )
    assert not matched
    return scan / base


if __name__ == "__main__":
    sys.exit(max(ratio_of(400), ratio_of(3_000)) > BUDGET)
