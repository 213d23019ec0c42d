"""How much of an invoice can be refunded: whatever is asked in whatever order, never more than was credited."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import NetworkId, asset_id
from chalicelib.domain.refunds.fractions import Credited, Part, cents_text, covered, in_fiat, left_in_fiat, left_of, taken
from chalicelib.domain.refunds.refunds import Terms

NETWORK = NetworkId("test:ethereum")
ETH, USDT = asset_id(NETWORK, "eth"), asset_id(NETWORK, "usdt")


def same(units: int, asset: str = ETH) -> Terms:
    return Terms(NETWORK, asset, units, 0, invoice_id="inv_1", mode="same")  # type: ignore[arg-type]


def fiat(amount: str, units: int = 1) -> Terms:
    return Terms(NETWORK, ETH, units, 0, invoice_id="inv_1", mode="fiat", fiat="USD", fiat_amount=amount)


def credited(eth: int, usdt: int = 0, price: Fraction = Fraction(3)) -> Credited:
    return Credited((Part(ETH, eth, eth * price), Part(USDT, usdt, Fraction(usdt))), "USD")


def test_one_coin() -> None:
    paid = credited(100)
    assert left_of(paid, [], ETH) == 100
    assert left_of(paid, [same(40)], ETH) == 60
    assert left_of(paid, [same(40), fiat("90")], ETH) == 30
    assert left_in_fiat(paid, [same(40)]) == "180"
    assert left_of(paid, [], USDT) == 0


def test_never_more_of_a_coin_than_came_in_it() -> None:
    paid = credited(100, 300)
    assert left_of(paid, [same(100)], ETH) == 0
    assert left_of(paid, [same(100)], USDT) == 300
    assert left_of(paid, [fiat("450")], ETH) == 50, "half of the worth is left beyond the other quarter"
    assert left_of(paid, [fiat("600")], USDT) == 0


def test_a_payment_that_fell_out_takes_its_part_away() -> None:
    assert not covered(credited(30), [same(40)])
    assert left_of(credited(30), [same(40)], ETH) < 0
    assert not covered(credited(0), [same(40)])
    assert not covered(credited(0, 1000), [same(40)]), "what was refunded in ether came in no ether"
    assert not covered(credited(0), [fiat("1")])
    assert covered(credited(0), [])
    assert covered(credited(40), [same(40)])


def test_cents() -> None:
    assert [cents_text(n) for n in (-5, 0, 1, 10, 100, 12345)] == ["0", "0", "0.01", "0.1", "1", "123.45"]
    assert left_in_fiat(credited(1, price=Fraction(1, 3)), []) == "0.33"


@pytest.mark.parametrize(("fiat", "text"), [("JPY", "1234"), ("KWD", "1234.567"), ("EUR", "1234.56"), (None, "1234.56")])
def test_each_currency_has_the_decimals_of_iso_4217(fiat: str | None, text: str) -> None:
    assert in_fiat(Fraction(12345678, 10000), fiat) == text


UNITS = st.integers(1, 10**30)
ASKED = st.lists(st.tuples(st.sampled_from([ETH, USDT, "fiat"]), st.fractions(0, 2)), max_size=12)


@given(UNITS, st.integers(0, 10**30), st.fractions(Fraction(1, 10**9), 10**6), ASKED)
def test_whatever_is_refunded_is_never_more_than_all(
    eth: int, usdt: int, price: Fraction, asked: list[tuple[str, Fraction]]
) -> None:
    paid = credited(eth, usdt, price)
    made: list[Terms] = []
    for kind, part in asked:
        if kind == "fiat":
            left = left_in_fiat(paid, made)
            wish = cents_text(int(part * Fraction(Decimal(left)) * 100))
            if Decimal(wish) and Decimal(wish) <= Decimal(left):
                made.append(fiat(wish))
        else:
            units = left_of(paid, made, kind)  # type: ignore[arg-type]
            wished = int(part * max(0, units))
            if 0 < wished <= units:
                made.append(same(wished, kind))
        assert covered(paid, made)
        assert taken(paid, made) <= 1
        for each in paid.parts:
            assert sum(t.amount for t in made if t.mode == "same" and t.asset == each.asset) <= each.units


@given(UNITS, st.lists(st.fractions(0, 1), min_size=1, max_size=6))
def test_what_is_left_can_be_refunded_and_then_nothing(eth: int, parts: list[Fraction]) -> None:
    paid, made = credited(eth), []
    for part in parts:
        units = int(part * left_of(paid, made, ETH))
        made += [same(units)] if units else []
    rest = left_of(paid, made, ETH)
    made += [same(rest)] if rest else []
    assert left_of(paid, made, ETH) == 0
    assert taken(paid, made) == 1
