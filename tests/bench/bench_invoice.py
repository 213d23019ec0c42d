"""What a paid invoice is billed over its whole life: from the request to the last delivered webhook, and on to its expiry.

Run as a script: ``python tests/bench/bench_invoice.py [simulated] [ethereum] [polygon]``, all three where none is named, and the
simulated one with settings as they are while a version before 0.1.0 runs beside (`LARGER`).

`simulated` is the test realm's ethereum, without its chain's own table. `ethereum` and `polygon` are live networks on a node
(anvil) with a chain that is as old as their cursors remember: receipts are read, and the condition against double credit is asked.
Units are counted from the items' real sizes (accounting.py). Two counts of payments tell what one of them costs from what the
schedules cost anyhow. The round over all watched addresses is none of a payment's and does not run (RECONCILE_PAGE).
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"})

from tests.bench.accounting import Account, accounted  # noqa: E402
from tests.bench.receiving import receiver  # noqa: E402
from tests.support.stack import Stack  # noqa: E402

FEW, MANY = 4, 14
KEYS = 60  # a test key may ask 100 times a minute
EXPIRY_SECONDS = 3700
"""A little more than an invoice may take."""
OLD = 300
"""Blocks of a chain that is older than its cursor remembers: 257 on polygon."""
ETHER = 10**18
LARGER = "settings off"
SMALLER = ("PACKED_RECORDS", "SHORT_RECORDS", "ONE_ITEM_OUTBOX", "LOOKOUTS")
"""Settings that are off until every function has this version (docs/operating.md)."""
BUDGETS = ((90, 22), (135, 40))
"""Write units and calls: without webhooks, and with one endpoint that takes every event."""


class Ground(Protocol):
    """A network with a chain."""

    slug: str
    again: bool
    """Whether every count of payments may begin on the stack as it was first."""

    def pay(self, invoices: Sequence[dict[str, Any]]) -> None: ...

    def mine(self, count: int) -> None: ...


@dataclass(frozen=True)
class Simulated:
    """The test realm's chain, which the API drives."""

    stack: Stack
    keys: Iterator[str]
    slug: str = "ethereum"
    again: bool = True

    def pay(self, invoices: Sequence[dict[str, Any]]) -> None:
        for invoice in invoices:
            paid = {"address": invoice["address"], "network": self.slug, "coin": "eth", "amount": "0.05"}
            assert self.stack.call("POST", "/v1/sandbox/deposits", next(self.keys), paid).status == 201

    def mine(self, count: int) -> None:
        body = {"network": self.slug, "count": count}
        assert self.stack.call("POST", "/v1/sandbox/blocks", next(self.keys), body).status == 201


