"""The coin and the amount of a refund, out of what was asked for and what is credited for its invoice."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.catalogue.fiats import fiat_problem
from chalicelib.domain.catalogue.rates import Rates
from chalicelib.domain.errors import BusinessRule, InvalidParameter
from chalicelib.domain.ids import AssetId, asset_parts, network_parts
from chalicelib.domain.money import MAX_DIGITS, NotAnAmount, format_units, parse_units
from chalicelib.domain.refunds.fractions import (
    Credited,
    credited_of,
    in_fiat,
    left_in_fiat,
    left_of,
    overpaid_worth,
    taken,
)
from chalicelib.domain.refunds.refunds import Mode
from chalicelib.usecases.refunds.refund_reads import Refunded

_PAID_DECIMALS = 8
_NOTHING = "nothing is credited for this invoice, so there is nothing to refund"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a refund shall be: `amount` is a plain decimal, in coin units or, in the mode `fiat`, in the invoice's currency. None:
    what was overpaid, else all that is left. `coin` and `network` are slugs."""

    mode: Mode = "same"
    amount: str | None = None
    coin: str | None = None
    network: str | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """`units` of `coin`; in the mode `fiat` the amount in `fiat` that they are worth now."""

    coin: Coin
    units: int
    mode: Mode
    fiat: str | None = None
    fiat_amount: str | None = None


def priced(known: Refunded, asked: Asked, catalogue: Catalogue, rates: Rates, now: int) -> Price:
    """Raises BusinessRule where nothing, or not so much, is left to refund, and where there is no price or rate in fiat;
    InvalidParameter for an amount or a coin that can not be."""
    credited = credited_of(known.invoice)
    if credited.most is None:
        raise BusinessRule("invoiceId", _NOTHING)
    if asked.mode == "fiat":
        return _in_fiat(known, credited, asked, catalogue, rates, now)
    coin = _coin(catalogue, _paid_in(credited, asked, catalogue))
    left = left_of(credited, known.taking, coin.asset)
    units = _same_by_default(known, credited, coin.asset, left) if asked.amount is None else _units(asked.amount, coin)
    if units > left:
        raise BusinessRule("amount", _too_much(f"{format_units(max(0, left), coin.decimals)} {coin.symbol}"))
    return Price(coin, units, "same")


def _too_much(left: str) -> str:
    return f"is more than can be refunded: of what is credited for this invoice, {left} is not refunded yet"


def _units(text: str, coin: Coin) -> int:
    try:
        return parse_units(text, coin.decimals)
    except NotAnAmount as reason:
        raise InvalidParameter.one("amount", text, f"{reason} ({coin.symbol})") from None


def _coin(catalogue: Catalogue, asset: AssetId) -> Coin:
    network, slug = asset_parts(asset)
    coin = catalogue.coin(network_parts(network)[1], slug)
    if coin is None:
        raise LookupError(f"{asset} is not in the catalogue")
    return coin


def _paid_in(credited: Credited, asked: Asked, catalogue: Catalogue) -> AssetId:
    """The coin that is meant, of those that the invoice was paid in."""
    paid = [_coin(catalogue, part.asset) for part in credited.parts if part.units > 0]
    fits = [coin for coin in paid if asked.coin in (None, coin.slug) and asked.network in (None, network_parts(coin.network)[1])]
    if len(fits) == 1:
        return fits[0].asset
    names = ", ".join(f"{coin.slug} on {network_parts(coin.network)[1]}" for coin in fits or paid)
    if not fits:
        raise BusinessRule("coin", f"in the mode same a refund is in a coin that is credited for this invoice: {names}")
    raise BusinessRule("network" if asked.coin else "coin", f"this invoice was paid in several coins, say which: {names}")


def _overpaid_left(known: Refunded, credited: Credited) -> Fraction | None:
    """The worth of what was overpaid and is not refunded, of a completed invoice that has such; else None."""
    over = overpaid_worth(known.invoice, credited)
    if over is None:
        return None
    worth = over - taken(credited, known.taking) * credited.worth
    if worth <= 0:
        raise BusinessRule("amount", "is needed: what was overpaid is refunded already")
    return worth


def _same_by_default(known: Refunded, credited: Credited, asset: AssetId, left: int) -> int:
    part = credited.of(asset)
    over = _overpaid_left(known, credited)
    units = left if over is None or part is None else min(left, floor(over * part.units / part.worth))
    if units <= 0:
        raise BusinessRule("amount", "nothing is left to refund: all that is credited for this invoice is refunded already")
    return units


def _in_fiat(known: Refunded, credited: Credited, asked: Asked, catalogue: Catalogue, rates: Rates, now: int) -> Price:
    if credited.fiat is None or credited.most is None:
        raise BusinessRule("mode", "this invoice has no price in a fiat currency: refund it in the mode same")
    coin = _coin(catalogue, credited.most.asset) if asked.coin is None else _wished(credited, asked, catalogue)
    left = left_in_fiat(credited, known.taking)
    amount = _fiat_by_default(known, credited, left) if asked.amount is None else asked.amount
    problem = fiat_problem(amount, credited.fiat)
    if problem is not None:
        raise InvalidParameter.one("amount", amount, problem)
    if Decimal(amount) > Decimal(left):
        raise BusinessRule("amount", _too_much(f"{left} {credited.fiat}"))
    rate = rates.of(known.invoice.tenant).fresh(coin.slug, now, credited.fiat)
    if rate is None or rate.decimal <= 0:
        raise BusinessRule("coin", f"there is no fresh rate of {coin.slug} in {credited.fiat} now")
    decimals = min(coin.decimals, _PAID_DECIMALS)
    steps = floor(Fraction(Decimal(amount)) * 10**decimals / Fraction(rate.decimal))
    units = steps * 10 ** (coin.decimals - decimals)
    if units <= 0 or len(str(units)) > MAX_DIGITS:
        raise BusinessRule("amount", f"is no amount of {coin.symbol} at the rate of now")
    return Price(coin, units, "fiat", credited.fiat, amount)


def _wished(credited: Credited, asked: Asked, catalogue: Catalogue) -> Coin:
    """The coin that a refund in fiat shall be paid in: on the network of a payment, where none is named and there was one."""
    slug = asked.coin or ""
    if asked.network is not None:
        coin = catalogue.coin(asked.network, slug)
        if coin is None:
            raise InvalidParameter.one("coin", slug, f"must be a coin on {asked.network}")
        return coin
    paid = next((part.asset for part in credited.parts if part.units > 0 and asset_parts(part.asset)[1] == slug), None)
    found = catalogue.first_active(slug) if paid is None else _coin(catalogue, paid)
    if found is None:
        raise BusinessRule("coin", f"{slug} is not active on any network")
    return found


def _fiat_by_default(known: Refunded, credited: Credited, left: str) -> str:
    over = _overpaid_left(known, credited)
    text = left if over is None else in_fiat(min(over, Fraction(Decimal(left))), credited.fiat)
    if not Decimal(text):
        raise BusinessRule("amount", "nothing is left to refund: all that is credited for this invoice is refunded already")
    return text
