"""The places that the next step of a reconciliation run compares.

A run of every address goes through the table of watched addresses. A daily run has three stages:

1. The service wallets.
2. One of `PARTS` parts of the watched addresses, which a part of the table's hashes are: those that have nothing by the ledger. So
   each emptied address is looked at once a week, and what nobody recorded there is found then.
3. The ledger's balances of the network: every address that has something, or from where something is in flight.

Service wallets come first: what is swept there during a run counts nowhere then, rather than twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from chalicelib.domain.addresses.addresses import RetiredWallet, Wallet, Watched, family_key, watched_key
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.reconciliation import PARTS, Comparison, Place
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.reconciliation.comparisons import Looks

MOST_PLACES = 5_000
"""Places that one step looks at: if all of them differ, their parts are one transaction."""
LARGER = 5
"""Of emptied addresses a step reads so many times as many rows: those at which the chain has nothing are no places."""
ENOUGH = 500
"""Places from which on a step over balances reads no further page."""
MOST_PAGES = 10
"""Pages of a megabyte that one step over balances reads."""
_ADDRESSES, _BALANCES = "@", "="
"""What `Comparison.after` begins with in the stages 2 and 3. An older version would take it for a place in the table: `kept`."""


class Stop(NamedTuple):
    """The places of one step, and where the next one begins; None: there is none."""

    places: list[Place]
    next: str | None


class Walk:
    """Of one network. `page` is how many rows of watched addresses one step reads. Every method raises Unavailable."""

    def __init__(self, context: NetworkContext, looks: Looks, page: int) -> None:
        self._context, self._network, self._store = context, context.network, context.store
        self._looks, self._page = looks, page
        self._met: list[Watched] | None = None

    def step(self, state: Comparison) -> Stop:
        """What `state`, a run in its phase `walk`, compares next."""
        part, after = state.part, state.after
        if part is None:
            page = self._watched(after, None)
            return Stop(self.places([watched for watched in page.items if watched.holds_on(self._network.slug)]), page.next)
        if after.startswith(_BALANCES):
            return self._of_balances(after.removeprefix(_BALANCES))
        if after.startswith(_ADDRESSES):
            return self._emptied(after.removeprefix(_ADDRESSES), part)
        return Stop(self.places(self._services()), _ADDRESSES)

    def places(self, addresses: Sequence[Watched]) -> list[Place]:
        """The places of these addresses. Where each costs a request, those that the ledger knows of, and service wallets'."""
        network = self._network
        places = [
            Place(watched.address, watched.role, coin.asset, self._looks.form(coin.contract))
            for watched in addresses
            for coin in self._context.coins()
        ]
        if not self._looks.everywhere:
            known = self._balances(places)
            places = [p for p, wallet in zip(places, known, strict=True) if wallet is not None or p.role != "user"]
        if network.family == "tron":
            native = self._context.native().asset
            places += [Place(w.address, w.role, native, None, True) for w in addresses if w.role == "hot"]
        return places

    def _watched(self, after: str, part: int | None, times: int = 1) -> Any:
        """The next rows of the table; `times` as many as could all differ in one step."""
        network = self._network
        rows = max(1, min(self._page, MOST_PLACES // (len(self._context.coins()) + 1))) * times
        segment = None if part is None else (part, PARTS)
        return self._store.sweep(
            Watched, limit=rows, after=after or None, segment=segment, realm=network.realm, family=family_key(network)
        )

    def _services(self) -> list[Watched]:
        """The service wallets, of now and replaced, as they were when this run of the function met them first."""
        if self._met is not None:
            return self._met
        found: dict[str, None] = {}
        kinds: tuple[type[Any], ...] = (Wallet, RetiredWallet)
        for kind in kinds:
            after: str | None = None
            while True:
                page = self._store.page(kind, limit=100, after=after, network=self._network.id)
                found |= {self._context.form(wallet.address): None for wallet in page.items}
                after = page.next
                if after is None:
                    break
        self._met = [watched for watched in self._known(list(found)).values() if watched.holds_on(self._network.slug)]
        return self._met

    def _known(self, addresses: Sequence[str]) -> dict[str, Watched]:
        wanted = [watched_key(self._network, address) for address in addresses]
        read: list[Watched | None] = self._store.get_many(wanted) if wanted else []
        return {watched.address: watched for watched in read if watched is not None}

    def _emptied(self, after: str, part: int) -> Stop:
        """The next addresses of the part, without those that the other stages compare."""
        stop = self._few_of(after, part, LARGER)
        # Somebody sent something to nearly each of them.
        return stop if len(stop.places) <= MOST_PLACES else self._few_of(after, part, 1)

    def _few_of(self, after: str, part: int, times: int) -> Stop:
        page = self._watched(after, part, times)
        services = {watched.address for watched in self._services()}
        mine = [w for w in page.items if w.holds_on(self._network.slug) and w.address not in services]
        places = self.places(mine)
        if self._looks.everywhere and places:
            places = self._looks.holding(places)
        known = self._balances(places)
        touched: Collection[str] = self._looks.touched() if places else ()
        places = [
            place
            for place, wallet in zip(places, known, strict=True)
            if (wallet is None or (wallet.emptied and place.address not in touched))
        ]
        return Stop(places, _BALANCES if page.next is None else f"{_ADDRESSES}{page.next}")

    def _of_balances(self, after: str) -> Stop:
        network, touched = self._network, self._looks.touched()
        services = {watched.address for watched in self._services()}
        coins = {coin.asset: self._looks.form(coin.contract) for coin in self._context.coins()}
        places: list[Place] = []
        at: str | None = after
        for _ in range(MOST_PAGES):
            page = self._store.sweep(WalletBalance, limit=MOST_PLACES - ENOUGH, after=at or None, network=network.id)
            mine = [w for w in page.items if w.asset in coins and w.address not in services]
            mine = [w for w in mine if not w.emptied or w.address in touched]
            known = self._known(list(dict.fromkeys(wallet.address for wallet in mine)))
            for wallet in mine:
                watched = known.get(wallet.address)
                if watched is not None and watched.holds_on(network.slug):
                    places.append(Place(wallet.address, watched.role, wallet.asset, coins[wallet.asset]))
            at = page.next
            if at is None or len(places) >= ENOUGH:
                break
        return Stop(places, None if at is None else f"{_BALANCES}{at}")

    def _balances(self, places: Sequence[Place]) -> list[WalletBalance | None]:
        keys = [(WalletBalance, {"network": self._network.id, "address": p.address, "asset": p.asset}) for p in places]
        return self._store.get_many(keys) if keys else []
