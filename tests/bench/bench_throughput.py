"""How many payments a second one network and one merchant's coin can have: CPU and calls measured, DynamoDB modelled.

Run as a script: ``python tests/bench/bench_throughput.py``.

Measured on the local stack: a block with payments to one merchant is detected and confirmed by the real poll; the slope between
few and many of them is a payment's CPU, calls and request units, and its transactions say which items are a payment's own and which
it shares with others of its merchant. What DynamoDB and Lambda make of that is `dynamo_model.py`, with its constants.
Budget: 200 a second on one network, 50 for one merchant in one coin, 1,000 of one block credited within 5 s, at the assumed
latencies and by one of the plans; beside each figure stands the one at twice the latencies.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.update({"STAGE": "local", "SANDBOX_BLOCK_SECONDS": "0"})

import pytest  # noqa: E402

from chalicelib.domain.invoices.totals import SHARDS  # noqa: E402
from chalicelib.usecases.base.side_by_side import AT_ONCE  # noqa: E402
from chalicelib.usecases.deposits.groups import DepositGroups  # noqa: E402
from chalicelib.usecases.ports.changes import MOST_ITEMS  # noqa: E402
from chalicelib.usecases.scanning.sharing import SHARE  # noqa: E402
from chalicelib.wiring import services  # noqa: E402
from tests.bench import dynamo_model as model  # noqa: E402
from tests.bench.accounting import Account, accounted  # noqa: E402
from tests.bench.bench_requests import INVOICE, started  # noqa: E402
from tests.bench.dynamo_model import OF_MERCHANT, Outcome, Plan, Play, Shape  # noqa: E402
from tests.bench.latencies import memory  # noqa: E402
from tests.support.shop import Shop, bent_node, with_also  # noqa: E402
from tests.support.stack import Stack  # noqa: E402

FEW, MANY = 12, 48
ROUNDS = 3
FAN = 8
"""Functions `record` at a time (app.py: a test compares them)."""


@dataclass(frozen=True)
class Measured:
    """Of one payment of a block with many, by one kind of step: CPU in ms without moto's, calls, write units, transactions."""

    cpu: float
    calls: float
    writes: float
    commits: float
    shape: Shape


def block_of(stack: Stack, keys: Iterator[str], count: int, patch: pytest.MonkeyPatch) -> Shop:
    """A block with `count` payments of one merchant in one coin, each to an address of its own and in a transaction of its own."""
    stack.reset()
    shop = Shop(stack)
    node = bent_node(shop, patch)
    made = [stack.call("POST", "/v1/invoices", next(keys), INVOICE).json["address"] for _ in range(count)]
    paid = shop.pay(made[0], "0.05")
    reader = services().reader(shop.realm_network())
    (block,) = [one for one in reader.blocks(paid["blockNumber"], paid["blockNumber"], frozenset()) if one.transfers]
    (first,) = block.transfers
    # A simulated block holds one transaction: the others are put beside it.
    others = [first._replace(txid=f"0x{n:064x}", recipient=address.lower()) for n, address in enumerate(made[1:], 1)]
    with_also(node, others, block.hash)
    return shop


def polled(shop: Shop, *, units: bool) -> tuple[float, Account]:
    """One poll: its CPU in ms without moto's, and its account."""
    with accounted(units=units) as account:
        began = time.process_time()
        shop.stack.drain(only=("poll_ethereum",), rounds=1)
        spent = time.process_time() - began - account.moto
    return spent * 1_000, account


def measured(stack: Stack, keys: Iterator[str], *, confirm: bool, groups: bool) -> Measured:
    """What a payment's detection costs, or its confirmation, where a block holds many: in groups, or each alone."""
    found = []
    for count in (FEW, MANY):
        figures = []
        for units in (False,) * ROUNDS + (True,):
            with pytest.MonkeyPatch.context() as patch:
                if not groups:
                    patch.setattr(DepositGroups, "detect", lambda self, network, coin, scanned, members, *_, **__: members)
                    patch.setattr(DepositGroups, "confirm", lambda self, network, keys, *_: keys)
                shop = block_of(stack, keys, count, patch)
                if confirm:
                    shop.stack.drain(only=("poll_ethereum",), rounds=2)
                    shop.mine()
                figures.append(polled(shop, units=units))
        # The least: what disturbs on a shared machine only adds.
        cpu, account = min(spent for spent, _ in figures[:-1]), figures[-1][1]
        sent = [(name, body) for _, name, body in account.sent if "-sandbox" not in str(body)]
        writes = sum(value for table, value in account.writes.items() if "sandbox" not in table)
        commits = [body["TransactItems"] for name, body in sent if name == "TransactWriteItems"]
        indexed = Counter({key: units for key, units in account.indexed.items() if "sandbox" not in key[0]})
        by_table = {table: value for table, value in account.writes.items() if "sandbox" not in table}
        for (table, _, _), units in indexed.items():
            by_table[table] -= units
        found.append(((cpu, len(sent), writes, len(commits)), commits, by_table, indexed))
    (few, *_), (many, commits, by_table, indexed) = found
    cpu, calls, writes, times = ((after - before) / (MANY - FEW) for before, after in zip(few, many, strict=True))
    shape = replace(shape_of(commits, MANY, by_table, calls, cpu), indexed=index_rows(indexed, MANY))
    return Measured(cpu, calls, writes, times, shape)


