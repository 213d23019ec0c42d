"""Webhooks on the real store, the real queues and a real receiver: from a request at the API to signed bytes at the merchant."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from standardwebhooks import Webhook

from chalicelib.domain.ids import MerchantId, TenantId, tenant_id
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, delivery_work, line_of
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint, event_record
from chalicelib.domain.webhooks.leases import BATCH, Turn
from chalicelib.domain.work import LANES, Command, OutboxRow, Work, as_one_item, outbox_work, time_order
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Close, Conflict, Emit, Open, Save
from chalicelib.usecases.webhooks.due_search_time import GRACE_MS, KNOWN_MS
from chalicelib.usecases.webhooks.late_deliveries import LateLines
from chalicelib.usecases.webhooks.leases import in_threads
from chalicelib.usecases.webhooks.lookouts import PERIOD_MS, lookout_work
from chalicelib.usecases.webhooks.relay import Relay
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.deploy.rights import recording, refused, refused_items
from tests.support.receiver import Receiver, answer
from tests.support.stack import Stack
from tests.support.webhooks import NOW, SHOP, a_listener, a_row, an_endpoint, an_event, an_event_record, lose_messages

HANDLERS = ("housekeeping", "relay", "deliver", "deliver_slow")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def invoice(stack: Stack, amount: str = "0.5") -> None:
    reply = stack.call("POST", "/v1/invoices", stack.keys["client_test"], json={"currency": "eth", "amount": amount})
    assert reply.status == 201, reply.body


def registered(stack: Stack, url: str, *events: str) -> dict[str, Any]:
    reply = stack.call("POST", "/v1/webhooks", stack.keys["client_test"], json={"url": url, "events": list(events)})
    assert reply.status == 201, reply.body
    made: dict[str, Any] = reply.json["data"]
    return made


def deliveries() -> list[Delivery]:
    return sorted(services().store.every(Delivery), key=lambda d: d.id)


def open_deliveries() -> set[Any]:
    return {work for work in services().store.every_work() if work.kind in ("delivery", "outbox")}


def later(ms: int) -> None:
    services().clock.shift_ms += ms


def test_an_invoice_is_told_and_its_signature_holds(stack: Stack, receiver: Receiver) -> None:
    hook = registered(stack, receiver.url("/hook"), "invoice.created")
    invoice = stack.call("POST", "/v1/invoices", stack.keys["client_test"], json={"currency": "eth", "amount": "0.5"})
    assert invoice.status == 201, invoice.body
    assert stack.drain(only=HANDLERS).settled

    (request,) = receiver.received
    told = json.loads(request.body)
    assert (told["event"], told["sequence"], told["data"]["id"]) == ("invoice.created", 1, invoice.json["id"])
    expected = hmac.new(hook["secret"].encode(), request.body, hashlib.sha256).hexdigest()
    assert request.headers["x-gateway-signature"] == f"sha256={expected}"
    assert Webhook(hook["secret"]).verify(request.body, request.headers) == told
    listed = stack.call("GET", "/v1/events", stack.keys["client_test"])
    assert told in listed.json["data"]
    assert [d.status for d in deliveries()] == ["delivered"]
    assert open_deliveries() == set()


def test_an_events_body_is_stored_and_sent_to_the_byte(stack: Stack, receiver: Receiver) -> None:
    registered(stack, receiver.url(), "*")
    (hook,) = services().store.every(WebhookEndpoint)
    data = {"name": "Zürich €😀", "usd": 12.0, "cents": 0.1, "deep": [{"a": None}], "text": "\x00\x1f\u2028"}
    services().store.commit([Emit(a_row(an_event(tenant=hook.tenant, data=data, at=services().clock.now_ms())))])
    assert stack.drain(only=HANDLERS).settled
    (request,) = receiver.received
    assert json.loads(request.body)["data"] == data
    record = services().store.get(EventRecord, tenant=hook.tenant, id="evt_1")
    assert record is not None
    assert record.body.encode() == request.body


def test_a_failing_receiver_is_told_in_the_end(stack: Stack, receiver: Receiver) -> None:
    receiver.behave(answer(500, b"not now"), answer(302), answer(200))
    registered(stack, receiver.url(), "invoice.created")
    invoice(stack)
    for seen in (1, 2, 3):
        stack.drain(only=HANDLERS)
        assert len(receiver.received) == seen
        (delivery,) = deliveries()
        assert open_deliveries() == ({delivery_work(delivery)} if seen < 3 else set())
        later(delivery.due_at - services().clock.now_ms() + 60_000)
    assert [a.status for a in deliveries()[0].attempts] == [500, 302, 200]
    assert deliveries()[0].attempts[0].answer == "not now"
    assert len({r.body for r in receiver.received}) == 1


@pytest.mark.parametrize("lost", [False, True], ids=["by its message", "by the sweep"])
def test_what_was_kept_for_a_paused_endpoint_is_sent_in_order_when_it_goes_on(stack: Stack, receiver: Receiver, lost: bool) -> None:
    hook = registered(stack, receiver.url(), "invoice.created")
    path = f"/v1/webhooks/{hook['id']}"
    paused = stack.call("PUT", path, stack.keys["client_test"], json={"status": "paused"}).json["data"]
    assert (paused["status"], paused["enabled"]) == ("paused", False)
    assert "disabledReason" not in paused and "disabledAt" not in paused
    amounts = [f"0.{n}" for n in range(1, 4)]
    for amount in amounts:
        invoice(stack, amount)
        stack.drain(only=HANDLERS)
        later(1_000)
    later(3 * 86_400_000)
    stack.drain(only=HANDLERS)
    assert receiver.received == []
    kept = stack.call("GET", f"{path}/deliveries", stack.keys["client_test"]).json["data"]
    assert [(d["status"], d["held"], d["attempts"], "nextAttemptAt" in d) for d in kept] == [("pending", True, [], False)] * 3
    going_on = stack.call("PUT", path, stack.keys["client_test"], json={"status": "active"}).json["data"]
    assert (going_on["status"], going_on["enabled"]) == ("active", True)
    if lost:
        lose_messages(services(), "deliveries")
    stack.drain(only=HANDLERS)
    assert sorted(json.loads(r.body)["data"]["amount"] for r in receiver.received) == amounts
    sent = stack.call("GET", f"{path}/deliveries", stack.keys["client_test"]).json["data"]
    assert [(d["status"], d.get("held"), len(d["attempts"])) for d in sent] == [("delivered", None, 1)] * 3
    assert open_deliveries() == set()


def test_what_waits_for_a_retry_is_held_by_a_pause_as_well_and_goes_with_the_endpoint(stack: Stack, receiver: Receiver) -> None:
    receiver.behave(answer(500))
    hook = registered(stack, receiver.url(), "invoice.created")
    path = f"/v1/webhooks/{hook['id']}"
    invoice(stack)
    stack.drain(only=HANDLERS)
    stack.call("PUT", path, stack.keys["client_test"], json={"status": "paused"})
    later(70_000)
    stack.drain(only=HANDLERS)
    assert [(d.held, len(d.attempts)) for d in deliveries()] == [(True, 1)]
    stack.call("DELETE", path, stack.keys["client_test"])
    stack.drain(only=HANDLERS)
    assert [(d.status, d.reason) for d in deliveries()] == [("cancelled", "the endpoint was deleted")]
    assert len(receiver.received) == 1
    assert open_deliveries() == set()


def test_a_dead_delivery_is_in_a_dead_letter_queue_of_its_own(stack: Stack, receiver: Receiver) -> None:
    receiver.behave(answer(503))
    registered(stack, receiver.url(), "invoice.created")
    invoice(stack)
    stack.drain(only=HANDLERS)
    for _ in range(8):
        later(deliveries()[0].due_at - services().clock.now_ms() + 60_000)
        stack.drain(only=HANDLERS)
    (delivery,) = deliveries()
    assert (delivery.status, len(delivery.attempts), len(receiver.received)) == ("dead", 9, 9)
    assert open_deliveries() == set()
    wired = services()
    sqs = wired.wiring.parts.client("sqs")
    urls = {q: sqs.get_queue_url(QueueName=wired.settings.queue(q))["QueueUrl"] for q in ("deliveries-dead", "webhooks-dead")}
    buried = {q: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []) for q, url in urls.items()}
    assert [json.loads(message["Body"]) for message in buried["webhooks-dead"]] == [{"id": delivery.id, "tenant": delivery.tenant}]
    assert buried["deliveries-dead"] == []  # an alarm watches it: a receiver that is away is no fault of ours


def test_an_endpoint_that_fails_is_told_of_to_the_others_and_not_to_itself(stack: Stack, receiver: Receiver) -> None:
    receiver.behave(answer(500))
    with Receiver() as well:
        bad = registered(stack, receiver.url(), "*")
        registered(stack, well.url(), "webhook.failing", "webhook.disabled")
        for amount in ("0.1", "0.2", "0.3", "0.4", "0.5"):
            invoice(stack, amount)
        stack.drain(only=HANDLERS)
        shown = stack.call("GET", f"/v1/webhooks/{bad['id']}", stack.keys["client_test"]).json["data"]
        assert (shown["status"], shown["enabled"]) == ("active", True)
        assert shown["failingSince"]
        assert shown.pop("failures") == 5, "counted with the endpoint's lease, which an event does not read"
        (request,) = well.received
        told = json.loads(request.body)
        assert (told["event"], told["sequence"]) == ("webhook.failing", 1)
        assert told["data"] == shown, "the record as it was at that moment"
        listed = stack.call("GET", "/v1/events", stack.keys["client_test"], query={"event": "webhook.failing"})
        assert listed.json["data"] == [told]
        assert {json.loads(r.body)["event"] for r in receiver.received} == {"invoice.created"}

        later(5 * 86_400_000)
        invoice(stack)
        stack.drain(only=HANDLERS)
        shown = stack.call("GET", f"/v1/webhooks/{bad['id']}", stack.keys["client_test"]).json["data"]
        assert (shown["status"], shown["enabled"]) == ("disabled", False)
        assert shown["disabledReason"] == "nothing it was sent has succeeded for five days"
        assert "failingSince" not in shown
        last = json.loads(well.received[-1].body)
        assert (last["event"], last["sequence"], last["data"]) == ("webhook.disabled", 2, {**shown, "previous_status": "active"})
        names = [e["event"] for e in stack.call("GET", "/v1/events", stack.keys["client_test"]).json["data"]]
        assert names.count("webhook.failing") == names.count("webhook.disabled") == 1
        assert {json.loads(r.body)["event"] for r in receiver.received} == {"invoice.created"}
        later(3_600_000)  # what waited for a retry is given up when that comes up
        stack.drain(only=HANDLERS)
        assert {d.status for d in deliveries() if d.endpoint_id == bad["id"]} == {"cancelled"}
        assert open_deliveries() == set()


def test_the_first_success_takes_the_mark_away(stack: Stack, receiver: Receiver) -> None:
    receiver.behave(*[answer(500)] * 5, answer(200))
    bad = registered(stack, receiver.url(), "invoice.created")
    for amount in ("0.1", "0.2", "0.3", "0.4", "0.5"):
        invoice(stack, amount)
    stack.drain(only=HANDLERS)
    assert next(services().store.every(WebhookEndpoint)).failing_since is not None
    later(70_000)
    stack.drain(only=HANDLERS)
    shown = stack.call("GET", f"/v1/webhooks/{bad['id']}", stack.keys["client_test"]).json["data"]
    assert "failingSince" not in shown
    assert [d.status for d in deliveries()] == ["delivered"] * 5


def test_410_disables_the_endpoint_in_the_store(stack: Stack, receiver: Receiver) -> None:
    receiver.behave(answer(410))
    hook = registered(stack, receiver.url(), "invoice.created")
    for _ in range(2):
        invoice(stack)
        stack.drain(only=HANDLERS)
    shown = stack.call("GET", f"/v1/webhooks/{hook['id']}", stack.keys["client_test"]).json["data"]
    assert (shown["enabled"], shown["disabledReason"]) == (False, "it answered 410 Gone")
    assert len(receiver.received) == 1
    assert open_deliveries() == set()


@pytest.mark.parametrize("order", ["reversed", "twice", "late"])
def test_messages_out_of_order_and_twice_tell_once(stack: Stack, receiver: Receiver, order: Any) -> None:
    registered(stack, receiver.url(), "invoice.created")
    for amount in ("0.1", "0.2", "0.3"):
        invoice(stack, amount)
    assert stack.drain(only=HANDLERS, order=order).settled
    assert sorted(json.loads(r.body)["data"]["amount"] for r in receiver.received) == ["0.1", "0.2", "0.3"]
    assert open_deliveries() == set()


def test_without_any_message_the_sweeps_do_it(stack: Stack, receiver: Receiver) -> None:
    registered(stack, receiver.url(), "invoice.created")
    invoice(stack)
    wired = services()
    lose_messages(wired, "relay")
    later(16_000)
    stack.drain(only=["housekeeping"])
    lose_messages(wired, "deliveries")
    assert deliveries() == [] and {work.kind for work in open_deliveries()} == {"delivery"}
    later(61_000 + PERIOD_MS)
    stack.drain(only=["housekeeping", "deliver", "deliver_slow"])
    assert [d.status for d in deliveries()] == ["delivered"]
    assert len(receiver.received) == 1
    assert open_deliveries() == set()
    stack.drain(only=["housekeeping"])
    assert not [work for work in wired.store.every_work() if work.kind == "lookout"]


@pytest.mark.parametrize("age", [GRACE_MS, KNOWN_MS - 1, KNOWN_MS, KNOWN_MS + 1, 86_400_000])
def test_lookouts_of_any_age_are_looked_after_once(aws: LocalAws, age: int) -> None:
    """On the real store: those at the border of recent and older ones too, and of a late line one is left."""
    wired = services()
    now = wired.clock.now_ms()
    on_time, late = line_of("mch_1:live", "wh_1"), line_of("mch_2:live", "wh_2")
    for line in (on_time, late):
        wired.store.open(lookout_work(line, now - age))
        wired.store.open(lookout_work(line, now - age - PERIOD_MS))
    wired.store.commit([Open(Work("delivery", late, time_order(now - age), f"parcel|{now - age}|evt_1"), by_time=False)])
    sweep = LateLines(wired.store, wired.clock, in_threads)
    sweep.search()
    assert sweep.found == [late]
    (left,) = [work for work in wired.store.every_work() if work.kind == "lookout"]
    assert left.id == late and int(left.order) >= now - GRACE_MS


def test_a_first_delivery_is_in_the_index_only_where_the_stage_has_no_lookouts(aws: LocalAws) -> None:
    wired = services()
    wired.store.commit([Save(a_listener()), Save(an_endpoint("wh_1"))])
    for lookouts in (False, True):
        row = a_row(an_event(f"evt_{lookouts}"), id=f"out_{lookouts}", commands=())
        wired.store.commit([Emit(row)])
        assert Relay(wired.store, wired.queues, wired.clock, lookouts=lookouts).tell(row.id)
        indexed = [work for lane in map(str, range(LANES)) for work in wired.store.work_by_time("delivery", lane, limit=9).items]
        assert len(indexed) == 1 and len(open_deliveries()) == 1 + lookouts
        assert sum(work.kind == "lookout" for work in wired.store.every_work()) == lookouts


def test_eight_workers_at_once_tell_one_row_once(aws: LocalAws, receiver: Receiver) -> None:
    wired = services()
    tenant = tenant_id(MerchantId("mch_busy"), "live")
    wired.store.commit([Save(an_endpoint("wh_1", tenant=tenant, url=receiver.url()))])
    row = a_row(an_event(tenant=tenant), commands=(Command("payouts", "g", {"id": "wd_1", "network": "live:ethereum"}),))
    wired.store.commit([Emit(row)])
    outcomes = _together(8, lambda: wired.relay.tell(row.id))
    assert outcomes.count(True) == 1
    assert outcomes.count(False) == 7
    assert len(open_deliveries()) == 1
    outcomes = _together(8, lambda: wired.leases.take(tenant, "wh_1"))
    assert outcomes.count("done") == 1
    assert set(outcomes) <= {"done", "taken", "idle"}
    assert len(receiver.received) == 1
    (delivery,) = deliveries()
    assert [attempt.status for attempt in delivery.attempts] == [200]
    assert open_deliveries() == set()


def test_eight_workers_at_once_send_a_backlog_once_each(aws: LocalAws, receiver: Receiver) -> None:
    wired = services()
    tenant = tenant_id(MerchantId("mch_busy"), "live")
    endpoint = an_endpoint("wh_1", tenant=tenant, url=receiver.url())
    wired.store.commit([Save(endpoint)])
    ids = [f"evt_{number:02}" for number in range(2 * BATCH + 5)]
    for id in ids:
        event = event_record(an_event(id, tenant=tenant), "2026-01-02T03:04:05.006Z", NOW)
        delivery = delivery_for(event, endpoint, NOW)
        wired.store.commit([Save(event), Save(delivery), Open(delivery_work(delivery))])
    outcomes = _together(8, lambda: wired.leases.take(tenant, "wh_1"))
    assert "done" in outcomes
    assert set(outcomes) <= {"done", "taken", "idle"}
    assert sorted(json.loads(request.body)["id"] for request in receiver.received) == ids
    assert [len(delivery.attempts) for delivery in deliveries()] == [1] * len(ids)
    assert open_deliveries() == set()


def test_a_later_event_that_is_told_first_is_sent_behind_the_earlier_one(
    aws: LocalAws, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another process than the one that told the object's events before; and rows of long ago hold up nothing."""
    wired = services()
    wired.store.commit([Save(an_endpoint("wh_1", url=receiver.url())), Save(a_listener())])
    rows = []
    for sequence, at in ((1, NOW), (2, wired.clock.now_ms()), (3, wired.clock.now_ms())):
        news = News(at)
        news.tell(SHOP, "invoice.partial", "inv_1", sequence, {"id": "inv_1"})
        (change,) = news.emit()
        wired.store.commit([change])
        rows.append(as_one_item(change.row))
    first, second, third = rows
    recorder = recording(monkeypatch)
    recorder.function = "relay"

    def process() -> Relay:
        return Relay(wired.store, wired.queues, wired.clock, lambda _: None)

    assert process().tell(third.id) is True
    assert ("relay", "dynamodb:Query", "arn:aws:dynamodb:r:1:table/gateway-local-work") in recorder.calls
    assert refused(recorder.calls) == refused_items(recorder.items) == []
    recorder.function = "deliver"
    wired.leases.take(SHOP, "wh_1")
    assert [json.loads(request.body)["sequence"] for request in receiver.received] == [2, 3]
    assert process().tell(second.id) is False
    assert process().tell(first.id) is True
    news = News(NOW + 1)
    news.tell(SHOP, "invoice.partial", "inv_1", 4, {"id": "inv_1"})
    (change,) = news.emit()
    wired.store.commit([change])
    assert process().tell(as_one_item(change.row).id) is True, "the row itself is open for months"


