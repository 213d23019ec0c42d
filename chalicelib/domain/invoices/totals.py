"""Totals of a merchant's invoices, kept as sums that every change of an invoice moves, and of its awaited deposits.

A sum moves by the difference of one pure function of the invoice, before and after the change: so the sums can not drift from the
invoices. They lie in shards, chosen by the invoice's id, that are only ever added to: concurrent changes of invoices do not wait
for each other. Which shard a change is added to does not matter: only their sum is read.

Beside them is what the merchant awaits: deposits that were seen and are not credited yet. It is no money, so that no balance has to
be written, and no version compared, when a deposit is seen. `Balance.pending` is one more summand: an earlier version of the
service kept all of it there, and may still add to it and take from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING

from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.invoices.invoices import Invoice

if TYPE_CHECKING:
    from chalicelib.domain.deposits.deposits import Deposit

SHARDS = 16
"""Fifty transactions a second of one merchant and coin, each some 30 ms long, meet at a shard once in ten. DynamoDB refuses one of
two that meet, and the store tries it again. An earlier version has 8, the first of these."""
_HALF = 10**18
"""Amounts are summed in two halves, or many large ones would pass the 38 digits that a stored number keeps."""
_MOST = 10**48
"""The most that one invoice adds: where the payer chooses, rates that a sandbox's merchant sets could make it any number."""


@dataclass(frozen=True, slots=True)
class InvoiceTotals:
    """One shard of the sums over a merchant's invoices in one asset. Moved by the store together with invoices, never saved.

    An amount is `high` * 10^18 + `low`: units of the asset, and cents of a US dollar. `awaited` is in units too, of all deposits of
    the merchant in this coin, whether they are for an invoice or not; in one shard it may be below zero.
    """

    tenant: TenantId
    asset: AssetId
    shard: str
    invoices: int = 0
    completed: int = 0
    pending: int = 0
    amount_high: int = 0
    amount_low: int = 0
    received_high: int = 0
    received_low: int = 0
    usd_amount_high: int = 0
    usd_amount_low: int = 0
    usd_received_high: int = 0
    usd_received_low: int = 0
    awaited: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """The amounts that one invoice, or many, add to the sums. `amount` and `received` in units, `usd_*` in cents."""

    invoices: int = 0
    completed: int = 0
    pending: int = 0
    amount: int = 0
    received: int = 0
    usd_amount: int = 0
    usd_received: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Figures)))


AMOUNTS = ("amount", "received", "usd_amount", "usd_received")
COUNTS = ("invoices", "completed", "pending")


def figures(invoice: Invoice | None) -> Figures:
    """The amounts that one invoice adds. Without a stored rate it counts nothing in US dollars. A manual status is final.

    US dollars are rounded to cents once per invoice: what was asked for, and all that was received (`Quote.cents`).

    Where the payer chooses, it counts under the latest choice, with the amounts that its record shows in that coin; before any,
    under the first accepted coin, with the price in US dollars alone.
    """
    if invoice is None:
        return Figures()
    usd_amount = usd_received = 0
    if invoice.choosing is not None:
        usd_amount, usd_received = _dollar_cents(invoice, invoice.price), _dollar_cents(invoice, _credited(invoice))
    elif invoice.usd is not None:
        usd_amount = invoice.usd.cents(invoice.amount)
        usd_received = invoice.usd.cents(invoice.received)
    return Figures(
        invoices=1,
        completed=int(invoice.status == "completed"),
        pending=int(not invoice.final),
        amount=min(invoice.amount, _MOST),
        received=min(invoice.received, _MOST),
        usd_amount=min(usd_amount, _MOST),
        usd_received=min(usd_received, _MOST),
    )


def _credited(invoice: Invoice) -> Fraction:
    return invoice.counted("confirmed") + invoice.counted("late")


def _dollar_cents(invoice: Invoice, worth: Fraction) -> int:
    """Of an invoice whose payer chooses: `worth` in its fiat as cents of a US dollar, at the rate of its creation."""
    usd = None if invoice.choosing is None else invoice.choosing.usd
    return 0 if usd is None else round(worth * usd.worth(1) * 100)


def shard_of(invoice_id: str) -> str:
    return str(hashlib.sha256(invoice_id.encode()).digest()[0] % SHARDS)


def shard_key(invoice: Invoice) -> dict[str, str]:
    """The key of the shard that an invoice adds to."""
    return {"tenant": invoice.tenant, "asset": invoice.asset, "shard": shard_of(invoice.id)}


def awaited_key(tenant: TenantId, deposit: Deposit) -> dict[str, str]:
    """The key of the shard that counts a deposit as awaited: where it is for an invoice, that of the invoice, so that a transaction
    which moves both writes one item."""
    return {"tenant": tenant, "asset": deposit.asset, "shard": shard_of(deposit.invoice_id or deposit.id)}


def shard_keys(tenant: TenantId, asset: AssetId) -> list[dict[str, str]]:
    """The keys of all shards of a merchant and coin."""
    return [{"tenant": tenant, "asset": asset, "shard": str(number)} for number in range(SHARDS)]


def deltas(before: Invoice | None, after: Invoice | None) -> dict[str, int]:
    """The difference of each number of the shard between `before` and `after`; unchanged numbers are left out."""
    old, new = asdict(figures(before)), asdict(figures(after))
    moved = {name: new[name] - old[name] for name in COUNTS}
    for name in AMOUNTS:
        moved[f"{name}_high"], moved[f"{name}_low"] = divmod(new[name] - old[name], _HALF)
    return {name: change for name, change in moved.items() if change}


def figures_of(totals: InvoiceTotals) -> Figures:
    """The sums of one shard."""
    counts = {name: getattr(totals, name) for name in COUNTS}
    amounts = {name: getattr(totals, f"{name}_high") * _HALF + getattr(totals, f"{name}_low") for name in AMOUNTS}
    return Figures(**counts, **amounts)


def by_asset(shards: Iterable[InvoiceTotals]) -> Mapping[AssetId, Figures]:
    """The sums of each asset over all its shards; none for an asset without invoices."""
    sums: dict[AssetId, Figures] = {}
    for shard in shards:
        figures = figures_of(shard)
        if figures != Figures() or shard.asset in sums:
            sums[shard.asset] = sums.get(shard.asset, Figures()) + figures
    return sums


def awaited_by_asset(shards: Iterable[InvoiceTotals]) -> Mapping[AssetId, int]:
    """The awaited units of each asset over all its shards; none for an asset whose shards have counted no deposit."""
    sums: dict[AssetId, int] = {}
    for shard in shards:
        if shard.awaited:
            sums[shard.asset] = sums.get(shard.asset, 0) + shard.awaited
    return sums
