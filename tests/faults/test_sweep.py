"""Every call to AWS, one after the other, fails before or after its effect, or kills the function there. Whatever was cut:
when clocks and queues have run again, the books are whole, everything was credited and paid exactly once, nothing is stuck,
and every event reached the merchant.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from infra.local.aws import Snapshot
from infra.local.pump import Order
from tests.support.cuts import WAYS, Cutter, How, When, install
from tests.support.paths import BEFORE, PATHS, Step
from tests.support.receiver import Received, Receiver
from tests.support.stack import Stack
from tests.support.world import World

READS = ("Get", "Query", "BatchGet", "TransactGet")


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    made = Cutter()
    install(made, monkeypatch)
    return made


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@dataclass(frozen=True)
class Begun:
    """Where a step of a path begins, and the calls that it makes from there when nothing fails."""

    state: Snapshot
    told: list[Received]
    memo: dict[str, str]
    shift: int
    trace: list[str]


@pytest.fixture(scope="module")
def beginnings() -> dict[str, dict[str, Begun]]:
    """Those of the paths that a test has asked for: every way to fail begins where the others do."""
    return {}


@pytest.fixture(scope="module")
def starts() -> dict[Step, Begun]:
    """Where the paths begin, by what was done before them."""
    return {}


def told_once(world: World, receiver: Receiver) -> None:
    """Every event that is kept reached the receiver; twice is allowed, never is not."""
    kept = {event["id"] for event in world.get("/v1/events", limit="100")["data"]}
    assert kept
    assert {json.loads(request.body)["id"] for request in receiver.received} >= kept


FULL = os.environ.get("SWEEP") == "full"


def started(
    stack: Stack, cutter: Cutter, receiver: Receiver, path: str, starts: dict[Step, Begun], order: Order = "normal"
) -> World:
    """Where a path begins. What comes before it is done once and in the normal order: in the others it is a path of its own."""
    before = BEFORE[path]
    if before not in starts:
        world = World(stack, cutter)
        receiver.received.clear()
        stack.call("POST", "/v1/webhooks", world.key, json={"url": receiver.url(), "events": ["*"]})
        before(world)
        world.settle()
        starts[before] = Begun(stack.snapshot(), list(receiver.received), dict(world.memo), world.shift, [])
    start = starts[before]
    stack.restore(start.state)
    receiver.received[:] = start.told
    return World(stack, cutter, order=order, shift=start.shift).again(start.memo)


def begun(stack: Stack, cutter: Cutter, receiver: Receiver, path: str, starts: dict[Step, Begun]) -> dict[str, Begun]:
    """Go a whole path without a failure; where each step began, by its name."""
    world, found = started(stack, cutter, receiver, path, starts), {}
    for step in PATHS[path]:
        state, told, memo, shift = stack.snapshot(), list(receiver.received), dict(world.memo), world.shift
        world = world.again(memo)
        world.align()
        cutter.set(0, "error", "before")
        step(world)
        finish(world, receiver)
        found[step.__name__] = Begun(state, told, memo, shift, list(cutter.trace))
    return found


def cases() -> list[Any]:
    """Every step of every path, cut in every way. In a check each is cut by an error before a call, and in one of the three other
    ways, in turns: `make sweep` cuts it in all of them, at every call."""
    steps = [(path, step.__name__) for path in sorted(PATHS) for step in PATHS[path]]
    return [
        pytest.param(path, name, *way, marks=() if turn in (0, 1 + n % 3) else pytest.mark.sweep, id="-".join((path, name, *way)))
        for n, (path, name) in enumerate(steps)
        for turn, way in enumerate(WAYS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name", "how", "when"), cases())
def test_any_call_may_fail(
    path: str,
    name: str,
    how: How,
    when: When,
    stack: Stack,
    cutter: Cutter,
    receiver: Receiver,
    beginnings: dict[str, dict[str, Begun]],
    starts: dict[Step, Begun],
    record_property: Callable[[str, object], None],
) -> None:
    """One step of a path: each call of it is cut in a run of its own, from the state that the steps before left."""
    if path not in beginnings:
        beginnings[path] = begun(stack, cutter, receiver, path, starts)
    start = beginnings[path][name]
    step = next(step for step in PATHS[path] if step.__name__ == name)
    cuts = chosen(start.trace, how, when)
    assert cuts, f"{name} makes no call that could fail {when}"
    for at in cuts:
        stack.restore(start.state)
        receiver.received[:] = start.told
        broken = World(stack, cutter, shift=start.shift).again(start.memo)
        broken.align()
        cutter.set(at, how, when)
        try:
            step(broken)
            finish(broken, receiver)
        except AssertionError as error:
            cut = cutter.trace[at - 1] if cutter.fired else "nothing"
            raise AssertionError(f"{name}: cut {how} {when} call {at} ({cut}): {error}") from error
        assert cutter.fired, f"{name}: call {at} never came"
    record_property("cut_points", len(cuts))


def chosen(trace: Sequence[str], how: How, when: When) -> list[int]:
    """Which of a step's calls are cut, by their numbers from 1.

    A read that fails after its effect is one that fails before it. A function that dies before a call dies with what the write
    before has left: only before the first write is that a run of its own. With SWEEP=full (`make sweep`) everything else is cut.
    Without it, in the time that a check may take, in turns: a write is cut by an error before it, the 37th behind by an error
    after it, the 37th behind that by a death. Of the reads every 500th is cut: neighbours fail into the same state.
    """
    reads = [n for n, name in enumerate(trace, 1) if name.startswith(READS)]
    writes = [n for n, name in enumerate(trace, 1) if not name.startswith(READS)]
    match how, when:
        case "error", "before":
            return sorted([*writes, *reads] if FULL else [*writes[::110], *reads[::500]])
        case "death", "before":
            return writes[:1]
        case "error", "after":
            return writes if FULL else writes[37::110] or writes[:1]
        case _:
            return writes if FULL else writes[74::110] or writes[-1:]


def finish(world: World, receiver: Receiver) -> None:
    """The clock goes on until nothing is open but what the chain has still to confirm; then everything must be right."""
    world.settle_payouts()
    world.check()
    told_once(world, receiver)


ORDERS: tuple[Order, ...] = ("reversed", "twice", "late")


# A check takes each order once, and each path; the sweep takes all.
@pytest.mark.parametrize(
    ("path", "order"),
    [
        pytest.param(path, order, marks=() if turn == n % 3 else pytest.mark.sweep)
        for n, path in enumerate(sorted(PATHS))
        for turn, order in enumerate(ORDERS)
    ],
)
def test_messages_may_come_twice_late_and_out_of_order(
    path: str, order: Order, stack: Stack, cutter: Cutter, receiver: Receiver, starts: dict[Step, Begun]
) -> None:
    world = started(stack, cutter, receiver, path, starts, order)
    for step in PATHS[path]:
        step(world)
        finish(world, receiver)
