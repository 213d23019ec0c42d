"""Matching the recipients of a block of mainnet size with the watched addresses: calls and keys asked of DynamoDB, read units, CPU.

Run as a script: ``python tests/bench/bench_matching.py``. Every recipient is asked for by its key, so neither depends on how many
are watched: shown for 1,000 and for 10,000,000. Addresses are numbered here, and of those below that number the table has an item.
It is played at the level of HTTP, so that botocore's whole work counts and the table's own does not; that DynamoDB answers a key as
fast in a large table is AWS's promise, and not measured here. Budget: the same calls and keys, and no more than 100 keys a call.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.update({"STAGE": "local"})

import orjson
from botocore.awsrequest import AWSResponse

from chalicelib.domain.addresses.addresses import Watched, family_key
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.scanning.matching import Matcher
from infra.local.aws import start_aws
from infra.local.repairs import direct
from tests.bench import bench_scan_evm, bench_scan_tron, bench_scan_utxo
from tests.bench.replaying import Recorder, replayed
from tests.support.stack import first_stack

WATCHED = (1_000, 10_000_000)
OURS = 3
"""Payments in each block that are for us: to the addresses with the first numbers."""
ROUNDS = 5
MOST_KEYS = 100


class Figures(NamedTuple):
    """Of matching one block. A key costs a read unit; CPU in ms."""

    calls: int
    keys: int
    cpu: float


class Table:
    """What BatchGetItem finds where `watched` addresses are watched. Counts what is asked; `seconds` is its own CPU."""

    def __init__(self, item: Callable[[str], dict[str, Any]], number: Callable[[str], int]) -> None:
        self._item, self._number = item, number
        self.watched = 0
        self.calls = self.keys = self.most = 0
        self.seconds = 0.0

    def __call__(self, request: Any, **_: Any) -> AWSResponse:
        began = time.thread_time()
        found: dict[str, list[Any]] = {}
        for table, wanted in orjson.loads(request.body)["RequestItems"].items():
            assert wanted["ConsistentRead"]
            addresses = [key["pk"]["S"].rsplit("#", 1)[1] for key in wanted["Keys"]]
            found[table] = [self._item(address) for address in addresses if self._number(address) < self.watched]
            self.keys += len(addresses)
            self.most = max(self.most, len(addresses))
        self.calls += 1
        body = _Body(orjson.dumps({"Responses": found, "UnprocessedKeys": {}}))
        answer = AWSResponse(request.url, 200, {"Content-Type": "application/x-amz-json-1.0"}, body)
        self.seconds += time.thread_time() - began
        return answer


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Any:
        yield self._content


def blocks() -> list[tuple[str, Network, list[Block]]]:
    """One block of each family, as its reader tells it."""
    found = []
    for name in ("ethereum, full", "bsc"):
        network, chain = bench_scan_evm.chain_of(name)
        found.append((name, network, bench_scan_evm.read(network, Recorder(chain.told))[:1]))
    with replayed(bench_scan_tron.chain()) as url:
        reader = bench_scan_tron.TronReader(bench_scan_tron.TRON, bench_scan_tron.TronHttp(url), None)
        found.append(("tron", bench_scan_tron.TRON, bench_scan_tron.read(reader)[:1]))
    return [*found, ("bitcoin", bench_scan_utxo.BITCOIN, [bench_scan_utxo.read(3_000)[1]])]


def figures(network: Network, transfers: list[Transfer], sizes: Sequence[int] = WATCHED) -> dict[int, Figures]:
    """What matching costs with so many watched addresses."""
    from chalicelib.wiring import services

    store = services().store
    nothing: Any = None
    context = NetworkContext(network, nothing, store, services().rules, nothing)
    ours = {f"ours-{number}": number for number in range(OURS)}
    moved = [transfer._replace(recipient=address) for transfer, address in zip(transfers, ours, strict=False)] + transfers[OURS:]

    def item(address: str) -> dict[str, Any]:
        record = Watched(network.realm, family_key(network), address, "deposit", (network.slug,))
        raw: dict[str, Any] = store.models.item(record).to_dynamodb_dict()
        return raw

    # Those that are not ours have numbers behind every watched one.
    table = Table(item, lambda address: ours.get(address, max(sizes)))
    client = store.models.connection.client
    client.meta.events.register_first("before-send.dynamodb.BatchGetItem", table, unique_id="bench")
    found = {}
    try:
        for watched in sizes:
            table.watched, best = watched, float("inf")
            for _ in range(ROUNDS):
                table.calls = table.keys = 0
                began, other = time.thread_time(), table.seconds
                matched = Matcher(context).ours(moved)
                best = min(best, time.thread_time() - began - (table.seconds - other))
            if len(matched) != OURS or table.most > MOST_KEYS:
                raise AssertionError((matched, table.most))
            found[watched] = Figures(table.calls, table.keys, best * 1_000)
    finally:
        client.meta.events.unregister("before-send.dynamodb.BatchGetItem", table, unique_id="bench")
    return found


def measure(name: str, network: Network, transfers: list[Transfer]) -> bool:
    """Print what matching costs; whether it is the same for all of `WATCHED`."""
    found = figures(network, transfers)
    for watched, (calls, keys, cpu) in found.items():
        print(
            f"{name}: {len(transfers)} movements, {watched:,} watched: {calls} calls, {keys} keys, {keys} read units,"
            f" {cpu:.1f} ms CPU"
        )
    return len({(one.calls, one.keys) for one in found.values()}) == 1


def main() -> bool:
    from chalicelib.settings import Settings

    logging.disable(logging.WARNING)
    first_stack(start_aws(Settings.from_environment()))
    direct.end()  # the table here answers in the place of HTTP
    same = [measure(name, network, [t for block in found for t in block.transfers]) for name, network, found in blocks()]
    return all(same)


if __name__ == "__main__":
    sys.exit(not main())
