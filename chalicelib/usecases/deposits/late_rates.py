"""The rate of a late payment, where its worth at its time decides whether it completes its invoice.

Decided once, when the payment is first found late, and stored with the deposit: a reorganisation takes away exactly what was added,
and what comes back counts as it did. Without a fresh rate then it is worth nothing to its invoice, which stays as it is: the
merchant decides by hand.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import asset_parts, network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.quotes import Quote


def at_its_worth(deposit: Deposit, invoice: Invoice | None, rates: RatesOf, now_ms: int) -> Deposit:
    """The deposit with the rate of now, where it is late and its invoice asks for one. Nothing is read for any other."""
    if invoice is None or invoice.priced is None or not invoice.values_late:
        return deposit
    if not deposit.late or deposit.rate is not None or deposit.asset != invoice.asset:
        return deposit
    network, slug = asset_parts(deposit.asset)
    known = rates(network_parts(network)[0]).of(invoice.tenant).fresh(slug, now_ms, invoice.priced.fiat)
    if known is None or known.decimal <= 0:
        return deposit
    quote = Quote(known.fiat, f"{Decimal(known.value):f}", invoice.priced.decimals, known.at, known.source)
    return replace(deposit, rate=quote)
