"""What operations cost as data grows: calls of AWS, request units and CPU, from ten records to millions.

Run as a script: ``python tests/bench/bench_growth.py``; growth_plot.py draws docs/growth.svg of it. Numbers over 10,000 are rows
that are made when they are looked at (many_rows.py): the code, its queries and their pages are the real ones. Units are counted by
accounting.py. CPU is the function's, without moto's, the median of rounds. That DynamoDB answers as fast from a large table is
AWS's promise. Budget: at the largest size at most a tenth more calls and units than at the smallest, and half as much CPU more. A
list's number, which its first pages tell, is counted up to 10,000, and is no part of that.
"""

from __future__ import annotations

import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"})

from chalicelib.domain.ids import TenantId, first_id  # noqa: E402
from chalicelib.wiring import services  # noqa: E402
from tests.bench import many_rows  # noqa: E402
from tests.bench.accounting import accounted  # noqa: E402
from tests.bench.bench_requests import INVOICE, started  # noqa: E402
from tests.support.receiver import Receiver  # noqa: E402

ROUNDS = 5
INVOICES = (10, 1_000, 100_000, 1_000_000)
WORK = (0, 1_000, 100_000, 1_000_000)
ENDPOINTS = (1, 100, 10_000)
PAGES = (1, 10, 50, 100)
WATCHED = (1_000, 100_000, 10_000_000)
LISTED = "/invoices/getAll?limit=5"
LONG_AGO = 1_600_000_000_000
LONG_HENCE = 4_000_000_000_000


@dataclass(frozen=True)
class Point:
    """Of one operation at one size. CPU in ms."""

    calls: float
    writes: float
    reads: float
    cpu: float


Series = dict[str, dict[int, Point]]
"""By operation and size."""


