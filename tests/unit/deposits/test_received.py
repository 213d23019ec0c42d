"""Day figures of a balance: whatever is credited and reversed, on whichever day, they are what stands credited."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.deposits.deposits import BELOW_MINIMUM, HELD, SET_ASIDE, Deposit
from chalicelib.domain.deposits.received import (
    DAY_MS,
    DAYS_KEPT,
    MOST_BYTES,
    Day,
    Received,
    credited,
    decoded,
    encoded,
    received_at,
    taken_back,
)
from chalicelib.domain.ids import AssetId, MerchantId, NetworkId, tenant_id
from chalicelib.domain.ledger import Balance
from tests.bench.accounting import _size

NOW = 1_800_000_000_000
SHOP = tenant_id(MerchantId("mch_" + "0" * 26), "live")
STEP = st.tuples(st.sampled_from(("credit", "reverse", "wait")), st.integers(0, 10**37), st.integers(0, 5 * DAY_MS))


def deposit(**more: object) -> Deposit:
    made = Deposit(
        "tx_1", NetworkId("live:ethereum"), AssetId("live:ethereum:eth"), SHOP, "0x1", "native", "0xs", "0xa", 5, 1, "0xb", 0, 0,
        "confirmed", confirmed_at=NOW,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


@given(st.lists(STEP, max_size=80))
def test_the_days_sum_to_what_stands_credited(steps: list[tuple[str, int, int]]) -> None:
    stored: bytes | None = None
    now, standing = NOW, list[tuple[int, int]]()
    for kind, number, wait in steps:
        if kind == "wait":
            now += wait
        elif kind == "credit":
            standing.append((now, number))
            stored = credited(stored, now, number, number // 10**16)
        elif standing:
            at, units = standing.pop(number % len(standing))
            stored = taken_back(stored, at, units)
        if stored is None:
            continue
        assert len(stored) <= MOST_BYTES
        kept = decoded(stored)
        assert encoded(kept) == stored
        assert len(kept.days) <= DAYS_KEPT
        shown = Counter[int]()
        for at, units in standing:
            shown[at // DAY_MS] += units if at >= kept.since else 0
        assert Counter({number: day.units for number, day in kept.by_day()}) == shown
        assert all(day.cents >= 0 and (day.units or not day.cents) for _, day in kept.by_day())


def test_a_month_of_a_coin_with_18_decimals_is_kept_whole() -> None:
    stored: bytes | None = None
    for day in range(40):
        stored = credited(stored, NOW + day * DAY_MS, 123_456_789 * 10**16 + day, 98_765_432)
    assert stored is not None
    assert [day.units - 123_456_789 * 10**16 for day in decoded(stored).days] == list(range(9, 40))
    assert decoded(stored).since == (NOW // DAY_MS + 9) * DAY_MS


def test_of_days_with_the_largest_amounts_fewer_are_kept_and_each_is_whole() -> None:
    stored: bytes | None = None
    for day in range(31):
        stored = credited(stored, NOW + day * DAY_MS, 10**37, 10**30)
    assert stored is not None
    kept = decoded(stored)
    assert 15 < len(kept.days) < 31
    assert set(kept.days) == {Day(10**37, 10**30)}


def test_a_clock_that_jumps_by_years_leaves_no_gap_of_years() -> None:
    stored = credited(credited(None, NOW, 5, 0), NOW + 3650 * DAY_MS, 7, 1)
    assert [day.units for day in decoded(stored).days] == [0] * 30 + [7]


def test_what_came_before_the_figures_are_kept_is_neither_counted_nor_taken_back() -> None:
    stored = credited(None, NOW, 5, 9)
    assert credited(stored, NOW - 1, 7, 1) == stored
    assert taken_back(stored, NOW - 1, 5) == stored
    assert taken_back(stored, None, 5) == stored
    assert taken_back(None, NOW, 5) is None
    assert decoded(taken_back(stored, NOW, 5) or b"") == Received(NOW, (Day(),))


def test_the_part_of_a_days_dollars_goes_with_its_units() -> None:
    stored = credited(credited(None, NOW, 30, 1000), NOW + 1, 10, 500)
    assert decoded(taken_back(stored, NOW, 30) or b"").days == (Day(10, 375),)


@pytest.mark.parametrize("stored", [b"", b"\x01\x01", b"\x81"])
def test_other_bytes_are_none(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(stored)


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({}, NOW),
        ({"released_at": NOW + 5}, NOW + 5),
        ({"admitted_at": NOW - 5}, NOW),
        ({"status": "pending", "confirmed_at": None}, None),
        ({"status": "orphaned", "confirmed_at": None, "released_at": NOW}, None),
        ({"flags": (HELD,)}, None),
        ({"flags": (BELOW_MINIMUM,)}, None),
        ({"flags": (SET_ASIDE,)}, None),
        ({"tenant": None}, None),
    ],
)
def test_a_deposit_is_received_once_its_money_can_be_used(changes: dict[str, object], at: int | None) -> None:
    assert received_at(deposit(**changes)) == at


def test_a_balance_with_all_its_days_costs_one_write_unit() -> None:
    received = b"\xff" * MOST_BYTES
    whole = Balance(SHOP, AssetId("live:arbitrum:" + "x" * 32), *([10**37] * 4), 10**6, 10**6, received)
    values = {field.name: getattr(whole, field.name) for field in fields(whole) if field.name != "received"}
    item = {f"f_{name}": {"S" if isinstance(value, str) else "N": str(value)} for name, value in values.items()}
    assert _size(item | {"f_received": {"B": received}, "pk": {"S": f"bal#{SHOP}"}, "sk": {"S": whole.asset}}) < 1024


def test_a_deposit_that_no_day_counts_leaves_nothing_below_zero() -> None:
    stored = credited(None, NOW, 5, 10)
    assert taken_back(stored, NOW, 7) == encoded(Received(NOW, (Day(0, 0),)))
    with pytest.raises(ValueError, match="sign"):
        encoded(Received(NOW, (Day(-1),)))