def units_of(transactions: list[Any], by_table: dict[str, float]) -> dict[str, float]:
    """Write units of an item of a transaction, by table, without those of its index rows."""
    parts = Counter(
        next(iter(part.values()))["TableName"].rsplit("-", 1)[1] for transaction in transactions for part in transaction
    )
    written = Counter[str]()
    for table, units in by_table.items():
        written[table.rsplit("-", 1)[-1]] += units
    return {table: written[table] / count for table, count in parts.items()}


def index_rows(indexed: Counter[tuple[str, str, str]], payments: int) -> tuple[tuple[str, str, float], ...]:
    """The rows of indexes that a payment moves: index, prefix of the partition key that payments have together, units."""
    found = Counter[tuple[str, str]]()
    for (table, index, pk), units in indexed.items():
        several = Counter({(table, pk): units - 2})  # an item that is moved there takes two
        found[f"{table.rsplit('-', 1)[1]}.{index}", together(table, pk, several)] += units
    return tuple((index, prefix, units / payments) for (index, prefix), units in sorted(found.items()))


def together(table: str, pk: str, keys: Counter[tuple[str, str]]) -> str:
    """The prefix of a partition key that several payments' items have, and whose it is; empty where each has one of its own."""
    if keys[table, pk] < 2:
        return ""
    return f"{pk.partition('#')[0]}#" + (OF_MERCHANT if "mch_" in pk else "")


def shape_of(transactions: list[Any], payments: int, by_table: dict[str, float], calls: float, cpu: float) -> Shape:
    """What a payment's transaction is made of: an item that several transactions have is shared. A further payment of a group is
    taken for half the CPU of the first. Sums lie in as many shards as there are, however many these transactions met."""
    met: Counter[tuple[str, str, str]] = Counter()
    kinds: dict[tuple[str, str, str], set[str]] = {}
    for transaction in transactions:
        for part in transaction:
            ((kind, body),) = part.items()
            key = body["Key"] if "Key" in body else {name: body["Item"][name] for name in ("pk", "sk")}
            place = (body["TableName"].rsplit("-", 1)[1], key["pk"]["S"], key["sk"]["S"])
            met[place] += 1
            kinds.setdefault(place, set()).add(
                "add"
                if kind == "Update" and "ConditionExpression" not in body
                else "check"
                if kind == "ConditionCheck"
                else "write"
            )
    alone = [(table, pk) for (table, pk, _), times in met.items() if times == 1]
    keys = Counter(alone)
    own = Counter((table, together(table, pk, keys)) for table, pk in alone)
    again = [place for place, times in met.items() if times > 1 and not place[1].startswith("block#")]
    added = sorted({table for (table, pk, _), of in kinds.items() if of == {"add"} and pk.startswith("sum#")})
    others = [place for place in again if kinds[place] != {"add"}]
    checked = [place[0] for place in others if kinds[place] == {"check"}]
    shared = [place[0] for place in others if kinds[place] != {"check"}]
    each = tuple(place for place, count in sorted(own.items()) for _ in range(round(count / payments)))
    each_holds = payments / len(transactions)
    more = cpu / 2 if each_holds < 1.5 else cpu * each_holds / (each_holds + 1)
    return Shape(
        own=each,
        shared=tuple(shared),
        added=tuple((table, SHARDS) for table in added),
        checked=tuple(checked),
        units=units_of(transactions, by_table),
        reads=max(1, round(calls * each_holds - 1)),
        cpu_ms=max(cpu, 2 * more),
        cpu_more_ms=more,
    )


@dataclass(frozen=True)
class Case:
    """`numbers`: payments of a block, by merchant and coin. Either so many a second are detected and confirmed, each minute as many
    as the next, or a block's payments are confirmed within so many seconds."""

    name: str
    numbers: tuple[int, ...]
    rate: float = 0.0
    seconds: float = 0.0
    wanted: bool = True


CASES = (
    Case("200/s for 100 merchants", (24,) * 100, rate=200.0),
    Case("50/s for one merchant", (600,), rate=50.0),
    Case("block of 1,000 for 20 merchants", (50,) * 20, seconds=5.0),
    Case("block of 1,000 for one", (1_000,), seconds=5.0, wanted=False),
    Case("500/s for 250 merchants", (24,) * 250, rate=500.0, wanted=False),
)
WARMED = 12_000
"""Write units a second that each table is warmed to."""


