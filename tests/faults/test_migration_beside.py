"""The service goes on while a migration runs: at any of its calls payments come in, fall out and come again, and money goes out.

The store has blocks in the form of a version that kept no rows of them, beside those of this one. In the end every block that has
deposits has its row, the books are whole, and everything is credited, paid and told once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from chalicelib.domain.chain import DepositBlock
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.usecases.ports.failures import Halted
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.recovery import deposit_migration
from chalicelib.wiring import services
from tests.support.archive import open_attic
from tests.support.cuts import Cutter, Died, install
from tests.support.migrating import Meanwhile, as_before, migrate
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.stack import Stack

FULL = os.environ.get("SWEEP") == "full"
EACH = 1 if FULL else 24
"""At one in so many calls the service goes on."""
OLD = 6
"""Invoices that were paid before."""


class Business(Shop):
    """A shop whose day has everything that changes deposits and their blocks. Its first days are an older version's."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self.invoices: list[dict[str, Any]] = []
        self.withdrawals: list[str] = []

    def older(self) -> None:
        for _ in range(OLD):
            self.bill()
            self.mine(1)
        self.turn()
        as_before()

    def bill(self) -> None:
        self.invoices.append(self.invoice("1"))
        self.pay(self.invoices[-1]["address"], "1")

    def day(self) -> None:
        """Payments that an older version saw fall out and come again in other blocks; others come, are credited, and go out."""
        self.reorg(2, remine=True)
        self.turn()
        self.bill()
        self.turn()
        self.mine()
        self.turn()
        self.take_out()
        self.bill()
        self.turn()

    def take_out(self) -> None:
        self.withdrawals.append(self.withdraw("0.25"))

    def end(self) -> None:
        for _ in range(2):
            self.mine()
            self.turn()
        self.nudge()


@pytest.fixture
def shop(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Business]:
    monkeypatch.setattr(deposit_migration, "PAGE", 3)
    with open_shop(stack):
        made = Business(stack)
        made.older()
        yield made


def blocks_and_rows() -> tuple[set[Any], set[Any]]:
    store = services().store
    return (
        {(d.network, *d.block) for d in store.every(Deposit) if d.block_number is not None},
        {(row.network, row.number, row.hash) for row in store.every(DepositBlock)},
    )


def whole(shop: Business) -> None:
    """Every block has its row; all money of invoices is there, but for what went out, which the chain has."""
    shop.end()
    blocks, rows = blocks_and_rows()
    assert blocks <= rows
    out = len(shop.withdrawals)
    assert Decimal(shop.available()) == len(shop.invoices) - out / Decimal(4)
    assert shop.paid() == ETHER * out // 4
    for invoice in shop.invoices:
        assert (shop.status(invoice), shop.shown(invoice)["received"]) == ("completed", "1")
        told = shop.told(invoice["id"])
        assert 1 <= told["invoice.completed"] <= 1 + told["invoice.reverted"], told
    assert Counter(shop.withdrawal(id_)["status"] for id_ in shop.withdrawals) == Counter(confirmed=out)
    assert audit(services().store) == []


class BetweenPages(list[str]):
    """The lines that a migration tells, one for each page: behind each something else happens."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        super().__init__()
        self._acts = acts

    def append(self, line: str) -> None:
        self._acts[len(self) % len(self._acts)]()
        super().append(line)


def test_business_goes_on_between_its_pages(shop: Business) -> None:
    old, none = blocks_and_rows()
    assert len(old) > OLD and none == set()
    told = BetweenPages(shop.bill, shop.turn, shop.mine, shop.turn, shop.take_out, shop.turn, lambda: shop.reorg(2, remine=True))
    done = migrate(told)
    assert len(told) > 10
    blocks, rows = blocks_and_rows()
    assert blocks <= rows
    assert 0 < done.blocks < len(rows), "the service has listed others"
    assert shop.withdrawals and len(shop.invoices) > OLD
    whole(shop)
    everything_falls_out(shop)


def everything_falls_out(shop: Business) -> None:
    """Deeper than is followed: what was paid is taken back by the rows alone."""
    height = services().reader(shop.realm_network()).tip()
    shop.mine(shop.realm_network().reorg_depth + 2)
    shop.turn()
    resume_after(shop, height + shop.realm_network().reorg_depth + 2, remine=False)
    own = [deposit for deposit in services().store.every(Deposit) if deposit.tenant is not None]
    assert {deposit.status for deposit in own} == {"orphaned"} and len(own) == len(shop.invoices)
    assert audit(services().store) == []


def resume_after(shop: Shop, depth: int, *, remine: bool) -> None:
    """A reorganisation that is too deep to be followed, and the operator's answer."""
    shop.chain().reorganise(depth, remine)
    drained = shop.stack.drain(only=("poll_ethereum",), failures="count", rounds=1)
    ((_, error),) = drained.failures
    assert isinstance(error, ExceptionGroup) and error.subgroup(Halted) is not None
    services().scanner(shop.realm_network()).resume()
    shop.turn()


