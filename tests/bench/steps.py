"""What every step of the main paths costs, one by one: calls of AWS, and the request units that DynamoDB bills.

The table is `costs.md` beside this file; `tests/contract/api/test_step_costs.py` compares it with what steps cost now, exactly.
`python -m tests.bench.steps` writes it anew.

Each path is walked twice, and the second walk counts: what a process remembers, and what is made once for a merchant, is there.
Time stands still but for a millisecond at each look, and what is remembered for seconds is remembered for hours: a slow machine
counts the same. The simulated chain's own table is left out (accounting.py says how units are counted).
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"})

from chalicelib.wiring import services  # noqa: E402
from chalicelib.wiring.parts import SystemClock  # noqa: E402
from tests.bench.accounting import Account, accounted  # noqa: E402
from tests.support.receiver import Receiver  # noqa: E402
from tests.support.stack import Stack  # noqa: E402

TABLE = Path(__file__).with_name("costs.md")
RENEW = ".venv/bin/python -m tests.bench.steps"
START = 1_790_000_000_000
PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example
CONFIRMATIONS = 12
SETTLED = 80
"""Blocks after which no reorganisation is followed any more on the simulated ethereum, and what is settled is not watched."""
HEAD = """What each step costs, on a simulated ethereum: `python -m tests.bench.steps` writes this table (`tests/bench/steps.py`).

|step|calls|write units|read units|which calls|writes|reads|
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Cost:
    """Calls of AWS by name; units by table."""

    calls: dict[str, int]
    writes: dict[str, float]
    reads: dict[str, float]

    @classmethod
    def of(cls, account: Account) -> Cost:
        calls = Counter(name for _, name, sent in account.sent if "-sandbox" not in str(sent))
        writes, reads = (
            {table.rsplit("-", 1)[1]: float(count) for table, count in units.items() if "sandbox" not in table}
            for units in (account.writes, account.reads)
        )
        return cls(dict(calls), writes, reads)

    def row(self, name: str) -> str:
        parts = (self.calls, self.writes, self.reads)
        totals = "|".join(f"{sum(part.values()):g}" for part in parts)
        named = "|".join(", ".join(f"{key} {part[key]:g}" for key in sorted(part) if part[key]) for part in parts)
        return f"|{name}|{totals}|{named}|"


@contextmanager
def still() -> Iterator[None]:
    """Time as this module's first lines say."""
    ticks, began, real = iter(range(START, START + 10**9)), time.monotonic(), time.monotonic
    with (
        patch.object(SystemClock, "now_ms", lambda self: next(ticks) + self.shift_ms),
        patch.object(time, "monotonic", lambda: began + (real() - began) / 1_000),
    ):
        yield


@dataclass
class Walk:
    """One walk along all paths. `costs` by the step's name, in order."""

    stack: Stack
    hook: str
    counts: bool = True
    costs: dict[str, Cost] = field(default_factory=dict)

    def step(self, name: str, act: Callable[[], Any]) -> Any:
        """Do `act` and note what it costs; what it returns."""
        if name in self.costs:
            raise ValueError(f"there are two steps {name!r}")
        with accounted(units=True) if self.counts else nullcontext(Account()) as account:
            answer = act()
        self.costs[name] = Cost.of(account)
        return answer

    def ask(self, method: str, path: str, body: Any = None, key: str = "client_test") -> Any:
        answer = self.stack.call(method, f"/v1{path}", self.stack.keys[key], body)
        if answer.status not in (200, 201):
            raise AssertionError(answer.body)
        return answer.json

    def fire(self, *names: str) -> None:
        """A schedule once, or all messages of a consumer, and nothing of what follows."""
        self.stack.drain(only=names, rounds=1, hurry=True)

    def mine(self, blocks: int) -> None:
        services().simulated(services().catalogue("test").networks["ethereum"].id).mine(blocks)

    def pay(self, address: str, coin: str, amount: str) -> None:
        body = {"address": address, "network": "ethereum", "coin": coin, "amount": amount}
        self.ask("POST", "/sandbox/deposits", body)

    def poll(self, name: str) -> None:
        self.step(f"poll: {name}", lambda: self.fire("poll_ethereum"))

    def told(self, name: str, *, delivered: bool = False) -> None:
        """What the outbox has is told, and sent to the merchant where there is an endpoint."""
        self.step(f"relay: {name}", lambda: self.fire("relay"))
        if delivered:
            self.step(f"deliver: {name}", lambda: self.fire("deliver"))

    def invoice(self, name: str = "", coin: str = "eth", amount: str = "0.05") -> Any:
        body = {"currency": coin, "network": "ethereum", "amount": amount, "description": "a thing"}
        return self.step(f"create an invoice{name}", lambda: self.ask("POST", "/invoices", body))

    def idle(self) -> None:
        self.stack.drain(only=("poll_ethereum", "relay", "deliver", "payout", "collect"), hurry=True)


def paid(walk: Walk, name: str = "", delivered: bool = False) -> Any:
    """An invoice from the request to its last event, and to the hour when it would have expired."""
    invoice = walk.invoice(name)
    walk.pay(invoice["address"], "eth", "0.05")
    walk.poll(f"a payment is detected{name}")
    walk.told(f"a payment is detected{name}", delivered=delivered)
    walk.mine(CONFIRMATIONS)
    walk.poll(f"a payment is confirmed{name}")
    walk.told(f"a payment is confirmed{name}", delivered=delivered)
    services().clock.shift_ms += 3_700_000
    walk.poll(f"a paid invoice's hour is over{name}")
    walk.idle()
    return invoice


