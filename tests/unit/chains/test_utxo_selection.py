"""Which coins pay: nothing is lost, the fee is enough and not too much, no dust; plans and replacements the same."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.chains.utxo.scripts import INPUT_WEIGHT, dust_of, script_of
from chalicelib.chains.utxo.selection import branch_and_bound, fee_for
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding import bech32
from chalicelib.usecases.ports.coins import CoinPlan, Output, Unspent
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused

EXAMPLES = 300 if os.environ.get("SWEEP") == "full" else 100
WALLET = bech32.encode_segwit("bc", 0, b"\x01" * 20)
PAYEES = [
    bech32.encode_segwit("bc", 0, b"\x02" * 20),
    bech32.encode_segwit("bc", 0, b"\x03" * 32),
    bech32.encode_segwit("bc", 1, b"\x04" * 32),
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
]
"""One of each kind; the last two are the examples of bitcoin's wiki."""

payer = UtxoPayer(next(n for n in default_networks("live") if n.slug == "bitcoin"), JsonRpc("http://127.0.0.1:1"))


def coins_of(amounts: Sequence[int], offset: int = 0) -> list[Unspent]:
    return [Unspent(f"{n + offset + 1:064x}:{n}", WALLET, amount, 100) for n, amount in enumerate(amounts)]


def kind_dust(address: str) -> int:
    return dust_of(script_of("bitcoin", address, "main"), 3_000)


def check(plan: CoinPlan, coins: Sequence[Unspent], outputs: Sequence[Output], rate: int) -> None:
    spent = {coin.outpoint: coin for coin in coins}
    assert len(set(plan.inputs)) == len(plan.inputs)
    change = plan.change.amount if plan.change else 0
    assert plan.outputs == tuple(outputs)
    assert sum(spent[name].amount for name in plan.inputs) == sum(o.amount for o in outputs) + change + plan.fee
    assert plan.fee >= fee_for(4 * plan.vsize, rate)
    told = payer.explain(plan.unsigned)
    assert (told.inputs, told.fee, told.vsize) == (plan.inputs, plan.fee, plan.vsize)
    assert told.outputs == (*plan.outputs, *([plan.change] if plan.change else []))
    if plan.change:
        assert plan.change.address == WALLET
        assert change >= kind_dust(WALLET)


rates = st.one_of(st.integers(1_000, 5_000), st.integers(1_000, 300_000))
amounts = st.lists(st.one_of(st.integers(1, 5_000), st.integers(1_000, 10**6), st.integers(1, 10**10)), min_size=1, max_size=25)
payments = st.lists(
    st.tuples(st.sampled_from(PAYEES), st.one_of(st.integers(546, 10**5), st.integers(546, 10**9))), min_size=1, max_size=5
)


@given(amounts, payments, rates)
@settings(max_examples=EXAMPLES, deadline=None)
def test_plans_pay_exactly_and_lose_nothing(held: list[int], wanted: list[tuple[str, int]], rate: int) -> None:
    coins, outputs = coins_of(held), [Output(address, amount) for address, amount in wanted]
    spend = fee_for(INPUT_WEIGHT["p2wpkh"], rate)
    try:
        plan = payer.plan(WALLET, coins, outputs, rate)
    except InsufficientFunds:
        useful = [coin for coin in coins if coin.amount > spend]
        try:
            everything = payer.consolidate(WALLET, useful, rate)
        except Refused:
            return  # not even moving them is worth its fee
        # All that is worth its fee, moved at once, is not enough for the outputs with theirs.
        enough = sum(output.amount + fee_for(4 * (9 + 22), rate) for output in outputs) - fee_for(4 * 31, rate)
        assert everything.change is None or everything.change.amount < enough + 5_000 + 2 * spend * len(outputs)
        return
    check(plan, coins, outputs, rate)
    for name in plan.inputs:
        assert next(c.amount for c in coins if c.outpoint == name) > INPUT_WEIGHT["p2wpkh"] * rate // 4_000
    # Without change the miners get what change would have cost, or would have been too small; with change only rounding.
    bound = 0 if plan.change else fee_for(4 * 31, rate) + max(kind_dust(WALLET), spend) + len(plan.inputs) + 1
    assert plan.fee <= fee_for(4 * plan.vsize, rate) + bound + len(plan.inputs)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=11), st.integers(1, 300), st.integers(0, 5))
@settings(max_examples=EXAMPLES, deadline=None)
def test_branch_and_bound_finds_the_closest(values: list[int], target: int, window: int) -> None:
    values.sort(reverse=True)
    found = branch_and_bound(values, target, window, steps=100_000)
    sums = (sum(some) for n in range(1, len(values) + 1) for some in combinations(values, n))
    closest = min((total for total in sums if target <= total <= target + window), default=None)
    if closest is None:
        assert found is None
    else:
        assert found is not None
        assert len(set(found)) == len(found)
        assert sum(values[place] for place in found) == closest


def test_exact_coins_make_no_change() -> None:
    rate = 10_000
    alone = payer.plan(WALLET, coins_of([10**8]), [Output(PAYEES[0], 500_000)], rate)
    assert alone.change is not None
    without = alone.vsize - 31
    coins = coins_of([10**8, 500_000 + fee_for(4 * without, rate) + 7, 200_000])
    plan = payer.plan(WALLET, coins, [Output(PAYEES[0], 500_000)], rate)
    assert (plan.inputs, plan.change, plan.fee) == ((coins[1].outpoint,), None, fee_for(4 * without, rate) + 7)


