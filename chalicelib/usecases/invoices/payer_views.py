"""Parts of an invoice's public record: its payments, and what each coin that its payer may choose usually costs and takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import ceil
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.catalogue.explorers import transaction_url
from chalicelib.domain.catalogue.fiats import FIATS
from chalicelib.domain.catalogue.rates import Rates
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.invoices.choices import Choosing
from chalicelib.domain.invoices.invoices import Invoice, Payment
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.usecases.base.payment_requests import coin_and_network
from chalicelib.usecases.base.transaction_views import confirmations, depth
from chalicelib.usecases.catalogue.conditions import Condition
from chalicelib.usecases.invoices.invoices import fresh_quote

MOST_SHOWN = 20
"""Payments that a payer sees, the newest: all of them are the merchant's to see."""


def shown_payments(invoice: Invoice) -> Sequence[Payment]:
    """The payments that its payer sees, newest first."""
    return invoice.payments[: -MOST_SHOWN - 1 : -1]


def payment_records(
    invoice: Invoice, catalogue: Catalogue, tips: Mapping[NetworkId, int], deposits: Mapping[str, Deposit]
) -> list[dict[str, Any]]:
    """Its newest payments, for its payer. `tips` are the heights of their chains, `deposits` their deposits by id."""
    return [_payment(invoice, one, catalogue, tips, deposits.get(one.deposit)) for one in shown_payments(invoice)]


def _payment(
    invoice: Invoice, payment: Payment, catalogue: Catalogue, tips: Mapping[NetworkId, int], deposit: Deposit | None
) -> dict[str, Any]:
    place, coin = invoice.network_of(payment), catalogue.coin_of(invoice.asset_of(payment))
    network = catalogue.networks[network_parts(place)[1]]
    link = transaction_url(network, payment.hash)
    record = {
        "txId": payment.hash,
        **coin_and_network(coin.asset),
        "symbol": coin.symbol,
        "amount": format_units(payment.amount, coin.decimals),
        "confirmations": confirmations(network, payment.confirmed, depth(payment.block, tips.get(place))),
        "requiredConfirmations": network.confirmations,
    }
    record |= {} if link is None else {"explorerUrl": link}
    return record if deposit is None else record | {"seenAt": iso(deposit.glimpsed_at or deposit.created_at)}


def usual_seconds(network: Network) -> int:
    """Seconds from the first block with a payment until it is credited, at the network's usual pace; at least one."""
    return max(1, ceil(network.block_time * network.confirmations))


def offered(
    choosing: Choosing, catalogue: Catalogue, conditions: Mapping[NetworkId, Condition], rates: Rates, now_ms: int
) -> list[dict[str, Any]]:
    """The coins that the payer may choose, with what paying in each usually costs in the invoice's fiat, and how long it takes."""
    found = []
    for one in choosing.accept:
        coin = catalogue.coin_of(one.asset)
        network = catalogue.networks[network_parts(coin.network)[1]]
        condition = conditions.get(coin.network, Condition())
        units, native = condition.fees.get(coin.slug), catalogue.native(network.slug)
        quote = None if units is None else fresh_quote(rates, native, choosing.fiat, now_ms)
        record: dict[str, Any] = {**coin_and_network(one.asset), "symbol": coin.symbol, "usualSeconds": usual_seconds(network)}
        if units is not None and quote is not None:
            record["usualFee"] = _rounded_up(quote.worth(units), FIATS.get(choosing.fiat, 2))
        found.append(record | ({} if condition.delay is None else {"delay": condition.delay}))
    return found


def _rounded_up(worth: Any, decimals: int) -> str:
    """A price in fiat, rounded up to its currency's last digit: a fee is never told too low."""
    return f"{Decimal(ceil(worth * 10**decimals)).scaleb(-decimals):f}"


def delays(networks: Iterable[NetworkId], conditions: Mapping[NetworkId, Condition]) -> list[dict[str, str]]:
    """The networks among these whose payments are seen or credited later than usual, and why."""
    told = []
    for name in networks:
        delay = conditions.get(name, Condition()).delay
        if delay is not None:
            told.append({"network": network_parts(name)[1], "delay": delay})
    return told
