"""The sums of a merchant's invoices: one query, since every change of an invoice moves them."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import TenantId, asset_parts, network_parts, tenant_parts
from chalicelib.domain.invoices.totals import Figures, InvoiceTotals, by_asset
from chalicelib.domain.money import format_units
from chalicelib.usecases.ports.store import Store


@dataclass(frozen=True, slots=True)
class CurrencyTotals:
    """One coin slug over all its networks, in coin units as plain decimals."""

    currency: str
    amount: str
    received: str


@dataclass(frozen=True, slots=True)
class Summary:
    """`all` covers every invoice: its counts and US dollars count, its units mean nothing, since they are of many coins."""

    all: Figures
    currencies: tuple[CurrencyTotals, ...]


def summary(store: Store, tenant: TenantId) -> Summary:
    """The sums as they are now. Raises Unavailable."""
    shards: list[InvoiceTotals] = []
    after: str | None = None
    while True:
        page = store.page(InvoiceTotals, limit=1000, after=after, tenant=tenant)
        shards += page.items
        after = page.next
        if after is None:
            break
    catalogue = store.catalogue(tenant_parts(tenant)[1])
    total, of_slug = Figures(), dict[str, list[tuple[int, Figures]]]()
    for asset, figures in by_asset(shards).items():
        network, slug = asset_parts(asset)
        coin = catalogue.coin(network_parts(network)[1], slug)
        if coin is None:
            raise LookupError(f"{asset} is not in the catalogue")
        total += figures
        of_slug.setdefault(slug, []).append((coin.decimals, figures))
    return Summary(total, tuple(_of_one(slug, of_slug[slug]) for slug in sorted(of_slug)))


def _of_one(slug: str, parts: list[tuple[int, Figures]]) -> CurrencyTotals:
    """The same coin has different decimals on different networks: all are counted in the finest."""
    finest = max(decimals for decimals, _ in parts)
    amount = sum(figures.amount * 10 ** (finest - decimals) for decimals, figures in parts)
    received = sum(figures.received * 10 ** (finest - decimals) for decimals, figures in parts)
    return CurrencyTotals(slug, format_units(amount, finest), format_units(received, finest))


def dollars(cents: int) -> str:
    """Cents as dollars with two decimals, always: "12.50"."""
    sign, whole = ("-", -cents) if cents < 0 else ("", cents)
    return f"{sign}{whole // 100}.{whole % 100:02d}"