def read(walk: Walk, invoice: Any) -> None:
    for name, path in {
        "read an invoice": f"/invoices?id={invoice['id']}",
        "list invoices": "/invoices/getAll?limit=20",
        "list transactions": "/transactions?limit=20",
        "read the balances": "/balances",
    }.items():
        walk.step(name, lambda path=path: walk.ask("GET", path))
    walk.step("a payer asks for an invoice's state", lambda: walk.stack.call("GET", f"/pay/{invoice['id']}/status"))


def unpaid(walk: Walk) -> None:
    walk.invoice(" that nobody pays")
    services().clock.shift_ms += 3_700_000
    walk.poll("an invoice expires")
    walk.told("an invoice expires")


def withdrawn(walk: Walk) -> None:
    """A withdrawal from the request until no reorganisation can undo it."""
    body = {"network": "ethereum", "coin": "eth", "address": PAYEE, "amount": "0.01"}
    walk.step("create a withdrawal", lambda: walk.ask("POST", "/withdraws", body))
    walk.told("a withdrawal is created")
    walk.step("payout: build, sign and send", lambda: walk.fire("payout"))
    walk.told("a withdrawal is sent")
    walk.poll("a withdrawal is in no block")
    walk.mine(CONFIRMATIONS)
    walk.poll("a withdrawal is settled")
    walk.told("a withdrawal is settled")
    walk.mine(SETTLED)
    walk.poll("a settled withdrawal is final")


def collected(walk: Walk) -> None:
    """A token from its payment to the hot wallet, with the native coin for its fee."""
    body = {"coin": "usdt", "network": "ethereum", "collectThreshold": "0"}
    walk.step("set a coin's threshold", lambda: walk.ask("PUT", "/coins", body, "admin_test"))
    invoice = walk.invoice(" in a token", "usdt", "500")
    walk.pay(invoice["address"], "usdt", "500")
    walk.mine(CONFIRMATIONS)
    walk.poll("a token is credited")
    walk.told("a token is credited")
    for state in ("the fee", "the sweep"):
        walk.poll(f"{state} is planned")
        walk.told(f"{state} is planned")
        walk.step(f"collect: build, sign and send {state}", lambda: walk.fire("payout", "collect"))
        walk.mine(CONFIRMATIONS + 1)
        services().clock.shift_ms += 61_000
    walk.poll("the sweep is settled")
    walk.told("the sweep is settled")
    walk.idle()


def walked(walk: Walk) -> None:
    """All paths, in an order in which none finds what another left open."""
    walk.poll("nothing is new")
    walk.mine(1)
    walk.poll("an empty block")
    invoice = paid(walk)
    read(walk, invoice)
    unpaid(walk)
    withdrawn(walk)
    collected(walk)
    walk.idle()
    hook = walk.step("register an endpoint", lambda: walk.ask("POST", "/webhooks", {"url": walk.hook, "events": ["*"]}))
    paid(walk, ", with an endpoint", delivered=True)
    walk.ask("DELETE", f"/webhooks/{hook['data']['id']}")
    services().store.forget_listeners()
    walk.idle()


def measured(stack: Stack) -> dict[str, Cost]:
    """What each step costs, by its name. The stack is as after its first start."""
    with still(), Receiver() as receiver:
        services().clock.shift_ms = 0
        Walk(stack, receiver.url()).idle()
        for counts in (False, True):
            walk = Walk(stack, receiver.url(), counts)
            walked(walk)
    return walk.costs


def shown(costs: dict[str, Cost]) -> str:
    """The table, as it stands in `TABLE`."""
    return HEAD + "".join(cost.row(name) + "\n" for name, cost in costs.items())


def parsed(text: str) -> dict[str, Cost]:
    """The costs that a table shows."""
    found = {}
    for line in text.removeprefix(HEAD).splitlines():
        name, _, _, _, *parts = line[1:-1].split("|")
        calls, writes, reads = ({key: float(n) for key, n in (one.rsplit(" ", 1) for one in p.split(", ") if one)} for p in parts)
        found[name] = Cost({key: int(n) for key, n in calls.items()}, writes, reads)
    return found


def differences(before: dict[str, Cost], now: dict[str, Cost]) -> list[str]:
    """A line for each step that costs otherwise: what, by how much, and where."""
    lines = [f"{name}: no such step any more" for name in before if name not in now]
    for name, cost in now.items():
        if name not in before:
            lines.append(f"{name}: a new step")
            continue
        for what, old, new in (
            ("calls", before[name].calls, cost.calls),
            ("write units", before[name].writes, cost.writes),
            ("read units", before[name].reads, cost.reads),
        ):
            parts = [f"{k} {old.get(k, 0):g} → {new.get(k, 0):g}" for k in sorted({*old, *new}) if old.get(k, 0) != new.get(k, 0)]
            if parts:
                had, has = sum(old.values()), sum(new.values())
                word = "DEARER" if has > had else "cheaper" if has < had else "otherwise"
                lines.append(f"{name}: {what} {had:g} → {has:g}, {word} ({', '.join(parts)})")
    return lines


def main() -> int:
    import logging

    from chalicelib.settings import Settings
    from infra.local.aws import start_aws
    from tests.support.stack import first_stack

    logging.disable(logging.ERROR)
    aws = start_aws(Settings.from_environment())
    try:
        TABLE.write_text(shown(measured(first_stack(aws))), encoding="utf-8")
    finally:
        aws.stop()
    print(f"written: {TABLE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