def halt(shop: Business) -> None:
    """A day on which the network halts as well, and an operator resumes it."""
    shop.day()
    shop.mine(shop.realm_network().reorg_depth + 2)
    shop.turn()
    resume_after(shop, shop.realm_network().reorg_depth + 10, remine=True)


def beginnings(shop: Business) -> Iterator[int]:
    """The number of the call to look at next, with all as it is now: for ever."""
    token, shift, invoices = shop.stack.snapshot(), services().clock.shift_ms, list(shop.invoices)
    for at in count(1, EACH):
        shop.stack.restore(token)
        services().clock.shift_ms = shift
        shop.invoices, shop.withdrawals = list(invoices), []
        yield at


@pytest.mark.slow
@pytest.mark.parametrize("act", [Business.day, pytest.param(halt, marks=pytest.mark.sweep)])
def test_business_goes_on_at_any_of_its_calls(
    shop: Business, act: Callable[[Business], None], monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    meanwhile = Meanwhile()
    install(meanwhile, monkeypatch)
    for at in beginnings(shop):
        meanwhile.set(at, "error", "before")
        meanwhile.happens(lambda: act(shop))
        with meanwhile.arm():
            done = migrate([])
        if not meanwhile.fired:
            break
        assert done.ran and len(shop.withdrawals) == 1
        blocks, rows = blocks_and_rows()
        assert blocks <= rows
        whole(shop)
    record_property("cut_points", at // EACH)
    assert at > 40


@pytest.mark.sweep
def test_business_goes_on_between_a_cut_and_the_next_run(shop: Business, monkeypatch: pytest.MonkeyPatch) -> None:
    cutter = Cutter()
    install(cutter, monkeypatch)
    for at in beginnings(shop):
        cutter.set(at, "death", "after")
        try:
            with cutter.arm():
                migrate([])
        except Died:
            shop.day()
            migrate(BetweenPages(shop.turn, shop.mine))
        if not cutter.fired:
            break
        blocks, rows = blocks_and_rows()
        assert blocks <= rows
        whole(shop)
    assert at > 40


def test_what_is_archived_meanwhile_leaves_no_row(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Its page was read before the payment left for the archive, and its block's row with it."""
    meanwhile = Meanwhile()
    install(meanwhile, monkeypatch)
    with open_attic(stack, monkeypatch) as attic:
        attic.completed("500", "usdt")
        attic.out_of_reach()
        attic.a_year_later()
        as_before()
        token, shift, at = stack.snapshot(), services().clock.shift_ms, 5
        while FULL or at < 10:  # the first calls are for the page that has it
            at += 1
            stack.restore(token)
            services().clock.shift_ms = shift
            meanwhile.set(at, "error", "before")
            meanwhile.happens(attic.archive)
            with meanwhile.arm():
                migrate([])
            if not meanwhile.fired:
                break
            gone = {d.block for d in services().store.every(Deposit) if d.id in attic.kept()}
            assert len(gone) == 1
            assert {(row.number, row.hash) for row in services().store.every(DepositBlock)} & gone == set(), meanwhile.trace
    record_property("cut_points", at)
