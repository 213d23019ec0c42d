"""Sending events again over HTTP, and what the log of deliveries tells."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import ANSWER_BYTES, Delivery
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint, event_record
from chalicelib.domain.webhooks.redelivery import MOST_JOBS, LatestRedelivery, RedeliveryJob
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from tests.support.edge import Calls
from tests.support.receiver import Receiver, answer
from tests.support.stack import Response, Stack
from tests.support.webhooks import an_event, lose_messages

HOUR = 3_600_000


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def shop(stack: Stack) -> Shop:
    return Shop(stack)


class Shop:
    """A merchant at the API."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def ask(self, method: str, path: str, body: Any = None, key: str = "client_test", **kwargs: Any) -> Response:
        return self.stack.call(method, "/v1" + path, self.stack.keys[key], json=body, **kwargs)

    def done(self, method: str, path: str, body: Any = None, **kwargs: Any) -> Any:
        reply = self.ask(method, path, body, **kwargs)
        assert reply.status == (201 if method == "POST" else 200), reply.body
        return reply.json["data"]

    def refused(self, method: str, path: str, body: Any = None, **kwargs: Any) -> tuple[int, str, Any]:
        error = (reply := self.ask(method, path, body, **kwargs)).json["error"]
        return reply.status, error["code"], error["details"]

    def hook(self, url: str = "http://127.0.0.1:8099/hook", *events: str) -> str:
        return str(self.done("POST", "/webhooks", {"url": url, "events": list(events or ("*",))})["id"])

    def tenant(self, hook: str) -> TenantId:
        (found,) = (one.tenant for one in services().store.every(WebhookEndpoint) if one.id == hook)
        return found

    def events(self, count: int, hook: str, name: str = "invoice.completed") -> list[str]:
        """Events that nobody was told of."""
        tenant, now = self.tenant(hook), services().clock.now_ms()
        made: list[EventRecord] = []
        for n in range(count):
            at = now - HOUR + n
            made.append(event_record(an_event(new_id("evt", at), name, tenant=tenant, at=at), iso(at), now))
        for place in range(0, count, 10):
            services().store.commit([Save(event) for event in made[place : place + 10]])
        return [event.id for event in made]

    def time(self, **more: Any) -> dict[str, Any]:
        now = services().clock.now_ms()
        return {"from": iso(now - 2 * HOUR), "to": iso(now), **more}

    def again(self, hook: str, key: str | None = None, **more: Any) -> Any:
        """A job, and all that comes of it."""
        headers = {} if key is None else {"Idempotency-Key": key}
        job = self.done("POST", f"/webhooks/{hook}/redeliver", self.time(**more), headers=headers)
        self.work()
        return self.done("GET", f"/webhooks/redeliveries/{job['id']}")

    def work(self) -> None:
        self.stack.drain(only=("housekeeping", "relay", "deliver"))


def counts(job: Any) -> tuple[str, int, int, int]:
    return job["status"], job["looked"], job["made"], job["skipped"]


