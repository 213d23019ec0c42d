"""A merchant's payment links: made, read, changed, deleted.

The link and its stock are set in one transaction. What visitors open meanwhile takes from the same shards: a change of the stock is
worked out as what to add or take, on the stock as it was read, and never brings a shard below zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.domain.catalogue.fiats import FIATS, unknown_fiat
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import TenantId, asset_parts, network_parts, new_id
from chalicelib.domain.money import MAX_DIGITS, parse_units
from chalicelib.domain.payment_links.links import PREFIX, PaymentLink, Price
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.invoices.pieces import stock_of
from chalicelib.usecases.invoices.settings import InvoiceSettingsService
from chalicelib.usecases.payment_links.stock import Stocked, filled, stocked
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """What a new link offers. `stock` None: any number; `expires_at` in milliseconds since 1970, None for never."""

    name: str
    price: Price
    description: str | None = None
    stock: int | None = None
    expires_at: int | None = None
    redirect_url: str | None = None
    metadata: Mapping[str, Any] | None = None


class PaymentLinks:
    def __init__(self, store: Store, clock: Clock, settings: InvoiceSettingsService) -> None:
        self._store, self._clock, self._settings = store, clock, settings

    def creating(self, tenant: TenantId, terms: LinkTerms) -> Creation[Stocked]:
        """What is committed for a new link: the link and its stock. Raises BusinessRule for a price that no invoice can have now:
        of a coin that is not active, or against the merchant's invoice settings."""
        self._demand_payable(tenant, terms.price)
        now = self._clock.now_ms()
        link = PaymentLink(
            id=new_id(PREFIX, now),
            tenant=tenant,
            name=terms.name,
            price=terms.price,
            created_at=now,
            updated_at=now,
            description=terms.description,
            stocked=terms.stock is not None,
            expires_at=terms.expires_at,
            redirect_url=terms.redirect_url,
            metadata=terms.metadata,
        )
        prepared = Prepared(Stocked(link, terms.stock), [Save(link), *filled(link, [], terms.stock)])
        return Creation(self._store, lambda: prepared)

    def find(self, link_id: str) -> PaymentLink:
        """A link of any merchant. Raises NotFound, also for a deleted one; Unavailable."""
        found = self._store.get(PaymentLink, id=link_id)
        if found is None or found.deleted_at is not None:
            raise NotFound(f"No payment link {link_id[:80]}", {"id": link_id[:80]})
        return found

    def get(self, tenant: TenantId, link_id: str) -> PaymentLink:
        """Raises NotFound, also for another merchant's; Unavailable."""
        found = self.find(link_id)
        if found.tenant != tenant:
            raise NotFound(f"No payment link {link_id[:80]}", {"id": link_id[:80]})
        return found

    def change(self, tenant: TenantId, link_id: str, changes: Mapping[str, Any]) -> Stocked:
        """Replace the fields of `LinkTerms` that `changes` names; the others stay. `stock` is what is left from now on, beside the
        pieces of open invoices. Raises NotFound, BusinessRule as `creating` does, Conflict, Unavailable."""
        if "price" in changes:
            self._demand_payable(tenant, changes["price"])

        def decide() -> Stocked:
            before = self.get(tenant, link_id)
            fields = {name: value for name, value in changes.items() if name != "stock"}
            after = replace(next_version(before), **fields, updated_at=self._clock.now_ms())
            if "stock" not in changes:
                self._store.commit([Save(after)])
                return stocked(self._store, [after])[0]
            stock = changes["stock"]
            after = replace(after, stocked=stock is not None)
            shards = [] if stock is None else stock_of(self._store, link_id)
            self._store.commit([Save(after), *filled(after, shards, stock)])
            return Stocked(after, stock)

        return until_settled(decide)

    def delete(self, tenant: TenantId, link_id: str) -> Stocked:
        """The link as it was; nobody finds it any more. Its invoices stay. Raises NotFound, Conflict, Unavailable."""

        def decide() -> Stocked:
            before = self.get(tenant, link_id)
            shown, now = stocked(self._store, [before])[0], self._clock.now_ms()
            self._store.commit([Save(replace(next_version(before), deleted_at=now, updated_at=now))])
            return shown

        return until_settled(decide)

    def _demand_payable(self, tenant: TenantId, price: Price) -> None:
        if price.fiat is not None and price.fiat not in FIATS:
            raise BusinessRule("fiatCurrency", unknown_fiat())
        if price.asset is None:
            for offered in price.accept or ():
                self._settings.get(tenant).demand_supported(offered.coin, "accept")
            return
        network, slug = asset_parts(price.asset)
        realm, place = network_parts(network)
        coin = self._store.catalogue(realm).coin(place, slug)
        if coin is None or coin.status != "ACTIVE":
            raise BusinessRule("currency", f"{slug} on {place} is not active")
        # A price in fiat is held to the least amount when it is opened: there is a rate then.
        most = 10**MAX_DIGITS if price.fiat is not None else parse_units(price.most or price.amount, coin.decimals)
        self._settings.get(tenant).demand(slug, most, coin.decimals)
