"""Amounts: exact to the last digit, strict in what they take."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import AssetId
from chalicelib.domain.money import Amount, NotAnAmount, format_units, parse_units, usd_cents

ETH, USDT = AssetId("live:ethereum:eth"), AssetId("live:ethereum:usdt")


@pytest.mark.parametrize(
    ("text", "decimals", "units"),
    [
        ("0.123456789012345678", 18, 123456789012345678),
        ("1", 6, 1_000_000),
        ("0", 8, 0),
        ("1500", 0, 1500),
        ("0.00000001", 8, 1),
        ("99999999999999999999.999999999999999999", 18, 10**38 - 1),
    ],
)
def test_reads_plain_decimals(text: str, decimals: int, units: int) -> None:
    assert parse_units(text, decimals) == units


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        "1.",
        ".5",
        "01",
        "1e3",
        "1E400",
        "NaN",
        "Infinity",
        "1_000",
        "1,5",
        "٣",
        "1.0000000",
        "9" * 39,
        "9" * 5000,
    ],
)
def test_refuses_everything_else(text: str) -> None:
    with pytest.raises(NotAnAmount):
        parse_units(text, 6)


@pytest.mark.parametrize(
    ("units", "decimals", "text"), [(5, 1, "0.5"), (0, 18, "0"), (1500, 0, "1500"), (-25, 1, "-2.5"), (10, 1, "1")]
)
def test_writes_without_needless_zeros(units: int, decimals: int, text: str) -> None:
    assert format_units(units, decimals) == text


@given(st.integers(min_value=0, max_value=10**38 - 1), st.integers(min_value=0, max_value=18))
def test_what_is_written_reads_back(units: int, decimals: int) -> None:
    text = format_units(units, decimals)
    assert parse_units(text, decimals) == units
    assert "E" not in text


def test_two_coins_do_not_mix() -> None:
    assert (Amount(ETH, 2) + Amount(ETH, 3)).units == 5
    assert Amount(ETH, 2) < Amount(ETH, 3)
    for wrong in (
        lambda: Amount(ETH, 1) + Amount(USDT, 1),
        lambda: Amount(ETH, 1) - Amount(USDT, 1),
        lambda: Amount(ETH, 1) < Amount(USDT, 1),
    ):
        with pytest.raises(TypeError, match="different coins"):
            wrong()


def test_usd_is_rounded_to_cents() -> None:
    assert usd_cents(1_005_000, 6, Decimal("2")) == 2.01
