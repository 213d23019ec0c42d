"""The payout line of a network with several hot wallets: what each slot's worker takes, and which slot a message asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.ids import MerchantId, asset_id, network_id, tenant_id
from chalicelib.domain.withdrawals.payout_line import IDLE_MS, PayoutLine, payout_work, ready_order
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.ports.changes import Close, Open, Save
from chalicelib.usecases.withdrawals.payout_line import MOST_TRIES, Line
from chalicelib.usecases.withdrawals.retry_idle import IdleRetries
from chalicelib.usecases.withdrawals.steps import handed_command, line_command, payout_command, payout_parts
from tests.support.memory_store import HandClock, MemoryQueues, MemoryStore

NETWORK = network_id("live", "ethereum")
ETH = asset_id(NETWORK, "eth")
SLOTS = 3


class World:
    def __init__(self, payouts: int) -> None:
        self.store, self.clock, self.queues = MemoryStore(), HandClock(), MemoryQueues()
        self.line = Line(self.store, self.clock)  # type: ignore[arg-type]
        for number in range(payouts):
            who = tenant_id(MerchantId(f"mch_{number}"), "live")
            made = Withdrawal(
                f"wd_{number}",
                who,
                NETWORK,
                ETH,
                1,
                "0x1",
                ETH,
                self.clock.now,
                self.clock.now,
                line=ready_order(who, self.clock.now),
            )
            self.store.commit([Save(made), Open(payout_work(made))])

    def take(self, slot: int) -> Work | None:
        return self.line.take(NETWORK, slot, SLOTS)

    def signed(self, work: Work) -> None:
        who, id = payout_parts(work)
        before: Any = self.store.get(Withdrawal, tenant=who, id=id)
        after = replace(before, status="broadcasting", version=before.version + 1)
        self.store.commit([Save(after), Close(payout_work(before))])


def test_workers_of_different_slots_take_different_payouts() -> None:
    world = World(5)
    taken = [world.take(slot) for slot in range(SLOTS)]
    assert len({work for work in taken if work is not None}) == SLOTS


def test_all_are_taken_by_whichever_slots_come() -> None:
    world, seen = World(7), []
    for slot in (0, 1, 0, 2, 1, 0, 2):
        work = world.take(slot)
        assert work is not None
        world.signed(work)
        seen.append(work.id)
    assert len(set(seen)) == 7
    assert [world.take(slot) for slot in range(SLOTS)] == [None] * SLOTS


def test_what_a_dead_worker_had_in_hand_its_own_slot_takes_first() -> None:
    world = World(5)
    left = world.take(1)
    assert world.take(0) != left and world.take(2) != left
    assert world.take(1) == left


def test_where_nothing_else_is_ready_another_slot_takes_it() -> None:
    world = World(1)
    assert world.take(1) == world.take(0) is not None


def test_one_slots_payout_that_its_workers_die_with_leaves_the_line(caplog: pytest.LogCaptureFixture) -> None:
    world = World(3)
    left = world.take(1)
    for _ in range(MOST_TRIES - 1):
        assert world.take(1) == left
    assert world.take(1) != left
    assert "was given up" in caplog.text


def test_the_turn_of_slot_0_is_where_it_was_before_there_were_slots() -> None:
    world = World(3)
    world.line.take(NETWORK)
    world.take(2)
    assert [line.network for line in sorted(world.store.all(PayoutLine), key=lambda line: line.network)] == [
        NETWORK,
        f"{NETWORK}#2",
    ]


def test_messages_are_spread_and_a_single_wallets_are_as_before() -> None:
    works = [Work("payout", NETWORK, "linemch_1:live@1", f"mch_1:live|wd_{number}|eth|1|normal") for number in range(60)]
    groups = [line_command(work, SLOTS).group for work in works]
    assert set(groups) == {NETWORK, f"{NETWORK}#1", f"{NETWORK}#2"} and min(map(groups.count, set(groups))) > 8
    alone = line_command(works[0], 1)
    assert (alone.group, alone.body) == (NETWORK, {"line": NETWORK, "tenant": "mch_1:live", "id": "wd_0"})
    again = {line_command(works[0], SLOTS, turn).body["slot"] for turn in range(SLOTS)}
    assert again == {"0", "1", "2"}, "asked for again, it is another slot's"


def test_what_was_begun_is_asked_for_in_its_wallets_group() -> None:
    who = tenant_id(MerchantId("mch_1"), "live")
    begun = Withdrawal("wd_1", who, NETWORK, ETH, 1, "0x1", ETH, 1, 1, status="processing", slot=2)
    assert payout_command(begun).group == f"{NETWORK}#2"
    assert payout_command(replace(begun, slot=0)).group == NETWORK, "and of a record without a slot in the network's"
    handed = handed_command(begun, 1)
    assert (handed.group, handed.body) == (f"{NETWORK}#1", {"tenant": who, "id": "wd_1", "slot": "1"})


def test_housekeeping_asks_in_another_slot_each_minute() -> None:
    world = World(1)
    asked = set()
    for _ in range(SLOTS):
        world.clock.pass_ms(max(IDLE_MS, 60_000))
        IdleRetries(world.store, world.queues, world.clock, lambda: 0.0).sweep(NETWORK, SLOTS)  # type: ignore[arg-type]
        asked |= {command.group for command in world.queues.commands}
        world.queues.commands.clear()
    assert asked == {NETWORK, f"{NETWORK}#1", f"{NETWORK}#2"}
