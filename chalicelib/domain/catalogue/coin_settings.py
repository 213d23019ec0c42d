"""Thresholds and limits of a coin: exact decimals in coin units, or in US dollars where `useUsdLimits` says so.

They are kept as the text of a plain decimal, because the one is exact in the coin's decimals and the other in cents.
0 or absent means: no limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.rates import Rates
from chalicelib.domain.errors import BusinessRule, FieldProblem, InvalidParameter
from chalicelib.domain.money import NotAnAmount, format_units, parse_units

PUBLISHED = (
    "collectThreshold", "collectServiceToColdThreshold", "approveThreshold", "minValue", "maxValue", "maxValueDaily",
    "minDepositAmount",
)  # fmt: skip
"""The settings that the published interface knows, and lists of coins show."""
AMOUNTS = (*PUBLISHED, "hotCeiling", "hotFloor")
PERCENTAGE = "collectPercentageHot"
COLLECTING = ("collectThreshold", PERCENTAGE, "collectServiceToColdThreshold", "approveThreshold")
"""A coin is collected once one of these was ever set, be it to 0."""
USD_DECIMALS = 2
MEANING = {
    "useUsdLimits": "Whether thresholds and limits are in US dollars.",
    "collectThreshold": "The least that is moved from a deposit address to the service wallet.",
    "collectServiceToColdThreshold": "The least that is moved from the service wallet to the cold wallet.",
    PERCENTAGE: "Per cent of the coin that stay on the hot wallet.",
    "approveThreshold": "The most that is moved from deposit addresses unasked: a collection of more waits for an operator's word "
    "(`PUT /v1/collections/{id}`).",
    "minValue": "The least that one withdrawal may pay.",
    "maxValue": "The most that one withdrawal may pay.",
    "maxValueDaily": "The most that may be withdrawn within 24 hours.",
    "minDepositAmount": "The least that is credited: a deposit of less is recorded and flagged, except to the address of an open "
    "invoice, which takes every amount. An invoice over less can not be made.",
    "hotCeiling": "The most that stays on the hot wallet: what is above it goes to the cold wallet. What open withdrawals need "
    "stays, but not what those need that still wait for an approval.",
    "hotFloor": "The least that stays on the hot wallet: below it there is an alarm, and withdrawals that would go below it wait.",
}
"""Of each setting, in the words that the interface's description has."""

_AT_MOST = frozenset({"maxValue", "maxValueDaily", "hotCeiling"})
_EXACT = Context(prec=120)


class NoFreshRate(BusinessRule):
    """A limit is set in US dollars, and the coin has no fresh rate: the limited operation can not be allowed."""

    def __init__(self, coin: Coin, name: str) -> None:
        super().__init__(name, f"the {name} of {coin.slug} is set in USD, and there is no fresh rate of {coin.slug} now")


def in_usd(coin: Coin) -> bool:
    return bool(coin.settings.get("useUsdLimits", False))


def collects(coin: Coin) -> bool:
    """Whether the coin's deposits are collected to the service wallets: off by default."""
    return any(name in coin.settings for name in COLLECTING)


def distributes(coin: Coin) -> bool:
    """Whether the coin is distributed among the service wallets."""
    return collects(coin) or "hotCeiling" in coin.settings


def amount_text(coin: Coin, name: str) -> str:
    """The setting as it was set: in coin units, or in USD where the coin's limits are; "0" for none."""
    return str(coin.settings.get(name, "0"))


def limit_units(coin: Coin, name: str, rates: Rates, now_ms: int) -> int | None:
    """The setting `name` in units of the coin; None where it is not set (no limit).

    One in USD is worth what the fresh rate says: a maximum is rounded down, everything else up, so that the limit itself is
    never passed by rounding. Raises NoFreshRate (a VALIDATION_ERROR) where there is none.
    """
    text = amount_text(coin, name)
    if not in_usd(coin):
        return parse_units(text, coin.decimals) or None
    usd = Decimal(text)
    if not usd:
        return None
    rate = rates.fresh(coin.slug, now_ms)
    if rate is None:
        raise NoFreshRate(coin, name)
    return units_of(usd, coin.decimals, rate.decimal, up=name not in _AT_MOST)


