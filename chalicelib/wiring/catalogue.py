"""The catalogue: networks, coins, exchange rates."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from chalicelib.domain.catalogue.catalogue import Coin
    from chalicelib.usecases.catalogue.coins import Coins
    from chalicelib.usecases.catalogue.networks import Networks
    from chalicelib.usecases.catalogue.rates import RateKeeper, RateProvider
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.sandbox import SandboxWiring


class CatalogueWiring:
    def __init__(self, parts: Parts, chains: ChainWiring, sandbox: SandboxWiring) -> None:
        self._parts, self._chains, self._sandbox = parts, chains, sandbox

    @cached_property
    def networks(self) -> Networks:
        from chalicelib.usecases.catalogue.networks import Networks

        settings = self._parts.settings
        secrets = settings.node_secret("") if "live" in settings.realms else None
        return Networks(self._parts.store, deployed=settings.stage != "local", resolve=_resolved, secrets=secrets)

    @cached_property
    def coins(self) -> Coins:
        from chalicelib.usecases.catalogue.coins import Coins

        def stocked(coin: Coin, wallet: str) -> None:
            self._sandbox.sandbox.stock(coin, wallet)

        return Coins(self._parts.store, self._parts.rules, self._chains.token_reader, stocked)

    @cached_property
    def rate_providers(self) -> list[RateProvider]:
        """The providers asked over the network; none where no provider or the fixed one is set."""
        from chalicelib.rates import coingecko, kraken

        known = self._parts.settings
        makers: dict[str, Callable[[], RateProvider]] = {
            "coingecko": lambda: coingecko.CoinGecko(
                known.coingecko_url or coingecko.URL, known.coingecko_key, known.coingecko_ids
            ),
            "kraken": lambda: kraken.Kraken(known.kraken_url or kraken.URL),
        }
        return [makers[name]() for name in known.rates_providers if name in makers]

    @cached_property
    def rate_keeper(self) -> RateKeeper:
        from chalicelib.usecases.catalogue.rates import RateKeeper

        return RateKeeper(self._parts.store, self.rate_providers, self._parts.clock)


def _resolved(host: str) -> list[str]:
    """The addresses of a host's name as of now; none where it is not known here, or not in two seconds."""
    from chalicelib.delivery import resolve

    try:
        return resolve.lookup(host, 443, seconds=2.0)
    except resolve.NotFound:
        return []
