"""CPU of scanning a UTXO block with 400 and with 3,000 transactions, as a ratio to the floor: the same calls, raw, and orjson.

Run as a script: ``python tests/bench/bench_scan_utxo.py``. Budget: at most 2, aim 1.5. The blocks are made here in the shape of
Bitcoin Core's verbosity 2, with two inputs and two outputs a transaction: less JSON round each output than the main chain has, so
the ratio is on the safe side.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.utxo.facts import GENESIS
from chalicelib.chains.utxo.headers import merkle_root
from chalicelib.chains.utxo.reader import UtxoReader
from chalicelib.chains.utxo.transactions import double_sha256
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Block
from chalicelib.encoding.bech32 import encode_segwit
from tests.bench.replaying import BUDGET, Recorder, ratio_of

HEIGHT = 900_000
BITCOIN = next(network for network in default_networks("live") if network.slug == "bitcoin")


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


def told_of(block: dict[str, Any]) -> Callable[[str, Any], Any]:
    """What a node answers whose chain ends with `block`."""

    def told(method: str, params: Any) -> Any:
        if method == "getblockhash" and params == [0]:
            return next(iter(GENESIS["bitcoin", "main"]))
        return {"getblockcount": HEIGHT, "getblockhash": block["hash"], "getblock": block}[method]

    return told


def read(count: int) -> tuple[Recorder, Block]:
    """A block of `count` transactions, and what was asked for it."""
    recorder = Recorder(told_of(block_of(count, random.Random(count))))
    (block,) = UtxoReader(BITCOIN, recorder).blocks(HEIGHT, HEIGHT, ())
    assert len(block.transfers) >= 2 * (count - 1) - 1, "outputs are missing"
    return recorder, block


def ratio(count: int) -> float:
    def scan_at(url: str) -> Callable[[], object]:
        reader = UtxoReader(BITCOIN, JsonRpc(url + "/"))
        return lambda: reader.blocks(HEIGHT, HEIGHT, ())

    return ratio_of(f"bitcoin: {count} transactions", read(count)[0].answers, 1, scan_at)


if __name__ == "__main__":
    sys.exit(max(ratio(400), ratio(3_000)) > BUDGET)
