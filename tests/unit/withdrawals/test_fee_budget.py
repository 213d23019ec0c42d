"""What the operator bears of a merchant's fees: counted once, corrected as often as it takes, by the day."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from chalicelib.domain.ids import MerchantId, network_id, tenant_id
from chalicelib.domain.withdrawals.fee_budget import DAY_MS, MICROS, Borne, FeesBorne, micros_of

EMPTY = FeesBorne(tenant_id(MerchantId("mch_x"), "live"), network_id("live", "ethereum"))
NOON = 20_000 * DAY_MS + DAY_MS // 2


def test_what_is_counted_again_is_corrected() -> None:
    first, borne = EMPTY.counting(None, NOON, 5 * MICROS)
    assert (first.micros, first.version, borne) == (5 * MICROS, 1, Borne(20_000, 5 * MICROS))
    other, _ = first.counting(None, NOON, 2 * MICROS)
    same, again = other.counting(borne, NOON, 5 * MICROS)
    assert (same.micros, again) == (7 * MICROS, borne)
    less, settled = same.counting(borne, NOON, MICROS)
    assert (less.micros, settled.micros) == (3 * MICROS, MICROS)
    gone, _ = less.counting(settled, NOON, 0)
    assert gone.micros == 2 * MICROS


def test_a_new_day_begins_with_nothing_and_has_what_comes_on_top_that_day() -> None:
    record, borne = EMPTY.counting(None, NOON, 5 * MICROS)
    tomorrow = NOON + DAY_MS
    same, _ = record.counting(borne, tomorrow, 5 * MICROS)
    assert (same.day, same.micros) == (20_001, 0)
    dearer, replaced = record.counting(borne, tomorrow, 8 * MICROS)
    assert (dearer.micros, replaced) == (3 * MICROS, Borne(20_001, 8 * MICROS, 5 * MICROS))
    settled, _ = dearer.counting(replaced, tomorrow, 6 * MICROS)
    assert settled.micros == MICROS
    cheap, _ = dearer.counting(replaced, tomorrow, 2 * MICROS)
    assert cheap.micros == 0  # what was counted yesterday stays there


def test_a_clock_that_is_behind_begins_no_earlier_day() -> None:
    record, _ = EMPTY.counting(None, NOON, 5 * MICROS)
    behind, borne = record.counting(None, NOON - DAY_MS, MICROS)
    assert (behind.day, behind.micros, borne.day) == (20_000, 6 * MICROS, 20_000)


def test_the_budget_may_be_used_to_the_last_bit() -> None:
    record, _ = EMPTY.counting(None, NOON, 5 * MICROS)
    assert (record.over(5), record.over(4), EMPTY.over(0)) == (False, True, False)


def test_worth_is_rounded_up() -> None:
    assert micros_of(10**15, 18, Decimal(3000)) == 3 * MICROS
    assert (micros_of(1, 18, Decimal(3000)), micros_of(0, 18, Decimal(3000))) == (1, 0)


@pytest.mark.parametrize("seed", range(40))
def test_a_day_holds_what_all_its_payments_cost_that_day(seed: int) -> None:
    """Whatever is begun, replaced and settled, in whatever order: the record is the sum of its withdrawals' parts."""
    draw = random.Random(seed)
    record, borne, day = EMPTY, dict[int, Borne](), 20_000
    for _ in range(30):
        name, micros = draw.randrange(5), draw.randrange(100)
        day += draw.randrange(4) // 3
        record, borne[name] = record.counting(borne.get(name), day * DAY_MS, micros)
        assert record.micros == sum(b.of_day for b in borne.values() if b.day == record.day)
