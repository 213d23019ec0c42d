"""Two versions side by side on paths of money: how functions are divided between them, and what has to hold behind each step."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import boto3

from chalicelib.domain.versions import newer_state
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.wiring import services
from tests.support import versions
from tests.support.cuts import WAYS, Cutter, Died, How, When
from tests.support.paths import BEFORE, PATHS
from tests.support.receiver import Receiver
from tests.support.stack import Stack
from tests.support.version_paths import COLLECTING, MORE_BEFORE, MORE_PATHS
from tests.support.versions import BothVersions, Version
from tests.support.world import World


def items(stack: Stack, *tables: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """All items of these tables, or of those that the next version adds to, by table and key."""
    client = boto3.client("dynamodb", region_name="eu-central-1")
    found = {}
    for name in map(stack.aws.settings.table, tables or ("records", "work")):
        for page in client.get_paginator("scan").paginate(TableName=name):
            found |= {(name, item["pk"]["S"], item.get("sk", {}).get("S", "")): item for item in page["Items"]}
    return found


class Watched:
    """What the next version has added so far: none of it may go, or go back."""

    def __init__(self) -> None:
        self.touches: dict[Any, int] = {}
        self.members: set[tuple[Any, str]] = set()
        self.others: set[Any] = set()

    def look(self, stack: Stack) -> None:
        there = items(stack)
        assert self.others <= set(there)
        for place, before in self.touches.items():
            if "archive" in there[place]:  # a stub: the whole record is in the archive
                continue
            assert int(there[place].get(versions.TOUCHES, {"N": "0"})["N"]) >= before, f"{place} has lost what was counted"
        for place, item in there.items():
            if versions.TOUCHES in item:
                self.touches[place] = int(item[versions.TOUCHES]["N"])
            for name, has_it in added_members(item):
                assert has_it or (place, name) not in self.members, f"{name} of {place} has lost a member: {item}"
                if has_it:
                    self.members.add((place, name))
            if place[1].startswith("note#") or item.get("work_kind") == {"S": versions.ECHO} or versions.LATER in item:
                self.others.add(place)


def added_members(item: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The nested values of an invoice that the next version adds a member to, and whether each has it."""
    if not item["pk"]["S"].startswith("inv#"):
        return
    if "terms" in item:
        yield "terms", versions.REMARK in json.loads(item["terms"]["S"])
    for payment in json.loads(item.get("payments", {"S": "[]"})["S"]):
        yield payment["deposit"], versions.SAID_BY in payment


class Beside(World):
    """A world that looks at what was added behind everything that happens."""

    def __init__(self, both: BothVersions, cutter: Cutter) -> None:
        super().__init__(both, cutter)
        self.both, self.watched = both, Watched()
        self.left = 0
        """How often a withdrawal was in the next version's status while only this version was asked to pay it."""
        self.reborn()

    def run(self) -> None:
        super().run()
        self.watched.look(self.stack)

    def reborn(self) -> None:
        super().reborn()
        self.both.after.forget()

    def settle_payouts(self) -> None:
        """Where a withdrawal stays in the next version's status, since the functions that take it on are of this one, the deploy is
        done for it."""
        super().settle_payouts()
        checking = self.checking()
        if not checking:
            return
        self.left += len(checking)
        super().settle_payouts()
        assert self.checking() == checking or self.both.split is None, "this version leaves it as it is"
        with self.both.deployed():
            super().settle_payouts()
        assert self.checking() == {}

    def stuck(self) -> list[Any]:
        """But collections and their moves, which wait for blocks; the path's end says that none is left."""
        return [work for work in super().stuck() if work.kind not in COLLECTING]

    def checking(self) -> dict[str, int]:
        """The version of each withdrawal in the next version's status, by its id."""
        return {one.id: one.version for one in services().store.every(Withdrawal) if newer_state(one) == versions.CHECKING}

    def open_work(self) -> list[Any]:
        return [work for work in super().open_work() if work.kind != versions.ECHO]


