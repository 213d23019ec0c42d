"""Webhook endpoints over HTTP: changed, tested, rotated, and sent to again."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import boto3
import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from chalicelib import wiring
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.webhooks.endpoints import MAX_ENDPOINTS, MAX_OVERLAP, WebhookEndpoint
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from tests.deploy.rights import recording
from tests.support.custody import unreachable_kms
from tests.support.receiver import Receiver, answer
from tests.support.stack import Response, Stack
from tests.support.webhooks import lose_messages

HANDLERS = ("housekeeping", "relay", "deliver", "deliver_slow")


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

    def refused(self, method: str, path: str, body: Any = None, **kwargs: Any) -> tuple[int, str]:
        reply = self.ask(method, path, body, **kwargs)
        return reply.status, reply.json["error"]["code"]

    def hook(self, url: str = "http://127.0.0.1:8099/hook", *events: str) -> Any:
        return self.done("POST", "/webhooks", {"url": url, "events": list(events or ("invoice.created",))})

    def invoice(self) -> None:
        reply = self.ask("POST", "/invoices", {"currency": "eth", "amount": "0.5"})
        assert reply.status == 201

    def work(self) -> None:
        self.stack.drain(only=HANDLERS)


def signed(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def test_changing_an_endpoint(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook("http://127.0.0.1:8099/old")
    changed = shop.done("PUT", f"/webhooks/{hook['id']}", {"url": receiver.url("/new"), "events": ["*", "*"]})
    assert (changed["url"], changed["events"], changed["status"]) == (receiver.url("/new"), ["*"], "active")
    assert shop.refused("PUT", f"/webhooks/{hook['id']}", {}) == (400, "INVALID_PARAMETER")
    assert shop.done("PUT", f"/webhooks/{hook['id']}", {"enabled": True}) == changed
    assert shop.done("GET", f"/webhooks/{hook['id']}") == changed
    shop.invoice()
    shop.work()
    assert [r.line.split()[1] for r in receiver.received] == ["/new"]


@pytest.mark.parametrize(
    ("off", "on"),
    [
        ({"status": "disabled"}, {"status": "active"}),
        ({"enabled": False}, {"enabled": True}),
        # The sweep: the fields mean the same alone, which stays.
        pytest.param({"enabled": False, "status": "disabled"}, {"enabled": True, "status": "active"}, marks=pytest.mark.sweep),
    ],
)
def test_disabling_keeps_nothing(shop: Shop, receiver: Receiver, off: Any, on: Any) -> None:
    hook = shop.hook(receiver.url())
    disabled = shop.done("PUT", f"/webhooks/{hook['id']}", off)
    assert (disabled["status"], disabled["enabled"], disabled["disabledReason"]) == ("disabled", False, "its owner disabled it")
    assert disabled["disabledAt"]
    shop.invoice()
    shop.work()
    assert receiver.received == []
    assert shop.done("GET", f"/webhooks/{hook['id']}/deliveries") == []
    assert shop.refused("POST", f"/webhooks/{hook['id']}/test") == (400, "VALIDATION_ERROR")
    again = shop.done("PUT", f"/webhooks/{hook['id']}", on)
    assert (again["status"], again["enabled"], again.get("disabledReason"), again.get("disabledAt")) == ("active", True, None, None)
    shop.invoice()
    shop.work()
    assert len(receiver.received) == 1


# The sweep: a disabled endpoint is enabled by the other field above, which stays.
@pytest.mark.parametrize("on", [{"status": "active"}, pytest.param({"enabled": True}, marks=pytest.mark.sweep)])
def test_pausing_keeps_everything(shop: Shop, receiver: Receiver, on: Any) -> None:
    hook = shop.hook(receiver.url())
    path = f"/webhooks/{hook['id']}"
    paused = shop.done("PUT", path, {"status": "paused"})
    assert (paused["status"], paused["enabled"]) == ("paused", False)
    assert not {"disabledReason", "disabledAt"} & set(paused)
    assert shop.done("PUT", path, {"status": "paused", "enabled": False}) == paused
    assert [one["id"] for one in shop.done("GET", "/webhooks?status=paused")] == [hook["id"]]
    assert shop.refused("POST", f"{path}/test") == (400, "VALIDATION_ERROR")
    shop.invoice()
    shop.work()
    (kept,) = shop.done("GET", f"{path}/deliveries")
    assert (kept["status"], kept["held"], kept["attempts"]) == ("pending", True, [])
    assert "nextAttemptAt" not in kept
    assert shop.done("POST", f"/webhooks/deliveries/{kept['id']}/redeliver") == kept, "it stays where it is"
    shop.work()
    assert receiver.received == []
    shop.done("PUT", path, on)
    shop.work()
    assert len(receiver.received) == 1
    (sent,) = shop.done("GET", f"{path}/deliveries")
    assert (sent["id"], sent["status"], "held" in sent) == (kept["id"], "delivered", False)


def test_disabling_what_is_paused_gives_up_what_was_kept(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    path = f"/webhooks/{hook['id']}"
    shop.done("PUT", path, {"status": "paused"})
    shop.invoice()
    shop.work()
    shop.done("PUT", path, {"status": "disabled"})
    shop.work()
    (given_up,) = shop.done("GET", f"{path}/deliveries")
    assert (given_up["status"], given_up["reason"], "held" in given_up) == ("cancelled", "the endpoint is disabled", False)
    shop.done("PUT", path, {"status": "active"})
    shop.work()
    assert receiver.received == []


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"url": "ftp://x", "events": [], "secret": "0123456789abcdef"}, {"url", "events", "secret"}),
        ({"url": "ftp://x", "events": []}, {"url", "events"}),
        ({"status": "on"}, {"status"}),
        ({"enabled": "yes"}, {"enabled"}),
        ({"enabled": True, "status": "disabled"}, {"enabled"}),
    ],
)
def test_changes_that_are_none(shop: Shop, body: Any, fields: set[str]) -> None:
    reply = shop.ask("PUT", f"/webhooks/{shop.hook()['id']}", body)
    assert reply.status == 400
    assert {problem["field"] for problem in reply.json["error"]["details"]} == fields
    assert "0123456789abcdef" not in reply.body.decode()


def test_a_test_event_takes_the_way_of_all_others(shop: Shop, receiver: Receiver) -> None:
    other = shop.hook(receiver.url("/other"), "*")
    hook = shop.hook(receiver.url("/mine"), "balance.updated")
    sent = shop.done("POST", f"/webhooks/{hook['id']}/test")
    assert (sent["event"], sent["webhookId"], sent["status"], sent["attempts"]) == ("webhook.test", hook["id"], "pending", [])
    shop.work()
    (request,) = receiver.received
    assert request.line.split()[1] == "/mine"
    told = Webhook(hook["secret"]).verify(request.body, request.headers)
    assert (told["event"], told["data"]) == ("webhook.test", {"webhookId": hook["id"]})
    assert shop.done("GET", f"/events/{sent['eventId']}") == told
    (listed,) = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    assert (listed["id"], listed["status"], listed["lastResponseStatus"]) == (sent["id"], "delivered", 200)
    assert shop.done("GET", f"/webhooks/{other['id']}/deliveries") == []


def test_without_its_message_the_sweep_sends_it(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    shop.done("POST", f"/webhooks/{hook['id']}/test")
    wired = services()
    lose_messages(wired, "deliveries")
    wired.clock.shift_ms += 61_000
    shop.work()
    assert len(receiver.received) == 1


def test_both_secrets_sign_during_a_rotations_overlap(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    new = shop.done("POST", f"/webhooks/{hook['id']}/rotate-secret", {"overlap": 3600})
    assert new["secret"] != hook["secret"]
    assert new["previousSecretUntil"]
    assert "secret" not in shop.done("GET", f"/webhooks/{hook['id']}")
    shop.done("POST", f"/webhooks/{hook['id']}/test")
    shop.work()
    services().clock.shift_ms += 3_600_000
    shop.done("POST", f"/webhooks/{hook['id']}/test")
    shop.work()
    during, after = receiver.received
    assert during.headers["x-gateway-signature"] == signed(new["secret"], during.body)
    assert during.headers["x-gateway-signature-previous"] == signed(hook["secret"], during.body)
    for secret in (new["secret"], hook["secret"]):
        Webhook(secret).verify(during.body, during.headers)
    assert "x-gateway-signature-previous" not in after.headers
    # The library looks at the clock of the machine; what matters is the count of signatures.
    assert len(during.headers["webhook-signature"].split()) == 2
    assert len(after.headers["webhook-signature"].split()) == 1
    assert "previousSecretUntil" not in shop.done("GET", f"/webhooks/{hook['id']}")


def test_rotations_without_overlap_with_a_secret_of_ones_own_and_again(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    own = shop.done("POST", f"/webhooks/{hook['id']}/rotate-secret", {"secret": "a secret of my own", "overlap": 0})
    assert (own["secret"], own.get("previousSecretUntil")) == ("a secret of my own", None)
    shop.done("POST", f"/webhooks/{hook['id']}/rotate-secret", {})
    last = shop.done("POST", f"/webhooks/{hook['id']}/rotate-secret", {})
    shop.done("POST", f"/webhooks/{hook['id']}/test")
    shop.work()
    (request,) = receiver.received
    assert len(request.headers["webhook-signature"].split()) == 2, "a rotation ends the overlap of the one before"
    Webhook(last["secret"]).verify(request.body, request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(hook["secret"]).verify(request.body, request.headers)


@pytest.mark.parametrize("body", [{"overlap": -1}, {"overlap": MAX_OVERLAP + 1}, {"overlap": "60"}, {"secret": "short"}, {"x": 1}])
def test_rotations_that_are_none(shop: Shop, body: Any) -> None:
    hook = shop.hook()
    assert shop.refused("POST", f"/webhooks/{hook['id']}/rotate-secret", body) == (400, "INVALID_PARAMETER")


@pytest.mark.parametrize("path", ["/webhooks", "/webhooks/{id}/rotate-secret"])
def test_a_repeated_answer_shows_the_secret_and_the_answers_table_does_not(shop: Shop, path: str) -> None:
    hook = shop.hook()
    body = {"url": "http://127.0.0.1:8099/2", "events": ["*"]} if path == "/webhooks" else {}
    asked = path.replace("{id}", hook["id"])
    replies = [shop.ask("POST", asked, body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert replies[0].status == 201
    assert replies[0].body == replies[1].body
    (stored,) = services().store.every(StoredAnswer)
    assert stored.sealed
    assert replies[0].json["data"]["secret"] not in stored.body


def items() -> str:
    """Every item of the table, as DynamoDB has it."""
    table = services().settings.table("webhooks")
    return json.dumps(boto3.client("dynamodb").scan(TableName=table)["Items"], default=str)


def test_the_table_holds_no_secret_and_what_signs_is_the_secret_that_was_shown(shop: Shop, receiver: Receiver) -> None:
    own = shop.done("POST", "/webhooks", {"url": receiver.url("/own"), "events": ["*"], "secret": "a secret of my own"})
    hook = shop.hook(receiver.url())
    assert set(hook) == {"id", "url", "events", "status", "enabled", "createdAt", "secret"}
    new = shop.done("POST", f"/webhooks/{hook['id']}/rotate-secret", {})
    raw = items()
    assert not [each for each in (own["secret"], hook["secret"], new["secret"]) if each in raw]
    assert base64.b64encode(own["secret"].encode()).decode() not in raw
    shop.done("POST", f"/webhooks/{hook['id']}/test")
    shop.done("POST", f"/webhooks/{own['id']}/test")
    shop.work()
    told = {request.line.split()[1]: request for request in receiver.received}
    assert told["/own"].headers["x-gateway-signature"] == signed(own["secret"], told["/own"].body)
    (rotated,) = [request for path, request in told.items() if path != "/own"]
    assert rotated.headers["x-gateway-signature"] == signed(new["secret"], rotated.body)
    assert rotated.headers["x-gateway-signature-previous"] == signed(hook["secret"], rotated.body)


def test_secrets_that_are_swapped_between_endpoints_sign_nothing(shop: Shop, receiver: Receiver) -> None:
    one, two = shop.hook(receiver.url("/1")), shop.hook(receiver.url("/2"))
    store = services().store
    rows = {row.id: row for row in store.every(WebhookEndpoint)}
    first, second = rows[one["id"]], rows[two["id"]]
    swapped = [(first, second.secret), (second, first.secret)]
    store.commit([Save(replace(row, secret=secret, version=row.version + 1)) for row, secret in swapped])
    sent = shop.done("POST", f"/webhooks/{one['id']}/test")
    shop.work()
    assert receiver.received == []
    (listed,) = shop.done("GET", f"/webhooks/{one['id']}/deliveries")
    assert (listed["id"], listed["status"]) == (sent["id"], "pending")
    assert [attempt["error"] for attempt in listed["attempts"]] == ["the secret of this endpoint can not be read: rotate it"]
    mended = shop.done("POST", f"/webhooks/{one['id']}/rotate-secret", {})
    shop.done("POST", f"/webhooks/deliveries/{sent['id']}/redeliver")
    shop.work()
    (request,) = receiver.received
    Webhook(mended["secret"]).verify(request.body, request.headers)


def test_a_row_from_before_secrets_were_encrypted_goes_on(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    store = services().store
    (row,) = store.every(WebhookEndpoint)
    plain = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    store.commit([Save(replace(row, secret=plain, sealed=False, version=row.version + 1))])
    for enabled in (None, False, True):
        if enabled is not None:
            shop.done("PUT", f"/webhooks/{hook['id']}", {"enabled": enabled})
        assert (plain in items()) is (enabled is None), "sealed when it is written next"
        if enabled is not False:
            shop.done("POST", f"/webhooks/{hook['id']}/test")
            shop.work()
    assert [r.headers["x-gateway-signature"] == signed(plain, r.body) for r in receiver.received] == [True, True]


def test_kms_is_asked_by_what_makes_a_secret_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call more than before for those two; other requests do not even make its client."""
    wiring.forget()
    recorder = recording(monkeypatch)

    def asked(method: str, path: str, body: Any = None) -> list[str]:
        recorder.calls.clear()
        shop.done(method, path, body)
        return sorted(action for _, action, _ in recorder.calls if action.startswith("kms:"))

    assert asked("GET", "/webhooks") == []
    assert "kms" not in services().wiring.parts.clients
    body = {"url": "http://127.0.0.1:8099/hook", "events": ["*"]}
    assert asked("POST", "/webhooks", body) == ["kms:Encrypt"]
    (row,) = services().store.every(WebhookEndpoint)
    assert asked("POST", f"/webhooks/{row.id}/rotate-secret", {}) == ["kms:Encrypt"]
    wiring.forget()
    for method, path, sent in (
        ("PUT", f"/webhooks/{row.id}", {"enabled": False}),
        ("GET", f"/webhooks/{row.id}", None),
        ("GET", f"/webhooks/{row.id}/deliveries", None),
        ("DELETE", f"/webhooks/{row.id}", None),
    ):
        assert asked(method, path, sent) == []
    assert "kms" not in services().wiring.parts.clients