def test_a_crowd_of_small_coins_is_not_spent_where_a_large_one_is_cheaper() -> None:
    coins = coins_of([10**7, *[10_000] * 40])
    rate = 50_000
    each = 10_000 - fee_for(INPUT_WEIGHT["p2wpkh"], rate)
    plan = payer.plan(WALLET, coins, [Output(PAYEES[0], 30 * each - 2_200)], rate)
    assert plan.inputs == (coins[0].outpoint,)


def test_dust_and_impossible_payments() -> None:
    coins = coins_of([10**6])
    for address, dust in zip(PAYEES, (294, 330, 330, 546, 540), strict=True):
        assert payer.plan(WALLET, coins, [Output(address, dust)], 1_000).outputs == (Output(address, dust),)
        with pytest.raises(Refused, match="dust"):
            payer.plan(WALLET, coins, [Output(address, dust - 1)], 1_000)
    with pytest.raises(InsufficientFunds):
        payer.plan(WALLET, coins, [Output(PAYEES[0], 10**6)], 1_000)
    with pytest.raises(InsufficientFunds):
        payer.plan(WALLET, [], [Output(PAYEES[0], 10**6)], 1_000)
    # 68 vbytes at this rate cost more than the coin is worth, however many of them there are.
    with pytest.raises(InsufficientFunds, match="worth 0 units"):
        payer.plan(WALLET, coins_of([680] * 500), [Output(PAYEES[0], 1_000)], 10_000)
    for rate in (0, -1, 2_000_001):
        with pytest.raises(ValueError, match="fee rate"):
            payer.plan(WALLET, coins, [Output(PAYEES[0], 1_000)], rate)
    with pytest.raises(ValueError, match="an output"):
        payer.plan(WALLET, coins, [], 1_000)
    with pytest.raises(ValueError, match="one key"):
        payer.plan(WALLET, [replace(coins[0], address=PAYEES[4])], [Output(PAYEES[0], 1_000)], 1_000)
    with pytest.raises(ValueError, match="belongs to another network"):
        payer.plan(WALLET, coins, [Output("LVg2kJoFNg45Nbpy53h7Fe1wKyeXVRhMH9", 1_000)], 1_000)


def test_consolidation_takes_what_is_worth_it() -> None:
    coins = coins_of([10_000, 679, 680, 681, 50_000])
    plan = payer.consolidate(WALLET, coins, 10_000)
    assert set(plan.inputs) == {coins[0].outpoint, coins[3].outpoint, coins[4].outpoint}
    check(plan, coins, [], 10_000)
    assert plan.fee == fee_for(4 * plan.vsize, 10_000)
    for few in ([], [100, 200], [974]):
        with pytest.raises(Refused):
            payer.consolidate(WALLET, coins_of(few), 10_000)


def test_consolidation_keeps_to_what_nodes_relay() -> None:
    many = payer.consolidate(WALLET, coins_of(range(10_000, 12_000)), 1_000)
    assert 1_400 < len(many.inputs) < 2_000
    assert 4 * many.vsize <= 400_000
    check(many, coins_of(range(10_000, 12_000)), [], 1_000)
    # The largest ones first.
    assert f"{2_000:064x}:1999" in many.inputs


@given(amounts, st.lists(st.integers(5_000, 10**8), max_size=6), payments, rates, rates)
@settings(max_examples=EXAMPLES, deadline=None)
def test_replacements_pay_the_same_and_more_for_it(
    held: list[int], more: list[int], wanted: list[tuple[str, int]], rate: int, later: int
) -> None:
    coins, outputs = coins_of([*held, 10**9]), [Output(address, amount // 10 + 600) for address, amount in wanted]
    try:
        old = payer.plan(WALLET, coins, outputs, rate)
    except InsufficientFunds:
        return
    fresh = coins_of(more, offset=1_000)
    unconfirmed = [replace(coin, height=0) for coin in coins_of([10**9], offset=5_000)]
    try:
        new = payer.replace(old.unsigned, WALLET, [*coins, *fresh, *unconfirmed], later)
    except InsufficientFunds:
        return
    check(new, [*coins, *fresh], outputs, later)
    assert set(old.inputs) <= set(new.inputs)
    # BIP-125, rules 3 and 4, and Core's further one: a higher rate.
    assert new.fee >= old.fee + new.vsize
    assert new.fee * old.vsize > old.fee * new.vsize


def test_replacing_again_and_again_ends_with_the_money() -> None:
    coins = coins_of([100_000])
    plan = payer.plan(WALLET, coins, [Output(PAYEES[0], 98_000)], 1_000)
    fees = [plan.fee]
    with pytest.raises(InsufficientFunds):
        for _ in range(100):
            plan = payer.replace(plan.unsigned, WALLET, [], 1_000)
            fees.append(plan.fee)
    assert 3 < len(fees) < 40
    assert fees == sorted(set(fees))
    assert plan.outputs == (Output(PAYEES[0], 98_000),)
    # A rate that nobody should pay is refused, whoever asks for it.
    with pytest.raises(Refused, match="more than any payment should"):
        payer.replace(plan.unsigned, WALLET, coins_of([10**10], offset=9), 2_000_001)


def test_a_consolidation_is_replaced_by_a_smaller_output() -> None:
    old = payer.consolidate(WALLET, coins_of([10_000, 20_000]), 1_000)
    new = payer.replace(old.unsigned, WALLET, [], 5_000)
    assert (set(new.inputs), new.outputs) == (set(old.inputs), ())
    assert new.change is not None
    assert new.change.amount == 30_000 - new.fee
    with pytest.raises(InsufficientFunds):
        payer.replace(old.unsigned, WALLET, [], 500_000)