def test_what_was_missed_arrives_once_and_all_arrives_again(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    events = shop.events(25, hook)
    body, headers = shop.time(), {"Idempotency-Key": "k"}
    job = shop.done("POST", f"/webhooks/{hook}/redeliver", body, headers=headers)
    assert counts(job) == ("running", 0, 0, 0)
    assert (job["webhookId"], job["which"], job["events"], job["from"]) == (hook, "missed", ["*"], body["from"])
    assert shop.done("POST", f"/webhooks/{hook}/redeliver", body, headers=headers) == job
    shop.work()
    assert counts(shop.done("GET", f"/webhooks/redeliveries/{job['id']}")) == ("done", 25, 25, 0)
    assert Counter(r.headers["webhook-id"] for r in receiver.received) == Counter(events)
    services().clock.shift_ms += 1
    assert counts(shop.again(hook)) == ("done", 25, 0, 25)
    assert len(receiver.received) == 25
    services().clock.shift_ms += 1
    third = shop.again(hook, which="all")
    assert counts(third) == ("done", 25, 25, 0)
    assert Counter(r.headers["webhook-id"] for r in receiver.received) == Counter(2 * events)
    jobs = shop.done("GET", f"/webhooks/{hook}/redeliveries")
    assert len(jobs) == 3 and jobs[0] == third
    assert len(shop.done("GET", f"/webhooks/{hook}/redeliveries", query={"status": "done", "limit": 2})) == 2
    again = shop.done("GET", f"/webhooks/{hook}/deliveries", query={"eventId": events[3]})
    assert [d.get("redeliveryId") for d in again] == [third["id"], job["id"]]
    assert not [work for work in services().store.every_work() if work.kind in ("delivery", "redelivery")]


def test_a_job_whose_message_is_lost_is_found(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    shop.events(1, hook)
    shop.done("POST", f"/webhooks/{hook}/redeliver", shop.time())
    lose_messages(services(), "relay")
    services().clock.shift_ms += 61_000
    shop.work()
    assert len(receiver.received) == 1


def test_fifty_at_once_make_one_job(shop: Shop) -> None:
    hook, start = shop.hook(), threading.Barrier(10)
    body = shop.time()

    def order(n: int) -> Response:
        if n < 10:
            start.wait()
        return shop.ask("POST", f"/webhooks/{hook}/redeliver", body)

    with ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(order, range(50)))
    assert sorted(reply.status for reply in replies) == [201] + [400] * 49
    (job,) = services().store.every(RedeliveryJob)
    for reply in replies:
        if reply.status == 400:
            assert reply.json["error"]["code"] == "VALIDATION_ERROR" and job.id in reply.json["error"]["details"]["reason"]
    assert shop.done("DELETE", f"/webhooks/redeliveries/{job.id}")["status"] == "cancelled"
    assert shop.done("DELETE", f"/webhooks/redeliveries/{job.id}")["reason"] == "its owner cancelled it"
    shop.done("POST", f"/webhooks/{hook}/redeliver", body)


def test_bodies_and_times_that_are_none(shop: Shop) -> None:
    hook = shop.hook("http://127.0.0.1:8099/hook", "invoice.created")
    now = services().clock.now_ms()
    malformed: list[tuple[Any, set[str]]] = [
        ({}, {"from"}),
        ({"from": None, "to": 1}, {"from", "to"}),
        ({"from": "yesterday", "to": "2026-02-30", "which": "some", "events": [], "x": 1}, {"from", "to", "which", "events", "x"}),
        (shop.time(events="*"), {"events"}),
        (shop.time(events=["invoice.made", 3]), {"events"}),
        ({"from_": iso(now), "to": iso(now)}, {"from", "from_"}),
    ]  # fmt: skip
    for body, fields in malformed:
        status, code, details = shop.refused("POST", f"/webhooks/{hook}/redeliver", body)
        assert (status, code, {one["field"] for one in details}) == (400, "INVALID_PARAMETER", fields), body
    refused: list[tuple[Any, str]] = [
        ({"from": iso(now), "to": iso(now - 1)}, "to"),
        ({"from": iso(now + HOUR), "to": iso(now + 2 * HOUR)}, "from"),
        ({"from": iso(now + HOUR)}, "from"),
        ({"from": "2020-01-01", "to": "2020-01-02"}, "to"),
        (shop.time(events=["invoice.completed"]), "events"),
    ]
    for body, field in refused:
        status, code, details = shop.refused("POST", f"/webhooks/{hook}/redeliver", body)
        assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field), body
    said = [shop.refused("POST", "/webhooks", {"url": "http://127.0.0.1:8099/hook", "events": ["invoice.made", 3]})]
    said += [shop.refused("POST", f"/webhooks/{hook}/redeliver", shop.time(events=["invoice.made", 3]))]
    for _, _, (problem,) in said:
        assert problem["constraints"][0].startswith('"invoice.made", 3 are not events; allowed: "*", "transaction.detected", ')
    shop.done("PUT", f"/webhooks/{hook}", {"status": "disabled"})
    assert shop.refused("POST", f"/webhooks/{hook}/redeliver", shop.time())[:2] == (400, "VALIDATION_ERROR")
    assert list(services().store.every(RedeliveryJob)) == []


def test_a_time_that_is_kept_no_more_and_one_that_has_not_come_are_left_out(shop: Shop) -> None:
    hook, now = shop.hook(), services().clock.now_ms()
    for body, start in (
        ({"from": iso(now - 45 * 24 * HOUR), "to": iso(now + 365 * 24 * HOUR)}, now - 30 * 24 * HOUR),
        ({"from": iso(now - 48 * HOUR)}, now - 48 * HOUR),
        ({"from": iso(now - 48 * HOUR), "to": None}, now - 48 * HOUR),
    ):
        job = shop.done("POST", f"/webhooks/{hook}/redeliver", body)
        later = services().clock.now_ms()
        assert iso(start) <= job["from"] <= iso(start + later - now) and iso(now) <= job["to"] <= iso(later)
        shop.done("DELETE", f"/webhooks/redeliveries/{job['id']}")


