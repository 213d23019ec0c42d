"""Moves between hot wallets: which are planned for a payout larger than each, and which never. On books in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.treasury.collections import Distribution
from chalicelib.domain.treasury.moves import Move, move_command
from chalicelib.domain.versions import version_after
from chalicelib.domain.withdrawals.slot_shortages import LASTS_MS, SlotShortage
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.treasury.slots import SlotMoves
from tests.support.collecting import COLD, ETHER, FEE, HOT, NETWORK, USDT, Treasury

SECOND, THIRD = "0x27b1fdb04752bbc536007a920d24acb045561c26", "0x52908400098527886E0F7030069857D2E4169EE7"


class Slots(Treasury):
    """Three hot wallets: the first has `units` of the coin, the others what a test gives them. Each has coins for its fees."""

    def __init__(self, coin: str = "usdt") -> None:
        super().__init__()
        self.coin = coin
        network = replace(self.network, payout_slots=3)
        self.network = self.store.network = network
        for slot, address in ((1, SECOND), (2, THIRD)):
            self.store.commit([Save(Wallet(NETWORK, "hot", address, "kms", "key", "", 1, slot))])
            self.put(address, "eth", ETHER)

    def has(self, *units: int) -> None:
        for address, there in zip((HOT, SECOND, THIRD), units, strict=True):
            self.put(address, self.coin, there)

    def short(self, units: int, wallet: str = HOT) -> None:
        asset = self.store.coins[self.coin].asset
        known = self.store.get(SlotShortage, network=NETWORK, asset=asset)
        self.store.commit([Save(SlotShortage(NETWORK, asset, wallet, units, self.clock.now_ms(), version_after(known)))])

    def look(self) -> list[tuple[str, str, int]]:
        """What is under way after a look of the poll."""
        SlotMoves(self.context, self._fees).work(lambda: True)
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


def test_with_one_hot_wallet_nothing_is_read_or_moved() -> None:
    world = Treasury()
    asset = world.store.coins["usdt"].asset
    world.store.commit([Save(SlotShortage(NETWORK, asset, HOT, 1, 0))])
    SlotMoves(world.context, world._fees).work(lambda: True)
    assert world.store.all(Move) == []


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
