"""A process that reads blocks as the scanner does, prefix by prefix, proves what is for one address, and tells its peak memory.

Arguments: the family ("two": two nodes of an EVM network, compared), the node's URL, first and last block. The
libraries of a poll are loaded and garbage is looked for as in its function.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3

import app
from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.store.dynamo import DynamoStore
from chalicelib.workers import poll
from tests.support.heavy_node import OURS, TOKEN


def peak_mb() -> int:
    """Megabytes. Not by getrusage: what that tells counts the process that forked this one as well."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) >> 10


def reader_of(family: str, url: str) -> tuple[Any, tuple[str, ...]]:
    networks = {network.slug: network for network in default_networks("live")}
    if family == "two":
        from chalicelib.chains.node_comparison import NodeReader
        from chalicelib.chains.providers import Health
        from chalicelib.chains.quorum import QuorumReader

        readers = [NodeReader(reader_of("evm", url)[0], Health(number)) for number in (1, 2)]
        return QuorumReader(replace(networks["ethereum"], agreement_usd=1), readers), (TOKEN,)
    if family == "evm":
        from chalicelib.chains.evm.logs import LogReader
        from chalicelib.chains.evm.reader import EvmReader

        rpc = JsonRpc(url)
        return EvmReader(networks["ethereum"], rpc, LogReader("ethereum", rpc, audited=0.0)), (TOKEN,)
    if family == "utxo":
        from chalicelib.chains.utxo.reader import UtxoReader

        return UtxoReader(networks["bitcoin"], JsonRpc(url)), ()
    from chalicelib.chains.tron.http import TronHttp
    from chalicelib.chains.tron.reader import TronReader
    from tests.support.heavy_coins import TRC20

    return TronReader(networks["tron"], TronHttp(url), genesis=None), (TRC20,)


def main(family: str, url: str, first: str, last: str) -> None:
    reader, contracts = reader_of(family, url)
    held = [boto3.client(name, region_name="eu-west-1") for name in ("dynamodb", "sqs", "kms")], DynamoStore, poll, app
    loaded = peak_mb()
    number, parts, transfers, proven = int(first), 0, 0, 0
    while number <= int(last):
        blocks = reader.blocks(number, int(last), contracts)
        if not blocks:
            break
        parts += 1
        for block in blocks:
            transfers += len(block.transfers)
            mine = [transfer for transfer in block.transfers if transfer.recipient == OURS]
            if mine:
                found = reader.proven(block, mine)
                proven += len(found)
                if hasattr(reader, "first_logs"):
                    reader.first_logs(block, list({transfer.txid for transfer in found}))
        number = blocks[-1].number + 1
        del blocks
    told = {"read": number - int(first), "parts": parts, "transfers": transfers, "proven": proven}
    print(json.dumps({**told, "peak": peak_mb(), "loaded": loaded, "clients": len(held[0])}))


if __name__ == "__main__":
    main(*sys.argv[1:])
