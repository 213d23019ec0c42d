"""A version and the one that comes after it work side by side, over the same tables and queues: whatever the later one added stays,
the books are whole for both, and everything is credited and paid exactly once.
"""

from __future__ import annotations

import importlib
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.work import OutboxRow
from chalicelib.store.unheard import FEW_EVENTS
from chalicelib.wiring import services
from tests.support import versions
from tests.support.archive import AFTER_DAYS
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.paths import CONFIRMATIONS, ETHER
from tests.support.receiver import Receiver
from tests.support.side_by_side import ALL_PATHS, MIXED, ROLLED_BACK, SPLITS, UPGRADED, Beside, Cut, cut_in_turn, go, go_cut, items
from tests.support.stack import Stack
from tests.support.version_paths import read_by_next
from tests.support.versions import BothVersions, Version, bring_indexes, copy_of_next, template_of_next
from tests.support.world import NETWORK


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


SEEDS = 6
EACH = 8
"""One in so many calls is cut in each way: half of them in one way or another."""
CHECKED = {
    ("deposit", ROLLED_BACK, 0), ("withdrawal", MIXED, 0), ("withdrawal", UPGRADED, 0), ("withdrawal", "payout of the next", 0),
    ("deposit", "requests of the next", 0), ("deposit", "requests of this", 0), ("refund", ROLLED_BACK, 0),
    ("collection", UPGRADED, 0), ("archive", ROLLED_BACK, 0),
}  # fmt: skip
"""What each check plays; the rest is of the sweep."""


def cases() -> list[Any]:
    """Each path with each way of standing side by side."""
    ways = (ROLLED_BACK, UPGRADED, *SPLITS)
    every = [(path, way, 0) for path in sorted(ALL_PATHS) for way in ways]
    every += [(path, MIXED, seed) for path in sorted(ALL_PATHS) for seed in range(SEEDS)]
    return [pytest.param(*case, marks=() if case in CHECKED else pytest.mark.sweep, id="-".join(map(str, case))) for case in every]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "way", "seed"), cases())