MIXED, ROLLED_BACK, UPGRADED = "mixed", "rolled back", "upgraded"
SPLITS: dict[str, Callable[[str], bool]] = {
    "requests of the next": lambda name: name == versions.API,
    "requests of this": lambda name: name != versions.API,
    "payout of the next": lambda name: name == "payout",
    "payout of this": lambda name: name != "payout",
    "events of the next": lambda name: name in ("relay", "deliver", "deliver_slow"),
    "events of this": lambda name: name not in ("relay", "deliver", "deliver_slow"),
    "polls of the next": lambda name: name.startswith("poll_"),
    "polls of this": lambda name: not name.startswith("poll_"),
    "housekeeping of the next": lambda name: name == "housekeeping",
    "housekeeping of this": lambda name: name != "housekeeping",
}
"""Which functions are the next version's, as a deploy that replaces one after the other may stand."""
ALL_PATHS, ALL_BEFORE = PATHS | MORE_PATHS, BEFORE | MORE_BEFORE


def stand(both: BothVersions, way: str, done: float) -> None:
    """The functions are as the way says at this part of a path, 0 to 1."""
    both.adds = way in (MIXED, ROLLED_BACK)
    both.split = SPLITS.get(way)
    both.share = {MIXED: 0.5, ROLLED_BACK: float(done < 0.5), UPGRADED: float(done >= 0.5)}.get(way, 0.0)


def go(world: Beside, path: str, way: str, receiver: Receiver) -> None:
    """A whole path; behind each step the books are whole for both versions, and nothing of what was added is gone."""
    receiver.received.clear()
    stand(world.both, way, 0.0)
    world.stack.call("POST", "/v1/webhooks", world.key, json={"url": receiver.url(), "events": ["*"]})
    steps = (ALL_BEFORE[path], *ALL_PATHS[path])
    for n, step in enumerate(steps):
        stand(world.both, way, n / len(steps))
        step(world)
        world.settle_payouts()
        world.check()
        assert world.both.after.audit() == []
        world.watched.look(world.stack)
    made = {event.id: json.loads(event.body) for event in services().store.every(EventRecord)}
    sent = {told["id"]: told for told in (json.loads(request.body) for request in receiver.received)}
    assert {id: told for id, told in sent.items() if id in made} == made


class Cut(NamedTuple):
    """What is cut of a path, and how: call number `at`, of all or `of` one name. Who takes which turn is drawn by it."""

    path: str
    how: How
    when: When
    at: int
    of: str = ""


def go_cut(cut: Cut, stack: Stack, after: Version, cutter: Cutter, receiver: Receiver) -> bool:
    """Go a path from the stack's start with a cut in it; whether the call came. Raises AssertionError where something is lost. What
    it raises names the call, and says how to play it again."""
    stack.reset()
    cutter.set(cut.at, cut.how, cut.when, cut.of)
    try:
        go(Beside(BothVersions(stack, after, random.Random(str(cut))), cutter), cut.path, MIXED, receiver)
    except (Exception, Died) as error:
        name = cutter.trace[cut.at - 1] if len(cutter.trace) >= cut.at else "nothing"
        again = "" if cut.of else f"; CUT_AT={cut.at} cuts it alone"
        error.add_note(f"{cut} ({cut.of or name}){again}")
        raise
    return cutter.fired


def first_cut(run: str, path: str, way: tuple[How, When], each: int) -> int:
    """The number of the first call that is cut so where one in `each` is. In a `run` of the tests the ways share the calls of a
    path out among them: what one way cuts no other does; in the next run each cuts others."""
    drawn = random.Random(f"{run} {path}").randrange(each)
    return 1 + (drawn + WAYS.index(way) * each // len(WAYS)) % each


def cut_in_turn(path: str, way: tuple[How, When], each: int, run: str, cut: Callable[[Cut], bool]) -> int:
    """Cut one call in `each` of a path, from `first_cut` on, or the one that `CUT_AT` in the environment names; how many came."""
    if alone := os.environ.get("CUT_AT"):
        assert cut(Cut(path, *way, int(alone))), f"call {alone} never came"
        return 1
    at = first = first_cut(run, path, way, each)
    while cut(Cut(path, *way, at)):
        at += each
    return (at - first) // each