def units_of(value: Decimal, decimals: int, rate: Decimal, *, up: bool) -> int:
    """The units that are worth `value` at `rate` (fiat for one coin), rounded `up` or down to a whole unit."""
    units = _EXACT.divide(_EXACT.scaleb(value, decimals), rate)
    return int(units.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))


def coin_and_usd(coin: Coin, name: str, rates: Rates, now_ms: int) -> tuple[str | None, str | None]:
    """The setting in coin units and in USD, as plain decimals. The one that was set is exact, the other follows from the fresh
    rate (USD in cents), and is None where there is none."""
    text = amount_text(coin, name)
    if not Decimal(text):
        return "0", "0"
    rate = rates.fresh(coin.slug, now_ms)
    if in_usd(coin):
        if rate is None:
            return None, text
        return format_units(units_of(Decimal(text), coin.decimals, rate.decimal, up=name not in _AT_MOST), coin.decimals), text
    if rate is None:
        return text, None
    cents = _EXACT.multiply(Decimal(text), rate.decimal).quantize(Decimal("0.01"), ROUND_HALF_EVEN, _EXACT)
    return text, format_units(int(cents.scaleb(2)), USD_DECIMALS)


def merged(coin_decimals: int, before: Mapping[str, str | bool], changed: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """The settings after `changed`, in their one spelling. Amounts that `changed` does not name stay as they are.

    Raises InvalidParameter for numbers in `changed` with more decimals than their unit has (the coin's, or cents), all at once.
    Raises BusinessRule: a negative number, minValue > maxValue > maxValueDaily, hotFloor > hotCeiling, a percentage over 100, or
    another `useUsdLimits` without a new number for each amount that is not 0: 5 USD must not become 5 ETH.
    """
    after = {**before, **changed}
    usd = bool(after.get("useUsdLimits", False))
    other_unit = usd != bool(before.get("useUsdLimits", False))
    unit = USD_DECIMALS if usd else coin_decimals
    problems, below = [], []
    for name in (*AMOUNTS, PERCENTAGE):
        if other_unit and name not in changed:
            continue  # a number of the old unit
        text = str(after.get(name, "0"))
        negative = name in changed and text.startswith("-")
        if negative:
            below.append(name)
        places = 2 if name == PERCENTAGE else unit
        try:
            number = format_units(parse_units(text.removeprefix("-") if negative else text, places), places)
        except NotAnAmount as reason:
            problems.append(FieldProblem(name, text[:100], (str(reason),)))
            continue
        if name in after:
            after[name] = number
    if problems:
        raise InvalidParameter(problems)
    if other_unit:
        _demand_all(before, changed, "US dollars" if usd else "coin units")
    if below:
        raise BusinessRule(below[0], "must not be negative")
    if Decimal(str(after.get(PERCENTAGE, "0"))) > 100:
        raise BusinessRule(PERCENTAGE, "must be from 0 to 100")
    _in_order(after, "minValue", "maxValue")
    _in_order(after, "maxValue", "maxValueDaily")
    _in_order(after, "minValue", "maxValueDaily")
    _in_order(after, "hotFloor", "hotCeiling")
    return after


def _demand_all(before: Mapping[str, str | bool], changed: Mapping[str, str | bool], unit: str) -> None:
    """Raises BusinessRule unless `changed` has every amount of `before` that is not 0."""
    missing = [name for name in AMOUNTS if name not in changed and Decimal(str(before.get(name, "0")))]
    if missing:
        reason = f"gives every amount another unit: send those that are set, too, in {unit} (0: no limit): {', '.join(missing)}"
        raise BusinessRule("useUsdLimits", reason)


def _in_order(settings: Mapping[str, str | bool], lower: str, higher: str) -> None:
    least, most = Decimal(str(settings.get(lower, "0"))), Decimal(str(settings.get(higher, "0")))
    if least and most and least > most:
        raise BusinessRule(lower, f"{lower} must not be more than {higher}")
