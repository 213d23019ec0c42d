"""Moves between hot wallets: which are planned for a payout larger than each, and which never. On books in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.rates import ConstantRates, Rates
from chalicelib.domain.ids import TenantId
from chalicelib.domain.times import iso
from chalicelib.domain.treasury.collections import Distribution
from chalicelib.domain.treasury.moves import Move, move_command
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.slot_shortages import LASTS_MS, SlotShortage
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget
from chalicelib.usecases.treasury.slots import UNPRICED_A_DAY, SlotMoves
from tests.support.collecting import COLD, ETHER, FEE, HOT, NETWORK, USDT, Treasury

SECOND, THIRD = "0x27b1fdb04752bbc536007a920d24acb045561c26", "0x52908400098527886E0F7030069857D2E4169EE7"


class Slots(Treasury):
    """Three hot wallets: the first has `units` of the coin, the others what a test gives them. Each has coins for its fees."""

    def __init__(self, coin: str = "usdt") -> None:
        super().__init__()
        self.coin, self.usd = coin, 500
        network = replace(self.network, payout_slots=3)
        self.network = self.store.network = network
        for slot, address in ((1, SECOND), (2, THIRD)):
            self.store.commit([Save(Wallet(NETWORK, "hot", address, "kms", "key", "", 1, slot))])
            self.put(address, "eth", ETHER)

    def has(self, *units: int) -> None:
        for address, there in zip((HOT, SECOND, THIRD), units, strict=True):
            self.put(address, self.coin, there)

    @property
    def budget(self) -> ConsolidationBudget:
        return ConsolidationBudget(self.store, lambda _: self.rates, self.usd)

    def short(self, units: int, wallet: str = HOT, payout: Withdrawal | None = None) -> None:
        asset = self.store.coins[self.coin].asset
        known = self.store.get(SlotShortage, network=NETWORK, asset=asset)
        made = SlotShortage(NETWORK, asset, wallet, units, self.clock.now_ms(), version=version_after(known))
        self.store.commit([Save(made if payout is None else replace(made, tenant=payout.tenant, withdrawal=payout.id))])

    def look(self) -> list[tuple[str, str, int]]:
        """What is under way after a look of the poll."""
        SlotMoves(self.context, self._fees, self.budget).work(lambda: True)
        found = [move for move in self.moves("distribution") if not move.at_rest]
        return sorted((move.source, move.recipient, move.amount) for move in found)


def test_what_one_lacks_comes_from_the_fullest_first() -> None:
    world = Slots()
    world.has(50 * USDT, 20 * USDT, 30 * USDT)
    world.short(90 * USDT)
    assert world.look() == sorted([(THIRD, HOT, 30 * USDT), (SECOND, HOT, 10 * USDT)])
    assert world.look() == sorted([(THIRD, HOT, 30 * USDT), (SECOND, HOT, 10 * USDT)]), "planned once"
    for move in world.moves("distribution"):
        world.settle(move)
    assert world.there(HOT, "usdt") == 90 * USDT
    assert world.look() == []


def test_what_is_on_its_way_is_not_ordered_again_from_another() -> None:
    world = Slots()
    world.has(50 * USDT, 20 * USDT, 0)
    world.short(60 * USDT)
    first = (SECOND, HOT, 10 * USDT)
    assert world.look() == [first]
    world.has(50 * USDT, 20 * USDT, 30 * USDT)
    assert world.look() == [first], "the third has it, too"
    world.short(40 * USDT, THIRD)
    assert world.look() == sorted([first, (HOT, THIRD, 10 * USDT)]), "what comes to the first does not come to the third"


def test_the_commands_are_in_the_group_of_the_wallet_that_gives() -> None:
    world = Slots()
    world.has(50 * USDT, 20 * USDT, 0)
    world.short(60 * USDT)
    world.look()
    assert [move_command(move).group for move in world.moves("distribution")] == [f"{NETWORK}#1"]


def test_native_coins_leave_the_fee_of_their_move() -> None:
    world = Slots("eth")
    world.has(5 * ETHER, 2 * ETHER, FEE)
    world.short(7 * ETHER - FEE)
    assert world.look() == [(SECOND, HOT, 2 * ETHER - FEE)]
    world = Slots("eth")
    world.has(5 * ETHER, 2 * ETHER, FEE)
    world.short(7 * ETHER - FEE + 1)
    assert world.look() == []


def dry(world: Slots) -> None:
    world.put(SECOND, "eth", 0)


def floor(world: Slots) -> None:
    world.settle_for("usdt", hotFloor="3")


def another(world: Slots) -> None:
    world.short(60 * USDT, COLD)


def old(world: Slots) -> None:
    world.clock.pass_ms(LASTS_MS + 1)


def elsewhere(world: Slots) -> None:
    world.has(60 * USDT, 10 * USDT, 0)


def on_the_chain_alone(world: Slots) -> None:
    """The ledger has it, and the node does not: a payment is on its way."""
    balance = world.chain.balance
    world.chain.balance = lambda address, contract=None: 0 if address == SECOND else balance(address, contract)  # type: ignore[method-assign]


@pytest.mark.parametrize("why", [dry, floor, another, old, elsewhere, on_the_chain_alone])
def test_nothing_is_moved_where_it_would_not_help(why: Callable[[Slots], Any]) -> None:
    """No fee for the giver, the floors' parts, a wallet that is none, nobody waits any more, there is enough already."""
    world = Slots()
    world.has(50 * USDT, 10 * USDT, 0)
    world.short(60 * USDT)
    why(world)
    assert world.look() == []


