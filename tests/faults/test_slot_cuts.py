"""A payout larger than each hot wallet, from its wait to its payment: the function dies after every write on the way.

The wait with what is lacking, the plan of the move between the wallets, its signature, the payment: whatever was cut, the payee is
paid once, and the wallets have together what they have when nothing fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from chalicelib import wiring
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import Snapshot
from tests.support.cuts import Cutter, Died, install
from tests.support.reconciling import suspected
from tests.support.shop import ETHER, THIRST, Shop, open_shop
from tests.support.slots import larger_than_each
from tests.support.stack import Stack
from tests.support.treasury import booked

pytestmark = [pytest.mark.slow, pytest.mark.sweep]
READS = ("Get", "Query", "BatchGet", "TransactGet", "node ")
ROUNDS = 4
"""Polls until it is paid: the wait and the move, the move's end, the payment, its end."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("3", "eth")) as opened:
        yield opened


class Way:
    """The same way again and again, from the same state."""

    def __init__(self, shop: Shop, cutter: Cutter) -> None:
        self.shop, self.cutter, self.asked = shop, cutter, larger_than_each(shop)[0]
        self.start: Snapshot = shop.stack.snapshot()
        self.shift = services().clock.shift_ms

    def go(self, at: int = 0) -> tuple[int, list[str]]:
        """With a death after call `at`; what the hot wallets have together then, and the calls."""
        self.shop.stack.restore(self.start)
        services().clock.shift_ms = shift = self.shift
        self.cutter.set(at, "death", "after")
        for _ in range(ROUNDS + (2 if at else 0)):
            try:
                with self.cutter.arm():
                    self.shop.turn("housekeeping", failures="count")
            except Died:
                wiring.forget()
            self.shop.mine()
            shift += THIRST * 1000
            services().clock.shift_ms = shift
        assert self.cutter.fired == bool(at)
        trace = list(self.cutter.trace)
        self.cutter.armed = False
        self.shop.turn("housekeeping", failures="count")
        return self.whole(), trace

    def whole(self) -> int:
        shop, store = self.shop, services().store
        assert audit(store) == [] and suspected(shop) == []
        assert (shop.withdrawal(self.asked)["status"], shop.paid()) == ("confirmed", 2 * ETHER)
        assert len([order for order in store.every(PaymentOrder) if order.state == "settled"]) == 1
        moves = [move for move in store.every(Move) if move.kind == "distribution"]
        assert moves and all(move.state == "settled" for move in moves)
        return sum(booked(shop, wallet.address, "eth") for wallet in hot_wallets(store, shop.realm_network().id))


def test_a_death_after_any_write_pays_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    cutter = Cutter()
    install(cutter, monkeypatch)
    way = Way(shop, cutter)
    undisturbed, trace = way.go()
    writes = [number for number, name in enumerate(trace, 1) if not name.startswith(READS)]
    assert len(writes) > 30
    for at in writes:
        try:
            assert way.go(at)[0] == undisturbed
        except AssertionError as error:
            raise AssertionError(f"died after {at}, {trace[at - 1]}: {error}") from error
    record_property("cut_points", len(writes))
