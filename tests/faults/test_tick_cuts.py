"""A tick that dies after each of its writes: the next poll, or the first tick a minute later, finds all of it, once.

One payment is to be detected and one to be confirmed. Every third write, and the last; with `SWEEP=full` every one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from chalicelib import wiring
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.scanning.ticks import DEAD_MS
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.workers import tick
from tests.support.cuts import Cutter, Died, install
from tests.support.shop import Shop
from tests.support.stack import Stack

READS = ("Get", "Query", "BatchGet")


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cutter]:
    monkeypatch.setenv("TICKS", "on")
    wiring.forget()
    made = Cutter()
    install(made, monkeypatch)
    yield made
    wiring.forget()


def run_tick(cutter: Cutter) -> None:
    """One tick; where it dies, so does its process."""
    body = json.dumps({"version": 1, "realm": "test", "network": "ethereum", "at": services().clock.now_ms()})
    try:
        with cutter.arm():
            tick.handle(body)
    except Died:
        wiring.forget()


def credited() -> list[str]:
    return [deposit.status for deposit in services().store.every(Deposit) if deposit.tenant is not None]


def test_wherever_a_tick_dies_nothing_is_lost_or_doubled(stack: Stack, cutter: Cutter) -> None:
    shop = Shop(stack)
    shop.open()
    invoices = [shop.invoice(), shop.invoice()]
    shop.pay(invoices[0]["address"], "1")
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    shop.mine(20)
    shop.pay(invoices[1]["address"], "1")
    begun = stack.snapshot()
    run_tick(cutter)
    assert sorted(credited()) == ["confirmed", "pending"]
    writes = [n for n, name in enumerate(cutter.trace, 1) if not any(read in name for read in READS)]
    assert len(writes) > 4
    chosen = writes if os.environ.get("SWEEP") == "full" else [*writes[::3], writes[-1]]
    for number, cut in enumerate(chosen):
        stack.restore(begun)
        cutter.set(cut, "death", "after")
        run_tick(cutter)
        assert cutter.fired
        cutter.set(0, "death", "after")
        shop.mine(20)
        if number % 2:
            shop.wait(DEAD_MS // 1000)
            run_tick(cutter)
        shop.turn()
        assert (credited(), shop.available()) == (["confirmed"] * 2, "2"), cutter.trace
        assert [shop.status(invoice) for invoice in invoices] == ["completed"] * 2
        assert all(set(shop.told(invoice["id"]).values()) == {1} for invoice in invoices)
        assert audit(services().store) == []
