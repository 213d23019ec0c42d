"""How long a minute of a network takes to be read, where each answer of a node takes its time: one node, and two that are compared.

Run as a script: ``python tests/bench/bench_node_latency.py``.

The reader is asked as a poll asks it: the tip, then again and again the cursor's hash and the blocks behind it. The node runs in a
process of its own, answers several requests at the same time, and every transaction of its blocks runs code and is traced.
Blocks a minute by the catalogue's block times; transactions in a block: 8 on arbitrum, 90 on bsc, 200 on ethereum (assumed, from
the explorers' charts of transactions a day: arbiscan.io/chart/tx, bscscan.com/chart/tx, etherscan.io/chart/tx).
Budget: a minute of arbitrum is read in 6 seconds with one node at 100 ms, and in 15 with two at 250 ms.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from chalicelib.chains.evm.logs import LogReader  # noqa: E402
from chalicelib.chains.evm.reader import EvmReader  # noqa: E402
from chalicelib.chains.node_comparison import NodeReader  # noqa: E402
from chalicelib.chains.providers import Health, Heard  # noqa: E402
from chalicelib.chains.quorum import QuorumReader  # noqa: E402
from chalicelib.chains.rpc import JsonRpc  # noqa: E402
from chalicelib.domain.catalogue.catalogue import Network, default_networks  # noqa: E402
from chalicelib.usecases.scanning.reorganisations import batch_blocks  # noqa: E402
from tests.support.heavy_node import TOKEN, served  # noqa: E402
from tests.support.traced_blocks import PAID, TracedBlocks  # noqa: E402

IN_A_BLOCK = {"arbitrum": 8, "bsc": 90, "ethereum": 200}
NODES = ((1, 0.1), (1, 0.25), (2, 0.1), (2, 0.25))
BUDGET = {(1, 0.1): 6.0, (2, 0.25): 15.0}
"""Seconds for a minute of arbitrum, by the number of nodes and the seconds of an answer."""


def _serve(pipe: Connection, chain_id: int, blocks: int, transactions: int, seconds: float) -> None:
    with served(TracedBlocks(blocks, transactions, chain_id).told, seconds) as url:
        pipe.send(url)
        pipe.recv()


@contextmanager
def node(network: Network, blocks: int, seconds: float) -> Iterator[str]:
    """The URL of a node in a process of its own: the reader's CPU is not the node's."""
    ours, theirs = get_context("spawn").Pipe()
    arguments = (theirs, network.chain_id, blocks, IN_A_BLOCK[network.slug], seconds)
    process = get_context("spawn").Process(target=_serve, args=arguments, daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("end")
        process.join(10)


def reader_over(network: Network, url: str, health: Health) -> EvmReader:
    rpc = Heard(JsonRpc(url), health)
    return EvmReader(network, rpc, LogReader(network.slug, rpc, draw=random.Random(1).random))


def read(network: Network, urls: list[str], blocks: int) -> float:
    """Seconds until all blocks are read, each checked for what its contracts paid."""
    healths = [Health(number) for number in range(1, len(urls) + 1)]
    readers = [reader_over(network, url, health) for url, health in zip(urls, healths, strict=True)]
    reader = readers[0] if len(urls) == 1 else QuorumReader(network, list(map(NodeReader, readers, healths)))
    began = time.monotonic()
    tip, cursor = reader.tip(), 0
    while cursor < tip:
        assert reader.block_hash(cursor) is not None
        for block in reader.blocks(cursor + 1, min(tip, cursor + batch_blocks(network)), {TOKEN}):
            cursor = block.number
            paid = [transfer.amount for transfer in block.transfers if transfer.recipient == PAID]
            assert paid == [1_000 * cursor + place for place in range(IN_A_BLOCK[network.slug])]
    assert cursor == blocks
    return time.monotonic() - began


def main() -> int:
    networks = {network.slug: network for network in default_networks("live")}
    failed = False
    print("network, blocks a minute, nodes, seconds an answer, seconds to read a minute")
    for slug in IN_A_BLOCK:
        for count, seconds in NODES:
            network = replace(networks[slug], agreement_usd=1_000 if count > 1 else None, tracing="on")
            blocks = round(60 / network.block_time)
            with ExitStack() as stack:
                took = read(network, [stack.enter_context(node(network, blocks, seconds)) for _ in range(count)], blocks)
            most = BUDGET.get((count, seconds)) if slug == "arbitrum" else None
            failed = failed or (most is not None and took > most)
            print(f"{slug}, {blocks}, {count}, {seconds}, {took:.1f}" + (f" (budget {most:.0f})" if most else ""), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
