"""Public records of payment links: for keys, and for the visitors of their page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.ids import asset_parts, network_parts
from chalicelib.domain.money import plain
from chalicelib.domain.payment_links.links import Price
from chalicelib.domain.times import iso
from chalicelib.usecases.base.views import without_none
from chalicelib.usecases.payment_links.stock import Stocked


def _price(price: Price, written: Callable[[str], str]) -> dict[str, Any]:
    coin: dict[str, Any] = {}
    if price.asset is not None:
        network, slug = asset_parts(price.asset)
        coin = {"currency": slug, "network": network_parts(network)[1]}
    elif price.accept is not None:
        coin = {"accept": [without_none({"coin": each.coin, "network": each.network}) for each in price.accept]}
    least = written(price.amount)
    amount = least if price.most is None else {"min": least, "max": written(price.most)}
    asked = {"amount": amount} if price.fiat is None else {"fiatAmount": amount, "fiatCurrency": price.fiat}
    return asked | coin


def status_of(stocked: Stocked, over: bool) -> str:
    """What becomes of a visitor now."""
    return "expired" if over else "sold_out" if stocked.left == 0 else "active"


def link_view(stocked: Stocked, now_ms: int, base: str) -> dict[str, Any]:
    """The record for the link's merchant. `base` is what this deployment's paths begin with."""
    link = stocked.link
    return without_none(
        {
            "id": link.id,
            "url": f"{base}/link/{link.id}",
            "status": status_of(stocked, link.over(now_ms)),
            "name": link.name,
            "description": link.description,
            **_price(link.price, plain),
            "stock": stocked.left,
            "expiresAt": None if link.expires_at is None else iso(link.expires_at),
            "redirectUrl": link.redirect_url,
            "metadata": None if link.metadata is None else dict(link.metadata),
            "createdAt": iso(link.created_at),
            "updatedAt": iso(link.updated_at),
        }
    )


def page_view(stocked: Stocked, over: bool, catalogue: Catalogue) -> dict[str, Any]:
    """What its page shows: the merchant's words for its payers, the price as it was written ("49.90"), what the network is called,
    and whether it can be opened."""
    link = stocked.link
    shown = {"name": link.name, "description": link.description, "status": status_of(stocked, over), **_price(link.price, str)}
    known = catalogue.networks.get(shown.get("network", ""))
    return without_none(shown | ({} if known is None else {"network": known.name}))