class Bench:
    def __init__(self) -> None:
        self.stack, made = started()
        logging.disable(logging.ERROR)
        self.keys = cycle(made)
        self.stack.drain(hurry=True)
        self.stack._fresh = self.stack.snapshot()

    def anew(self) -> None:
        self.stack.reset()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.stack.call(method, f"/v1{path}", next(self.keys), body)
        if answer.status not in (200, 201):
            raise AssertionError(answer.body)
        return answer.json

    def point(self, act: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> Point:
        """What `act` costs. `before` is done before each time, at no cost."""
        spent = []
        for turn in range(ROUNDS + 1):
            before()
            with accounted() as account:
                began = time.process_time()
                act()
                spent.append((time.process_time() - began - account.moto) * 1_000)
            if turn == 0:
                spent.clear()  # what the process remembers is there now
        before()
        with accounted(units=True) as account:
            act()
        ours = sum("-sandbox" not in str(sent) for _, _, sent in account.sent)
        writes, reads = (
            sum(value for table, value in units.items() if "sandbox" not in table) for units in (account.writes, account.reads)
        )
        return Point(ours, writes, reads, statistics.median(spent))


def tenant() -> TenantId:
    """Whose the first invoice is: the merchant of the bench's keys."""
    from chalicelib.domain.invoices.invoices import Invoice

    return next(iter(services().store.every(Invoice))).tenant


def fill_invoices(owner: TenantId, count: int) -> None:
    """So many invoices of `owner`, from before all real ones."""
    from chalicelib.domain.invoices.invoices import Invoice

    made = Invoice(
        id="inv_", tenant=owner, network="test:ethereum", asset="test:ethereum:eth", address="0x0", address_id="addr_0",
        amount=10**18, created_at=LONG_AGO, expires_at=LONG_AGO, status="expired",
    )  # type: ignore[arg-type]  # fmt: skip

    def vary(n: int) -> dict[str, str | int]:
        id = f"{first_id('inv', LONG_AGO + n * 1_000)}{n:016d}"
        return {"sk": id, "id": id, "time_sk": id, "tx_hash_pk": f"inv#{id}", "created_at": LONG_AGO + n * 1_000}

    store = services().store
    many_rows.lay(store, store.models.item(made), count, vary)


def of_invoices(bench: Bench) -> Series:
    found: Series = {}
    for count in INVOICES:
        bench.anew()
        first = bench.ask("POST", "/invoices", INVOICE)
        fill_invoices(tenant(), count)
        cursor = bench.ask("GET", LISTED)["meta"]["pagination"]["next_cursor"]
        for name, act in {
            "create an invoice": lambda: bench.ask("POST", "/invoices", INVOICE),
            "read an invoice": lambda id=first["id"]: bench.ask("GET", f"/invoices?id={id}"),
            "list by cursor": lambda behind=cursor: bench.ask("GET", f"{LISTED}&cursor={behind}"),
            "list, with its number": lambda: bench.ask("GET", LISTED),
        }.items():
            found.setdefault(name, {})[count] = bench.point(act)
    return found


def of_pages(bench: Bench) -> Series:
    bench.anew()
    bench.ask("POST", "/invoices", INVOICE)
    fill_invoices(tenant(), 10_000)
    found: Series = {"by cursor": {}, "by number": {}}
    behind, page = None, 1
    for wanted in PAGES:
        while page < wanted:
            path = LISTED + (f"&cursor={behind}" if behind else "")
            behind, page = bench.ask("GET", path)["meta"]["pagination"]["next_cursor"], page + 1
        by_cursor = LISTED + (f"&cursor={behind}" if behind else "")
        found["by cursor"][wanted] = bench.point(lambda path=by_cursor: bench.ask("GET", path))
        found["by number"][wanted] = bench.point(lambda n=wanted: bench.ask("GET", f"{LISTED}&page={n}"))
    return found


def of_work(bench: Bench) -> Series:
    """A poll and a payment's detection, while so many invoices are open, deposits wait, and deliveries are due later."""
    found: Series = {"poll an empty block": {}, "detect a payment": {}}
    for count in WORK:
        bench.anew()
        store = services().store

        def lay(kind: str, lane: str, order: Callable[[int], str], time_pk: str | None, number: int, store: Any = store) -> None:
            raw = store.models.work(
                f"{kind}#{lane}", f"{order(0)}#id", work_kind=kind, lane=lane, order=order(0), work_id="id", time_pk=time_pk
            )
            many_rows.lay(store, raw, number, lambda n: {"sk": f"{order(n)}#{n:09d}", "order": order(n), "work_id": f"{n:09d}"})

        lay("expiry", "test:ethereum", lambda n: f"{LONG_HENCE + n:015d}", None, count)
        lay("deposit", "test:ethereum", lambda n: f"{10**12 + n:015d}", None, count)
        lay("delivery", "mch_other:test|wh_1", lambda n: f"{LONG_HENCE + n:015d}", None, count)
        network = services().catalogue("test").networks["ethereum"]
        chain = services().simulated(network.id)
        found["poll an empty block"][count] = bench.point(
            lambda: bench.stack.drain(only=("poll_ethereum",), rounds=1), lambda chain=chain: chain.mine(1)
        )

        def paid() -> None:
            invoice = bench.ask("POST", "/invoices", INVOICE)
            body = {"address": invoice["address"], "network": "ethereum", "coin": "eth", "amount": "0.05"}
            bench.ask("POST", "/sandbox/deposits", body)

        found["detect a payment"][count] = bench.point(lambda: bench.stack.drain(only=("poll_ethereum",), rounds=1), paid)
    return found


def of_endpoints(bench: Bench) -> Series:
    """One event for one endpoint, told and sent, while so many endpoints are registered, 20 of a merchant."""
    from chalicelib.domain.webhooks.endpoints import WebhookEndpoint

    found: Series = {"tell and send an event": {}}
    with Receiver() as receiver:
        for count in ENDPOINTS:
            bench.anew()
            bench.ask("POST", "/webhooks", {"url": receiver.url(), "events": ["*"]})
            store = services().store
            secret = next(iter(store.every(WebhookEndpoint)))
            for n in range(count - 1):
                other = WebhookEndpoint(
                    TenantId(f"mch_{n // 20:05d}:test"), f"wh_{n:06d}", receiver.url(), ("*",), secret.secret, LONG_AGO, sealed=True
                )
                many_rows.put(store, store.models.item(other))
            found["tell and send an event"][count] = bench.point(
                lambda: bench.stack.drain(only=("relay", "deliver"), rounds=1, hurry=True),
                lambda: bench.ask("POST", "/invoices", INVOICE),
            )
    return found


def of_watched() -> Series:
    """Recipients of a block of ethereum, looked up (bench_matching.py)."""
    from infra.local.repairs import direct
    from tests.bench import bench_matching

    direct.end()
    _, network, blocks = next(found for found in bench_matching.blocks() if found[0].startswith("ethereum"))
    transfers = [transfer for block in blocks for transfer in block.transfers]
    measured = bench_matching.figures(network, transfers, WATCHED)
    return {"match a block": {count: Point(one.calls, 0, one.keys, one.cpu) for count, one in measured.items()}}


def rows(title: str, series: Series) -> Iterator[str]:
    sizes = list(next(iter(series.values())))
    yield f"|{title}|" + "|".join(f"{size:,}" for size in sizes) + "|"
    yield "|---|" + "---|" * len(sizes)
    for name, points in series.items():
        shown = "|".join(f"{p.calls:g};{p.writes:g}/{p.reads:g};{p.cpu:.1f}" for p in points.values())
        yield f"|{name}|{shown}|"


def flat(series: Series) -> list[str]:
    """What grew."""
    grew = []
    for name, points in series.items():
        if "number" in name:
            continue
        first, last = (list(points.values())[place] for place in (0, -1))
        for what, before, after, much in (
            ("calls", first.calls, last.calls, 1.1), ("write units", first.writes, last.writes, 1.1),
            ("read units", first.reads, last.reads, 1.1), ("CPU", first.cpu, last.cpu, 1.5),
        ):  # fmt: skip
            if after > before * much:
                grew.append(f"{name}: {what} {before:.1f} → {after:.1f}")
    return grew


def main() -> int:
    bench = Bench()
    parts = {
        "invoices of a merchant": of_invoices(bench),
        "page": of_pages(bench),
        "open work": of_work(bench),
        "endpoints": of_endpoints(bench),
    }
    parts["watched addresses"] = of_watched()
    bench.stack.aws.stop()
    for title, series in parts.items():
        print("\n".join(rows(title, series)) + "\n")
    grew = [line for series in parts.values() for line in flat(series)]
    print("budget: " + ("kept" if not grew else "BROKEN: " + "; ".join(grew)))
    return 1 if grew else 0


if __name__ == "__main__":
    sys.exit(main())