def test_a_batch_that_is_answered_410_disables_once(aws: LocalAws, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    wired = services()
    receiver.behave(answer(410))
    wired.store.commit([Save(an_endpoint("wh_1", url=receiver.url())), Save(a_listener())])
    wired.store.commit([Emit(a_row(*(an_event(f"evt_{number}") for number in range(BATCH))))])
    assert wired.relay.tell("out_1")
    recorder = recording(monkeypatch)
    recorder.function = "deliver"
    wired.leases.take(SHOP, "wh_1")
    assert any("/gateway-local-work" in arn and pk.startswith("row#note_") for _, _, arn, pk in recorder.items)
    assert refused(recorder.calls) == refused_items(recorder.items) == [], "the notice is all of the outbox that it may write"
    assert len(receiver.received) == BATCH
    assert {(d.status, d.reason) for d in deliveries()} == {("cancelled", "the endpoint answered 410 Gone")}
    stored = wired.store.get(WebhookEndpoint, tenant=SHOP, id="wh_1")
    assert stored is not None
    assert (stored.enabled, stored.disabled_reason, stored.version) == (False, "it answered 410 Gone", 2)
    assert [event.name for row in wired.store.every(OutboxRow) for event in row.events] == ["webhook.disabled"]


def test_records_come_back_as_they_were_stored(aws: LocalAws) -> None:
    store = services().store
    endpoint = replace(an_endpoint("wh_1"), previous_secret="x" * 20, previous_until=NOW, disabled_reason="why", disabled_at=NOW)
    event = an_event_record()
    delivery = delivery_for(event, endpoint, NOW)
    store.commit([Save(endpoint), Save(event), Save(delivery), Open(delivery_work(delivery))])
    assert store.get(WebhookEndpoint, tenant=SHOP, id="wh_1") == endpoint
    assert store.get(EventRecord, tenant=SHOP, id="evt_1") == event
    assert store.get(Delivery, tenant=SHOP, id=delivery.id) == delivery
    turn = Turn(SHOP, "wh_1", ttl=NOW // 1000).with_batch((delivery_work(delivery).id,), NOW, "turn_1")
    turn = replace(turn.faring(0, (NOW,), NOW + 5), version=1)
    store.commit([Save(turn)])
    assert store.get(Turn, tenant=SHOP, endpoint_id="wh_1") == turn
    with pytest.raises(Conflict):
        store.commit([Save(replace(delivery, version=3)), Close(delivery_work(delivery))])
    assert set(store.every_work()) == {delivery_work(delivery)}


def test_the_relay_closes_the_very_work_that_the_store_opened(aws: LocalAws) -> None:
    store = services().store
    for n in range(20):
        store.commit([Emit(a_row(id=f"out_{n}", at=NOW + n))])
    rows = list(store.every(OutboxRow))
    assert len(rows) == 20
    assert set(store.every_work()) == {outbox_work(row) for row in rows}
    assert all(services().relay.tell(row.id) for row in rows)
    assert list(store.every_work()) == []
    assert list(store.every(OutboxRow)) == []


def test_lists_of_a_tenant_hold_nothing_of_others(aws: LocalAws) -> None:
    wired = services()
    alike = TenantId("mch_shop:live2")
    for tenant in (SHOP, alike):
        wired.webhooks.register(tenant, "http://127.0.0.1:4000/", ["*"])
    assert [e.tenant for e in wired.webhooks.list(SHOP)] == [SHOP]


def _together(count: int, act: Any) -> list[Any]:
    """`act` in so many threads at once; what each returned."""
    gate, results = threading.Barrier(count), []

    def run() -> None:
        gate.wait()
        results.append(act())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