def test_without_that_it_is_moved() -> None:
    world = Slots()
    world.has(50 * USDT, 10 * USDT, 0)
    world.short(60 * USDT)
    assert world.look() == [(SECOND, HOT, 10 * USDT)]


def test_each_keeps_its_part_of_the_floor() -> None:
    world = Slots()
    world.settle_for("usdt", hotFloor="3")
    world.has(50 * USDT, 11 * USDT, 0)
    world.short(59 * USDT)
    assert world.look() == [(SECOND, HOT, 10 * USDT)]


def test_a_lot_under_way_is_not_planned_beside_another_of_its_wallet() -> None:
    """A cold move of the same wallet and coin has its lot: the rest waits for the next look."""
    world = Slots()
    world.has(50 * USDT, 20 * USDT, 0)
    world.short(60 * USDT)
    origin_of: Any = world.look() and world.moves("distribution")[0]
    world.short(70 * USDT)
    assert world.look() == [(SECOND, HOT, 10 * USDT)]
    world.settle(origin_of)
    world.short(70 * USDT)
    assert world.look() == [(SECOND, HOT, 10 * USDT)]
    assert len(world.moves("distribution")) == 2


def test_a_move_that_came_to_nothing_is_an_alarm_and_waits(caplog: pytest.LogCaptureFixture) -> None:
    world = Slots()
    world.has(50 * USDT, 20 * USDT, 0)
    world.short(60 * USDT)
    world.look()
    world.settle(world.moves("distribution")[0], "dropped")
    assert world.look() == [] and "can not go on" in caplog.text
    world.clock.pass_ms(3_600_000)
    world.short(60 * USDT)
    assert world.look() == [(SECOND, HOT, 10 * USDT)]


BEGUN, CANCELLED = {"status": "processing", "pending_reason": None}, {"status": "cancelled", "pending_reason": None}


@pytest.mark.parametrize("after", [BEGUN, CANCELLED, {"pending_reason": "fees"}, {}], ids=["begun", "cancelled", "dear", "waits"])
def test_nothing_more_is_moved_for_a_payout_that_lacks_nothing_more(after: dict[str, Any]) -> None:
    """Its shortage counts for ten minutes, in which it takes what was moved for it, and its hot wallet has nothing again."""
    world = Slots()
    asset = world.store.coins["usdt"].asset
    payout = Withdrawal("wd_1", TenantId("mch_1:live"), NETWORK, asset, 150 * USDT, THIRD, asset, 1, 1)
    payout = replace(payout, pending_reason="liquidity")
    world.has(100 * USDT, 100 * USDT, 100 * USDT)
    world.store.commit([Save(payout)])
    world.short(150 * USDT, payout=payout)
    (move,) = world.look()
    assert move[:2] == (SECOND, HOT) and move[2] >= 50 * USDT
    world.settle(world.moves("distribution")[0])
    world.has(0, 50 * USDT, 100 * USDT)
    world.store.commit([Save(next_version(replace(payout, **after)))])
    assert bool(world.look()) == (not after)


