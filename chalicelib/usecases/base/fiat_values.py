"""The value of payments in fiat at the time that they are made, for the merchant's accounts. No sum and no limit counts it.

It is decided with a write that happens anyhow, at a rate that is fresh then, and stays what it was: what a reorganisation takes
away comes back with it. A payment of an invoice with a price in fiat is valued in that currency, any other one in US dollars. A
coin that is not active has no value: rates go by its name, and on one network it may have lost its worth.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.catalogue.rates import Rates, RatesOf
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.quotes import FiatValue, Quote
from chalicelib.domain.withdrawals.withdrawals import Withdrawal

_USUAL = "USD"
LONG_AGO_MS = 2 * 3_600_000
"""A payment that is found so long after it was made has no value: nobody kept the rate of then. Longer than a poll may be behind,
and than a block's own time may be wrong."""


def deposit_worth(deposit: Deposit, invoice: Invoice | None, catalogue: Catalogue, rates: RatesOf, now_ms: int) -> Deposit:
    """The deposit with what it is worth now, unless that, or the rate at which it counts, was decided before, or it was made long
    ago (a rescan found it)."""
    if deposit.tenant is None or deposit.fiat_value is not None or deposit.set_aside:
        return deposit
    if deposit.paid_at is not None and now_ms - deposit.paid_at > LONG_AGO_MS:
        return deposit
    usual = rates(network_parts(deposit.network)[0])
    fiat = _fiat_of(invoice)
    # What a merchant sets in its sandbox counts for what is priced in fiat, and is read for that alone.
    known = usual.of(deposit.tenant) if invoice is not None and fiat is not None else usual
    return replace(deposit, worth=_worth(catalogue.coin_of(deposit.asset), deposit.amount, known, fiat or _USUAL, now_ms))


def withdrawal_worth(withdrawal: Withdrawal, catalogue: Catalogue, rates: RatesOf, now_ms: int) -> FiatValue | None:
    """What a withdrawal is worth that is confirmed now, or what was decided when it was confirmed before."""
    if withdrawal.worth is not None:
        return withdrawal.worth
    usual = rates(network_parts(withdrawal.network)[0])
    return _worth(catalogue.coin_of(withdrawal.asset), withdrawal.amount, usual, _USUAL, now_ms)


def _fiat_of(invoice: Invoice | None) -> str | None:
    if invoice is None:
        return None
    if invoice.choosing is not None:
        return invoice.choosing.fiat
    return None if invoice.priced is None else invoice.priced.fiat


def _worth(coin: Coin, units: int, rates: Rates, fiat: str, now_ms: int) -> FiatValue | None:
    known = rates.fresh(coin.slug, now_ms, fiat) if coin.status == "ACTIVE" else None
    if known is None or known.decimal <= 0:
        return None
    return Quote(fiat, f"{Decimal(known.value):f}", coin.decimals, known.at, known.source).fiat_value(units)
