"""Who bears the fee of a withdrawal: conversions that never favour anybody, and debits that never exceed what was reserved."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.withdrawals.fees import SAME_COIN, covers, debit_of, in_coin, operators_part, rate_text
from chalicelib.domain.withdrawals.withdrawals import Withdrawal

NETWORK = NetworkId("live:ethereum")
PRICES = st.decimals("0.000001", "100000", places=6)
FEES = st.integers(0, 10**18)


def withdrawal(charge: int, rate: str | None, fixed: int = 0) -> Withdrawal:
    return Withdrawal(
        "wd_1", TenantId("mch_1:live"), NETWORK, AssetId("live:ethereum:usdt"), 10**6, "0x", AssetId("live:ethereum:eth"), 0, 0,
        charge=charge, charge_rate=rate, charge_fixed=fixed,
    )  # fmt: skip


@given(FEES, PRICES, PRICES, st.sampled_from([6, 8, 18]))
def test_a_fee_is_worth_the_same_in_both_coins_rounded_up(fee: int, native: Decimal, coin: Decimal, decimals: int) -> None:
    rate = rate_text(native, 18, coin, decimals)
    exact = Fraction(fee) * Fraction(native) * 10**decimals / (Fraction(coin) * 10**18)
    assert exact <= in_coin(fee, rate) < exact + 1
    assert in_coin(fee, SAME_COIN) == fee


@given(st.integers(0, 10**12), st.integers(0, 10**12), PRICES, PRICES, FEES)
def test_never_more_is_debited_than_reserved_and_the_operator_bears_the_rest(
    charge: int, fixed: int, native: Decimal, coin: Decimal, fee: int
) -> None:
    made = withdrawal(charge + fixed, rate_text(native, 18, coin, 6), fixed)
    assert debit_of(made, fee, paid=False) <= debit_of(made, fee, paid=True) <= made.charge
    covered = covers(made)
    assert covered is not None
    assert debit_of(made, covered, paid=True) <= made.charge
    assert operators_part(made, fee) == max(0, fee - covered)
    assert debit_of(made, 0, paid=False) == 0


def test_where_the_hot_wallet_pays_nothing_is_debited() -> None:
    made = withdrawal(0, None)
    assert (debit_of(made, 500, paid=True), operators_part(made, 500)) == (0, 500)


def test_what_was_reserved_before_rates_were_kept_is_the_price() -> None:
    made = withdrawal(70, None)
    assert (debit_of(made, 500, paid=True), debit_of(made, 500, paid=False), debit_of(made, 0, paid=False)) == (70, 70, 0)
    assert operators_part(made, 10**18) == 0