def test_with_one_hot_wallet_nothing_is_read_or_moved() -> None:
    world = Treasury()
    asset = world.store.coins["usdt"].asset
    world.store.commit([Save(SlotShortage(NETWORK, asset, HOT, 1, 0))])
    SlotMoves(world.context, world._fees, ConsolidationBudget(world.store, lambda _: world.rates, 1)).work(lambda: True)
    assert world.store.all(Move) == []


# What it may cost: merchants pay no fees of these moves (money rule 14)


def test_what_lacks_is_rounded_up_to_a_sixth_of_what_was_asked_for() -> None:
    world = Slots()
    world.has(60 * USDT, 50 * USDT, 0)
    world.short(60 * USDT + 1)
    assert world.look() == [(SECOND, HOT, 10 * USDT)]


def test_what_lacks_is_rounded_up_until_it_is_worth_its_fee() -> None:
    """A fee of 10 cents is 5 per cent of 2 dollars."""
    world = Slots()
    world.has(3 * USDT, 50 * USDT, 0)
    world.short(3 * USDT + 600_000)
    assert world.look() == [(SECOND, HOT, 2_400_000)], "0.6, 1.2, 2.4"


def test_each_that_gives_keeps_half_where_that_is_enough() -> None:
    world = Slots()
    world.has(50 * USDT, 40 * USDT, 30 * USDT)
    world.short(80 * USDT)
    assert world.look() == sorted([(SECOND, HOT, 20 * USDT), (THIRD, HOT, 10 * USDT)])
    world = Slots()
    world.has(50 * USDT, 40 * USDT, 30 * USDT)
    world.short(90 * USDT)
    assert world.look() == [(SECOND, HOT, 40 * USDT)], "one fee, where more than the halves is needed"


