"""Which functions can wake themselves: `usecases/base/message_chains.py` names all of them, and what sends is bounded there."""

from __future__ import annotations

from collections import defaultdict

from chalicelib.usecases.base import message_chains
from chalicelib.usecases.base.message_chains import BoundedQueues
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from infra.local.recursion import LIMIT
from infra.policies import FUNCTIONS


def test_every_circle_of_functions_is_named() -> None:
    """By the rights to send: what may send to a queue, and who is woken by it."""
    wakes: dict[str, set[str]] = defaultdict(set)
    for name, rights in FUNCTIONS.items():
        for queue in rights.sends:
            wakes[name] |= {other for other, its in FUNCTIONS.items() if its.consumes == queue.removesuffix("-slow")}
    circles = set()

    def follow(path: tuple[str, ...]) -> None:
        for other in wakes[path[-1]]:
            if other == path[0]:
                least = path.index(min(path))
                circles.add((*path[least:], *path[:least]))
            elif other not in path:
                follow((*path, other))

    for name in FUNCTIONS:
        follow((name,))
    assert circles == {
        ("deliver",),
        ("relay",),
        ("scan_range",),
        ("deliver", "relay"),
        ("payout", "relay"),
        ("collect", "relay"),
    }
    told = message_chains.__doc__ or ""
    assert all(
        " → ".join((*circle, circle[0])) in told for circle in (("deliver", "relay"), ("payout", "relay"), ("collect", "relay"))
    )
    assert "- relay, by" in told and "- scan_range, by" in told and "- deliver and deliver_slow, by" in told


def test_everything_that_the_service_sends_is_bounded(aws: LocalAws) -> None:
    assert isinstance(services().queues, BoundedQueues)
    assert message_chains.MOST < LIMIT
