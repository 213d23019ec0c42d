"""How long comparing 10,000,000 addresses with the chains takes a day, and what it costs: on paper, and played
(comparing_model.py).

Run as a script: ``python tests/bench/bench_comparing.py``. Exit code 1 where one takes over four hours or 5 USD with
nodes that answer within 250 ms.

Measured here: what a paid and collected deposit leaves in the tables `chain` and `ledger` for good, on the simulated ethereum, and
the CPU of reading a row and of comparing a place. Everything else is a constant below, with its source. The steps are those of
`usecases/reconciliation/walk.py` and `usecases/scanning/internal_transfers.py`, with their own bounds.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, cycle
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.update({"STAGE": "local", "SANDBOX_BLOCK_SECONDS": "0"})

from chalicelib.chains.evm.balances import many_balances, told_balances  # noqa: E402
from chalicelib.domain.addresses.addresses import Watched  # noqa: E402
from chalicelib.domain.ids import AssetId, NetworkId  # noqa: E402
from chalicelib.domain.reconciliation import PARTS, Comparison, Place, Seen  # noqa: E402
from chalicelib.settings import Settings  # noqa: E402
from chalicelib.usecases.reconciliation import together  # noqa: E402
from chalicelib.usecases.reconciliation.accounts import AT_ONCE  # noqa: E402
from chalicelib.usecases.reconciliation.walk import ENOUGH, LARGER, MOST_PAGES, MOST_PLACES  # noqa: E402
from chalicelib.workers.compare import SECONDS  # noqa: E402
from tests.bench.accounting import _size  # noqa: E402
from tests.bench.bench_requests import started  # noqa: E402
from tests.bench.comparing_model import Day, Job, Step, Tables  # noqa: E402
from tests.bench.latencies import NODE, READ, Latency  # noqa: E402
from tests.support.stack import Stack  # noqa: E402

ADDRESSES = 10_000_000
HOURS, USD = 4, 5
NODES = (0.1, 0.25)
"""Seconds of a node's answer."""
HEADS = ("hours of the slowest network; nodes 100 ms, 250 ms", "played", "USD a day; 100 ms, 250 ms", "played")

# Assumed, and its sources.
HOLDING = 0.01
"""The part of the addresses that has something at a time: deposits that wait for their collection. Assumed."""
PAGE_BYTES = 1 << 20
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html#Scan.Pagination"""
READ_UNIT, READ_USD, WRITE_USD = 4096, 0.125e-6, 0.625e-6
"""https://aws.amazon.com/dynamodb/pricing/on-demand/ (us-east-1). A Scan is eventually consistent: half a unit."""
GB_SECOND_USD, CALL_USD, MEMORY, WHOLE_CPU = 0.0000166667, 0.2e-6, 512, 1769
"""https://aws.amazon.com/lambda/pricing/ (x86). A function of 1,769 MB has one vCPU, others their share:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""
SCAN_S, KEY_S, WRITE_S = 0.100, 0.010, 0.015
"""A page of a megabyte, a read by key or a query, a write. Assumed: AWS promises single-digit milliseconds for single items."""
SCHEDULE_S = 300.0
WRITE_UNITS = 8
"""Of a step's record: up to 4 KB, in a transaction."""
COINS = {"ethereum": 6, "bsc": 5, "polygon": 5, "arbitrum": 5, "fantom": 4, "tron": 3, "bitcoin": 1, "litecoin": 1}
"""At least as many as the catalogue has; measured below where it has more."""
EVM = ("ethereum", "bsc", "polygon", "arbitrum", "fantom")


@dataclass(frozen=True)
class Measured:
    """Of one deposit, in bytes and rows for good; CPU in seconds at a whole core."""

    chain_bytes: float
    chain_rows: float
    ledger_bytes: float
    ledger_rows: float
    row_s: float
    place_s: float
    program_s: float


@dataclass(frozen=True)
class Work:
    """Of one network and day."""

    seconds: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.seconds + other.seconds, self.usd + other.usd)


