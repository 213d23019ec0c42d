"""Balances of an address in parts: all of them, and that of one coin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.errors import InvalidParameter, NotFound
from chalicelib.domain.ids import network_parts
from chalicelib.usecases.base.balance_views import Holdings, coins_on
from chalicelib.usecases.base.views import Views


@dataclass(frozen=True, slots=True)
class CoinAsked:
    """A coin of the catalogue by its slug, on `network` where one is asked for. Raises InvalidParameter for an unknown slug."""

    catalogue: Catalogue
    slug: str
    network: str | None = None

    def __post_init__(self) -> None:
        if not self.catalogue.coin_networks(self.slug):
            raise InvalidParameter.one("coin", self.slug[:100], f"must be one of: {', '.join(self.catalogue.slugs())}")


def all_balances(views: Views, catalogue: Catalogue, address: Address, holdings: Holdings) -> list[dict[str, Any]]:
    """One entry for each coin and network of the address, those without a balance too."""
    return [views.holding_in_detail(coin, holdings.get(coin.asset)) for coin in coins_on(catalogue, address)]


def balance_of_coin(views: Views, asked: CoinAsked, address: Address, holdings: Holdings) -> dict[str, Any]:
    """Raises NotFound where the address has no balance of the coin: it is of another network, or the mode is single."""
    coin = _coin_there(asked, address)
    if coin is None:
        raise NotFound(f"The address has no balance of {asked.slug}", {"address": address.address, "coin": asked.slug})
    return views.holding_in_detail(coin, holdings.get(coin.asset))


def _coin_there(asked: CoinAsked, address: Address) -> Coin | None:
    """Where no network is asked for: the coin on the first active one, or on the first at all."""
    there = [coin for coin in coins_on(asked.catalogue, address) if coin.slug == asked.slug]
    if asked.network is not None:
        return next((coin for coin in there if network_parts(coin.network)[1] == asked.network), None)
    networks = asked.catalogue.networks
    active = [coin for coin in there if coin.status == "ACTIVE" and networks[network_parts(coin.network)[1]].status == "active"]
    return next(iter(active or there), None)