def test_what_is_not_worth_its_fee_is_not_moved(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = Slots()
    world.has(50 * USDT, 2 * USDT - 1, 0)
    world.short(50 * USDT + 1)
    assert world.look() == [] and "the fee is too large a part" in caplog.text
    world = Slots("eth")
    world.has(5 * ETHER, 21 * FEE - 1, 0)
    world.short(5 * ETHER + 1)
    assert world.look() == []
    world.put(SECOND, "eth", 21 * FEE)
    assert world.look() == [(SECOND, HOT, 20 * FEE)]


@pytest.mark.parametrize("coin", ["usdt", "eth"])
def test_what_a_hair_of_lack_costs_again_and_again_is_bounded(coin: str) -> None:
    """A merchant asks for a hair more than the fullest has, and cancels once the move is planned."""
    world, one = Slots(coin), USDT if coin == "usdt" else ETHER
    world.has(20 * one, 20 * one - 1, 20 * one - 1)
    for _ in range(30):
        world.short(world.there(HOT, coin) + 1)
        world.look()
        for move in world.moves("distribution"):
            if not move.at_rest:
                world.settle(move)
    done = world.moves("distribution")
    value = sum(move.amount for move in done) * (ETHER // 2000 // USDT if coin == "usdt" else 1)
    assert 0 < len(done) <= 18
    assert 20 * FEE * len(done) <= value


def test_a_coin_without_a_rate_is_moved_for_a_usual_fee() -> None:
    world = Slots()
    world.settle_for("usdt", collectThreshold="0")
    world.rates = ConstantRates({("eth", "USD"): "2000"}, world.clock.now_ms)
    world.has(50 * USDT, 10 * USDT, 0)
    world.short(60 * USDT)
    world.chain.fee = ETHER // 100 + 1
    assert world.look() == []
    world.chain.fee = ETHER // 100
    assert world.look() == [(SECOND, HOT, 10 * USDT)]


def budget_fills(world: Slots, rounds: int) -> int:
    """How many moves there are where a payout lacks 10 USDT again and again."""
    for _ in range(rounds):
        world.has(50 * USDT, 20 * USDT, 0)
        world.short(60 * USDT)
        world.look()
        for move in world.moves("distribution"):
            if not move.at_rest:
                world.settle(move)
    return len(world.moves("distribution"))


def test_the_budget_of_a_day_bounds_the_fees_and_an_operator_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    world = Slots()
    world.usd = 1
    assert budget_fills(world, 20) == 10, "of 10 cents each"
    said = [record for record in caplog.records if "ALARM" in record.message]
    why = f"the 1 USD of CONSOLIDATION_BUDGET_USD for {iso(world.clock.now_ms())[:10]} are used up"
    told = f"ALARM {NETWORK}: {HOT} gets no usdt from other hot wallets: fee_share: {why}"
    assert [record.message for record in said] == [told]
    (waits,) = {record.reason for record in world.store.all(Distribution) if record.reason}
    assert "CONSOLIDATION_BUDGET_USD" in waits
    world.clock.pass_ms(24 * 3_600_000)
    assert budget_fills(world, 20) == 20, "a new day"


def test_without_any_rate_the_budget_is_enough_for_fifty_moves() -> None:
    world = Slots()
    world.rates = Rates()
    assert budget_fills(world, 60) == UNPRICED_A_DAY
    world = Slots()
    world.rates, world.usd = Rates(), 0
    assert budget_fills(world, 2) == 0


def test_the_budget_covers_all_moves_of_a_payout_or_none() -> None:
    world = Slots()
    world.usd, world.rates = 1, ConstantRates({("eth", "USD"): "11000", ("usdt", "USD"): "1"}, world.clock.now_ms)
    world.has(50 * USDT, 20 * USDT, 30 * USDT)
    world.short(90 * USDT)
    assert world.look() == [], "each costs 55 cents"
    world.rates = ConstantRates({("eth", "USD"): "9000", ("usdt", "USD"): "1"}, world.clock.now_ms)
    assert len(world.look()) == 2


# Ceilings, floors and sweeps over several


def test_the_ceiling_is_that_of_the_sum_and_the_fullest_gives() -> None:
    world = Slots()
    world.wallet("cold", COLD)
    world.settle_for("usdt", hotCeiling="100", collectServiceToColdThreshold="1")
    world.has(40 * USDT, 70 * USDT, 30 * USDT)
    world.distribute()
    assert [(move.source, move.amount, move.seat) for move in world.moves("cold")] == [(SECOND, 40 * USDT, "1")]


def test_more_than_the_fullest_has_is_given_in_turns() -> None:
    world = Slots()
    world.wallet("cold", COLD)
    world.settle_for("usdt", hotCeiling="10", collectServiceToColdThreshold="1")
    world.has(40 * USDT, 70 * USDT, 30 * USDT)
    world.distribute()
    (first,) = world.moves("cold")
    assert (first.source, first.amount) == (SECOND, 70 * USDT)
    world.settle(first)
    world.distribute()
    world.settle(next(move for move in world.moves("cold") if move.id != first.id))
    world.distribute()
    assert [sum(world.there(address, "usdt") for address in (HOT, SECOND, THIRD))] == [30 * USDT]
    assert world.there(COLD, "usdt") == 110 * USDT


def test_the_alarm_of_the_floor_is_about_the_sum(caplog: pytest.LogCaptureFixture) -> None:
    world = Slots()
    world.settle_for("usdt", hotFloor="60")
    world.has(10 * USDT, 20 * USDT, 30 * USDT)
    world.floor()
    assert caplog.text == ""
    world.has(10 * USDT, 20 * USDT, 29 * USDT)
    world.floor()
    world.floor()
    assert caplog.text.count("less than its floor") == 1
    assert [record.low for record in world.store.all(Distribution)] == [True]


def test_sweeps_fill_the_emptiest() -> None:
    world = Slots()
    world.has(10 * USDT, 5 * USDT, 30 * USDT)
    world.deposit(500 * USDT)
    world.poll()
    world.go_on("topup", "sweep")
    assert [move.recipient for move in world.moves("sweep")] == [SECOND]


def test_the_collector_fills_the_emptiest() -> None:
    world = Slots()
    collector = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb".lower()
    world.wallet("collector", collector)
    world.put(collector, "usdt", 40 * USDT)
    world.put(collector, "eth", ETHER)
    world.has(10 * USDT, 5 * USDT, 1 * USDT)
    world.distribute()
    assert [move.recipient for move in world.moves("distribution")] == [THIRD]
