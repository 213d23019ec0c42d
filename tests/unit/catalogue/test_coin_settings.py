"""Limits of coins: exact in coin units or in USD, rounded to the safe side, refused where nobody knows the rate."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.coin_settings import NoFreshRate, coin_and_usd, limit_units, merged, units_of
from chalicelib.domain.catalogue.rates import STALE_MS, ConstantRates, Rate, Rates, no_rates
from chalicelib.domain.errors import BusinessRule, InvalidParameter
from chalicelib.domain.ids import network_id
from chalicelib.domain.money import usd_cents

ETH = Coin(network_id("live", "ethereum"), "eth", "ETH", "Ether", 18)
NOW = 1_800_000_000_000
RATES = Rates([Rate("eth", "USD", "3000", NOW, "kraken")])


def test_a_limit_in_coin_units_is_exact_and_needs_no_rate() -> None:
    coin = replace(ETH, settings={"minValue": "0.000000000000000001", "maxValue": "0"})
    assert limit_units(coin, "minValue", no_rates("live"), NOW) == 1
    assert limit_units(coin, "maxValue", no_rates("live"), NOW) is None
    assert limit_units(coin, "maxValueDaily", no_rates("live"), NOW) is None


def test_a_limit_in_usd_follows_the_rate_and_is_never_passed_by_rounding() -> None:
    coin = replace(ETH, settings={"useUsdLimits": True, "minValue": "10", "maxValue": "10", "maxValueDaily": "6000"})
    assert limit_units(coin, "minValue", RATES, NOW) == 3_333_333_333_333_334
    assert limit_units(coin, "maxValue", RATES, NOW) == 3_333_333_333_333_333
    assert limit_units(coin, "maxValueDaily", RATES, NOW) == 2 * 10**18
    assert limit_units(coin, "minDepositAmount", Rates(), NOW) is None


def test_a_limit_in_usd_without_a_fresh_rate_allows_nothing() -> None:
    coin = replace(ETH, settings={"useUsdLimits": True, "maxValue": "10"})
    for rates, now in ((Rates(), NOW), (RATES, NOW + STALE_MS + 1)):
        with pytest.raises(NoFreshRate) as refused:
            limit_units(coin, "maxValue", rates, now)
        assert refused.value.code == "VALIDATION_ERROR"
    assert limit_units(coin, "maxValue", RATES, NOW + STALE_MS) is not None


def test_one_of_the_two_values_is_exact_and_the_other_follows() -> None:
    by_coin = replace(ETH, settings={"minValue": "0.123456789012345678"})
    assert coin_and_usd(by_coin, "minValue", RATES, NOW) == ("0.123456789012345678", "370.37")
    assert coin_and_usd(by_coin, "minValue", Rates(), NOW) == ("0.123456789012345678", None)
    by_usd = replace(ETH, settings={"useUsdLimits": True, "minValue": "0.01", "maxValue": "1500"})
    assert coin_and_usd(by_usd, "minValue", RATES, NOW) == ("0.000003333333333334", "0.01")
    assert coin_and_usd(by_usd, "maxValue", RATES, NOW) == ("0.5", "1500")
    assert coin_and_usd(by_usd, "maxValue", Rates(), NOW) == (None, "1500")
    assert coin_and_usd(by_usd, "minDepositAmount", Rates(), NOW) == ("0", "0")


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"minValue": "2", "maxValue": "1"}, "minValue"),
        ({"maxValue": "2", "maxValueDaily": "1"}, "maxValue"),
        ({"minValue": "2", "maxValueDaily": "1"}, "minValue"),
        ({"collectPercentageHot": "100.01"}, "collectPercentageHot"),
        ({"approveThreshold": "-1"}, "approveThreshold"),
        ({"collectPercentageHot": "-0.01"}, "collectPercentageHot"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, str | bool], field: str) -> None:
    with pytest.raises(BusinessRule) as refused:
        merged(18, {}, settings)
    assert refused.value.details["field"] == field  # type: ignore[index,call-overload]


def test_numbers_that_do_not_fit_their_unit_are_named_all_at_once() -> None:
    sent: dict[str, str | bool] = {"minValue": "0.001", "maxValue": "1", "collectPercentageHot": "1.001", "useUsdLimits": True}
    with pytest.raises(InvalidParameter) as refused:
        merged(18, {}, sent)
    assert [problem.field for problem in refused.value.problems] == ["minValue", "collectPercentageHot"]
    with pytest.raises(InvalidParameter):
        merged(0, {}, {"minValue": "0.1"})


def test_zero_is_no_limit_and_so_never_out_of_order() -> None:
    assert merged(18, {"minValue": "5"}, {"maxValue": "0", "maxValueDaily": "7.50"}) == {
        "minValue": "5",
        "maxValue": "0",
        "maxValueDaily": "7.5",
    }


def test_every_number_is_sent_anew_when_their_unit_changes() -> None:
    known: dict[str, str | bool] = {"minValue": "5", "hotFloor": "1", "maxValue": "0", "collectPercentageHot": "20"}
    with pytest.raises(BusinessRule, match=r"in US dollars \(0: no limit\): minValue, hotFloor$") as refused:
        merged(18, known, {"useUsdLimits": True})
    assert refused.value.details["field"] == "useUsdLimits"
    with pytest.raises(BusinessRule, match=r": hotFloor$"):
        merged(18, known, {"useUsdLimits": True, "minValue": "5"})
    # What is malformed is told first, and numbers of the old unit are no problem of the new one.
    with pytest.raises(InvalidParameter) as malformed:
        merged(18, {**known, "hotCeiling": "0.0001"}, {"useUsdLimits": True, "minValue": "5.001"})
    assert [problem.field for problem in malformed.value.problems] == ["minValue"]
    in_usd = merged(18, known, {"useUsdLimits": True, "minValue": "0", "hotFloor": "3000"})
    assert in_usd == {**known, "useUsdLimits": True, "minValue": "0", "hotFloor": "3000"}
    with pytest.raises(BusinessRule, match="in coin units"):
        merged(18, in_usd, {"useUsdLimits": False})
    assert merged(18, in_usd, {"useUsdLimits": True, "minValue": "1"})["hotFloor"] == "3000"
    assert merged(18, {"minValue": "5"}, {"useUsdLimits": False}) == {"minValue": "5", "useUsdLimits": False}


def test_the_percentage_has_one_spelling() -> None:
    assert merged(18, {}, {"collectPercentageHot": "12.50"}) == {"collectPercentageHot": "12.5"}


@given(
    cents=st.integers(1, 10**12),
    rate=st.decimals(min_value="0.000001", max_value="1000000", places=6, allow_nan=False),
    decimals=st.integers(0, 36),
)
def test_units_for_money_are_worth_it_to_the_unit(cents: int, rate: Decimal, decimals: int) -> None:
    value = Decimal(cents).scaleb(-2)
    up, down = units_of(value, decimals, rate, up=True), units_of(value, decimals, rate, up=False)
    scale = 10 ** (decimals + 6)
    worth = int(value * 100) * scale // 100  # in millionths of a unit's fraction: integers, no rounding
    millionths = int(rate.scaleb(6))
    assert down * millionths <= worth <= up * millionths
    assert up - down in (0, 1)


def test_a_constant_rate_is_always_fresh() -> None:
    rates = ConstantRates({("eth", "USD"): "3000"}, lambda: NOW)
    found = rates.get("eth")
    assert found is not None and found.at == NOW
    later = rates.fresh("eth", NOW + 10 * STALE_MS)
    assert later is not None and not later.stale(NOW + 10 * STALE_MS)
    assert rates.usd("eth", 10**18, 18, 5) == 3000.0
    assert rates.fresh("eth", NOW, "EUR") is None


def test_the_worth_of_more_than_there_is_can_be_shown() -> None:
    assert usd_cents(10**38, 0, Decimal("123456.789")) == pytest.approx(1.23456789e43)
