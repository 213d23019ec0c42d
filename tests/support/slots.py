"""Further hot wallets on a shop's network."""

from __future__ import annotations

from typing import Any

from chalicelib.usecases.base.clock import in_realm
from chalicelib.wiring import services
from tests.support.shop import Shop


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
