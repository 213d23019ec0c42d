"""Rolling windows: exact while they are short, never too generous when they are shortened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.approvals import MultisigConfig
from chalicelib.domain.batches import batch_of
from chalicelib.domain.ids import AssetId, TenantId, group_id, member_id, new_id
from chalicelib.domain.limits import DAY_MS, MONTH_MS, Spent, booked, returned, used, with_payments, without_payment
from chalicelib.domain.money import ceil_units, floor_units

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
    spent = with_payments(Spent(TENANT, ASSET), 1000, [("a", 5, True), ("b", 7, False)])
    assert (spent.day, spent.limited, spent.version) == (((1000, 12),), {"a": [[1000, 5]]}, 1)
    later = with_payments(spent, 1000 + DAY_MS, [("a", 1, True)])
    assert (later.day, later.limited["a"]) == (((1000 + DAY_MS, 1),), [[1000, 5], [1000 + DAY_MS, 1]])
    undone = without_payment(later, 1000 + DAY_MS, 1000 + DAY_MS, "a", 1, True)
    assert (undone.day, undone.limited["a"]) == ((), [[1000, 5]])
    old = without_payment(later, 1000 + DAY_MS, 1000, "a", 5, True)
    assert (old.day, old.limited["a"]) == (later.day, [[1000 + DAY_MS, 1]])
    assert without_payment(later, 1000 + DAY_MS, 1000, "a", 5, False).limited == later.limited
    assert with_payments(later, 2000 + DAY_MS + MONTH_MS, [("b", 1, False)]).limited == {}


def test_many_addresses_share_the_room() -> None:
    spent = Spent(TENANT, ASSET)
    for n in range(300):
        spent = with_payments(spent, 1000 + n, [(f"a{k}", 1, True) for k in range(40)])
    assert sum(len(window) for window in spent.limited.values()) <= 4400
    assert all(used(window, 2000, MONTH_MS) == 300 for window in spent.limited.values())


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
