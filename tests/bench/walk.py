"""One walk along paths of the service, step by step, each of which is accounted for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from unittest.mock import patch

from chalicelib.usecases.archive.coverage import Coverage
from chalicelib.usecases.catalogue.conditions import Conditions
from chalicelib.usecases.merchants.shop import Shops
from chalicelib.wiring import services
from chalicelib.wiring.parts import SystemClock
from tests.bench.accounting import Account, accounted
from tests.bench.asking import noted
from tests.bench.costs import Cost
from tests.support.stack import Stack

START = 2_000_000_000_000
"""Milliseconds since 1970, in 2033: later than the blocks of a first start, which are by the machine's clock. Else a payment that
is in time would come late."""
SETTLED = 80
"""Blocks after which no reorganisation is followed any more on these networks, and what is settled is not watched."""


@contextmanager
def still() -> Iterator[None]:
    """Time stands still but for a millisecond at each look, and a thousandth of what passes for whoever remembers (steps.py)."""
    ticks, began, real = iter(range(START, START + 10**9)), time.monotonic(), time.monotonic
    slow = lambda: began + (real() - began) / 1_000  # noqa: E731
    with ExitStack() as patched:
        patched.enter_context(patch.object(SystemClock, "now_ms", lambda self: next(ticks) + self.shift_ms))
        patched.enter_context(patch.object(time, "monotonic", slow))
        for remembers in (Shops, Conditions, Coverage):  # their clock is a default, bound when their module was loaded
            patched.enter_context(patch.object(remembers.__init__, "__defaults__", (slow,)))
        yield


@dataclass
class Walk:
    """One walk along some paths of one merchant on one network. `costs` by the step's name, in order."""

    stack: Stack
    hook: str
    counts: bool = True
    costs: dict[str, Cost] = field(default_factory=dict)
    network: str = "ethereum"
    coin: str = "eth"
    merchant: str = "client_test"
    payee: str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example
    confirmations: int = 12
    whole: str = "0.05"
    """What an invoice is over."""
    _inside: list[Cost] = field(default_factory=list)

    def step(self, name: str, act: Callable[[], Any]) -> Any:
        """Do `act` and note what it costs, without the steps that are taken inside it; what it returns."""
        name = name if self.network == "ethereum" else f"{name}, on {self.network}"
        if name in self.costs:
            raise ValueError(f"there are two steps {name!r}")
        beside, self._inside = self._inside, []
        with noted() as asked, accounted(units=True) if self.counts else nullcontext(Account()) as account:
            answer = act()
        whole = Cost.of(account, asked)
        own = whole
        for inner in self._inside:
            own = own.less(inner)
        self._inside = [*beside, whole]
        self.costs[name] = own
        return answer

    def amount(self, times: str = "1") -> str:
        """An invoice's amount, so many times."""
        return f"{(Decimal(self.whole) * Decimal(times)).normalize():f}"

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        answer = self.stack.call(method, f"/v1{path}", self.stack.keys[key or self.merchant], body)
        if answer.status not in (200, 201):
            raise AssertionError(answer.body)
        return answer.json

    def fire(self, *names: str) -> None:
        """A schedule once, or all messages of a consumer, and nothing of what follows."""
        self.stack.drain(only=names, rounds=1, hurry=True)

    def wait(self, seconds: float) -> None:
        services().clock.shift_ms += int(seconds * 1_000)

    def mine(self, blocks: int) -> None:
        services().simulated(services().catalogue("test").networks[self.network].id).mine(blocks)

    def pay(self, address: str, coin: str, amount: str) -> None:
        body = {"address": address, "network": self.network, "coin": coin, "amount": amount}
        self.ask("POST", "/sandbox/deposits", body)

    def poll(self, name: str) -> None:
        self.step(f"poll: {name}", lambda: self.fire(f"poll_{self.network}"))

    def told(self, name: str, *, delivered: bool = False) -> None:
        """What the outbox has is told, and sent to the merchant where there is an endpoint."""
        self.step(f"relay: {name}", lambda: self.fire("relay"))
        if delivered:
            self.step(f"deliver: {name}", lambda: self.fire("deliver"))

    def invoice(self, name: str = "", coin: str = "eth", amount: str = "0.05") -> Any:
        body = {"currency": coin, "network": self.network, "amount": amount, "description": "a thing"}
        return self.step(f"create an invoice{name}", lambda: self.ask("POST", "/invoices", body))

    def idle(self) -> None:
        self.stack.drain(only=(f"poll_{self.network}", "relay", "deliver", "payout", "collect"), hurry=True)
