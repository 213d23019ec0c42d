"""Records with a compressed field come back as they were, whether or not a stage packs them now."""

from __future__ import annotations

from dataclasses import replace

import boto3
import pytest

from chalicelib.domain.webhooks.endpoints import EventRecord, event_record
from chalicelib.domain.work import Command, OutboxRow
from chalicelib.settings import Settings
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.ports.changes import Emit, Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.support.webhooks import SHOP, a_listener, a_row, an_event

LONG = {"id": "inv_1", "amount": "0.5", "payments": [{"hash": "0x" + "ab" * 32, "amount": "0.25"}] * 6, "text": "ü\u2028"}
RECORD = event_record(an_event(data=LONG), "2026-01-02T03:04:05.006Z", 1_767_323_045_006)
ROW = a_row(an_event(data=LONG), an_event("evt_2"), commands=(Command("payouts", "g", {"id": "wd_1"}),))


def store(packed: bool) -> DynamoStore:
    wired = services()
    return DynamoStore(replace(wired.settings, packed_records=packed), wired.region)


def stored(table: str) -> list[dict[str, object]]:
    found = boto3.client("dynamodb").scan(TableName=services().settings.table(table))["Items"]
    return [item for item in found if "packed" in item or "body" in item or "events" in item]


@pytest.mark.parametrize("packed", [False, True])
def test_they_come_back_as_they_were_to_either(aws: LocalAws, packed: bool) -> None:
    writer = store(packed)
    writer.commit([Save(RECORD)])
    writer.commit([Save(a_listener()), Emit(ROW)])
    assert [("packed" in item, "body" in item) for item in stored("events")] == [(packed, not packed)]
    assert [("packed" in item, "events" in item) for item in stored("work")] == [(packed, not packed)]
    for reader in (store(False), store(True)):
        assert reader.get(EventRecord, tenant=SHOP, id=RECORD.id) == RECORD
        assert reader.get(OutboxRow, id=ROW.id) == ROW
        assert reader.get_many([(OutboxRow, {"id": ROW.id}), (EventRecord, {"tenant": SHOP, "id": RECORD.id})]) == [ROW, RECORD]
        assert list(reader.every(EventRecord)) == [RECORD] and list(reader.every(OutboxRow)) == [ROW]
        assert reader.page(EventRecord, limit=10, tenant=SHOP).items == [RECORD]


def test_a_packed_row_is_told_and_its_events_are_sent_as_they_were(aws: LocalAws) -> None:
    packing = store(True)
    packing.commit([Save(a_listener()), Emit(ROW)])
    assert services().relay.tell(ROW.id)
    found = services().store.get(EventRecord, tenant=SHOP, id="evt_1")
    assert found is not None and found.body == RECORD.body
    assert [violation for violation in audit(services().store) if "outbox" in violation] == []


def test_events_are_put_in_a_batch_as_they_are_saved(aws: LocalAws) -> None:
    store(True).put_all([RECORD])
    (one,) = stored("events")
    store(True).commit([Save(replace(RECORD, id="evt_3"))])
    (other,) = [item for item in stored("events") if item["id"] == {"S": "evt_3"}]
    assert one["packed"] == other["packed"] and one.keys() == other.keys()


def test_real_money_is_not_stored_so_unless_the_settings_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage, said, wanted in (("prod", None, False), ("prod", "on", True), ("demo", None, True), ("local", "off", False)):
        monkeypatch.setenv("STAGE", stage)
        for name in ("PACKED_RECORDS", "SHORT_RECORDS", "WEBHOOKS_ALLOW_PRIVATE"):
            monkeypatch.delenv(name, raising=False)
        if said is not None:
            monkeypatch.setenv("PACKED_RECORDS", said)
            monkeypatch.setenv("SHORT_RECORDS", said)
        found = Settings.from_environment()
        assert (found.packed_records, found.short_records) == (wanted, wanted)
