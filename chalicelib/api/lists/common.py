"""Readers of fields that several lists share, and the look-up of a network or a coin in an index of assets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.ids import AssetId, NetworkId, Realm, asset_parts, environment, network_id, network_parts
from chalicelib.domain.money import format_units

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx


def slug_of(network: NetworkId) -> str:
    """``live:ethereum`` → ``ethereum``."""
    return network_parts(network)[1]


def by_id(kind: type[Any]) -> Callable[[Ctx, str], list[Any]]:
    """Gets the merchant's record of `kind` with an id."""

    def find(ctx: Ctx, id: str) -> list[Any]:
        found = ctx.services.store.get(kind, tenant=ctx.tenant, id=id)
        return [] if found is None else [found]

    return find


def in_coin_units(units: int, asset: AssetId, catalogue: Catalogue) -> Decimal | None:
    """An amount as the interface writes it; None for a coin that the catalogue does not know."""
    network, slug = asset_parts(asset)
    coin = catalogue.coin(slug_of(network), slug)
    return None if coin is None else Decimal(format_units(units, coin.decimals))


def assets_of_network(slug: str, catalogue: Catalogue) -> Sequence[str]:
    """Every asset of a network."""
    return [coin.asset for coin in catalogue.coins_of(slug)]


def assets_of_coin(slug: str, catalogue: Catalogue) -> Sequence[str]:
    """A coin on every network that has it."""
    return [catalogue.coins[network, slug].asset for network in catalogue.coin_networks(slug)]


def id_of_network(slug: str, catalogue: Catalogue) -> Sequence[str]:
    """A network by its own id."""
    return [network_id(catalogue.realm, slug)]


def of_realms(ctx: Ctx, query: Any) -> list[Realm]:
    """The realms that a list with a filter by `type` (production, test) is about, of those that the asking key may know of: its own
    where no type is asked for, and for a production key the sandbox, too."""
    asked = [condition for condition in query.conditions if condition.field.name == "type"]
    if not asked:
        return [ctx.realm]
    known: tuple[Realm, ...] = ("test",) if ctx.realm == "test" else ("live", "test")
    return [realm for realm in known if all(condition.admits(environment(realm)) for condition in asked)]
