"""Look-up of a request's names in the realm's catalogue: coins, networks, and their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chalicelib.api.fields import amount_text
from chalicelib.api.fields import slug as understood
from chalicelib.api.problems import MOST_SHOWN, shown
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
from chalicelib.domain.errors import FieldProblem, InvalidParameter
from chalicelib.domain.ids import network_id, network_parts
from chalicelib.domain.money import NotAnAmount, parse_units

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx


def misspelled(
    ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str], name: str = "address", words: str = "{reason}"
) -> list[FieldProblem]:
    """The problem of a text that is not an address of the network sent with it; `words` with its `{reason}`."""
    text, network = sent.get(name), understood(sent.get("network"))
    if wrong & {name, "network"} or not isinstance(text, str) or not isinstance(network, str):
        return []
    try:
        ctx.services.rules.normalize(network_id(ctx.realm, network), text)
    except ValueError as reason:
        return [FieldProblem(name, shown(name, text), (words.format(reason=reason, network=network),))]
    return []


def coin_network(coin: Coin) -> str:
    return network_parts(coin.network)[1]


def amount_problem(coin: Coin, sent: Any) -> str | None:
    """Why an amount that was sent is none of `coin`: it has too many decimals or digits. None where it is one. Raises
    PydanticCustomError where it is one of no coin."""
    try:
        parse_units(amount_text(sent), coin.decimals)
    except NotAnAmount as reason:
        return f"{reason} ({coin.symbol} on {coin_network(coin)})"
    return None


def chosen_coin(catalogue: Catalogue, field: str, slug: str, network: str | None) -> Coin:
    """The coin on `network`; without one, on its first active network, or its first at all (decisions §3). Both in any case.

    Raises InvalidParameter saying which coins or networks are known.
    """
    slug, network = understood(slug), understood(network)
    if network is not None:
        coin = catalogue.coin(network, slug)
        if coin is None:
            known = ", ".join(c.slug for c in catalogue.coins_of(network))
            raise InvalidParameter.one(field, slug[:MOST_SHOWN], f"must be one of: {known} (on {network})")
        return coin
    coin = catalogue.first_active(slug)
    if coin is None:
        networks = catalogue.coin_networks(slug)
        if not networks:
            raise InvalidParameter.one(field, slug[:MOST_SHOWN], f"must be one of: {', '.join(catalogue.slugs())}")
        return catalogue.coins[networks[0], slug]
    return coin


def known_network(catalogue: Catalogue, slug: str) -> Network:
    """The network of this slug, in any case. Raises InvalidParameter saying which networks are known."""
    network = catalogue.network(understood(slug))
    if network is None:
        raise InvalidParameter.one("network", slug[:MOST_SHOWN], f"must be one of: {', '.join(catalogue.networks)}")
    return network