def test_where_kms_is_down_nothing_is_half_made_and_no_attempt_is_counted(
    shop: Shop, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    hook = shop.hook(receiver.url())
    before = items()
    wired = services()
    (row,) = wired.store.every(WebhookEndpoint)
    wired.wiring.parts.clients["kms"] = unreachable_kms()
    headers = {"Idempotency-Key": "k"}
    body = {"url": "http://127.0.0.1:8099/hook", "events": ["*"], "secret": "a secret of my own"}
    for path, sent in (("/webhooks", body), (f"/webhooks/{hook['id']}/rotate-secret", {"secret": "a secret of my own"})):
        assert shop.refused("POST", path, sent, headers=headers) == (500, "INTERNAL_ERROR")
    assert items() == before
    assert list(wired.store.every(StoredAnswer)) == []
    assert "a secret of my own" not in caplog.text

    shop.done("POST", f"/webhooks/{hook['id']}/test")
    with pytest.raises(Unavailable):
        wired.leases.take(row.tenant, row.id)
    (waiting,) = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    assert (waiting["status"], waiting["attempts"], receiver.received) == ("pending", [], [])
    del wired.wiring.parts.clients["kms"]
    shop.work()
    assert len(receiver.received) == 1
    (told,) = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    assert (told["status"], len(told["attempts"])) == ("delivered", 1)
    assert shop.done("POST", "/webhooks", body, headers=headers)["secret"] == "a secret of my own"


def test_what_an_endpoint_was_sent(shop: Shop, receiver: Receiver) -> None:
    receiver.behave(answer(500, b"no"), answer(200))
    hook = shop.hook(receiver.url())
    shop.invoice()
    shop.work()
    (waiting,) = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    assert (waiting["status"], waiting["lastResponseStatus"], waiting["event"]) == ("pending", 500, "invoice.created")
    assert waiting["nextAttemptAt"] == waiting["attempts"][0]["nextAttemptAt"]
    assert waiting["attempts"][0]["responseBody"] == "no"
    services().clock.shift_ms += 70_000
    shop.work()
    for _ in range(4):
        services().clock.shift_ms += 1
        shop.done("POST", f"/webhooks/{hook['id']}/test")
    shop.work()
    reply = shop.ask("GET", f"/webhooks/{hook['id']}/deliveries", query={"limit": 2})
    assert [entry["event"] for entry in reply.json["data"]] == ["webhook.test"] * 2
    seen = [entry["id"] for entry in reply.json["data"]]
    pagination = reply.json["meta"]["pagination"]
    assert (pagination["total"], pagination["has_next"]) == (5, True)
    while pagination["next_cursor"]:
        query = {"limit": 2, "cursor": pagination["next_cursor"]}
        reply = shop.ask("GET", f"/webhooks/{hook['id']}/deliveries", query=query)
        seen += [entry["id"] for entry in reply.json["data"]]
        pagination = reply.json["meta"]["pagination"]
    assert len(set(seen)) == len(seen) == 5
    assert seen[-1] == waiting["id"], "newest first"
    (oldest,) = [e for e in shop.done("GET", f"/webhooks/{hook['id']}/deliveries") if e["id"] == waiting["id"]]
    assert [attempt["responseStatus"] for attempt in oldest["attempts"]] == [500, 200]
    assert ["nextAttemptAt" in attempt for attempt in oldest["attempts"]] == [True, False]


def test_sending_again_what_was_delivered(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    shop.invoice()
    shop.work()
    (first,) = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    services().clock.shift_ms += 1
    headers = {"Idempotency-Key": "again"}
    second = shop.done("POST", f"/webhooks/deliveries/{first['id']}/redeliver", headers=headers)
    assert shop.done("POST", f"/webhooks/deliveries/{first['id']}/redeliver", headers=headers) == second
    assert (second["status"], second["eventId"]) == ("pending", first["eventId"])
    assert second["id"] != first["id"]
    shop.work()
    one, two = receiver.received
    assert one.body == two.body
    assert one.headers["webhook-id"] == two.headers["webhook-id"]
    newest, oldest = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    assert (newest["id"], "redeliveredAs" in newest) == (second["id"], False)
    assert (oldest["id"], oldest["redeliveredAs"], oldest["status"]) == (first["id"], second["id"], "delivered")


def test_sending_at_once_what_waits_for_its_turn(shop: Shop, receiver: Receiver) -> None:
    receiver.behave(answer(500), answer(200))
    hook = shop.hook(receiver.url())
    shop.invoice()
    shop.work()
    (waiting,) = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    assert len(receiver.received) == 1
    same = shop.done("POST", f"/webhooks/deliveries/{waiting['id']}/redeliver")
    assert same["id"] == waiting["id"]
    assert same["nextAttemptAt"] < waiting["nextAttemptAt"]
    shop.work()
    assert len(receiver.received) == 2
    assert not [work for work in services().store.every_work() if work.kind == "delivery"]


def test_a_delivery_that_is_on_its_way_is_left_as_it_is(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    sent = shop.done("POST", f"/webhooks/{hook['id']}/test")
    assert shop.done("POST", f"/webhooks/deliveries/{sent['id']}/redeliver") == sent
    shop.work()
    assert len(receiver.received) == 1


def test_an_endpoint_that_rests_is_said_to(shop: Shop, receiver: Receiver) -> None:
    """It answered 503 with `Retry-After`: nothing is sent to it, and nobody is told otherwise."""
    receiver.behave(answer(503, b"", "Retry-After: 600"))
    hook = shop.hook(receiver.url())
    assert "restsUntil" not in hook
    shop.invoice()
    shop.work()
    shop.invoice()  # comes up in the rest
    shop.work()
    assert len(receiver.received) == 1
    until = shop.done("GET", f"/webhooks/{hook['id']}")["restsUntil"]
    assert [one["restsUntil"] for one in shop.done("GET", "/webhooks")] == [until]
    assert shop.done("PUT", f"/webhooks/{hook['id']}", {"events": ["*"]})["restsUntil"] == until
    assert shop.done("POST", f"/webhooks/{hook['id']}/rotate-secret", {})["restsUntil"] == until
    told = shop.done("GET", f"/webhooks/{hook['id']}/deliveries")
    assert len(told) == 2
    assert all(one["nextAttemptAt"] >= until for one in told)
    for one in told:
        assert shop.done("GET", f"/webhooks/deliveries/{one['id']}") == one
        hurried = shop.done("POST", f"/webhooks/deliveries/{one['id']}/redeliver")
        assert (hurried["id"], hurried["nextAttemptAt"]) == (one["id"], until)
    assert shop.done("POST", f"/webhooks/{hook['id']}/test")["nextAttemptAt"] == until
    shop.work()
    assert len(receiver.received) == 1
    with Receiver() as well:
        moved = shop.done("PUT", f"/webhooks/{hook['id']}", {"url": well.url()})
        assert "restsUntil" not in moved
        assert all(one["nextAttemptAt"] < until for one in shop.done("GET", f"/webhooks/{hook['id']}/deliveries"))


def test_reading_an_endpoint_costs_one_call_beside_the_keys(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [shop.hook()["id"] for _ in range(3)]
    recorder = recording(monkeypatch)
    for path, most in ((f"/webhooks/{ids[0]}", 2), ("/webhooks", 3)):
        wiring.forget()
        shop.done("GET", path)
        recorder.calls.clear()
        shop.done("GET", path)
        assert len(recorder.calls) <= most, recorder.calls


def test_the_test_event_bears_the_sandboxs_time(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url(), "webhook.disabled", "invoice.created")
    with Receiver() as other:
        other.behave(answer(410))
        gone = shop.hook(other.url())
        shop.done("POST", "/sandbox/clock", {"advance": 86_400})
        shop.invoice()
        shop.done("POST", f"/webhooks/{hook['id']}/test")
        shop.work()
    assert shop.done("GET", f"/webhooks/{gone['id']}")["status"] == "disabled"
    told = shop.done("GET", "/events?order=asc")
    assert [one["event"] for one in told] == ["invoice.created", "webhook.test", "webhook.disabled"]
    assert sorted(told, key=lambda one: one["timestamp"]) == told
    assert {one["event"] for one in shop.done("GET", f"/webhooks/{hook['id']}/deliveries")} == {one["event"] for one in told}
    assert told[2]["data"]["disabledAt"] < told[0]["timestamp"], "endpoints are on the machines' time"


def test_refusals_say_how_to_go_on(shop: Shop) -> None:
    hook = shop.hook()
    for status, word in (("paused", "go on"), ("disabled", "enable")):
        shop.done("PUT", f"/webhooks/{hook['id']}", {"status": status})
        reply = shop.ask("POST", f"/webhooks/{hook['id']}/test")
        assert (reply.status, reply.json["error"]["code"]) == (400, "VALIDATION_ERROR")
        assert word in str(reply.json) and f'PUT /v1/webhooks/{hook["id"]} {{"status": "active"}}' in str(reply.json)


def test_what_is_gone_or_foreign_is_not_found(shop: Shop, receiver: Receiver) -> None:
    hook = shop.hook(receiver.url())
    sent = shop.done("POST", f"/webhooks/{hook['id']}/test")
    shop.work()
    asked = [
        ("PUT", f"/webhooks/{hook['id']}", {"enabled": True}),
        ("POST", f"/webhooks/{hook['id']}/test", None),
        ("POST", f"/webhooks/{hook['id']}/rotate-secret", {}),
        ("GET", f"/webhooks/{hook['id']}/deliveries", None),
        ("POST", f"/webhooks/deliveries/{sent['id']}/redeliver", None),
        ("DELETE", f"/webhooks/{hook['id']}", None),
    ]
    for method, path, body in [*asked, ("GET", f"/events/{sent['eventId']}", None)]:
        assert shop.refused(method, path, body, key="other_merchant_test") == (404, "NOT_FOUND"), path
    for id in (hook["id"], "whe_never"):
        assert shop.ask("GET", f"/webhooks/{id}", key="other_merchant_test").json["error"]["details"] == {"id": id}
    shop.done("DELETE", f"/webhooks/{hook['id']}")
    for method, path, body in asked:
        assert shop.refused(method, path, body) == (404, "NOT_FOUND"), path
    assert len(receiver.received) == 1


def test_twenty_endpoints_and_no_more_also_at_once_and_no_answer_stays_of_what_was_not_made(shop: Shop) -> None:
    tenant = None
    for _ in range(MAX_ENDPOINTS - 3):
        shop.hook()
    start = threading.Barrier(8)

    def register(n: int) -> Response:
        start.wait()
        body = {"url": "http://127.0.0.1:8099/hook", "events": ["*"]}
        return shop.ask("POST", "/webhooks", body, headers={"Idempotency-Key": f"k-{n}"})

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(register, range(8)))
    assert sorted(reply.status for reply in replies) == [201] * 3 + [400] * 5
    hooks = list(services().store.every(WebhookEndpoint))
    assert len(hooks) == MAX_ENDPOINTS
    assert len(list(services().store.every(StoredAnswer))) == 3
    tenant = hooks[0].tenant
    start = threading.Barrier(4)

    def delete(_: int) -> int:
        start.wait()
        return shop.ask("DELETE", f"/webhooks/{hooks[0].id}").status

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(delete, range(4))) == [200, 404, 404, 404]
    tally = services().store.get(Tally, tenant=tenant, of="webhooks")
    assert tally is not None
    assert tally.count == MAX_ENDPOINTS - 1
    shop.hook()
    assert shop.refused("POST", "/webhooks", {"url": "http://127.0.0.1:8099/", "events": ["*"]}) == (400, "VALIDATION_ERROR")


def test_events_can_be_read_one_by_one(shop: Shop) -> None:
    shop.invoice()
    shop.work()
    (event,) = shop.done("GET", "/events")
    assert shop.done("GET", f"/events/{event['id']}") == event
    assert json.dumps(event["data"])
    assert shop.refused("GET", "/events/evt_never") == (404, "NOT_FOUND")
    assert shop.ask("GET", "/events/evt_never").json["error"]["details"] == {"id": "evt_never"}
