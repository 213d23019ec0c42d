"""Further hot wallets on a shop's network."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zlib import crc32

from chalicelib.usecases.base.clock import in_realm
from chalicelib.wiring import services
from tests.support.shop import ETHER, Shop
from tests.support.treasury import booked, cold, plan


def add_slot(shop: Shop, slot: int, **more: Any) -> str:
    """A hot wallet in a slot that is empty; its address. Known to every process from now on."""
    with in_realm("test"):
        made = services().wallets.registering(None, shop.realm_network(), "hot", by="a test", slot=slot, **more).run()
    services().store.catalogue("test", fresh=True)
    return made.wallet.address


def fund(shop: Shop, address: str, amount: str, coin: str) -> None:
    """Coins from outside, credited."""
    shop.pay(address, amount, coin)
    shop.mine()
    shop.turn()


def larger_than_each(shop: Shop, third: str = "") -> tuple[str, str, str]:
    """A withdrawal of 2 ETH where the first slot has 1.5 and the second 1, and one more has `third`; its id, and the addresses of
    the two."""
    first, second = shop.hot().address, add_slot(shop, 1)
    fund(shop, second, "1", "eth")
    if third:
        fund(shop, add_slot(shop, 2), third, "eth")
    plan(shop, "cold", "eth", first, cold(shop), str(Decimal(booked(shop, first, "eth")) / ETHER - Decimal("1.5")))
    for _ in range(2):
        shop.turn()
        shop.mine()
    shop.turn()
    assert booked(shop, first, "eth") < 16 * ETHER // 10
    return shop.withdraw("2"), first, second


def asked_of_both(ask: Callable[[], str], least: int) -> list[str]:
    """The ids of `least` withdrawals or a few more: until each of two slots has one. Random ids say which slot they belong to: six
    belong to the same 1 time in 32."""
    asked = [ask() for _ in range(least)]
    while len({crc32(id.encode()) % 2 for id in asked}) < 2:
        asked.append(ask())
    return asked
