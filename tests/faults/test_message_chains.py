"""Lambda stops a chain of more than sixteen invocations that messages cause: ours end long before, whatever a receiver does.

What a chain leaves behind the minute's schedule finds, whose message begins a new one.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from chalicelib.domain.webhooks.leases import BATCH
from chalicelib.usecases.base.message_chains import MOST
from tests.support.simulated import Weather
from tests.support.simulated_merchants import HOUR, MINUTE, SECOND, START, Behaviour, Merchants, Reply, backlog, delays, part
from tests.support.simulated_queues import LEFT_MS

CALM = {"twice": 0.0, "late": 0.0}
BUSY = {
    "503": lambda now, before: Reply(503, 60),
    "503, in five seconds": lambda now, before: Reply(503, 60, retry_after="5"),
    "503, in five minutes": lambda now, before: Reply(503, 60, retry_after="300"),
    "429, every other time": lambda now, before: Reply(429, 60, retry_after="20") if before % 2 else Reply(200, 60),
}


def three_hours(behave: Behaviour) -> Merchants:
    """An event each twenty seconds for an endpoint that behaves so, and for another merchant's, which is well."""
    world = Merchants(3, Weather(3, **CALM))
    world.add("busy", "hook", "*", behave=behave)
    world.add("well", "hook", "*")
    for at in range(START + MINUTE, START + 3 * HOUR, 20 * SECOND):
        world.tell(at, "busy", "invoice.created")
        world.tell(at + 7 * SECOND, "well", "invoice.created")
    world.run(START + 3 * HOUR)
    return world


_IN_A_CHECK = ("503, in five seconds", "429, every other time")


@pytest.mark.parametrize(
    "behave", [pytest.param(BUSY[name], id=name, marks=[pytest.mark.sweep] * (name not in _IN_A_CHECK)) for name in BUSY]
)
def test_no_message_of_a_receiver_that_is_busy_ends_in_the_dead_letters(behave: Behaviour) -> None:
    world = three_hours(behave)
    print([f.longest for f in world.functions], [f.stopped for f in world.functions], [f.sent for f in world.functions])
    assert [len(f.dead) for f in world.functions] == [0, 0, 0]
    assert [f.stopped for f in world.functions] == [0, 0, 0]
    assert max(f.longest for f in world.functions) <= MOST
    took = delays(world)
    assert len(took) == 537 and took[-1] < SECOND  # who is well notices nothing


def test_what_a_chain_leaves_to_the_schedule_is_late_by_two_and_a_half_minutes_at_most() -> None:
    world = three_hours(BUSY["503, in five seconds"])
    due: list[tuple[int, int]] = []
    for delivery in world.deliveries():
        due += [(before.next_at or 0, after.at) for before, after in pairwise(delivery.attempts)]
    late = sorted(at - wanted for wanted, at in due)
    print(len(late), part(late, 0.5), part(late, 0.99), late[-1], world.bounded.left)
    assert world.bounded.left and late[-1] <= LEFT_MS
    assert part(late, 0.99) <= MINUTE


def test_a_long_backlog_ends_in_no_dead_letters_and_goes_on() -> None:
    """Turns of fifteen seconds, each asked for by the one before: the schedule begins a new chain of them."""
    world = Merchants(1, Weather(1, **CALM))
    slow = world.add("big", "slow", "invoice.created", behave=lambda now, before: Reply(200, 5_000))
    backlog(world, slow, 3_000)
    began = world.simulation.now
    world.run(began + 20 * MINUTE)
    print(len(slow.requests), [f.longest for f in world.functions], [len(f.dead) for f in world.functions])
    assert len(slow.requests) > 0.8 * 20 * 60 / 5 * BATCH
    assert [len(f.dead) for f in world.functions] == [0, 0, 0]
    assert [f.stopped for f in world.functions] == [0, 0, 0]