def cpu(seconds: float) -> float:
    """On the function's share of a core."""
    return seconds * WHOLE_CPU / MEMORY


def scanned(size: float) -> float:
    """US dollars of going through so many bytes."""
    return size / READ_UNIT / 2 * READ_USD


def emptied(network: str, here: float, m: Measured, node_s: float) -> Work:
    """A day's part of the emptied addresses: `here` of them hold on the network."""
    rows = ADDRESSES * m.chain_rows / PARTS
    step = min(500, MOST_PLACES // (COINS[network] + 1)) * LARGER
    steps, mine = math.ceil(rows / step), here / PARTS
    usd = scanned(ADDRESSES * m.chain_bytes / PARTS) + steps * WRITE_UNITS * WRITE_USD
    seconds = steps * (SCAN_S * step * m.chain_bytes / m.chain_rows / PAGE_BYTES + KEY_S + WRITE_S)
    seconds += cpu(ADDRESSES / PARTS * m.row_s)
    if network in EVM:
        # One request for each coin, all at the same time: of up to some thousand addresses, 500 in a program.
        seconds += steps * node_s * (mine > 0) + cpu(mine * COINS[network] / 500 * m.program_s)
        return Work(seconds, usd)
    # The balance's row is read, and is gone once the deposit is archived; then each is a request, or a list of deposits.
    usd += mine * (COINS[network] + 1) * READ_USD
    seconds += mine / 100 * KEY_S + mine * m.place_s * WHOLE_CPU / MEMORY
    if network == "tron":
        return Work(seconds + on_tron(mine, steps, m, node_s), usd)
    return Work(seconds + mine * (2 * KEY_S + node_s / 200) / AT_ONCE, usd + mine * 3 * READ_USD)


def requests_of(mine: float, steps: float) -> float:
    """Of Tron, beside the two of each step that tell the height and the branch: those of a coin together, a hundred at a time."""
    return mine / together.MOST + steps * COINS["tron"] * (mine > 0)


def on_tron(mine: float, steps: float, m: Measured, node_s: float) -> float:
    """Seconds of telling so many balances. Two nodes are asked at the same time."""
    asked = requests_of(mine, steps) * max(node_s, together.APART_S) / together.AT_ONCE
    return 2 * steps * node_s + asked + cpu(mine / 500 * m.program_s)


def holding(network: str, here: float, m: Measured, node_s: float) -> Work:
    """Every address of the network that has something, by way of the ledger's balances."""
    pages = max(ADDRESSES * m.ledger_bytes / PAGE_BYTES, ADDRESSES * m.ledger_rows / (MOST_PLACES - ENOUGH))
    mine = here * HOLDING
    steps = max(pages / MOST_PAGES, mine / ENOUGH)
    usd = scanned(ADDRESSES * m.ledger_bytes) + steps * WRITE_UNITS * WRITE_USD + mine * 2 * READ_USD
    seconds = pages * SCAN_S + steps * (5 * KEY_S + WRITE_S) + mine / 100 * 2 * KEY_S
    seconds += cpu(here * m.row_s + mine * m.place_s)
    if network in EVM:
        return Work(seconds + steps * node_s, usd)
    if network == "tron":
        return Work(seconds + on_tron(mine, steps, m, node_s), usd)
    return Work(seconds + mine * (2 * KEY_S + node_s / 200) / AT_ONCE, usd + mine * 3 * READ_USD)


def gone_round(network: str, here: float, m: Measured, node_s: float) -> Work:
    """The round over all addresses, once a day."""
    if network not in EVM or not here:
        return Work()
    step = Settings().reconcile_page
    steps = ADDRESSES * m.chain_rows / step
    usd = scanned(ADDRESSES * m.chain_bytes) + steps * WRITE_UNITS / 4 * WRITE_USD + here * HOLDING * 2 * READ_USD
    seconds = steps * (SCAN_S * step * m.chain_bytes / m.chain_rows / PAGE_BYTES + 2 * KEY_S + WRITE_S + node_s)
    return Work(seconds + cpu(ADDRESSES * m.row_s + here / 500 * m.program_s), usd)


def day(network: str, here: float, m: Measured, node_s: float) -> Work:
    """The whole day of one network. Its function works `SECONDS` of each schedule's period, and is paid for those."""
    work = Work()
    for part in (emptied, holding, gone_round):
        work += part(network, here, m, node_s)
    calls = 86_400 / SCHEDULE_S
    return Work(work.seconds * SCHEDULE_S / SECONDS, work.usd + work.seconds * MEMORY / 1024 * GB_SECOND_USD + calls * CALL_USD)


def emptied_steps(network: str, here: float, m: Measured) -> Iterator[Step]:
    """The same as `emptied`, step by step. Rows that are not there in whole numbers are shared out evenly."""
    rows = ADDRESSES * m.chain_rows / PARTS
    count = math.ceil(rows / (min(500, MOST_PLACES // (COINS[network] + 1)) * LARGER))
    mine, size = here / PARTS / count, ADDRESSES * m.chain_bytes / PARTS / count
    row_cpu = ADDRESSES / PARTS / count * m.row_s
    for n in range(count):
        step = Step("chain", size, n / count / PARTS, cpu=cpu(row_cpu), units=(0.0, WRITE_UNITS))
        if network in EVM:
            asks = COINS[network] * min(1, math.ceil(mine))
            yield replace(step, nodes=asks, together=COINS[network], cpu=cpu(row_cpu + mine * COINS[network] / 500 * m.program_s))
        else:
            step = replace(step, reads=math.ceil(mine / 100), units=(mine * (COINS[network] + 1), WRITE_UNITS))
            yield of_places(network, step, mine, row_cpu, m)


def of_places(network: str, step: Step, mine: float, row_cpu: float, m: Measured) -> Step:
    """Where not a whole page's balances are one request: so many places of a step are asked for."""
    if network == "tron":
        asks = 2 * together.AT_ONCE + math.ceil(mine / together.MOST + COINS["tron"] * (mine > 0))  # the first two one by one
        spent = cpu(row_cpu + mine * m.place_s + mine / 500 * m.program_s)
        return replace(step, nodes=asks, together=together.AT_ONCE, least=together.APART_S, cpu=spent)
    asked = replace(step, waits=mine * 2 * READ.mean / AT_ONCE / 1_000, nodes=math.ceil(mine / 200), together=AT_ONCE)
    return replace(asked, cpu=cpu(row_cpu + mine * m.place_s), units=(step.units[0] + 3 * mine, step.units[1]))


def holding_steps(network: str, here: float, m: Measured) -> Iterator[Step]:
    """The same as `holding`, step by step."""
    size, rows = ADDRESSES * m.ledger_bytes, ADDRESSES * m.ledger_rows
    pages = max(size / PAGE_BYTES, rows / (MOST_PLACES - ENOUGH))
    count = math.ceil(max(pages / MOST_PAGES, here * HOLDING / ENOUGH))
    mine, row_cpu = here * HOLDING / count, here * m.row_s / count
    reads = 4 + math.ceil(mine / 100 * 2)
    for n in range(count):
        step = Step("ledger", size / count, n / count, math.ceil(pages / count), reads, units=(2 * mine, WRITE_UNITS))
        if network in EVM:
            yield replace(step, nodes=COINS[network], together=COINS[network], cpu=cpu(row_cpu + mine * m.place_s))
        else:
            yield of_places(network, step, mine, row_cpu, m)


def round_steps(network: str, here: float, m: Measured) -> Iterator[Step]:
    """The same as `gone_round`, step by step."""
    if network not in EVM or not here:
        return
    count = math.ceil(ADDRESSES * m.chain_rows / Settings().reconcile_page)
    spent = cpu((ADDRESSES * m.row_s + here / 500 * m.program_s) / count)
    units = (2 * here * HOLDING / count, WRITE_UNITS / 4)
    for n in range(count):
        yield Step("chain", ADDRESSES * m.chain_bytes / count, n / count, reads=1, nodes=1, cpu=spent, units=units)


def played(spread: dict[str, float], m: Measured, node_s: float, seed: int = 17) -> tuple[float, float, float]:
    """Hours of the slowest network, US dollars of all, and hours that functions waited for a partition's units."""
    luck = Random(seed)
    jobs = []
    for network in COINS:
        here = spread.get(network, 0.0)
        steps = chain(emptied_steps(network, here, m), holding_steps(network, here, m))
        jobs.append(Job(network, steps, round_steps(network, here, m)))
    tables = Tables(luck, {"chain": ADDRESSES * m.chain_bytes, "ledger": ADDRESSES * m.ledger_bytes})
    Day(tables, Latency(1_000 * node_s, 1_000 * node_s * NODE.p99 / NODE.p50, "as NODE"), luck).play(jobs)
    usd = sum(job.read_units * READ_USD + job.write_units * WRITE_USD for job in jobs)
    usd += sum(job.worked * MEMORY / 1024 * GB_SECOND_USD + 86_400 / SCHEDULE_S * CALL_USD for job in jobs)
    return max(job.ended for job in jobs) / 3600, usd, tables.held_up / 3600


CASES: dict[str, dict[str, float]] = {
    "all on ethereum": {"ethereum": ADDRESSES},
    "all on all five EVM networks": dict.fromkeys(EVM, float(ADDRESSES)),
    "all on tron": {"tron": ADDRESSES},
    "all on bitcoin": {"bitcoin": ADDRESSES},
    "spread over the eight": dict.fromkeys(COINS, ADDRESSES / 8),
}


def left(stack: Stack, keys: Any, count: int) -> dict[str, tuple[int, int]]:
    """Bytes and rows in the tables after `count` deposits, each collected and watched no more."""
    from chalicelib.wiring import services

    stack.reset()
    asked = {"coin": "eth", "network": "ethereum", "collectThreshold": "0"}
    assert stack.call("PUT", "/v1/coins", stack.keys["admin_test"], json=asked).status == 200
    for _ in range(count):
        body = {"currency": "eth", "network": "ethereum", "amount": "1"}
        address = stack.call("POST", "/v1/invoices", next(keys), body).json["address"]
        pay = {"address": address, "network": "ethereum", "coin": "eth", "amount": "1"}
        assert stack.call("POST", "/v1/sandbox/deposits", next(keys), pay).status == 201
    chain = services().simulated(services().catalogue("test").networks["ethereum"].id)
    for _ in range(8):
        stack.drain(only=("poll_ethereum", "relay", "payout", "collect"), hurry=True)
        chain.mine(30)
        services().clock.shift_ms += 61_000
    client, found = services().store.models.connection.client, {}
    for table in ("chain", "ledger"):
        items: list[Any] = []
        asks: dict[str, Any] = {"TableName": services().settings.table(table)}
        while True:
            page = client.scan(**asks)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            asks["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        found[table] = sum(_size(item) for item in items), len(items)
    return found


def timed(job: Any, times: int) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    for _ in range(times):
        job()
    return (time.process_time() - began) / times


def measured() -> Measured:
    few, many = 2, 12
    stack, made = started()
    logging.disable(logging.ERROR)
    stack._fresh = stack.snapshot()
    keys = cycle(made)
    low, high = left(stack, keys, few), left(stack, keys, many)
    slopes = {table: [(b - a) / (many - few) for a, b in zip(low[table], high[table], strict=True)] for table in low}
    from chalicelib.wiring import services

    store = services().store
    watched = next(each for each in store.every(Watched) if each.role == "user")
    raw = store.sweep(Watched, limit=400, realm=watched.realm, family=watched.family)
    assert raw.items
    model = store.models.of(Watched)
    item = store._call("Scan", {"TableName": model.Meta.table_name, "FilterExpression": "begins_with(pk, :b)",
        "ExpressionAttributeValues": {":b": {"S": "watch#"}}})["Items"][0]  # fmt: skip
    # What botocore parses, and what is made of it.
    text = json.dumps(item)
    row_s = timed(lambda: (json.loads(text), store.models.record(Watched, model.from_raw_data(item))), 5_000)
    state = Comparison(NetworkId("live:ethereum"), "rec", 0, 0, phase="walk")
    seen = [Seen(Place(f"0x{n:040x}", "user", AssetId("live:ethereum:eth")), n, 0, n, n, 0, 7) for n in range(500)]
    place_s = timed(lambda: state.seeing(seen, 1, {}), 20) / len(seen)
    addresses = [f"0x{n:040x}" for n in range(500)]
    answer = "0x" + "00" * 32 * len(addresses)
    program_s = timed(lambda: (many_balances(addresses), told_balances(answer, len(addresses))), 50)
    (chain_bytes, chain_rows), (ledger_bytes, ledger_rows) = slopes["chain"], slopes["ledger"]
    return Measured(chain_bytes, chain_rows, ledger_bytes, ledger_rows, row_s, place_s, program_s)


def main() -> int:
    m = measured()
    tell(m)
    over = []
    print(f"|10,000,000 addresses|{'|'.join(HEADS)}|\n|---|---|---|---|---|")
    for name, spread in CASES.items():
        paper, shown, waited = [], [], []
        for node_s in NODES:
            works = [day(network, spread.get(network, 0.0), m, node_s) for network in COINS]
            paper.append((max(work.seconds for work in works) / 3600, sum(work.usd for work in works)))
            hours, usd, held_up = played(spread, m, node_s)
            shown.append((hours, usd))
            waited.append(f"{held_up:.2f}")
        over += [f"{name}: {h:.1f} h, {usd:.2f} USD" for h, usd in (*paper, *shown) if h > HOURS or usd > USD]
        columns = [";".join(f"{each[what]:.{1 + what}f}" for each in of) for what in (0, 1) for of in (paper, shown)]
        print(f"|{name}|{'|'.join(columns)}|", flush=True)
        print(f"{name}: functions waited {' and '.join(waited)} hours for partitions")
    print(f"budgets of {HOURS} hours and {USD} USD: " + ("BROKEN: " + "; ".join(over) if over else "kept"))
    return int(bool(over))


def tell(m: Measured) -> None:
    """What was measured, and the parts of one network's day."""
    print(f"a deposit leaves {m.chain_bytes:.0f} bytes in {m.chain_rows:.1f} rows of chain, ", end="")
    print(f"{m.ledger_bytes:.0f} in {m.ledger_rows:.1f} of ledger", flush=True)
    print(f"CPU: a row {1e6 * m.row_s:.0f} µs, a place {1e6 * m.place_s:.0f} µs, 500 balances {1e3 * m.program_s:.2f} ms")
    step = min(500, MOST_PLACES // (COINS["tron"] + 1)) * LARGER
    steps = math.ceil(ADDRESSES * m.chain_rows / PARTS / step)
    asked = requests_of(ADDRESSES / PARTS, steps) + 2 * steps + requests_of(ADDRESSES * HOLDING, ADDRESSES * HOLDING / ENOUGH)
    print(f"tron alone: {asked:.0f} requests of each node a day, {together.AT_ONCE / together.APART_S:.0f} a second at most")
    parts = {part.__name__: part("ethereum", ADDRESSES, m, 0.1) for part in (emptied, holding, gone_round)}
    print("ethereum alone, node 100 ms:", ", ".join(f"{n} {w.seconds / 3600:.2f} h {w.usd:.2f} USD" for n, w in parts.items()))


if __name__ == "__main__":
    sys.exit(main())
