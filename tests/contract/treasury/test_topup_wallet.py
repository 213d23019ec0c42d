"""A wallet of the role `topup` on a simulated network: registered, filled, used and replaced, by HTTP, schedules and queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.collected_deposits import listed, moves, pay, settings, settle
from tests.support.reconciling import suspected
from tests.support.rotation import drain, replaced
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.stack import Stack
from tests.support.treasury import booked, register


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        settings(opened, "usdt", collectThreshold="0")
        yield opened


def filled(shop: Shop) -> str:
    """A top-up wallet with 2 ETH; its address."""
    address = register(shop, "topup")
    shop.pay(address, "2")
    shop.mine()
    shop.turn()
    return address


def test_a_sweep_costs_the_hot_wallet_nothing_and_the_payers_rest_goes_to_its_successor(shop: Shop) -> None:
    payer = filled(shop)
    before = booked(shop, shop.hot().address, "eth")
    deposit = pay(shop, "500")
    settle(shop, 3)
    (topup,) = moves("topup")
    assert (topup.source, topup.recipient, topup.state) == (payer, deposit, "settled")
    assert [entry["status"] for entry in listed(shop)] == ["swept"]
    assert booked(shop, shop.hot().address, "eth") == before
    assert booked(shop, shop.hot().address, "usdt") > 0
    new = replaced(shop, "topup").wallet.address
    drain(shop, payer)
    assert {(move.source, move.recipient) for move in moves("drain")} == {(payer, new)}
    assert booked(shop, payer, "eth") < ETHER // 100 < booked(shop, new, "eth")
    assert suspected(shop) == []


def test_it_is_read_beside_the_others(shop: Shop) -> None:
    payer = filled(shop)
    answer = shop.stack.call("GET", "/v1/addresses/service-wallets", shop.stack.keys["admin_test"])
    found = {(w["network"], w["walletType"]): w for w in answer.json if w["network"] == "ethereum"}
    assert found["ethereum", "topup"]["address"] == payer
    (ether,) = [b for b in found["ethereum", "topup"]["balances"] if b["coin"] == "eth"]
    assert ether["balance"] == "2"