@dataclass(frozen=True)
class OnNode:
    """A live network. Its chain outlasts a reset of the stack, and would pay addresses that are given out twice."""

    rpc: Any
    slug: str
    again: bool = False

    def pay(self, invoices: Sequence[dict[str, Any]]) -> None:
        from infra.local import nodes

        # A block for each: what is paid in one block is recorded together, and costs less.
        self.rpc.call("evm_setAutomine", [False])
        for invoice in invoices:
            nodes.send_native(self.rpc, invoice["address"], ETHER // 20)
            nodes.mine(self.rpc, 1)
        self.rpc.call("evm_setAutomine", [True])

    def mine(self, count: int) -> None:
        from infra.local.nodes import mine

        mine(self.rpc, count)


@dataclass(frozen=True)
class Bill:
    """Of a number of invoices: units by table, and calls of AWS."""

    reads: Counter[str]
    writes: Counter[str]
    calls: int

    @classmethod
    def of(cls, parts: Sequence[Account]) -> Bill:
        reads, writes = Counter[str](), Counter[str]()
        for part in parts:
            for units, found in ((reads, part.reads), (writes, part.writes)):
                units.update({table.rsplit("-", 1)[1]: value for table, value in found.items() if "sandbox" not in table})
        return cls(reads, writes, sum(part.calls.total() for part in parts))


@dataclass(frozen=True)
class Price:
    """Of one invoice: write and read units, and calls of AWS."""

    writes: dict[str, float]
    reads: dict[str, float]
    calls: float

    @property
    def write_units(self) -> float:
        return sum(self.writes.values())


def life(stack: Stack, ground: Ground, keys: Iterator[str], count: int) -> Bill:
    """What `count` invoices are billed from the request to the time when nothing is left to do for them."""
    from chalicelib.wiring import services

    if ground.again:
        stack.reset()
    wanted = {"currency": coin_of(ground.slug), "network": ground.slug, "amount": "0.05", "description": "a thing"}
    parts = []
    with accounted(units=True) as part:
        invoices = [stack.call("POST", "/v1/invoices", next(keys), wanted).json for _ in range(count)]
        work_off(stack, ground)
    parts.append(part)
    with accounted():
        ground.pay(invoices)
    for blocks in (1, 300):
        with accounted():
            ground.mine(blocks)
        with accounted(units=True) as part:
            work_off(stack, ground)
        parts.append(part)
    done = stack.call("GET", f"/v1/invoices?id={invoices[0]['id']}", next(keys)).json
    assert done["status"] == "completed", done
    with accounted(units=True) as part:
        services().clock.shift_ms += EXPIRY_SECONDS * 1000
        work_off(stack, ground)
    parts.append(part)
    assert not [work for work in services().store.every_work() if work.kind in ("expiry", "outbox", "delivery", "deposit")]
    return Bill.of(parts)


def work_off(stack: Stack, ground: Ground) -> None:
    """Everything that clocks and queues would do for these payments."""
    stack.drain(hurry=True, only=(f"poll_{ground.slug}", "relay", "deliver", "housekeeping"))


def price(stack: Stack, ground: Ground, keys: Iterator[str]) -> Price:
    """What one invoice is billed: the slope between two counts of them."""
    life(stack, ground, keys, 1)
    few, many = life(stack, ground, keys, FEW), life(stack, ground, keys, MANY)
    return Price(_slope(few.writes, many.writes), _slope(few.reads, many.reads), (many.calls - few.calls) / (MANY - FEW))


def _slope(few: Counter[str], many: Counter[str]) -> dict[str, float]:
    found = {table: (many[table] - few[table]) / (MANY - FEW) for table in sorted(many)}
    return {table: value for table, value in found.items() if abs(value) >= 0.05}


def coin_of(slug: str) -> str:
    """A network's native coin."""
    from chalicelib.wiring import services

    return next(coin.slug for coin in services().catalogue("test").coins_of(slug) if coin.contract is None)


def keys_of(stack: Stack, name: str, realm: Any) -> list[str]:
    """Keys enough for all requests of this run."""
    from chalicelib.domain.ids import MerchantId
    from chalicelib.usecases.merchants.access import hash_key
    from chalicelib.wiring import services
    from infra.bootstrap import make_key

    merchant = services().gate.admit(hash_key(stack.keys[name]), realm, "standard", services().clock.now_ms())
    assert merchant is not None
    owner = MerchantId(merchant.key.merchant)
    return [make_key(services(), owner, realm, "client", ["full"], "bench") for _ in range(KEYS)]


def both(stack: Stack, ground: Ground, keys: Iterator[str]) -> tuple[Price, Price]:
    """The price without webhooks, and with one endpoint that takes every event."""
    stack.drain(hurry=True)  # nothing of before is left to do when payments are counted
    stack._fresh = stack.snapshot()
    quiet = price(stack, ground, keys)
    with receiver() as merchant:
        hook = stack.call("POST", "/v1/webhooks", next(keys), {"url": merchant.url(), "events": ["*"]})
        assert hook.status == 201, hook.body
        stack._fresh = stack.snapshot()
        return quiet, price(stack, ground, keys)


def over(found: Price, units: float, calls: float) -> list[str]:
    """What of a price is over its budget, by exact figures. A slope is a quotient: a thousandth of a unit is none."""
    parts = (("write units", found.write_units, units), ("calls", found.calls, calls))
    return [f"{value:.3f} {what} of {most:g}" for what, value, most in parts if value > most + 0.001]


def told(what: str, found: Price) -> str:
    """One row of Markdown."""
    parts = ", ".join(f"{table} {value:.1f}" for table, value in found.writes.items())
    return f"|{what}|{found.write_units:.1f}|{parts}|{sum(found.reads.values()):.1f}|{found.calls:.1f}|"


def main() -> int:
    logging.disable(logging.WARNING)
    os.environ["RECONCILE_PAGE"] = "0"
    from chalicelib.settings import Settings
    from chalicelib.workers import poll
    from infra.bootstrap import NodeInfo
    from infra.local.aws import start_aws
    from infra.local.nodes import Anvil, mine
    from tests.support.stack import first_stack

    poll.SECONDS = 3600.0  # counting units takes time, and a poll that runs out of it needs another round
    wanted = sys.argv[1:] or ["simulated", "ethereum", "polygon", LARGER]
    dear: list[str] = []
    aws = start_aws(Settings.from_environment())
    print("|paid invoice, whole life|write units|by table|read units|AWS calls|\n|---|---|---|---|---|", flush=True)
    with ExitStack() as open_nodes:
        ids = {"ethereum": 1, "polygon": 137}
        nodes = {slug: open_nodes.enter_context(Anvil(ids[slug])) for slug in wanted if slug in ids}
        for name in wanted:
            here = {name: nodes[name]} if name in nodes else {}
            os.environ.update(dict.fromkeys(SMALLER, "off" if name == LARGER else "on"))
            stack = first_stack(aws, {slug: NodeInfo(node.url) for slug, node in here.items()})
            realm = "live" if here else "test"
            keys = cycle(keys_of(stack, f"client_{realm}", realm))
            if here:
                mine(here[name].rpc, OLD)
                ground: Ground = OnNode(here[name].rpc, name)
            else:
                ground = Simulated(stack, keys)
            found = both(stack, ground, keys)
            for what, price_, (units, calls) in zip(("no webhooks", "one endpoint, all events"), found, BUDGETS, strict=True):
                print(told(f"{name}, {what}", price_), flush=True)
                if name != LARGER:
                    dear += [f"{name}, {what}: {line}" for line in over(price_, units, calls)]
    aws.stop()
    print(f"budgets of write units and calls, {BUDGETS}: " + ("BROKEN: " + "; ".join(dear) if dear else "kept"))
    return 1 if dear else 0


if __name__ == "__main__":
    sys.exit(main())