def test_one_more_than_a_day_has_is_refused_also_when_fifty_ask_at_once(shop: Shop) -> None:
    hook, start = shop.hook(), threading.Barrier(10)
    body, first = shop.time(), services().clock.now_ms() - HOUR
    before = tuple(first + n for n in range(MOST_JOBS - 1))
    services().store.commit([Save(LatestRedelivery(shop.tenant(hook), hook, "rdl_0", first // 1000 + 3600, before))])

    def order(n: int) -> Response:
        if n < 10:
            start.wait()
        reply = shop.ask("POST", f"/webhooks/{hook}/redeliver", body)
        if reply.status == 201:
            shop.ask("DELETE", f"/webhooks/redeliveries/{reply.json['data']['id']}")
        return reply

    with ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(order, range(50)))
    assert sorted(reply.status for reply in replies) == [201] + [400] * 49
    status, code, details = shop.refused("POST", f"/webhooks/{hook}/redeliver", body)
    assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", "id")
    assert details["reason"].endswith(iso(first + 24 * HOUR))
    assert len(list(services().store.every(RedeliveryJob))) == 1


def test_what_a_job_made_is_listed_and_says_what_it_repeats(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    events = shop.events(3, hook)
    first = shop.again(hook)
    services().clock.shift_ms += 1
    shop.done("PUT", f"/webhooks/{hook}", {"status": "paused"})
    second = shop.again(hook, which="all")
    path = f"/webhooks/{hook}/deliveries"
    old, new = (shop.done("GET", path, query={"redeliveryId": job["id"]}) for job in (first, second))
    assert {d["eventId"] for d in old} == {d["eventId"] for d in new} == set(events)
    assert {d["redeliveryOf"] for d in new} == {d["id"] for d in old} and not any("redeliveryOf" in d for d in old)
    assert {d["redeliveredAs"] for d in old} == {d["id"] for d in new}
    assert shop.done("GET", path, query={"held": "true"}) == new and shop.done("GET", path, query={"held": "false"}) == old
    assert shop.done("GET", path, query={"redeliveryId": "rdl_none"}) == []
    assert shop.done("GET", path, query={"redeliveryId": second["id"], "createdAt[gt]": iso(services().clock.now_ms())}) == []


def test_of_a_paused_endpoint_they_are_held_and_sent_when_it_goes_on(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    events = shop.events(12, hook)
    shop.done("PUT", f"/webhooks/{hook}", {"status": "paused"})
    assert counts(shop.again(hook)) == ("done", 12, 12, 0)
    assert receiver.received == []
    assert {d.get("held") for d in shop.done("GET", f"/webhooks/{hook}/deliveries")} == {True}
    shop.done("PUT", f"/webhooks/{hook}", {"status": "active"})
    shop.work()
    assert Counter(r.headers["webhook-id"] for r in receiver.received) == Counter(events)


def test_foreign_ones_are_not_there(shop: Shop) -> None:
    hook = shop.hook()
    shop.events(1, hook)
    job = shop.done("POST", f"/webhooks/{hook}/redeliver", shop.time())
    shop.stack.drain(only=("relay",))
    (delivery,) = shop.done("GET", f"/webhooks/{hook}/deliveries")
    assert shop.done("GET", f"/webhooks/deliveries/{delivery['id']}") == delivery
    for method, path in (
        ("GET", f"/webhooks/redeliveries/{job['id']}"),
        ("DELETE", f"/webhooks/redeliveries/{job['id']}"),
        ("GET", f"/webhooks/{hook}/redeliveries"),
        ("GET", f"/webhooks/deliveries/{delivery['id']}"),
    ):
        assert shop.refused(method, path, key="other_merchant_test")[:2] == (404, "NOT_FOUND"), path
    assert shop.refused("POST", f"/webhooks/{hook}/redeliver", shop.time(), key="other_merchant_test")[:2] == (404, "NOT_FOUND")
    other = shop.hook()
    for query in ({"id": delivery["id"]}, {"eventId": delivery["eventId"]}):
        assert shop.done("GET", f"/webhooks/{hook}/deliveries", query=query) == [delivery]
        assert shop.done("GET", f"/webhooks/{other}/deliveries", query=query) == []


def test_the_log_shows_the_beginning_of_every_answer_whatever_it_is(shop: Shop, receiver: Receiver) -> None:
    """1,024 bytes: what is no text is shown as U+FFFD, and no character is cut in two."""
    cut = b"x" * (ANSWER_BYTES - 1) + "é".encode() + b"more"
    receiver.behave(answer(500, cut), answer(500, b"\x00\xff\xfe\x1b" * 400), answer(200, b""))
    hook = shop.hook(receiver.url())
    shop.events(3, hook)
    shop.again(hook)
    shown = shop.done("GET", f"/webhooks/{hook}/deliveries")
    bodies = sorted(d["attempts"][0]["responseBody"] for d in shown)
    assert bodies == ["", "x" * (ANSWER_BYTES - 1), "\ufffd" * (ANSWER_BYTES // 3)]
    for delivery in shown:
        (attempt,) = delivery["attempts"]
        waits = delivery["status"] == "pending"
        assert attempt.keys() == {"at", "responseStatus", "responseBody", "durationMs"} | ({"nextAttemptAt"} if waits else set())
    (good,) = shop.done("GET", f"/webhooks/{hook}/deliveries", query={"lastResponseStatus": "200"})
    assert good["status"] == "delivered"


def test_filters_that_are_looked_up_cost_the_same_however_much_there_is(shop: Shop, receiver: Receiver) -> None:
    receiver.behave(answer(410))
    hook = shop.hook(receiver.url())
    shop.events(25, hook)
    shop.again(hook)
    everything = shop.done("GET", f"/webhooks/{hook}/deliveries", query={"limit": 100})
    statuses = Counter(d["status"] for d in everything)
    assert statuses == {"cancelled": 25}
    (one, *_) = everything
    since = min(d["createdAt"] for d in everything)
    calls = Calls()
    calls.attach(services().store.models.connection.client)
    asked: dict[str, tuple[dict[str, Any], int, int]] = {
        "status": ({"status": "cancelled", "limit": 2}, 2, 3),
        "none": ({"status": "dead"}, 0, 1),
        "event's id": ({"eventId": one["eventId"]}, 1, 1),
        "id": ({"id": one["id"]}, 1, 1),
        "time": ({"createdAt[gte]": since, "createdAt[lt]": iso(services().clock.now_ms() + 1), "limit": 2}, 2, 3),
    }
    for name, (query, found, cost) in asked.items():
        calls.made.clear()
        assert len(shop.done("GET", f"/webhooks/{hook}/deliveries", query=query)) == found, name
        # Beside the list's own calls: the caller's key, and the endpoint.
        assert len(calls.made) <= cost + 2, (name, calls.made)
    calls.made.clear()
    shop.done("GET", f"/webhooks/deliveries/{one['id']}")
    assert len(calls.made) <= 2, calls.made
    assert all(isinstance(found, Delivery) for found in services().store.every(Delivery))


def test_a_delivery_shows_what_was_sent_to_the_byte(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    sent = shop.done("POST", f"/webhooks/{hook}/test")
    shop.stack.drain(only=("relay", "deliver"))
    (got,) = receiver.received
    assert "request" not in shop.done("GET", f"/webhooks/deliveries/{sent['id']}")
    shown = shop.done("GET", f"/webhooks/deliveries/{sent['id']}", query={"request": "true"})["request"]
    assert (shown["url"], shown["body"].encode()) == (receiver.url(), got.body)
    assert shown["headers"].items() <= {name.lower(): value for name, value in got.headers.items()}.items()
    assert not any("signature" in name for name in shown["headers"])
    shop.done("DELETE", f"/webhooks/{hook}")
    assert shop.done("GET", f"/webhooks/deliveries/{sent['id']}", query={"request": "true"})["request"]["url"] is None


def test_the_body_of_a_delivery_is_an_event_and_takes_its_permission(shop: Shop) -> None:
    hook = shop.hook()
    sent = shop.done("POST", f"/webhooks/{hook}/test")
    made = shop.done("POST", "/api-keys", {"name": "hooks", "permissions": ["webhooks:read"]})
    reply = shop.stack.call("GET", f"/v1/webhooks/deliveries/{sent['id']}", made["key"], query={"request": "true"})
    assert (reply.status, reply.json["data"]["request"]["body"]) == (200, None)
