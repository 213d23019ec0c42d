"""Invoices: created with an address of their own, moved by payments on the chain, expired by the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NoReturn

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, amount_text, in_usd, limit_units
from chalicelib.domain.catalogue.fiats import FIATS, fiat_problem, unknown_fiat
from chalicelib.domain.catalogue.rates import Rates, RatesOf, no_rates
from chalicelib.domain.chain import Cursor
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import NetworkId, TenantId, network_parts, new_id
from chalicelib.domain.invoices.invoices import ExternalId, Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.money import MAX_DIGITS
from chalicelib.domain.webhooks.hooks import InvoiceHook
from chalicelib.domain.work import Work
from chalicelib.usecases.addresses.addresses import Addresses, widest
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.pieces import within_reach
from chalicelib.usecases.invoices.settings import InvoiceSettingsService
from chalicelib.usecases.invoices.status import changed, set_by_hand
from chalicelib.usecases.ports.changes import Change, Conflict, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Page, Store

_SEPARATOR = "|"


def expiry_work(invoice: Invoice) -> Work:
    """The obligation to expire an invoice when its time is over; in the lane of its network, which knows how far it is scanned.
    Where the payer chooses, `expiries` moves it to the lane of a chosen network that is behind."""
    lane = invoice.network if invoice.choosing is None else invoice.choosing.lane
    return Work("expiry", lane, f"{invoice.expires_at:015d}", f"{invoice.tenant}{_SEPARATOR}{invoice.id}")


def work_key(work: Work) -> tuple[type[Invoice], dict[str, str]]:
    """The key of the invoice that an obligation is about."""
    tenant, invoice_id = work.id.split(_SEPARATOR)
    return Invoice, {"tenant": tenant, "id": invoice_id}


@dataclass(frozen=True, slots=True)
class FiatPrice:
    """The price of an invoice in fiat: plain decimal, ISO 4217.

    Raises BusinessRule for a currency that no rate provider tells, and for more decimals than it has.
    """

    amount: str
    currency: str

    def __post_init__(self) -> None:
        if self.currency not in FIATS:
            raise BusinessRule("fiatCurrency", unknown_fiat())
        problem = fiat_problem(self.amount, self.currency)
        if problem is not None:
            raise BusinessRule("fiatAmount", problem)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The merchant's terms of a new invoice beside its price. `expires_in` in seconds; None: the settings' value."""

    external_id: str | None = None
    description: str | None = None
    redirect_url: str | None = None
    cancel_url: str | None = None
    metadata: Mapping[str, Any] | None = None
    hook: InvoiceHook | None = None
    terms: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Terms` that are other than the settings'."""
    expires_in: int | None = None
    payment_link: str | None = None
    gateway_url: str | None = None
    """The beginning of links where the deployment has no PUBLIC_URL."""


@dataclass(frozen=True, slots=True)
class NewInvoice:
    """An invoice, and its public record, which its event has too."""

    invoice: Invoice
    shown: dict[str, Any]


class Invoices:
    def __init__(
        self,
        store: Store,
        addresses: Addresses,
        clock: Clock,
        settings: InvoiceSettingsService,
        rates: RatesOf = no_rates,
        public_url: str | None = None,
    ) -> None:
        """`public_url` is the public prefix of this deployment's paths, where it is known."""
        self._store, self._addresses, self._clock, self._settings = store, addresses, clock, settings
        self._rates, self._public_url = rates, public_url

    def create(self, tenant: TenantId, coin: Coin, price: int | FiatPrice, wishes: Wishes | None = None) -> Invoice:
        """A new invoice over `price` (units of `coin`, or a fiat amount priced now) at an address of its own.

        Raises BusinessRule (inactive coin, inactive or halted network, the merchant's settings, less than the coin's
        minDepositAmount, no fresh rate, externalId taken), Unavailable.
        """
        return self.creating(tenant, coin, price, wishes).run().invoice

    def creating(self, tenant: TenantId, coin: Coin, price: int | FiatPrice, wishes: Wishes | None = None) -> Creation[NewInvoice]:
        """What `create` commits, decided now: each try commits the same invoice. Raises what `create` raises, but for an externalId
        that is taken, which the commit meets."""
        if isinstance(price, int) and price <= 0:
            raise ValueError("an invoice asks for more than nothing")
        wishes = wishes or Wishes()
        realm, slug = network_parts(coin.network)
        catalogue = self._store.catalogue(realm)
        network = catalogue.networks[slug]
        if coin.status != "ACTIVE":
            raise BusinessRule("currency", f"{coin.slug} on {slug} is not active")
        settings, halted = self._settings.for_new(tenant, network.id)
        demand_scanning(network, halted)
        now = self._clock.now_ms()
        rates = self._rates(realm) if isinstance(price, int) else self._rates(realm).of(tenant)
        worth = _priced(coin, price, rates, now)
        asked = "amount" if worth.priced is None else "fiatAmount"
        settings.demand(coin.slug, worth.amount, coin.decimals, asked)
        demand_minimum(coin, worth.amount, asked, self._rates(realm), now)
        invoice_id = new_id("inv", now)
        address, changes = self._addresses.prepare(tenant, network, widest(network), invoice_id=invoice_id)
        invoice = Invoice(
            id=invoice_id,
            tenant=tenant,
            network=coin.network,
            asset=coin.asset,
            address=address.address,
            address_id=address.id,
            amount=worth.amount,
            created_at=now,
            expires_at=now + (wishes.expires_in or settings.time_to_pay) * 1000,
            terms=settings.terms_with(wishes.terms),
            auto_confirm=settings.auto_confirms(worth.amount, worth.usd),
            usd=worth.usd,
            priced=worth.priced,
            fiat_amount=price.amount if isinstance(price, FiatPrice) else None,
            emitted=1,
        )
        return self.creation(invoice, wishes, changes)

    def creation(self, invoice: Invoice, wishes: Wishes, changes: Sequence[Change] = ()) -> Creation[NewInvoice]:
        """What is committed for `invoice` with the merchant's terms; `changes` store its address, where it has one."""
        base = self._public_url or wishes.gateway_url
        invoice = replace(
            invoice,
            external_id=wishes.external_id,
            description=wishes.description,
            redirect_url=wishes.redirect_url,
            cancel_url=wishes.cancel_url,
            metadata=wishes.metadata,
            payment_link=wishes.payment_link,
            hook=wishes.hook,
            checkout_url=None if base is None else f"{base}/pay/{invoice.id}",
        )
        news = News(invoice.created_at)
        shown = Views(self._store.catalogue(network_parts(invoice.network)[0])).invoice(invoice)
        news.tell(invoice.tenant, "invoice.created", invoice.id, 1, shown, hook=invoice.hook)
        unique = [] if invoice.external_id is None else [Save(ExternalId(invoice.tenant, invoice.external_id, invoice.id))]
        made = [*unique, *changes, *changed(None, invoice), Open(expiry_work(invoice)), *news.emit()]

        def taken(conflict: Conflict) -> NoReturn:
            if unique and conflict.change == unique[0]:
                reason = f"there is already an invoice with the externalId {invoice.external_id}"
                raise BusinessRule("externalId", reason) from conflict
            raise conflict

        # Everything in it is new but the sums, which other invoices move at the same time.
        prepared = Prepared(NewInvoice(invoice, shown), made, taken)
        return Creation(self._store, lambda: prepared)

    def get(self, tenant: TenantId, invoice_id: str) -> Invoice:
        """Raises NotFound, also for another merchant's invoice."""
        invoice = self._store.get(Invoice, tenant=tenant, id=invoice_id)
        if invoice is None:
            raise NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
        return invoice

    def by_external_id(self, tenant: TenantId, external_id: str) -> Invoice:
        """Raises NotFound."""
        link = self._store.get(ExternalId, tenant=tenant, value=external_id)
        if link is None:
            raise NotFound(f"No invoice with externalId {external_id[:80]}", {"externalId": external_id[:80]})
        return self.get(tenant, link.invoice_id)

    def page(self, tenant: TenantId, limit: int, after: str | None = None, newest_first: bool = True) -> Page[Invoice]:
        return self._store.page(Invoice, limit=limit, after=after, newest_first=newest_first, tenant=tenant)

    def override(self, tenant: TenantId, invoice_id: str, status: str, by: str) -> Invoice:
        """Set the status by hand: recorded with author and time; from then on nothing changes it by itself. Raises NotFound."""

        def decide() -> Invoice:
            now = self._clock.now_ms()
            before = within_reach(self._store, self.get(tenant, invoice_id))
            news = News(now)
            views = Views(self._store.catalogue(network_parts(before.network)[0]))
            tips = self.tips([before])
            after = set_by_hand(news, before, status, by, now, views, tips)
            self._store.commit([*changed(before, after), *news.emit()])
            return after

        return until_settled(decide)

    def tips(self, invoices: Sequence[Invoice]) -> dict[NetworkId, int]:
        """The heights, as last seen, of the chains that hold payments of `invoices`: one read, none where nothing is paid."""
        networks = sorted({invoice.network_of(payment) for invoice in invoices for payment in invoice.payments})
        if not networks:
            return {}
        cursors = self._store.get_many([(Cursor, {"network": network}) for network in networks])
        return {cursor.network: cursor.tip for cursor in cursors if cursor is not None}


def demand_scanning(network: Network, halted: bool) -> None:
    """Raises BusinessRule where a payment would not be seen or not be credited."""
    if network.status != "active":
        raise BusinessRule("network", f"{network.slug} is not active here: payments to it would not be seen")
    if halted:
        raise BusinessRule("network", f"{network.slug} is halted: nothing is credited there until the operator has looked at it")


def demand_minimum(coin: Coin, units: int, asked: str, rates: Rates, now_ms: int) -> None:
    """Raises BusinessRule where `units` are less than the coin's minDepositAmount: a payment of it would be too little elsewhere.

    A minimum in USD without a fresh rate refuses nothing.
    """
    try:
        least = limit_units(coin, "minDepositAmount", rates, now_ms)
    except NoFreshRate:
        return
    if least is not None and units < least:
        text, unit = amount_text(coin, "minDepositAmount"), "USD" if in_usd(coin) else coin.slug
        raise BusinessRule(asked, f"is less than {text} {unit}, the least that is credited of {coin.slug} (minDepositAmount)")


@dataclass(frozen=True, slots=True)
class _Worth:
    """The price in units; the rate that it was made from, where it was; its worth in US dollars, where known."""

    amount: int
    priced: Quote | None
    usd: Quote | None


def _priced(coin: Coin, price: int | FiatPrice, rates: Rates, now_ms: int) -> _Worth:
    """Raises BusinessRule where there is no fresh rate for a fiat price."""
    usd = fresh_quote(rates, coin, "USD", now_ms)
    if isinstance(price, int):
        return _Worth(price, None, usd)
    priced = fresh_quote(rates, coin, price.currency, now_ms)
    if priced is None:
        raise BusinessRule("fiatCurrency", f"there is no fresh rate of {coin.slug} in {price.currency} now")
    amount = priced.units_for(price.amount)
    if len(str(amount)) > MAX_DIGITS:
        raise BusinessRule("fiatAmount", f"is more {coin.slug} than an invoice can ask for")
    return _Worth(amount, priced, usd)


def fresh_quote(rates: Rates, coin: Coin, fiat: str, now_ms: int) -> Quote | None:
    """The fresh rate as an invoice keeps it; a stale one never."""
    rate = rates.fresh(coin.slug, now_ms, fiat)
    if rate is None or rate.decimal <= 0:
        return None
    return Quote(fiat, f"{Decimal(rate.value):f}", coin.decimals, rate.at, rate.source)
