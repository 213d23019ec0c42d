"""Calls to a Tron node fail before or after their effect, or kill the function there, while a withdrawal is paid: it is paid once,
and the books are whole. So it is with a stake, a loan of its energy and the loan's return, where every write may fail as well, and
one of the retry with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.tron_shops import CONFIRMATIONS, HANDLERS, TRON, Shop, staking_shop
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.tron_chain import TRX, stranger

pytestmark = [pytest.mark.nodes, pytest.mark.slow]

BROADCAST = "node wallet/broadcast"
READS = ("node wallet/getblock", "node wallet/getaccount", "node wallet/gettransactioninfobyid")
POINTS: list[tuple[str, How, When]] = [
    *((BROADCAST, how, when) for how, when in WAYS),
    *((read, how, "before") for read, how in zip(READS, ("death", "error", "death"), strict=True)),
]


@pytest.fixture(scope="module")
def started(running_aws: LocalAws) -> Iterator[Shop]:
    """One first start for all tests here, which take turns with the wallet."""
    with staking_shop(running_aws) as made:
        yield made


class PathCutter(Cutter):
    """Counts and cuts the calls of one kind alone."""

    name = ""

    def around(self, name: str, call: Callable[[], Any], error: Exception) -> Any:
        return super().around(name, call, error) if name.startswith(self.name) else call()


@pytest.mark.parametrize(("name", "how", "when"), POINTS, ids=["-".join(point).removeprefix("node ") for point in POINTS])
def test_a_payout_is_made_once_whatever_fails(
    started: Shop, name: str, how: How, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, cutter, to = started, PathCutter(), stranger()
    install(cutter, monkeypatch)
    cutter.name = name
    invoice = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "60", "network": "tron"})
    shop.node.faucet(invoice["address"], 60)
    shop.confirm()
    sent = shop.call("POST", "/v1/withdraws", json={"network": "tron", "coin": "trx", "address": to, "amount": "25"})
    cutter.set(1, how, when)
    for blocks in (CONFIRMATIONS, 0):
        try:
            with cutter.arm():
                shop.stack.drain(only=HANDLERS, failures="count", hurry=True, rounds=4)
        except Died:
            wiring.forget()
        if blocks:
            shop.node.mine(blocks)
    assert cutter.fired, "the call never came"

    def status() -> str:
        return str(shop.call("GET", f"/v1/withdrawals/{sent['id']}")["data"]["status"])

    for _ in range(6):
        if status() == "confirmed":
            break
        services().clock.shift_ms += 60_000
        shop.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True, rounds=4)
        shop.node.mine(CONFIRMATIONS)
    assert status() == "confirmed"
    assert shop.on_chain(to) == 25 * TRX
    assert shop.booked() == shop.on_chain(shop.hot())
    assert audit(services().store) == []


FULL = os.environ.get("SWEEP") == "full"
WRITES = ("TransactWriteItems", "PutItem", "SendMessage", "Sign", BROADCAST)
STAKED = 10
Cut = tuple[int, How, When]
_numbers = count(1)


class WriteCutter(Cutter):
    """Counts and cuts what has an effect: the blocks that a poll reads differ from run to run."""

    def around(self, name: str, call: Callable[[], Any], error: Exception) -> Any:
        return super().around(name, call, error) if name.startswith(WRITES) else call()


class Staking:
    """Stakes and loans one after the other on one node, each with failures of its own in it."""

    def __init__(self, shop: Shop, cutter: Cutter) -> None:
        self.shop, self.cutter = shop, cutter
        self.address = str(shop.call("POST", "/v1/addresses", json={"network": "tron"})["address"])
        shop.node.faucet(self.address, 1)
        shop.confirm()

    def staked(self, *cuts: Cut) -> bool:
        """Order a stake; whether every cut came."""
        frozen = self.shop.frozen("ENERGY")
        self.shop.stake(str(STAKED))
        every = self._fail(cuts, lambda: self.shop.stakes()[0]["status"] == "confirmed")
        assert self.shop.frozen("ENERGY") - frozen == STAKED * TRX
        self._whole()
        return every

    def lent(self, *cuts: Cut) -> bool:
        """Lend energy to an address and take it back, both with the same cuts; whether every cut came."""
        network = services().catalogue("live").native("tron")
        origin = Origin(TRON, f"test {next(_numbers)}", 1, services().clock_of("live").now_ms())
        loan, every = Move.loan(origin, network.asset, self.shop.hot(), self.address, TRX), True
        for move, left in ((loan, TRX), (Move.loan_return(origin, loan), 0)):
            news = News(services().clock_of("live").now_ms())
            services().store.commit([*planned(news, move), *news.emit()])
            every &= self._fail(cuts, lambda id=move.id: self._settled(id))  # type: ignore[misc]
            account = self.shop.node.call("wallet/getaccount", address=self.address, visible=True)
            lent = account.get("account_resource", {}).get("acquired_delegated_frozenV2_balance_for_energy", 0)
            assert lent == left, move.kind
            self._whole()
        return every

    def _settled(self, id: str) -> bool:
        found = services().store.get(Move, network=TRON, id=id)
        assert found is not None and found.earlier == ()
        return found.state == "settled"

    def _fail(self, cuts: tuple[Cut, ...], done: Callable[[], bool]) -> bool:
        self.cutter.set(*(cuts[0] if cuts else (0, "error", "before")))
        left = list(cuts[1:])
        for _ in range(8):
            if self.cutter.fired and left:
                self.cutter.set(*left.pop(0))
            shift = services().clock.shift_ms
            try:
                with self.cutter.arm():
                    self.shop.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True, rounds=4)
            except Died:
                wiring.forget()
            services().clock.shift_ms = shift + 61_000
            self.shop.node.mine(CONFIRMATIONS)
            if done():
                break
        assert done()
        return not left and self.cutter.fired

    def _whole(self) -> None:
        assert audit(services().store) == []
        assert self.shop.booked() == self.shop.on_chain(self.shop.hot())


@pytest.mark.parametrize("kind", ["staked", "lent"] if FULL else ["lent"])
def test_a_stake_and_a_loan_are_made_once_whatever_fails(
    started: Shop, kind: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    cutter = WriteCutter()
    install(cutter, monkeypatch)
    staking = Staking(started, cutter)
    act, points = (staking.staked if kind == "staked" else staking.lent), 0
    if kind == "lent":
        staking.staked()
    act()
    trace = list(cutter.trace)
    signed, sent = trace.index("Sign") + 1, next(at for at, name in enumerate(trace, 1) if name.startswith(BROADCAST))
    assert signed < sent
    for at, (how, when) in [(at, way) for at in range(1, len(trace) + 1) for way in WAYS] if FULL else []:
        points += act((at, how, when))
    for at in range(1, sent + 1) if FULL else [sent]:
        for again in range(1, sent + 1) if FULL else [1]:
            points += 2 * act((at, "death", "after"), (again, "death", "after"))
    assert points >= 2
    record_property("cut_points", points)
