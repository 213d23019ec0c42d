"""Writes of a top-up and of the sweep behind it fail before or after their effect, or kill the function there: a few of them,
with `SWEEP=full` every one in every way. Whatever was cut: once clocks and queues have run again the books are whole, and the chain
shows each of the two once.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from chalicelib import wiring
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.cuts import WAYS, Cutter, Died, install
from tests.support.reconciling import suspected
from tests.support.shop import ETHER, Shop
from tests.support.slots import fund
from tests.support.stack import Stack
from tests.support.treasury import booked, paid_address, plan, register

pytestmark = pytest.mark.slow

FULL = os.environ.get("SWEEP") == "full"

HANDLERS = ("poll_ethereum", "relay", "payout", "collect")
WRITES = ("TransactWriteItems", "PutItem", "SendMessage", "Sign", "Decrypt")
USDT = 5 * 10**6
GAS = ETHER // 100


class Run:
    """The shop, the clock, and what is planned; a fresh process after each death."""

    def __init__(self, shop: Shop, cutter: Cutter, address: str, collector: str) -> None:
        self.shop, self.cutter, self.address, self.collector = shop, cutter, address, collector
        self.shift = services().clock.shift_ms

    def drain(self) -> None:
        try:
            with self.cutter.arm():
                self.shop.stack.drain(only=HANDLERS, failures="count", hurry=True)
        except Died:
            wiring.forget()
            services().clock.shift_ms = self.shift

    def recover(self) -> None:
        """Two minutes pass, twice, and nothing is cut any more."""
        for _ in range(2):
            self.shift += 120_000
            services().clock.shift_ms = self.shift
            self.shop.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True)


def signed(run: Run) -> None:
    run.drain()


def mined(run: Run) -> None:
    run.shop.mine()
    run.drain()


def check(run: Run, topped: bool, swept: bool) -> None:
    assert audit(services().store) == []
    moves = [m for m in services().store.every(Move) if m.network == run.shop.realm_network().id]
    fees = sum(m.fee for m in moves if m.kind == "sweep" and m.txid is not None)
    shop = run.shop
    assert shop.paid(run.address) == (GAS if topped else 0) - fees
    assert (shop.paid(run.address, "usdt"), shop.paid(run.collector, "usdt")) == ((0, USDT) if swept else (USDT, 0))
    settled = all(m.at_rest for m in moves)
    assert not settled or booked(shop, run.collector, "usdt") == shop.paid(run.collector, "usdt")
    assert {m.state for m in moves} <= {"signed", "settled"}
    assert suspected(shop) == []


@pytest.mark.parametrize("payer", ["hot", pytest.param("topup", marks=pytest.mark.sweep)])
def test_every_write_of_a_collection_is_cut(stack: Stack, monkeypatch: pytest.MonkeyPatch, payer: str) -> None:
    """Whether the hot wallet pays the top-up, or the wallet of that role."""
    shop = Shop(stack)
    shop.turn()
    source = shop.hot().address if payer == "hot" else register(shop, payer)
    if payer == "topup":
        fund(shop, source, "2", "eth")
    collector = register(shop, "collector")
    address = paid_address(shop, "5", "usdt")
    cutter = Cutter()
    install(cutter, monkeypatch)

    def topup() -> None:
        plan(shop, "topup", "eth", source, address.address, "0.01")

    def sweep() -> None:
        plan(shop, "sweep", "usdt", address, collector, "5")

    stages: list[tuple[Callable[[], None] | None, Callable[[Run], None], bool, bool]] = [
        (topup, signed, True, False), (None, mined, True, False), (sweep, signed, True, True), (None, mined, True, True),
    ]  # fmt: skip
    cuts = 0
    for prepare, step, topped, swept in stages:
        if prepare is not None:
            prepare()
        shift, before = services().clock.shift_ms, stack.snapshot()

        def begin(shift: int = shift, before: object = before) -> Run:
            stack.restore(before)  # type: ignore[arg-type]
            services().clock.shift_ms = shift
            return Run(shop, cutter, address.address, collector)

        run = begin()
        cutter.set(0, "error", "before")
        step(run)
        check(run, topped, swept)
        calls, after = list(cutter.trace), stack.snapshot()
        writes = [number for number, name in enumerate(calls, 1) if name in WRITES]
        every = [(number, way) for number in writes for way in WAYS]
        # A step that is prime to the number of ways: each has its turn, and so has each place in a stage.
        chosen = every if FULL else every[cuts % 7 :: 7 * len(WAYS) - 3]
        for number, (how, when) in chosen:
            run = begin()
            cutter.set(number, how, when)
            step(run)
            run.recover()
            assert cutter.fired, (step.__name__, calls[number - 1])
            check(run, topped, swept)
        cuts += len(chosen)
        stack.restore(after)
        services().clock.shift_ms = shift
    assert cuts >= 4
