"""CPU of scanning Tron blocks of the main network's size, as a ratio to the floor: the same calls, raw, and orjson.

Run as a script: ``python tests/bench/bench_scan_tron.py``. Budget: at most 2. A block of 300 transactions as they come on the main
network: USDT's transfers, TRX transfers, delegations of resources, calls of other contracts with several logs. The shapes are those
of java-tron's answers; the strict node's would be too small.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson

from chalicelib.chains.abi import TRANSFER_TOPIC
from chalicelib.chains.tron import values
from chalicelib.chains.tron.http import TronHttp
from chalicelib.chains.tron.reader import TronReader
from chalicelib.chains.tron.transactions import Reference, Unsigned
from chalicelib.chains.tron.values import address, hex_address
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Block
from tests.bench.replaying import BUDGET, Request, ratio_of, replayed

BLOCKS, FIRST = 10, 77_000_000
TRANSFERS, TOKENS, CALLS, OTHERS = 90, 130, 30, 50
TRON: Network = next(network for network in default_networks("live") if network.slug == "tron")
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


def chain() -> dict[Request, bytes]:
    """The answers by request."""
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


def _key(path: str, body: dict[str, Any]) -> Request:
    return f"/wallet/{path}", orjson.dumps(body)


def read(reader: TronReader) -> list[Block]:
    """The blocks. Nothing is remembered of those that were read before."""
    values._known.clear()
    return reader.blocks(FIRST, FIRST + BLOCKS - 1, {USDT})


def ratio() -> float:
    answers = chain()
    with replayed(answers) as url:
        blocks = read(TronReader(TRON, TronHttp(url), None))
    assert [len(block.transfers) for block in blocks] == [TRANSFERS + TOKENS + CALLS] * BLOCKS

    def scan_at(url: str) -> Callable[[], object]:
        reader = TronReader(TRON, TronHttp(url), None)
        return lambda: read(reader)

    return ratio_of(f"tron: {TRANSFERS + TOKENS + CALLS + OTHERS} transactions", answers, BLOCKS, scan_at)


if __name__ == "__main__":
    sys.exit(ratio() > BUDGET)
