"""Invoices whose payer chooses the coin: made with a price in fiat, the coins that are accepted, and no address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.catalogue.rates import Rates, RatesOf
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import AssetId, TenantId, network_parts, new_id, tenant_parts
from chalicelib.domain.invoices.choices import MOST_ACCEPTED, Accepted, Choosing
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.settings import InvoiceSettings
from chalicelib.usecases.base.creation import Creation
from chalicelib.usecases.invoices.invoices import FiatPrice, Invoices, NewInvoice, Wishes
from chalicelib.usecases.invoices.settings import InvoiceSettingsService
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

_RATIO = Context(prec=20)


@dataclass(frozen=True, slots=True)
class Offer:
    """A coin that the merchant accepts, in lower case; without a network on all of them."""

    coin: str
    network: str | None = None


class ChoosableInvoices:
    def __init__(self, store: Store, invoices: Invoices, settings: InvoiceSettingsService, clock: Clock, rates: RatesOf) -> None:
        self._store, self._invoices, self._settings, self._clock, self._rates = store, invoices, settings, clock, rates

    def creating(
        self, tenant: TenantId, price: FiatPrice, accept: Sequence[Offer] | None, wishes: Wishes | None = None
    ) -> Creation[NewInvoice]:
        """What is committed for a new invoice: one transaction, and no address. `accept` None: every active coin that the
        merchant's settings allow.

        Raises BusinessRule (a coin that is not active or not among supportedCurrencies, none at all, too many), Unavailable.
        """
        wishes, realm = wishes or Wishes(), tenant_parts(tenant)[1]
        catalogue, rates, now = self._store.catalogue(realm), self._rates(realm).of(tenant), self._clock.now_ms()
        settings, _ = self._settings.for_new(tenant, next(iter(catalogue.networks.values())).id)
        coins = self._allowed(settings, catalogue, rates, price) if accept is None else _accepted(settings, catalogue, accept)
        usd = _dollars(price.currency, coins, rates, now)
        choosing = Choosing(
            fiat=price.currency,
            price=price.amount,
            accept=tuple(Accepted(coin.asset, coin.decimals) for coin in coins),
            lane=coins[0].network,
            usd=usd,
        )
        invoice = Invoice(
            id=new_id("inv", now),
            tenant=tenant,
            network=coins[0].network,
            asset=coins[0].asset,
            address=None,
            address_id=None,
            amount=0,
            created_at=now,
            expires_at=now + (wishes.expires_in or settings.time_to_pay) * 1000,
            terms=settings.terms_with(wishes.terms),
            auto_confirm=usd is not None and settings.auto_confirms_worth(choosing.whole * usd.worth(1)),
            choosing=choosing,
            fiat_amount=price.amount,
            emitted=1,
        )
        return self._invoices.creation(invoice, wishes)

    @staticmethod
    def _allowed(settings: InvoiceSettings, catalogue: Catalogue, rates: Rates, price: FiatPrice) -> list[Coin]:
        """Every active coin that the settings allow; of these the ones that ever had a rate in the price's currency, where any
        had."""
        active = [coin for slug in catalogue.networks for coin in catalogue.coins_of(slug) if _active(catalogue, coin)]
        supported = settings.supported_currencies
        coins = [coin for coin in active if not supported or coin.slug in supported]
        if not coins:
            raise BusinessRule("accept", "no coin of your supportedCurrencies is active here")
        known = [coin for coin in coins if rates.get(coin.slug, price.currency) is not None]
        return (known or coins)[:MOST_ACCEPTED]


def _active(catalogue: Catalogue, coin: Coin) -> bool:
    return coin.status == "ACTIVE" and catalogue.networks[network_parts(coin.network)[1]].status == "active"


def _accepted(settings: InvoiceSettings, catalogue: Catalogue, accept: Iterable[Offer]) -> list[Coin]:
    """The coins of the merchant's offers, each once, in its order. Raises BusinessRule."""
    found: dict[AssetId, Coin] = {}
    for offer in accept:
        settings.demand_supported(offer.coin, "accept")
        networks = catalogue.coin_networks(offer.coin) if offer.network is None else [offer.network]
        coins = [coin for slug in networks if (coin := catalogue.coin(slug, offer.coin)) is not None]
        active = [coin for coin in coins if _active(catalogue, coin)]
        if not active:
            place = "" if offer.network is None else f" on {offer.network}"
            raise BusinessRule("accept", f"{offer.coin}{place} is not active here")
        found |= {coin.asset: coin for coin in active}
    if len(found) > MOST_ACCEPTED:
        raise BusinessRule("accept", f"an invoice offers at most {MOST_ACCEPTED} coins, these are {len(found)}")
    return list(found.values())


def _dollars(fiat: str, coins: Sequence[Coin], rates: Rates, now_ms: int) -> Quote | None:
    """The worth of one unit of `fiat` in US dollars, by the first coin that has a fresh rate in both; None where none has."""
    if fiat == "USD":
        return Quote("USD", "1", 0, now_ms, "USD")
    for coin in coins:
        usd, other = rates.fresh(coin.slug, now_ms), rates.fresh(coin.slug, now_ms, fiat)
        if usd is not None and other is not None and other.decimal > 0:
            return Quote("USD", f"{_RATIO.divide(usd.decimal, other.decimal):f}", 0, min(usd.at, other.at), usd.source)
    return None
