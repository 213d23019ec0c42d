"""A service wallet that another one replaces."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.addresses.addresses import RetiredWallet, Role
from chalicelib.domain.ids import MerchantId, NetworkId, tenant_id
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.wallets.service_wallets import Listed, Registered
from chalicelib.wiring import services
from tests.support.shop import Shop

ETHEREUM, BITCOIN = NetworkId("test:ethereum"), NetworkId("test:bitcoin")


def retired(address: str) -> RetiredWallet:
    network = ETHEREUM if address.startswith("0x") else BITCOIN
    found = services().store.get(RetiredWallet, network=network, address=address)
    assert found is not None
    return found


def replaced(shop: Shop, role: Role = "hot", **more: Any) -> Registered:
    """Another wallet in the place of one, as the command `rotate` does, in the lists of the operator's merchant."""
    tenant = tenant_id(MerchantId(shop.stack.call("GET", "/v1/merchant", shop.stack.keys["admin_test"]).json["data"]["id"]), "test")
    network = services().catalogue("test").networks[shop.network]
    with in_realm("test"):
        return services().wallets.registering(Listed(tenant), network, role, by="a test", replace="must", **more).run()


def replace_hot(shop: Shop, **more: Any) -> str:
    return replaced(shop, **more).wallet.address


def drain(shop: Shop, *addresses: str) -> None:
    """Let blocks come until nothing is left at `addresses`."""
    for _ in range(8):
        shop.turn()
        if all(retired(address).drained_at is not None for address in addresses):
            return
        shop.mine()
    raise AssertionError([retired(address) for address in addresses])
