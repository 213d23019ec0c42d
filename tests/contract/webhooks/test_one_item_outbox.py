"""An outbox row that is one item: told as one of two items is, by whoever can read it, and lost by nobody who can not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from unittest.mock import patch

import boto3
import pytest

from chalicelib.domain.ids import NetworkId, new_id
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.work import (
    LANES,
    Command,
    OutboxRow,
    Work,
    as_one_item,
    outbox_id,
    outbox_work,
    time_order,
    with_events_apart,
)
from chalicelib.settings import Settings
from chalicelib.store import unheard
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.ports.changes import Close, Conflict, Emit, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.webhooks.relay import Relay, Swept
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.support.memory_store import Cuts
from tests.support.webhooks import NOW, a_listener, a_row, an_endpoint, an_event

PAY = Command("payouts", "live:ethereum", {"id": "wd_1"})


def store(one: bool) -> DynamoStore:
    wired = services()
    return DynamoStore(replace(wired.settings, one_item_outbox=one), wired.region)


def a_true_row(*names: str, at: int = NOW, commands: tuple[Command, ...] = ()) -> OutboxRow:
    """A row as `News` makes them."""
    events = tuple(replace(an_event(new_id("evt", at), name, at=at), sequence=n) for n, name in enumerate(names, start=1))
    return a_row(*events, id=outbox_id(new_id("out", at), events), at=at, commands=commands)


def items() -> list[str]:
    """Partition keys of the table."""
    found = boto3.client("dynamodb").scan(TableName=services().settings.table("work"))["Items"]
    return sorted(item["pk"]["S"] for item in found)


def test_a_row_is_one_item_or_two_and_either_is_found_by_everybody(aws: LocalAws) -> None:
    services().store.commit([Save(a_listener())])
    for one in (False, True):
        row = a_true_row("invoice.created", at=NOW + one)
        store(one).commit([Emit(row)])
        stored = with_events_apart(as_one_item(row)) if one else row
        for reader in (store(False), store(True)):
            assert reader.get(OutboxRow, id=stored.id) == stored
            assert reader.get_many([(OutboxRow, {"id": stored.id})]) == [stored]
            assert stored in list(reader.every(OutboxRow)) and outbox_work(stored) in set(reader.every_work())
    lane = outbox_work(row).lane
    assert items() == sorted([f"outbox#{lane}", f"outrow#{lane}", f"row#{items()[-1].partition('#')[2]}"])
    assert [work.order for work in store(True).open_work("outbox", lane)] == [time_order(NOW), time_order(NOW + 1)]
    (first, second) = store(False).open_work("outbox", lane)
    assert store(True).open_work("outbox", lane, limit=1) == store(True).open_work("outbox", lane, upto=time_order(NOW)) == [first]
    assert store(True).open_work("outbox", lane, after=first) == [second]
    assert [violation for violation in audit(services().store) if "outbox" in violation] == []


def test_it_is_told_and_gone_with_one_call_less(aws: LocalAws) -> None:
    wired = services()
    row = a_true_row("invoice.created", "invoice.completed", commands=(PAY,))
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    store(True).commit([Emit(row)])
    told = as_one_item(row)
    with patch.object(DynamoStore, "close", side_effect=AssertionError("there is no second item")):
        assert wired.relay.tell(told.id) and not wired.relay.tell(told.id)
    assert not [key for key in items() if key.startswith(("outbox", "outrow", "row"))]
    assert {record.name for record in wired.store.every(EventRecord)} == {"invoice.created", "invoice.completed"}
    assert [work.kind for work in wired.store.every_work()].count("delivery") == 2, "two events of one object"


def test_the_sweep_finds_it_and_a_repeated_commit_is_refused(aws: LocalAws) -> None:
    wired = services()
    row = a_true_row("invoice.created")
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    store(True).commit([Emit(row)])
    with pytest.raises(Conflict):
        store(True).commit([Emit(row)])
    assert wired.relay.sweep() == Swept(told=1, failed=0)
    assert not list(wired.store.every(OutboxRow))
    assert {work.kind for work in wired.store.every_work()} == {"delivery", "lookout"}


def test_a_version_that_does_not_know_it_leaves_it_to_those_that_do(aws: LocalAws) -> None:
    """Such a version asks for the row at the place of one of two items, finds none, takes it for told, and closes what it finds
    open in the lanes that it knows."""
    wired = services()
    row = as_one_item(a_true_row("invoice.created"))
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    store(True).commit([Emit(row)])
    client, table = boto3.client("dynamodb"), wired.settings.table("work")
    assert "Item" not in client.get_item(TableName=table, Key={"pk": {"S": f"row#{row.id}"}, "sk": {"S": "-"}})
    for lane in map(str, range(LANES)):
        asked = {":p": {"S": f"outbox#{lane}"}}
        assert client.query(TableName=table, KeyConditionExpression="pk = :p", ExpressionAttributeValues=asked)["Items"] == []
    assert wired.relay.sweep() == Swept(told=1, failed=0)
    assert [record.name for record in wired.store.every(EventRecord)] == ["invoice.created"]


def test_a_later_row_of_two_items_is_told_behind_an_earlier_one_of_one_item(aws: LocalAws) -> None:
    wired = services()
    now = wired.clock.now_ms()
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    for writers in ((True, False), (False, True)):
        first, second = a_true_row("invoice.created", at=now - 9_000), a_true_row("invoice.completed", at=now - 8_000)
        second = replace(second, events=tuple(replace(event, sequence=2) for event in second.events))
        rows = [as_one_item(row) if one else row for row, one in zip((first, second), writers, strict=True)]
        for row, one in zip(rows, writers, strict=True):
            store(one).commit([Emit(row)])
        assert Relay(wired.store, wired.queues, wired.clock).tell(rows[1].id)
        assert not list(wired.store.every(OutboxRow)), "the earlier one was told with it"


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_it_is_told_once(aws: LocalAws, after: bool) -> None:
    wired = services()
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    cut = 0
    while True:
        cut += 1
        row = as_one_item(a_true_row("invoice.created", at=NOW + cut))
        store(True).commit([Emit(row)])
        cuts = Cuts(cut, after=after)
        faulty = Relay(cuts.around(wired.store), cuts.around(wired.queues), wired.clock)
        for act in (partial(faulty.tell, row.id), faulty.sweep, faulty.sweep):
            try:
                act()
            except Unavailable:
                continue
        assert not list(wired.store.every(OutboxRow)), f"cut {cut}"
        assert len(list(wired.store.every(EventRecord))) == cut
        assert [work.kind for work in wired.store.every_work() if work.kind != "lookout"] == ["delivery"] * cut
        if cuts.calls < cut:
            break
    assert cut > 8


def test_notices_and_rows_whose_ids_tell_no_time_stay_two_items(aws: LocalAws) -> None:
    """What sends webhooks may write rows of notices, and none of those that tell of payments."""
    note = replace(a_true_row("webhook.failing"), id=new_id("note", NOW))
    services().store.commit([Save(a_listener())])
    odd = a_row(an_event("evt_2"), id="out_1")
    late = replace(a_true_row("invoice.created"), at=NOW + 1)
    for row in (note, odd, late):
        assert as_one_item(row) is row
        store(True).commit([Emit(row)])
        assert store(True).get(OutboxRow, id=row.id) == row
    assert [key for key in items() if key.startswith("outrow")] == []


def test_work_with_an_id_that_nobody_made_holds_up_nothing(aws: LocalAws) -> None:
    """What sends webhooks may write work of the outbox: it is not to stop what others tell."""
    wired = services()
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    now = wired.clock.now_ms()
    row = a_true_row("invoice.created", "invoice.completed", at=now - 1_000)
    row = replace(row, events=tuple(replace(event, sequence=event.sequence + 1) for event in row.events))
    store(True).commit([Emit(row)])
    tags = row.id.partition("-")[2]
    for id in (f"row_!-{tags}", f"row_-{tags}", f"row_zzzz-{tags}"):
        wired.store.commit([Open(Work("outbox", outbox_work(row).lane, time_order(now - 2_000), id))])
    assert wired.relay.tell(as_one_item(row).id)
    assert not list(wired.store.every(OutboxRow))


def test_closing_what_is_left_of_it_removes_it_alone(aws: LocalAws) -> None:
    services().store.commit([Save(a_listener())])
    row = as_one_item(a_true_row("invoice.created"))
    other = as_one_item(a_true_row("invoice.created"))
    for each in (row, other):
        store(True).commit([Emit(each)])
    store(True).commit([Close(outbox_work(row))])
    assert list(store(True).every(OutboxRow)) == [with_events_apart(other)]
    assert not store(True).remove(OutboxRow, id=row.id) and store(True).remove(OutboxRow, id=other.id)


def test_its_hint_becomes_open_work(aws: LocalAws) -> None:
    hint = Command("collectable", NetworkId("test:ethereum"), {"id": "0xabc#test:ethereum:eth"})
    row = replace(a_true_row("invoice.created"), commands=(hint,))
    services().store.commit([Save(a_listener())])
    store(True).commit([Emit(row)])
    assert services().relay.tell(as_one_item(row).id)
    assert {work.kind for work in services().store.every_work()} == {"collectable"}


def test_real_money_is_not_told_so_unless_the_settings_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage, said, wanted in (("prod", None, False), ("prod", "on", True), ("demo", None, True), ("local", "off", False)):
        monkeypatch.setenv("STAGE", stage)
        for name in ("ONE_ITEM_OUTBOX", "WEBHOOKS_ALLOW_PRIVATE"):
            monkeypatch.delenv(name, raising=False)
        if said is not None:
            monkeypatch.setenv("ONE_ITEM_OUTBOX", said)
        assert Settings.from_environment().one_item_outbox is wanted


def test_its_events_lie_beside_it_and_the_relay_stores_none(aws: LocalAws) -> None:
    wired = services()
    row = a_true_row("invoice.created", "invoice.completed")
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    store(True).commit([Emit(row)])
    beside = sorted(wired.store.every(EventRecord), key=lambda event: (event.at, event.sequence))
    assert [(event.name, event.sequence) for event in beside] == [("invoice.created", 1), ("invoice.completed", 2)]
    with patch.object(DynamoStore, "put_all", side_effect=AssertionError("they are there")):
        assert wired.relay.tell(as_one_item(row).id)
    store(False).commit([Emit(two := a_true_row("invoice.created", "invoice.completed", at=NOW + 1))])
    assert wired.relay.tell(two.id)
    there = sorted(wired.store.every(EventRecord), key=lambda event: (event.at, event.sequence))
    assert there[:2] == beside and [event.body.replace(two.events[n].id, beside[n].id) for n, event in enumerate(there[2:])] == [
        event.body.replace(".006Z", ".007Z") for event in beside
    ]


def test_a_commit_with_no_room_for_its_events_leaves_them_to_the_relay(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does a version that does not know that they may lie beside it."""
    wired = services()
    row = a_true_row("invoice.created", "invoice.completed")
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    monkeypatch.setattr(unheard, "MOST_DIRECT", 2)
    store(True).commit([Emit(row)])
    assert list(wired.store.every(OutboxRow)) == [as_one_item(row)] and not list(wired.store.every(EventRecord))
    assert wired.relay.tell(as_one_item(row).id)
    assert len(list(wired.store.every(EventRecord))) == 2


def test_a_refused_commit_leaves_no_event(aws: LocalAws) -> None:
    wired = services()
    work = Work("deposit", "test:ethereum", "1", "dep_1")
    wired.store.commit([Save(a_listener()), Open(work)])
    with pytest.raises(Conflict) as caught:
        store(True).commit([Open(work), Emit(a_true_row("invoice.created"))])
    assert caught.value.change == Open(work)
    assert not list(wired.store.every(EventRecord)) and not list(wired.store.every(OutboxRow))
