"""Rules of bundles and of the coins that they spend: pure, so for all cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.treasury.hot_utxos import MOST_COINS, HeldCoin, HeldCoins
from chalicelib.domain.withdrawals.bundles import Bundle, BundledPayout

NETWORK, TENANT = NetworkId("live:litecoin"), TenantId("mch_x:live")


def bundle(*payouts: tuple[str, int]) -> Bundle:
    paid = tuple(BundledPayout(f"wd_{n}", TENANT, address, amount) for n, (address, amount) in enumerate(payouts))
    return Bundle("bun_x", NETWORK, "hot", AssetId("live:litecoin:ltc"), 1, 1, payouts=paid)


def held(*amounts: int) -> HeldCoins:
    return HeldCoins(NETWORK, "hot", tuple(HeldCoin(f"{n:064x}:0", amount, 5) for n, amount in enumerate(amounts)))


@given(st.integers(0, 10**12), st.integers(1, 100))
def test_the_shares_are_the_fee(fee: int, count: int) -> None:
    made = bundle(*[("a", 1)] * count)
    shares = [made.share(payout.withdrawal, fee) for payout in made.payouts]
    assert sum(shares) == fee and max(shares) - min(shares) <= 1


@pytest.mark.parametrize(
    ("outputs", "change"),
    [
        ([("a", 5), ("b", 7), ("hot", 9)], ("out:2", 9)),
        ([("hot", 9), ("b", 7), ("a", 5)], ("out:0", 9)),
        ([("a", 5), ("b", 7)], (None, 0)),
    ],
)
def test_change_is_what_is_left_of_the_outputs(outputs: list[tuple[str, int]], change: tuple[str | None, int]) -> None:
    assert bundle(("a", 5), ("b", 7)).change_among(outputs) == change


@pytest.mark.parametrize(
    "outputs",
    [
        [("a", 5), ("hot", 9)],
        [("a", 5), ("b", 8)],
        [("a", 5), ("b", 7), ("c", 1)],
        [("a", 5), ("b", 7), ("b", 7)],
        [("a", 5), ("b", 7), ("hot", 1), ("hot", 1)],
        [],
    ],
)
def test_any_other_output_is_refused(outputs: list[tuple[str, int]]) -> None:
    with pytest.raises(ValueError, match="pay"):
        bundle(("a", 5), ("b", 7)).change_among(outputs)


def test_a_coin_is_reserved_once() -> None:
    coins = held(3, 2, 1)
    first = coins.coins[0].outpoint
    taken = coins.reserve("one", [first])
    assert taken.reserve("one", [first]) == taken
    for wrong in (first, "unknown:0"):
        with pytest.raises(ValueError, match="reserved"):
            taken.reserve("two", [wrong])
    assert {coin.amount for coin in taken.free} == {2, 1}
    assert sorted(c.outpoint for c in taken.released("one").free) == sorted(c.outpoint for c in coins.free)


def test_what_goes_while_it_is_reserved_comes_back_or_leaves_with_it() -> None:
    first, second = (coin.outpoint for coin in held(3, 2).coins)
    coins = held(3, 2).reserve("one", [first]).taken_back(first).taken_back(second)
    assert [(c.outpoint, c.gone) for c in coins.coins] == [(first, True)]
    assert coins.released("one").coins == ()
    back = coins.came(HeldCoin(first, 3, 9))
    assert back.reserved("one") == [HeldCoin(first, 3, 9, "one")]


def test_only_small_free_coins_are_left_out() -> None:
    full = held(*range(1, MOST_COINS + 1))
    small = full.coins[0].outpoint
    more = full.reserve("one", [small]).came(HeldCoin("f" * 64 + ":1", 10**6, 7))
    assert len(more.coins) == MOST_COINS
    assert more.reserved("one")[0].outpoint == small and more.free[0].amount == 10**6 and more.free[-1].amount == 3
