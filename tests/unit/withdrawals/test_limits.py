"""Rolling windows: exact while they are short, never too generous when they are shortened."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import AssetId, TenantId, group_id, member_id, new_id
from chalicelib.domain.money import ceil_units, floor_units
from chalicelib.domain.withdrawals.approvals import MultisigConfig
from chalicelib.domain.withdrawals.batches import batch_of
from chalicelib.domain.withdrawals.limits import (
    DAY_MS,
    MONTH_MS,
    MOST_ENTRIES,
    MOST_IN_ALL,
    MOST_PAYEES,
    Paid,
    PayeeSpent,
    Spent,
    booked,
    returned,
    used,
    window_of,
    with_payments,
    without_payment,
)  # fmt: skip
from chalicelib.store.codec import plain

TENANT, ASSET = TenantId("mch_a:test"), AssetId("test:ethereum:eth")
PAYMENTS = st.lists(st.tuples(st.integers(0, 3 * DAY_MS), st.integers(1, 10**20)), max_size=60).map(sorted)


def test_a_window_ends_to_the_millisecond() -> None:
    window = booked((), 1000, 5, DAY_MS)
    assert used(window, 1000 + DAY_MS - 1, DAY_MS) == 5
    assert used(window, 1000 + DAY_MS, DAY_MS) == 0
    assert booked(window, 1000 + DAY_MS, 1, DAY_MS) == ((1000 + DAY_MS, 1),)


@given(PAYMENTS, st.integers(1, 8))
def test_a_shortened_window_never_says_less(payments: list[tuple[int, int]], most: int) -> None:
    exact: tuple[tuple[int, int], ...] = ()
    short: tuple[tuple[int, int], ...] = ()
    for number, (at, units) in enumerate(payments, 1):
        exact = booked(exact, at, units, DAY_MS, 1000)
        short = booked(short, at, units, DAY_MS, most)
        assert len(short) <= most
        assert used(exact, at, DAY_MS) == sum(n for t, n in payments[:number] if t > at - DAY_MS)
        assert used(short, at, DAY_MS) >= used(exact, at, DAY_MS)


@given(PAYMENTS.filter(bool), st.data())
def test_what_is_given_back_is_gone_and_nothing_else(payments: list[tuple[int, int]], data: st.DataObject) -> None:
    window: tuple[tuple[int, int], ...] = ()
    now = payments[-1][0]
    kept = [(at, units) for at, units in payments if at > now - DAY_MS]
    for at, units in payments:
        window = booked(window, at, units, DAY_MS, 3)
    before = used(window, now, DAY_MS)
    at, units = data.draw(st.sampled_from(kept))
    assert used(returned(window, at, units), now, DAY_MS) == before - units


def test_what_is_too_old_is_given_back_to_nobody() -> None:
    spent, _ = with_payments(Spent(TENANT, ASSET), {}, 1000, [Paid("a", 5, True), Paid("b", 7, False, True)])
    assert (spent.day, spent.limited, spent.unsigned) == (((1000, 12),), {"a": [[1000, 5]]}, ((1000, 5),))
    assert spent.version == 1
    later, _ = with_payments(spent, {}, 1000 + DAY_MS, [Paid("a", 1, True)])
    assert (later.day, later.limited["a"]) == (((1000 + DAY_MS, 1),), [[1000, 5], [1000 + DAY_MS, 1]])
    undone, own = without_payment(later, None, 1000 + DAY_MS, 1000 + DAY_MS, Paid("a", 1, True))
    assert (undone.day, undone.limited["a"], undone.unsigned, own) == ((), [[1000, 5]], (), None)
    old, _ = without_payment(later, None, 1000 + DAY_MS, 1000, Paid("a", 5, True))
    assert (old.day, old.limited["a"]) == (later.day, [[1000 + DAY_MS, 1]])
    assert without_payment(later, None, 1000 + DAY_MS, 1000, Paid("a", 5, False))[0].limited == later.limited
    assert with_payments(later, {}, 2000 + DAY_MS + MONTH_MS, [Paid("b", 1, False)])[0].limited == {}
    signed = Paid("b", 7, False, signed=True)
    assert without_payment(spent, None, 1000, 1000, signed)[0].unsigned == spent.unsigned


def test_the_shared_record_fits_into_an_item_whatever_is_paid() -> None:
    """The longest addresses and amounts, at times of 13 digits: as few addresses often, and many more than there is room for."""
    now, units = 1_800_000_000_000, 10**34
    spent, own = Spent(TENANT, ASSET), dict[str, PayeeSpent]()
    paid: dict[str, int] = {}
    for n in range(80):
        names = [f"{(n * 37 + k) % (40 if n < 40 else MOST_PAYEES + 500):090d}" for k in range(100)]
        spent, apart = with_payments(spent, own, now + n, [Paid(name, units, True) for name in names])
        own |= apart
        for name in names:
            paid[name] = paid.get(name, 0) + units
    assert len(spent.limited) == MOST_PAYEES
    assert sum(len(window) for window in spent.limited.values()) <= MOST_IN_ALL
    assert own
    assert all(used(window_of(spent, own.get(name), name), now + 80, MONTH_MS) == total for name, total in paid.items())
    full = [[now + n, units] for n in range(MOST_ENTRIES)]
    assert len(json.dumps(plain(spent))) + 2 * len(json.dumps(full)) < 350_000
    assert max(len(record.window) for record in own.values()) <= MOST_ENTRIES


def test_what_lies_in_a_record_of_its_own_is_given_back_there() -> None:
    crowd = [Paid(f"a{n}", 1, True) for n in range(MOST_PAYEES)]
    spent, none = with_payments(Spent(TENANT, ASSET), {}, 1000, crowd)
    assert none == {}
    spent, own = with_payments(spent, {}, 2000, [Paid("b", 5, True), Paid("b", 6, True), Paid("a1", 2, True)])
    assert (own["b"].window, own["b"].version, list(own)) == (((2000, 5), (2000, 6)), 1, ["b"])
    assert spent.limited["a1"] == [[1000, 1], [2000, 2]]
    spent, left = without_payment(spent, own["b"], 3000, 2000, Paid("b", 5, True))
    assert left is not None
    assert (left.window, left.version, spent.day[-1]) == (((2000, 6),), 2, (2000, 8))
    # Once there is room again, what still counts is used on where it lies.
    later = 2000 + MONTH_MS - 1
    spent, own = with_payments(spent, {"b": left}, later, [Paid("b", 1, True)])
    assert (len(spent.limited), own["b"].window) == (1, ((2000, 6), (later, 1)))
    spent, own = with_payments(spent, own, later + MONTH_MS, [Paid("b", 1, True)])
    assert (own, spent.limited) == ({}, {"b": [[later + MONTH_MS, 1]]})


def test_limits_with_more_decimals_than_the_coin_round_against_the_payer() -> None:
    assert [floor_units(text, 2) for text in ("1", "1.5", "1.239", "0.001")] == [100, 150, 123, 0]
    assert [ceil_units(text, 2) for text in ("1", "1.5", "1.231", "0.001", "1.230000")] == [100, 150, 124, 1, 123]
    config = MultisigConfig(True, 1, 1, "0.125")
    assert [config.covers(units, 2) for units in (12, 13)] == [False, True]
    assert not MultisigConfig(False, 0, 0, "0").covers(10**30, 18)
    exact = MultisigConfig(True, 1, 1, "12345678901234567890.123456789012345678")
    assert [exact.covers(12345678901234567890123456789012345678 + n, 18) for n in (-1, 0)] == [False, True]


def test_members_know_their_batch() -> None:
    batch = group_id("wdb", 1_700_000_000_000)
    members = [member_id("wd", batch, number) for number in range(1, 101)]
    assert members == sorted(set(members))
    assert {batch_of(member) for member in members} == {batch}
    assert len(members[0]) == len(new_id("wd", 0))
