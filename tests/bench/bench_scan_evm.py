"""CPU of scanning EVM blocks of mainnet size, as a ratio to the floor: the same calls, raw, and orjson.

Run as a script: ``python tests/bench/bench_scan_evm.py``. Budget: at most 2, aim 1.5. The blocks are made here in the shape of
geth's answers: all fields of eth_getBlockByNumber with full transactions (a third plain payments, the rest calls of contracts
with some hundred bytes of data), and the Transfer logs that eth_getLogs answers. All logs are of our tokens: on the main networks
part of a block's logs are, the rest is not asked for.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from chalicelib.chains.abi import TRANSFER_TOPIC, bloom_mask
from chalicelib.chains.evm.logs import LogReader
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Block
from tests.bench.replaying import BUDGET, Recorder, ratio_of

FIRST, BLOCKS = 23_000_000, 5
SIZES = {"ethereum": (200, 300), "ethereum, full": (400, 500), "bsc": (250, 600), "polygon": (120, 200)}
"""Transactions and Transfer logs of ours in a block, by network."""
TOKENS = ("0xdac17f958d2ee523a2206206994597c13d831ec7", "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")


class Chain:
    """Some blocks of a network."""

    def __init__(self, network: Network, transactions: int, logs: int) -> None:
        self._network, self._random = network, random.Random(transactions)
        self._some = [self._hex(20) for _ in range(60)]
        parent = self._hex(32)
        self.blocks: dict[int, dict[str, Any]] = {}
        self.logs: dict[str, list[dict[str, Any]]] = {}
        for number in range(FIRST, FIRST + BLOCKS):
            block = self._block(number, parent, transactions, logs)
            self.blocks[number], parent = block, block["hash"]

    def told(self, method: str, params: Any) -> Any:
        """What a node answers."""
        if method == "eth_chainId":
            return hex(self._network.chain_id or 0)
        if method == "eth_getBlockByNumber":
            return self.blocks[int(params[0], 16)]
        return self.logs[params[0]["blockHash"]]

    def _hex(self, size: int) -> str:
        return "0x" + self._random.randbytes(size).hex()

    def _somebody(self) -> str:
        """Exchanges and services are in every block."""
        return self._random.choice(self._some) if self._random.random() < 0.35 else self._hex(20)

    def _block(self, number: int, parent: str, transactions: int, logs: int) -> dict[str, Any]:
        name = self._hex(32)
        made = [self._transaction(number, name, place) for place in range(transactions)]
        calls = [each for each in made if each["input"] != "0x"]
        self.logs[name] = [self._transfer(number, name, place, calls[place * len(calls) // logs]) for place in range(logs)]
        bloom = 0
        for value in (TRANSFER_TOPIC, *TOKENS):
            bloom |= bloom_mask(value)
        roots = {each: self._hex(32) for each in ("sha3Uncles", "transactionsRoot", "stateRoot", "receiptsRoot", "withdrawalsRoot")}
        return roots | {
            "hash": name, "parentHash": parent, "number": hex(number), "timestamp": hex(1_780_000_000 + number),
            "nonce": "0x" + "0" * 16, "logsBloom": f"0x{bloom:0512x}", "miner": self._somebody(), "difficulty": "0x0",
            "extraData": self._hex(20), "size": "0x2a000", "gasLimit": "0x2255100", "gasUsed": "0x1100000",
            "baseFeePerGas": "0x3b9aca00", "mixHash": self._hex(32), "uncles": [], "transactions": made,
            "withdrawals": [self._withdrawal(place) for place in range(16)],
        }  # fmt: skip

    def _withdrawal(self, place: int) -> dict[str, str]:
        return {"index": hex(10**8 + place), "validatorIndex": hex(10**6 + place), "address": self._hex(20), "amount": "0x12a05f2"}

    def _transaction(self, number: int, block: str, place: int) -> dict[str, Any]:
        """A third are plain payments, the rest calls of contracts, few of which bring a value."""
        plain = self._random.random() < 0.35
        size = 0 if plain else self._random.choice((68, 68, 68, 132, 292, 580, 1_400))
        value = self._random.randrange(1, 10**19) if plain or self._random.random() < 0.1 else 0
        lists = [{"address": self._hex(20), "storageKeys": [self._hex(32)] * 3}] if size > 500 else []
        return {
            "blockHash": block, "blockNumber": hex(number), "from": self._somebody(), "gas": "0x5208", "gasPrice": "0x3b9aca00",
            "maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x5f5e100", "hash": self._hex(32), "input": self._hex(size),
            "nonce": hex(self._random.randrange(10**5)), "to": self._somebody(), "transactionIndex": hex(place),
            "value": hex(value), "type": "0x2", "accessList": lists, "chainId": hex(self._network.chain_id or 0), "v": "0x1",
            "r": self._hex(32), "s": self._hex(32), "yParity": "0x1",
        }  # fmt: skip

    def _transfer(self, number: int, block: str, place: int, transaction: dict[str, Any]) -> dict[str, Any]:
        topics = [TRANSFER_TOPIC, *("0x" + "0" * 24 + self._somebody()[2:] for _ in range(2))]
        return {
            "address": self._random.choice(TOKENS), "topics": topics, "data": f"0x{self._random.randrange(1, 10**12):064x}",
            "blockNumber": hex(number), "transactionHash": transaction["hash"], "transactionIndex": transaction["transactionIndex"],
            "blockHash": block, "logIndex": hex(place), "removed": False, "blockTimestamp": hex(1_780_000_000 + number),
        }  # fmt: skip


def chain_of(name: str) -> tuple[Network, Chain]:
    """The network of a row of `SIZES`, and its blocks."""
    slug = name.split(",", 1)[0]
    # A trace is one exchange more, whose cost is the node's.
    network = replace(next(each for each in default_networks("live") if each.slug == slug), tracing="off")
    return network, Chain(network, *SIZES[name])


def read(network: Network, rpc: JsonRpc) -> list[Block]:
    """The blocks; none is drawn for a look at its receipts, since only what was recorded can be asked."""
    return EvmReader(network, rpc, LogReader(network.slug, rpc, audited=0.0)).blocks(FIRST, FIRST + BLOCKS - 1, TOKENS)


def ratio(name: str) -> float:
    network, chain = chain_of(name)
    recorder = Recorder(chain.told)
    blocks = read(network, recorder)
    transactions, logs = SIZES[name]
    for block in blocks:
        native = sum(transfer.contract is None for transfer in block.transfers)
        assert (native > 0, len(block.transfers) - native) == (True, logs), "transfers are missing"

    def scan_at(url: str) -> Callable[[], object]:
        rpc = JsonRpc(url + "/")
        reader = EvmReader(network, rpc, LogReader(network.slug, rpc, audited=0.0))
        return lambda: reader.blocks(FIRST, FIRST + BLOCKS - 1, TOKENS)

    return ratio_of(f"{name}: {transactions} transactions, {logs} logs", recorder.answers, BLOCKS, scan_at)


if __name__ == "__main__":
    sys.exit(max(map(ratio, SIZES)) > BUDGET)
