"""Moves between our own places, on a simulated network: signed by whoever has the key, booked by receipt, credited to nobody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.domain.deposits import Deposit
from chalicelib.usecases.audit import audit
from chalicelib.wiring import services
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.treasury import booked, cold, move_of, paid_address, plan, register, same

USDT = 10**6


@pytest.fixture
def shop(stack) -> Iterator[Shop]:
    with open_shop(stack) as found:
        yield found


def settle(shop: Shop) -> None:
    shop.turn()
    shop.mine()
    shop.turn()


def test_a_token_is_swept_after_its_top_up_and_goes_on_from_the_collector(shop):
    collector, hot, far = register(shop, "collector"), shop.hot().address, cold(shop)
    address = paid_address(shop, "5", "usdt")
    before = len(list(services().store.every(Deposit)))
    topup = plan(shop, "topup", "eth", hot, address.address, "0.01")
    settle(shop)
    assert move_of(shop, topup).state == "settled"
    assert same(shop, address.address, "eth") == ETHER // 100
    sweep = plan(shop, "sweep", "usdt", address, collector, "5")
    settle(shop)
    swept = move_of(shop, sweep)
    assert (swept.state, swept.arrived, swept.mined) == ("settled", 5 * USDT, swept.txid)
    assert same(shop, collector, "usdt") == 5 * USDT and booked(shop, address.address, "usdt") == 0
    assert same(shop, address.address, "eth") == ETHER // 100 - swept.fee > 0
    plan(shop, "topup", "eth", hot, collector, "0.01")
    settle(shop)
    out = plan(shop, "distribution", "usdt", collector, hot, "2"), plan(shop, "cold", "usdt", collector, far, "3")
    settle(shop)
    assert [move_of(shop, each).state for each in out] == ["settled", "settled"]
    assert same(shop, far, "usdt") == 3 * USDT and same(shop, collector, "usdt") == 0
    same(shop, hot, "usdt"), same(shop, hot, "eth")
    assert shop.available("usdt") == "5"
    assert len(list(services().store.every(Deposit))) == before
    assert audit(services().store) == []


def test_a_bare_sweep_leaves_nothing_but_its_fee(shop):
    address = paid_address(shop, "1", "eth")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "1", bare=True)
    settle(shop)
    swept = move_of(shop, sweep)
    assert (swept.state, swept.amount + swept.fee) == ("settled", ETHER)
    assert same(shop, address.address, "eth") == 0
    same(shop, shop.hot().address, "eth")
