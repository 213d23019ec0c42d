"""What is slow or dead holds up nothing that is well: measured in simulated time, with the functions' maximum concurrency."""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.domain.webhooks.leases import BATCH
from tests.support.simulated import Weather
from tests.support.simulated_merchants import HANG_MS, MINUTE, SECOND, Merchants, Reply, backlog, delays, part

CALM = {"twice": 0.0, "late": 0.0}
HANG = Reply(None, HANG_MS, "no answer within 10 s")
KNOWN = 2 * MINUTE
"""By then endpoints that hang have failed often enough to count as failing, where there was as much for them."""


def hangs(now: int, before: int) -> Reply:
    return HANG


def test_a_backlog_of_ten_thousand_events_at_a_slow_endpoint_starves_nobody() -> None:
    """Neither another merchant, nor the same merchant's other endpoint; and the slow one gets ten requests at once, no more."""
    world = Merchants(1, Weather(1, **CALM))
    slow = world.add("big", "slow", "invoice.created", behave=lambda now, before: Reply(200, 5_000))
    world.add("big", "other", "invoice.completed")
    world.add("small", "all", "*")
    backlog(world, slow, 10_000)
    began = world.simulation.now
    for n in range(60):
        world.tell(began + n * SECOND, "small", "invoice.created")
        world.tell(began + n * SECOND + 300, "big", "invoice.completed")
    world.run(began + 90 * SECOND)
    took = delays(world)
    assert len(took) == 120 and took[-1] < 1_000
    assert slow.most_open == BATCH
    # Ten in five seconds, all the time: what is slow is not made slower still.
    assert len(slow.requests) >= 85 / 5 * BATCH


def hanging(count: int, well: int, minutes: int, after: Callable[[int], int]) -> Merchants:
    """So many endpoints that hang, twenty a merchant, and `well` merchants with one in health. Each merchant has an event every so
    many milliseconds."""
    world = Merchants(2, Weather(2, **CALM))
    for n in range(count):
        world.add(f"ill{n // 20}", f"hook{n % 20}", "*", behave=hangs)
    for n in range(well):
        world.add(f"well{n}", "all", "*")
    began = world.simulation.now
    for n in range(well + count // 20):
        name = f"ill{n - well}" if n >= well else f"well{n}"
        at = began + world.random.randrange(3 * SECOND)
        while at < began + minutes * MINUTE:
            world.tell(at, name, "invoice.created")
            at += after(n)
    return world


def test_two_hundred_endpoints_that_hang_do_not_delay_those_that_are_well() -> None:
    """In the first minute nobody knows of them, and they hold functions of the queue that is everybody's: all that there are. Then
    they have their own, and those that are well are told as if they were alone.
    """
    world = hanging(200, 20, 2, lambda n: 6 * SECOND if n < 20 else 12 * SECOND)
    began = world.simulation.now
    world.run(began + 2 * MINUTE)
    first, later = delays(world, until=began + MINUTE), delays(world, since=began + MINUTE + 30 * SECOND)
    print(f"first minute p50 {part(first, 0.5)} ms, p99 {part(first, 0.99)} ms, most {first[-1]} ms; later {later[-1]} ms at most")
    print([f.most_busy for f in world.functions], [f.sent for f in world.functions])
    assert len(first) == 200 and part(first, 0.99) < 2_000
    assert len(later) > 90 and later[-1] < 200
    ill = [hook for hook in world.hooks.values() if not hook.well]
    assert all(hook.requests and hook.most_open <= BATCH for hook in ill)
