"""An invoice's own webhook: told of that invoice and of its refunds, of nothing else, and at no cost to other invoices."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, WebhookEndpoint
from chalicelib.domain.webhooks.hooks import is_hook
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.store import Store
from infra.local.aws import LocalAws
from tests.support.edge import PREPARED, Edge
from tests.support.receiver import Receiver
from tests.support.refunds import refund, settle
from tests.support.shop import PAYEE, open_shop
from tests.support.stack import Stack
from tests.support.webhooks import a_listener

URL = "https://shop.example/hook?token=t"


@pytest.fixture
def edge(aws: LocalAws) -> Edge:
    return PREPARED.edge(aws)


def make(edge: Edge, key: str | None = None, **body: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = edge.call("POST", "/invoices", json={"currency": "eth", "amount": "1", **body}, headers=headers)
    assert answer.status == 201, answer.body
    return answer.json


def told(edge: Edge) -> list[Delivery]:
    """Tell all outbox rows, and what is to be sent of them."""
    store = edge.services.store
    for row in list(store.every(OutboxRow)):
        edge.services.relay.tell(row.id)
    return list(store.every(Delivery))


def shop(edge: Edge) -> TenantId:
    return TenantId(f"{edge.shop}:test")


def test_the_secret_is_in_the_first_answer_alone(edge: Edge) -> None:
    made = make(edge, "a", webhookUrl=URL, webhookSecret="0123456789abcdef")
    assert (made["webhookUrl"], made["webhookSecret"]) == ("https://shop.example/hook", "0123456789abcdef")
    assert make(edge, "a", webhookUrl=URL, webhookSecret="0123456789abcdef") == made, "and in its repetition"
    shown = edge.call("GET", f"/invoices/{made['id']}").json
    assert shown["webhookId"] == made["webhookId"] and "webhookSecret" not in shown
    assert make(edge, webhookUrl=URL)["webhookSecret"].startswith("whsec_")
    stored = edge.services.store.get(Invoice, tenant=shop(edge), id=made["id"])
    assert stored.hook.url == URL and "0123456789abcdef" not in str(stored) + stored.hook.secret


def test_it_is_told_of_its_invoice_alone(edge: Edge) -> None:
    hooked, plain = make(edge, webhookUrl=URL), make(edge)
    edge.call("DELETE", f"/invoices/{hooked['id']}")
    edge.call("DELETE", f"/invoices/{plain['id']}")
    deliveries = told(edge)
    assert sorted(d.event_name for d in deliveries) == ["invoice.cancelled", "invoice.created"]
    assert {d.endpoint_id for d in deliveries} == {hooked["webhookId"]}
    endpoint = edge.services.store.get(WebhookEndpoint, tenant=shop(edge), id=hooked["webhookId"])
    assert (endpoint.url, endpoint.events, endpoint.sealed) == (URL, ("*",), True)
    assert endpoint.ttl >= edge.services.clock.now_ms() // 1000 + 2 * KEEP_SECONDS - 60
    listed = edge.call("GET", f"/webhooks/{hooked['webhookId']}/deliveries").json["data"]
    assert sorted(each["event"] for each in listed) == ["invoice.cancelled", "invoice.created"]


def test_it_is_none_of_the_registered_ones(edge: Edge) -> None:
    made = make(edge, webhookUrl=URL)
    told(edge)
    assert edge.call("GET", "/webhooks").json["data"] == []
    for method, path, body in (
        ("PUT", "", {"status": "paused"}), ("DELETE", "", None), ("POST", "/rotate-secret", {}),
        ("POST", "/redeliver", {"from": "2026-01-01T00:00:00Z"}),
    ):  # fmt: skip
        answer = edge.call(method, f"/webhooks/{made['webhookId']}{path}", **({} if body is None else {"json": body}))
        assert answer.status == 404, (method, path, answer.body)
    assert edge.call("GET", f"/webhooks/{made['webhookId']}", key="other").status == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"webhookUrl": "ftp://shop.example"}, "webhookUrl"),
        ({"webhookUrl": "https://user:hunter2@shop.example"}, "webhookUrl"),
        ({"webhookUrl": 7}, "webhookUrl"),
        ({"webhookUrl": URL, "webhookSecret": "short"}, "webhookSecret"),
        ({"webhookSecret": "0123456789abcdef"}, "webhookUrl"),
    ],
)
def test_what_is_no_webhook_is_refused(edge: Edge, body: Any, field: str) -> None:
    answer = edge.call("POST", "/invoices", json={"currency": "eth", "amount": "1", **body})
    assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER")
    assert field in answer.body.decode() and "hunter2" not in answer.body.decode()


def test_a_row_told_twice_or_after_a_crash_tells_once(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    make(edge, webhookUrl=URL)
    (row,) = list(edge.services.store.every(OutboxRow))
    with monkeypatch.context() as broken:
        broken.setattr("chalicelib.usecases.webhooks.relay.made_once", _raises)
        with pytest.raises(RuntimeError):
            edge.services.relay.tell(row.id)
    assert edge.services.relay.tell(row.id) and not edge.services.relay.tell(row.id)
    assert len(list(edge.services.store.every(Delivery))) == 1


def test_plain_invoices_read_and_store_nothing_for_it(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    edge.services.store.commit([Save(a_listener(shop(edge)))])
    make(edge)
    (row,) = list(edge.services.store.every(OutboxRow))
    assert row.hooks is None
    read: list[type] = []
    get = edge.services.store.get
    monkeypatch.setattr(edge.services.store, "get", lambda kind, /, **key: (read.append(kind), get(kind, **key))[1])
    edge.services.relay.tell(row.id)
    assert read == [OutboxRow]
    assert not any(is_hook(one.id) for one in edge.services.store.every(WebhookEndpoint))


def _raises(store: Store, *_: Any, **__: Any) -> None:
    raise RuntimeError("the function died")


def test_its_failures_are_not_told_to_the_other_endpoints(edge: Edge) -> None:
    made = make(edge, webhookUrl=URL)
    told(edge)
    endpoint = edge.services.store.get(WebhookEndpoint, tenant=shop(edge), id=made["webhookId"])
    notices = edge.services.leases._deliveries.notices
    now = edge.services.clock.now_ms()
    changes = notices.turned_off(endpoint, "it answered 410 Gone", now)
    edge.services.store.commit(changes)
    edge.call("DELETE", f"/invoices/{made['id']}")
    assert [row.events[0].name for row in edge.services.store.every(OutboxRow)] == ["invoice.cancelled"]
    assert len(told(edge)) == 1, "410 ends it"


def test_a_shops_story_reaches_the_hook_in_its_order_signed_with_its_secret(stack: Stack) -> None:
    """Invoice, payment, refund: all of it, and nothing of the withdrawal, the deposit or the balance beside it."""
    with Receiver() as receiver, open_shop(stack) as shop:
        made = settle(shop, shop.invoice("1", webhookUrl=receiver.url()), None)
        shop.turn("deliver")
        refund(shop, made, amount="0.4", address=PAYEE)
        shop.turn("deliver")
        shop.mine()
        shop.turn("deliver")
        bodies = [json.loads(one.body) for one in receiver.received]
        for name in ("invoice", "refund"):
            of_one = [body for body in bodies if body["event"].startswith(name)]
            assert [body["sequence"] for body in of_one] == list(range(1, len(of_one) + 1))
            assert of_one[0]["event"] == f"{name}.created" and of_one[-1]["event"] == f"{name}.completed"
            assert len(bodies) > len(of_one)
        assert {body["event"].partition(".")[0] for body in bodies} == {"invoice", "refund"}
        for one in receiver.received:
            digest = hmac.new(made["webhookSecret"].encode(), one.body, hashlib.sha256).hexdigest()
            assert one.headers["x-gateway-signature"] == f"sha256={digest}"
