"""A version and the one that comes after it work side by side, over the same tables and queues: whatever the later one added stays,
the books are whole for both, and everything is credited and paid exactly once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from tests.support import versions
from tests.support.cuts import WAYS, Cutter, How, When, install
from tests.support.paths import BEFORE, PATHS
from tests.support.receiver import Receiver
from tests.support.stack import Stack
from tests.support.versions import BothVersions, Version, copy_of_next
from tests.support.world import World


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """The version that comes after this one."""
    root = tmp_path_factory.mktemp("next")
    copy_of_next(root)
    return Version(root)


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def items(stack: Stack) -> dict[tuple[str, str, str], dict[str, Any]]:
    """All items of the tables that the next version adds to, by table and key."""
    client = boto3.client("dynamodb", region_name="eu-central-1")
    found = {}
    for name in map(stack.aws.settings.table, ("records", "work")):
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
        self.reborn()

    def run(self) -> None:
        super().run()
        self.watched.look(self.stack)

    def reborn(self) -> None:
        super().reborn()
        self.both.after.forget()

    def open_work(self) -> list[Any]:
        return [work for work in super().open_work() if work.kind != versions.ECHO]


MIXED = "mixed"
ROLLED_BACK = "rolled back"
SEEDS = 6
EACH = 40
"""One in so many calls is cut."""


def cases() -> list[Any]:
    """Each path with a rollback half way, and two with functions of both versions all the way; more of these in the sweep."""
    checked = {(path, ROLLED_BACK, 0) for path in PATHS} | {("withdrawal", MIXED, 0), ("choices", MIXED, 0)}
    every = [
        (path, way, seed) for path in sorted(PATHS) for way in (ROLLED_BACK, MIXED) for seed in range(SEEDS if way == MIXED else 1)
    ]
    return [pytest.param(*case, marks=() if case in checked else pytest.mark.sweep, id="-".join(map(str, case))) for case in every]


def go(world: Beside, path: str, way: str, receiver: Receiver) -> None:
    """A whole path; behind each step the books are whole for both versions, and nothing of what was added is gone."""
    receiver.received.clear()
    world.stack.call("POST", "/v1/webhooks", world.key, json={"url": receiver.url(), "events": ["*"]})
    steps = (BEFORE[path], *PATHS[path])
    for n, step in enumerate(steps):
        world.both.share = 0.5 if way == MIXED else float(n < len(steps) / 2)
        step(world)
        world.settle_payouts()
        world.check()
        assert world.both.after.audit() == []
        world.watched.look(world.stack)
    kept = {event["id"] for event in world.get("/v1/events", limit="100")["data"]}
    assert {json.loads(request.body)["id"] for request in receiver.received} >= kept


@pytest.mark.slow
@pytest.mark.parametrize(("path", "way", "seed"), cases())
def test_versions_work_side_by_side(path: str, way: str, seed: int, stack: Stack, receiver: Receiver, after: Version) -> None:
    world = Beside(BothVersions(stack, after, random.Random(f"{path} {seed}")), Cutter())
    go(world, path, way, receiver)
    assert min(world.both.calls.values()) > 10
    assert world.watched.touches or way == MIXED
    assert world.watched.members or (path, way) != ("deposit", ROLLED_BACK)
    assert any(place[1].startswith("note#") for place in world.watched.others)


@pytest.mark.sweep
@pytest.mark.parametrize(("how", "when"), WAYS)
@pytest.mark.parametrize("path", sorted(PATHS))
def test_any_call_of_either_may_fail(
    path: str, how: How, when: When, stack: Stack, receiver: Receiver, after: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutter = Cutter()
    install(cutter, monkeypatch)
    at = 1 + WAYS.index((how, when))
    while True:
        stack.reset()
        cutter.set(at, how, when)
        go(Beside(BothVersions(stack, after, random.Random(at)), cutter), path, MIXED, receiver)
        if not cutter.fired:
            break
        at += EACH
    assert at > 5 * EACH