def test_versions_work_side_by_side(
    path: str, way: str, seed: int, stack: Stack, receiver: Receiver, after: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "archive":
        monkeypatch.setenv("ARCHIVE_AFTER_DAYS", str(AFTER_DAYS))
    world = Beside(BothVersions(stack, after, random.Random(f"{path} {seed}")), Cutter())
    go(world, path, way, receiver)
    least = 5 if way not in SPLITS else 0 if way.startswith("payout") and path not in ("withdrawal", "refund", "collection") else 1
    assert min(world.both.calls.values()) >= least
    assert world.watched.touches or (way != ROLLED_BACK and (path, way) != ("withdrawal", UPGRADED))
    assert world.watched.members or (path, way) != ("deposit", ROLLED_BACK)
    if path == "archive" and world.both.adds:
        kept = read_by_next(after, world)
        assert kept.payments[0].said_by == "next" or way == MIXED
        assert kept.touches > 0 or way == MIXED
    noted = any(place[1].startswith("note#") for place in world.watched.others)
    assert noted or way not in (ROLLED_BACK, MIXED, "requests of the next")
    assert world.left or (path, way) != ("withdrawal", "payout of the next")
    # A relay of this version says what the next one said of an event.
    said = {json.loads(request.body).get(versions.SAID) for request in receiver.received}
    assert "next" in said or way in SPLITS or way == UPGRADED
    assert "next" in said or (path, way) not in (("deposit", "requests of the next"), ("withdrawal", UPGRADED))


EARLY: tuple[Cut, ...] = (
    Cut("refund", "death", "after", 27, "TransactWriteItems"), Cut("refund", "error", "after", 33, "TransactWriteItems"),
    Cut("collection", "death", "after", 1, "Sign"), Cut("collection", "death", "after", 2, "DeleteItem"),
    Cut("archive", "death", "after", 1, "PutObject"), Cut("archive", "error", "before", 1, "GetObject"),
)  # fmt: skip
"""What each check cuts: a refund, a top-up, a sweep, a payment's archiving. The sweep cuts one call in `EACH` in each way, others
in each run."""


@pytest.fixture
def broken(stack: Stack, receiver: Receiver, after: Version, monkeypatch: pytest.MonkeyPatch) -> Callable[[Cut], bool]:
    """As `go_cut`."""
    monkeypatch.setenv("ARCHIVE_AFTER_DAYS", str(AFTER_DAYS))
    cutter = Cutter()
    install(cutter, monkeypatch)
    return lambda cut: go_cut(cut, stack, after, cutter, receiver)


@pytest.mark.slow
@pytest.mark.parametrize("cut", EARLY, ids=lambda cut: "-".join(map(str, cut)))
def test_a_call_of_either_may_fail(broken: Callable[[Cut], bool], cut: Cut) -> None:
    assert broken(cut), "the call never came"


@pytest.mark.sweep
@pytest.mark.parametrize(("how", "when"), WAYS)
@pytest.mark.parametrize("path", sorted(ALL_PATHS))
def test_any_call_of_either_may_fail(
    broken: Callable[[Cut], bool],
    record_property: Callable[[str, object], None],
    testrun_uid: str,
    path: str,
    how: How,
    when: When,
) -> None:
    """One call in `EACH` in each way, of the ways each another, and others in each run."""
    cuts = cut_in_turn(path, (how, when), EACH, testrun_uid, broken)
    record_property("cut_points", cuts)
    assert cuts > 30 or os.environ.get("CUT_AT")


def test_the_ways_share_calls_out_and_each_run_cuts_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call is left out in every run."""

    def chosen(run: str, way: tuple[How, When]) -> set[int]:
        found: list[int] = []

        def cut(one: Cut) -> bool:
            found.append(one.at)
            return one.at < 2 * EACH

        cuts = cut_in_turn("deposit", way, EACH, run, cut)
        assert cuts == len(found) - 1
        return {at for at in found if at <= 2 * EACH}

    calls = range(1, 2 * EACH + 1)
    runs = [{way: chosen(str(n), way) for way in WAYS} for n in range(100)]
    for ways in runs:
        assert {len(ats) for ats in ways.values()} == {2}
        assert len(set().union(*ways.values())) == len(calls) * len(WAYS) // EACH
    for way in WAYS:
        assert set().union(*(ways[way] for ways in runs)) == set(calls)
    monkeypatch.setenv("CUT_AT", "5")
    alone: list[Cut] = []
    assert cut_in_turn("deposit", WAYS[0], EACH, "", lambda one: alone.append(one) is None) == 1
    assert alone == [Cut("deposit", *WAYS[0], 5)]


@pytest.mark.parametrize("first", ["next", "this"])
def test_an_event_that_both_store_is_the_same(
    first: str, stack: Stack, receiver: Receiver, after: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay of one version dies behind the events of a large outbox row, and the other's stores them over: nothing but the end
    of their keeping is another."""
    cutter = Cutter()
    install(cutter, monkeypatch)
    world = Beside(BothVersions(stack, after, random.Random(1)), cutter)
    world.stack.call("POST", "/v1/webhooks", world.key, json={"url": receiver.url(), "events": ["*"]})
    world.request("POST", "/v1/invoices", {"currency": "eth", "amount": "1", "network": NETWORK}, "invoice")
    world.run()
    (invoice,) = services().store.every(Invoice)
    with after.active():
        news = importlib.import_module("chalicelib.usecases.base.outbox").News(services().clock.now_ms())
        for n in range(FEW_EVENTS + 1):
            news.tell(invoice.tenant, "invoice.partial", invoice.id, 100 + n, {"id": invoice.id})
        importlib.import_module("chalicelib.wiring").services().store.commit(news.emit())
    (row,) = services().store.every(OutboxRow)
    assert not row.apart

    def told() -> dict[str, Any]:
        found = items(stack, "events")
        return {id: {**item, "ttl": None} for (_, _, id), item in found.items() if id in {event.id for event in row.events}}

    world.both.split = lambda name: (name == "relay") == (first == "next")
    cutter.set(1, "death", "after", "BatchWriteItem")
    with pytest.raises(Died), cutter.arm():
        world.stack.drain(only=("relay",), failures="count", hurry=True)
    world.reborn()
    before = told()
    assert before.keys() == {event.id for event in row.events}
    bodies = [json.loads(event.body) for event in services().store.every(EventRecord) if event.id in before]
    assert [body[versions.SAID] for body in bodies] == ["next"] * len(row.events)
    world.both.split = lambda name: (name == "relay") == (first == "this")
    cutter.set(0, "death", "after")
    world.later()
    world.stack.drain(only=("relay", "housekeeping"), failures="count", hurry=True)
    assert services().store.get(OutboxRow, id=row.id) is None
    assert told() == before


def test_an_index_comes_and_goes_while_both_write(stack: Stack, after: Version) -> None:
    """The next version's template adds it before its functions come; a rollback removes it behind them. What this version stores
    over an invoice leaves it in the index."""
    world = Beside(BothVersions(stack, after, random.Random(1)), Cutter())
    stage, table = stack.aws.settings.stage, stack.aws.settings.table("records")
    client = boto3.client("dynamodb")

    def in_index() -> set[str]:
        asked = {"KeyConditionExpression": "#l = :l", "ExpressionAttributeNames": {"#l": versions.LATER}}
        values = {":l": {"S": "later"}}
        found = client.query(TableName=table, IndexName=versions.INDEX, ExpressionAttributeValues=values, **asked)
        return {item["sk"]["S"] for item in found["Items"]}

    assert bring_indexes(template_of_next(), stage) == 1
    assert bring_indexes(template_of_next(), stage) == 0
    try:
        made = {}
        for n, way in enumerate(("requests of the next", "requests of this")):
            world.both.split = SPLITS[way]
            body = {"currency": "eth", "amount": "1", "network": NETWORK}
            made[way] = world.request("POST", "/v1/invoices", body, str(n)).json
            assert in_index() == {made["requests of the next"]["id"]}
        world.both.split = lambda name: False  # this version's functions see the payments
        for each in made.values():
            world.pay_in(each["address"], "eth", ETHER)
        world.mine(CONFIRMATIONS)
        world.run()
        world.run()
        assert {world.get("/v1/invoices", id=each["id"])["status"] for each in made.values()} == {"completed"}
        assert in_index() == {made["requests of the next"]["id"]}
    finally:
        text = (versions.ROOT / "infra" / "template.yaml").read_text(encoding="utf-8")
        assert bring_indexes(text, stage) == 1
    assert client.describe_table(TableName=table)["Table"]["AttributeDefinitions"] != []
    with pytest.raises(client.exceptions.ClientError):
        in_index()
    world.check()
    assert after.audit() == []
    assert world.request("POST", "/v1/invoices", {"currency": "eth", "amount": "1", "network": NETWORK}, "3").status == 201