def plans() -> dict[str, Plan]:
    """As it was, and as it is: the poll alone; functions beside it where a block is crowded, with new tables and warmed ones."""
    poll = Plan(memory=memory("poll_ethereum"))
    several = replace(poll, threads=AT_ONCE)
    grouped = replace(several, bound=MOST_ITEMS, ordered=True)
    beside = replace(grouped, functions=FAN, memory=memory("record"), share=SHARE, fan_out=True)
    warmed = replace(beside, partitions=WARMED // 1_000)
    found = {"singles": poll, f"{AT_ONCE} singles": several, f"{AT_ONCE} groups": grouped}
    return found | {f"{FAN} functions": beside, "warmed tables": warmed}


Steps = tuple[Measured, Measured]
"""Detection and confirmation."""


def played(steps: Steps, plan: Plan, case: Case) -> tuple[float, list[Outcome]]:
    """Seconds until a block's payments are detected and confirmed, or confirmed alone, and how each went."""
    # What goes on all the time finds its functions warm.
    plan = replace(plan, fan_out=plan.fan_out and not case.rate)
    # To record, a function reads the block, its proofs and its hash; to credit, the hash.
    shapes = [replace(steps[0].shape, nodes=3), steps[1].shape]
    outcomes = [Play(shape, plan, case.numbers).run() for shape in (shapes if case.rate else shapes[1:])]
    return sum(outcome.seconds for outcome in outcomes), outcomes


def verdict(case: Case, seconds: float) -> bool:
    return seconds <= case.seconds if case.seconds else sum(case.numbers) / seconds >= case.rate


def first_limit(outcomes: list[Outcome], plan: Plan, seconds: float) -> str:
    """What gives way first as payments become more: what is used most of what there is."""
    cpu = sum(outcome.cpu for outcome in outcomes) / (seconds * plan.functions * plan.speed)
    hottest = max(outcome.hottest for outcome in outcomes) / model.PARTITION_WRITES
    refused = sum(outcome.conflicts for outcome in outcomes) / sum(outcome.commits + outcome.conflicts for outcome in outcomes)
    key, units = max((outcome.hottest_key for outcome in outcomes), key=lambda one: one[1])
    used = {"CPU": cpu, "a partition's write units": hottest, "conflicts": refused, f"`{key}`": units / model.PARTITION_WRITES}
    if used[f"`{key}`"] > 0.9 * hottest:
        del used["a partition's write units"]
    name = max(used, key=lambda key: used[key])
    return f"{name} {used[name]:.0%}" if used[name] >= 0.5 else f"calls one after the other (CPU {cpu:.0%})"


def tables(singles: Steps, groups: Steps) -> tuple[list[str], bool]:
    """The page's lines, and whether the budget is kept by the best plan."""
    lines = ["|a payment's|CPU ms|calls|write units|items: own, shared, counted up|", "|---|---|---|---|---|"]
    names = ("detection alone", "confirmation alone", "detection in groups", "confirmation in groups")
    for name, one in zip(names, (*singles, *groups), strict=True):
        shape = one.shape
        items = f"{len(shape.own)}, {len(shape.shared) + len(shape.checked)}, {len(shape.added)}"
        lines.append(f"|{name}|{one.cpu:.1f}|{one.calls:.1f}|{one.writes:.0f}|{items}|")
    lines += ["", "|case|" + "|".join(plans()) + "|refused|first|", "|---|" + "---|" * (len(plans()) + 2)]
    kept = True
    for case in CASES:
        cells, met, last = [], False, ""
        for plan in plans().values():
            if not case.wanted and not plan.threads > 1:
                cells.append("")
                continue
            steps = groups if plan.bound else singles
            seconds, outcomes = played(steps, plan, case)
            slower, _ = played(steps, replace(plan, slower=2.0), case)
            count = sum(case.numbers)
            shown = (f"{count / seconds:.0f}", f"{count / slower:.0f}") if case.rate else (f"{seconds:.1f} s", f"{slower:.1f} s")
            cells.append(";".join(shown).replace(" ", "\N{NO-BREAK SPACE}"))
            refused = sum(o.conflicts for o in outcomes) / sum(o.commits + o.conflicts for o in outcomes)
            last = f"{refused:.0%}|{first_limit(outcomes, plan, seconds)}"
            met = met or verdict(case, seconds)
        lines.append(f"|{case.name}|{'|'.join(cells)}|{last}|")
        kept = kept and (met or not case.wanted)
    return lines, kept


def main() -> int:
    stack, keys = started()
    logging.disable(logging.ERROR)
    stack.drain(hurry=True)
    stack._fresh = stack.snapshot()
    turns = cycle(keys)
    measured(stack, turns, confirm=False, groups=True)  # warm
    singles, groups = (
        tuple(measured(stack, turns, confirm=confirm, groups=grouped) for confirm in (False, True)) for grouped in (False, True)
    )
    lines, kept = tables(singles, groups)  # type: ignore[arg-type]
    stack.aws.stop()
    print("\n".join(lines))
    print(f"budget: {'kept' if kept else 'BROKEN'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
