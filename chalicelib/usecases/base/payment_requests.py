"""Payment URIs, rates as they are shown, and the public fields of an invoice whose payer chooses the coin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.ids import AssetId, NetworkId, asset_parts, network_parts
from chalicelib.domain.invoices.choices import Choice, Choosing
from chalicelib.domain.invoices.invoices import PAYABLE, Invoice
from chalicelib.domain.invoices.quotes import Quote, floor_percent
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso

CoinOf = Callable[[AssetId], Coin]
"""The catalogue's coin of an asset."""


def uri_of(network: NetworkId, coin: Coin, address: str, units: int, catalogue: Catalogue) -> str:
    """The payment URI for a wallet's camera: BIP 21 (bitcoin:, litecoin:), EIP-681 (ethereum:), tron:."""
    known = catalogue.networks[network_parts(network)[1]]
    if known.family == "evm":
        if coin.contract is None:
            return f"ethereum:{address}@{known.chain_id}?value={units}"
        return f"ethereum:{coin.contract}@{known.chain_id}/transfer?address={address}&uint256={units}"
    token = f"&token={coin.contract}" if coin.contract is not None else ""
    return f"{known.slug}:{address}?amount={format_units(units, coin.decimals)}{token}"


def quoted(quote: Quote | None) -> dict[str, Any] | None:
    """A rate as it is shown."""
    if quote is None:
        return None
    return {"fiat": quote.fiat, "value": quote.value, "at": iso(quote.at), "source": quote.source}


def coin_and_network(asset: AssetId) -> dict[str, Any]:
    network, slug = asset_parts(asset)
    return {"coin": slug, "network": network_parts(network)[1]}


def misdirected_record(invoice: Invoice, coin_of: CoinOf) -> dict[str, Any]:
    """The deposits to its address that do not count for it; no field where there are none."""
    if not invoice.misdirected:
        return {}
    found = [
        {**coin_and_network(one.asset), "amount": format_units(one.amount, coin_of(one.asset).decimals), "txId": one.hash}
        for one in reversed(invoice.misdirected)
    ]
    return {"misdirected": found}


def chosen_record(invoice: Invoice, choosing: Choosing, coin_of: CoinOf) -> dict[str, Any]:
    """The fields of an invoice whose payer chooses: those of its latest choice (null before any), and all choices."""
    return {
        **_sums(invoice, choosing, coin_of),
        "fiatAmount": choosing.price,
        "fiatCurrency": choosing.fiat,
        "rate": None if choosing.current is None else quoted(choosing.current.quote),
        "paidPercent": floor_percent(invoice.counted("confirmed") + invoice.counted("late"), invoice.price),
        "accept": [coin_and_network(one.asset) for one in choosing.accept],
        "choices": [choice_record(invoice, choice) for choice in choosing.choices],
    }


def payer_record(invoice: Invoice, choosing: Choosing, coin_of: CoinOf, *, late_counts: bool) -> dict[str, Any]:
    """The same fields as its payer sees them, and what came late in the latest choice's coin, unless it counts."""
    current, late = choosing.current, 0 if late_counts else invoice.in_latest("late", "late_unconfirmed")
    shown = chosen_record(invoice, choosing, coin_of)
    shown["lockedUntil"] = None if current is None or current.locked_until is None else iso(current.locked_until)
    return shown | ({"late": format_units(late, current.decimals)} if current is not None and late else {})


def _sums(invoice: Invoice, choosing: Choosing, coin_of: CoinOf) -> dict[str, Any]:
    """Coin, place and sums of the latest choice."""
    current = choosing.current
    if current is None:
        nothing = dict.fromkeys(("address", "amount", "currency", "symbol", "network", "missing"))
        return nothing | {"received": "0", "unconfirmed": "0"}
    coin, place = coin_of(current.asset), coin_and_network(current.asset)

    def amount(units: int) -> str:
        return format_units(units, coin.decimals)

    return {
        "address": current.address,
        "amount": amount(invoice.amount),
        "currency": place["coin"],
        "symbol": coin.symbol,
        "network": place["network"],
        "received": amount(invoice.received),
        "unconfirmed": amount(invoice.in_latest("unconfirmed", "late_unconfirmed")),
        "missing": amount(invoice.missing),
    }


def choice_record(invoice: Invoice, choice: Choice) -> dict[str, Any]:
    """One choice: the whole price at its newest rate, and what came in its coin."""

    def amount(units: int) -> str:
        return format_units(units, choice.decimals)

    return {
        **coin_and_network(choice.asset),
        "address": choice.address,
        "amount": None if choice.quote is None else amount(choice.quote.units_worth(invoice.price)),
        "received": amount(choice.in_units("confirmed", "late")),
        "unconfirmed": amount(choice.in_units("unconfirmed", "late_unconfirmed")),
        "rate": quoted(choice.quote),
        "lockedUntil": None if choice.locked_until is None else iso(choice.locked_until),
    }


def choice_answer(invoice: Invoice, choice: Choice, coin: Coin, catalogue: Catalogue) -> dict[str, Any]:
    """A choice as the one who made it sees it: where to pay to, what, and until when at that rate."""
    rest = invoice.missing_in(choice) if invoice.status in PAYABLE else 0
    return {
        **coin_and_network(choice.asset),
        "address": choice.address,
        "amount": None if choice.quote is None else format_units(choice.quote.units_worth(invoice.price), choice.decimals),
        "missing": format_units(invoice.missing_in(choice), choice.decimals),
        "rate": quoted(choice.quote),
        "lockedUntil": None if choice.locked_until is None else iso(choice.locked_until),
        "paymentUri": uri_of(choice.network, coin, choice.address, rest, catalogue) if rest else None,
    }
