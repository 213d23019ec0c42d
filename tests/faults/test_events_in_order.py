"""Payments of a busy hour, told by many processes at once: each endpoint gets the events of an object in their order."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from random import Random

import pytest

from chalicelib.domain.work import OutboxRow
from tests.support.simulated import Weather
from tests.support.simulated_merchants import HOUR, MINUTE, SECOND, START, Merchants, Reply

FULL = os.environ.get("SWEEP") == "full"
ENDS = 10 * MINUTE


def pay(world: Merchants, merchant: str, invoices: int, random: Random) -> None:
    """An invoice has three rows and a withdrawal two events in one; all move the balance. Some rows are a millisecond apart, and
    clocks differ by up to a second."""
    rows = []
    for n in range(invoices):
        at = START + MINUTE + random.randrange(ENDS)
        steps = [at + random.choice([0, 1, 30, 400, 5_000, 90_000]) * k for k in (1, 2, 3)]
        rows += [(when, f"inv_{merchant}{n}", number) for number, when in enumerate(sorted(steps), 1)]
        rows.append((at + random.randrange(MINUTE), f"wd_{merchant}{n}", 0))
    balance = 0
    for when, object, number in sorted(rows):
        told = [(object, number)] if number else [(object, 1), (object, 2)]
        if number != 1:
            balance += 1
            told.append((f"{merchant}:usdt", balance))
        world.tell_of(when, merchant, *told, off=random.randrange(-SECOND, SECOND))


def firsts(world: Merchants) -> dict[tuple[str, str], list[int]]:
    """By endpoint and object: the numbers of its events, in the order in which they first came."""
    number = {event.id: (event.object_id, event.sequence) for event in world.events}
    came: dict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for hook in world.hooks.values():
        for request in sorted(hook.requests, key=lambda one: one.at):
            id = json.loads(request.body)["id"]
            if id in number:
                object, sequence = number[id]
                came[hook.name, object][sequence] = None
    return {place: list(seen) for place, seen in came.items()}


@pytest.mark.parametrize("seed", range(30 if FULL else 2))
def test_events_come_in_order_whatever_fails(seed: int) -> None:
    """One process in ten dies where it is at work, messages come late, twice or never, and the store is down for a while."""
    weather = Weather(seed, twice=0.05, late=0.05, late_ms=90_000, refused=0.05)
    world, random = Merchants(seed, weather, dies=0.1), Random(seed)
    for merchant in ("a", "b"):
        world.add(merchant, f"{merchant}1", "*")
        world.add(merchant, f"{merchant}2", "*", behave=lambda now, before: Reply(200, 5))
    for merchant in ("a", "b"):
        pay(world, merchant, 30, random)
    down = START + 4 * MINUTE
    world.store.down = lambda now: down <= now < down + 20 * SECOND
    world.run(START + HOUR)
    world.run_until_final(START + 12 * HOUR)
    assert world.store.all(OutboxRow) == [] and sum(function.deaths for function in world.functions) > 10
    last = Counter({event.object_id: event.sequence for event in world.events})
    came = firsts(world)
    assert len(came) == 2 * len(last)
    assert {place: seen for place, seen in came.items() if seen != list(range(1, last[place[1]] + 1))} == {}
