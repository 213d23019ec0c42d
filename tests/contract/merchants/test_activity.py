"""Who did what: one record for each request that changed something, in the transaction of the change."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from chalicelib.api.records.activity import Activity as Shown
from chalicelib.domain.merchants.activity import KEPT_SECONDS, Activity
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Unavailable
from tests.support.edge import PREPARED, Edge

INVOICE = {"currency": "eth", "network": "ethereum", "amount": "0.5", "description": "nobody else's business"}


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def listed(edge: Edge, key: str = "client", **query: Any) -> list[dict[str, Any]]:
    answer = edge.call("GET", "/v1/activity", key=key, query=query)
    assert answer.status == 200, answer.body
    for entry in answer.json["data"]:
        Shown.model_validate(entry)
    return list(answer.json["data"])


def stored(edge: Edge) -> list[Activity]:
    return list(edge.services.store.every(Activity))


def own_id(edge: Edge, key: str) -> str:
    return str(edge.call("GET", "/auth/test", key=key).json["data"]["key_id"])


def ok(answer: Any, status: int = 201) -> Any:
    assert answer.status == status, answer.body
    return answer.json


def test_a_change_is_recorded_with_its_key_route_and_object(edge):
    made = edge.call("POST", "/v1/invoices", json=INVOICE)
    id = ok(made)["id"]
    ok(edge.call("PUT", "/invoices", json={"invoiceId": id, "status": "seen"}))
    ok(edge.call("DELETE", f"/invoices/{id}"), 400)
    second, first = listed(edge)
    assert first == {
        "id": first["id"],
        "created_at": first["created_at"],
        "key_id": own_id(edge, "client"),
        "key_name": "client",
        "key_prefix": edge.keys["client"][:12],
        "type": "test",
        "method": "POST",
        "route": "/invoices",
        "object_id": id,
        "request_id": made.headers["x-request-id"],
        "outcome": "done",
    }
    assert (second["method"], second["route"], second["object_id"]) == ("PUT", "/invoices", id)
    record = stored(edge)[0]
    assert record.ttl == record.created_at // 1000 + KEPT_SECONDS


def test_the_record_is_of_the_same_transaction_and_costs_no_call_more(edge):
    ok(edge.call("POST", "/v1/invoices", json=INVOICE))  # warm
    calls = edge.calls()
    sent: list[Any] = []
    client = edge.services.store.models.connection.client
    client.meta.events.register(
        "provide-client-params.dynamodb.TransactWriteItems", lambda params, **_: sent.append(params["TransactItems"])
    )
    ok(edge.call("POST", "/v1/invoices", json=INVOICE))
    assert calls.made.count("TransactWriteItems") == 1
    assert len(calls.made) <= 3
    client.meta.events.unregister("provide-client-params.dynamodb.TransactWriteItems")
    calls.made.clear()
    ok(edge.call("POST", "/v1/addresses", json={"network": "ethereum"}))
    assert calls.made.count("TransactWriteItems") == 1
    assert len(calls.made) <= 3


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/invoices", {"currency": "eth"}, 400),
        ("POST", "/invoices", INVOICE | {"currency": "nothing"}, 400),
        ("DELETE", "/invoices/inv_nobodys", None, 404),
        ("PUT", "/networks", {"network": "ethereum", "name": "mine"}, 403),
        ("POST", "/api-keys", {"name": "n", "permissions": ["full"], "type": "production"}, 400),
        ("POST", "/withdraws", {"network": "ethereum", "coin": "eth", "amount": "1", "to_address": "0x" + "11" * 20}, 400),
        ("POST", "/addresses/validate", {"network": "ethereum", "address": "0x" + "11" * 20}, 200),
    ],
)
def test_what_is_refused_or_changes_nothing_leaves_no_record(edge, method, path, body, status):
    answer = edge.call(method, path, json=body)
    assert answer.status == status, answer.body
    assert stored(edge) == []


def test_the_same_again_is_one_record(edge):
    headers = {"Idempotency-Key": "a-1"}
    for _ in range(3):
        ok(edge.call("POST", "/invoices", json=INVOICE, headers=headers))
    made = ok(edge.call("POST", "/api-keys", json={"name": "k", "permissions": ["read-only"]}))["data"]["key_id"]
    for _ in range(3):
        ok(edge.call("DELETE", f"/api-keys/{made}"), 200)
        ok(edge.call("PUT", f"/api-keys/{own_id(edge, 'reader')}", json={"name": "reader"}), 200)
    assert [(e["method"], e["route"]) for e in listed(edge)] == [
        ("DELETE", "/api-keys/{id}"),
        ("POST", "/api-keys"),
        ("POST", "/invoices"),
    ]


@pytest.mark.parametrize("after", [False, True])
def test_a_commit_that_fails_leaves_neither_change_nor_record(edge, monkeypatch, after):
    store = type(edge.services.store)
    real = store._commit

    def broken(self, changes):
        if after:
            real(self, changes)
        raise Unavailable("cut")

    monkeypatch.setattr(store, "_commit", broken)
    assert edge.call("POST", "/api-keys", json={"name": "cut", "permissions": ["read-only"]}).status == 500
    monkeypatch.undo()
    names = [entry["name"] for entry in edge.call("GET", "/api-keys").json["data"]]
    assert ("cut" in names) is after
    assert len(stored(edge)) == int(after), "both or none"


def test_a_second_try_records_what_it_makes_itself(edge, monkeypatch):
    store = type(edge.services.store)
    real, tries = store._commit, []

    def contended(self, changes):
        tries.append(changes)
        if len(tries) == 1:
            raise Conflict(None)
        real(self, changes)

    monkeypatch.setattr(store, "_commit", contended)
    made = ok(edge.call("POST", "/api-keys", json={"name": "k", "permissions": ["read-only"]}))["data"]["key_id"]
    (record,) = stored(edge)
    assert (record.object_id, record.made_id) == (made, None)


def test_a_commit_whose_answer_was_lost_is_not_recorded_twice(edge, monkeypatch):
    """The use case commits again, and the first transaction was made after all."""
    store = type(edge.services.store)
    real, tries = store._commit, []

    def lost(self, changes):
        tries.append(changes)
        real(self, changes)
        if len(tries) == 1:
            raise Conflict(None)

    monkeypatch.setattr(store, "_commit", lost)
    ok(edge.call("PUT", "/merchant/settings", json={"whitelist_enforced": True}), 200)
    ok(edge.call("POST", "/api-keys", json={"name": "k", "permissions": ["read-only"]}))
    assert sorted(record.route for record in stored(edge)) == ["/api-keys", "/merchant/settings"]


def test_what_was_made_of_an_object_is_found_by_either(edge):
    key = ok(edge.call("POST", "/api-keys", json={"name": "k", "permissions": ["read-only"]}))["data"]["key_id"]
    new = ok(edge.call("POST", f"/api-keys/{key}/rotate", json={"overlap": 60}))["data"]["key_id"]
    ok(edge.call("DELETE", f"/api-keys/{new}"), 200)
    assert [(e["route"], e.get("made_id")) for e in listed(edge, object_id=key)] == [
        ("/api-keys/{id}/rotate", new),
        ("/api-keys", None),
    ]
    assert [e["route"] for e in listed(edge, made_id=new)] == ["/api-keys/{id}/rotate"]
    assert [e["method"] for e in listed(edge, object_id=new)] == ["DELETE"]


def test_a_change_on_the_simulated_chain_is_noted_after_it(edge):
    address = ok(edge.call("POST", "/addresses", json={"network": "ethereum"}))["address"]
    pay = {"address": address, "network": "ethereum", "coin": "eth", "amount": "1"}
    ok(edge.call("POST", "/sandbox/deposits", json=pay))
    headers = {"Idempotency-Key": "s-1"}
    for _ in range(2):
        ok(edge.call("POST", "/sandbox/blocks", json={"network": "ethereum", "count": 2}, headers=headers))
    assert edge.call("POST", "/sandbox/reorg", json={"network": "ethereum", "depth": 100_000}).status == 400
    ok(edge.call("POST", "/sandbox/clock", json={"advance": 60}))
    assert [(e["route"], e["outcome"]) for e in listed(edge)] == [
        ("/sandbox/clock", "done"),
        ("/sandbox/blocks", "done"),
        ("/sandbox/deposits", "noted"),
        ("/addresses", "done"),
    ]


def test_each_sees_its_own(edge):
    ok(edge.call("POST", "/addresses", json={"network": "ethereum"}))
    ok(edge.call("POST", "/addresses", key="other", json={"network": "ethereum"}))
    ok(edge.call("POST", "/addresses", key="live", json={"network": "ethereum"}))
    ok(edge.call("POST", "/addresses", key="admin", json={"network": "ethereum"}))
    ok(edge.call("PUT", "/networks", key="admin", json={"network": "ethereum", "name": "Ether"}), 200)
    ok(edge.call("PUT", "/withdrawals/switch", key="admin", json={"stopped": True}), 200)
    names = {key: own_id(edge, key) for key in ("client", "other", "live", "admin")}
    assert {e["key_id"] for e in listed(edge, "reader")} == {names["client"]}
    assert {e["key_id"] for e in listed(edge, "other")} == {names["other"]}
    assert {e["key_id"] for e in listed(edge, "live")} == {names["live"]}
    assert {e["key_id"] for e in listed(edge, "live", type="test")} == {names["client"]}
    assert {e["key_id"] for e in listed(edge, "live", **{"type[in]": "test,production"})} == {names["live"], names["client"]}
    assert listed(edge, "client", type="production") == []
    assert listed(edge, "client", key_id=names["live"]) == []
    assert listed(edge, "client", key_id=names["other"]) == []
    routes = ["/withdrawals/switch", "/networks", "/addresses"]
    assert [e["route"] for e in listed(edge, "admin")] == routes
    assert [e["route"] for e in listed(edge, "admin", order="asc")] == routes[::-1]
    assert [e["object_id"] for e in listed(edge, "admin", route="/networks")] == ["ethereum"]
    assert [e["route"] for e in listed(edge, "admin", object_id="ethereum")] == ["/networks"]
    colleague = edge.call("POST", "/api-keys", key="admin", json={"name": "clerk", "permissions": ["read-only"]}).json["data"][
        "key"
    ]
    assert [e["route"] for e in listed(edge, colleague)] == ["/api-keys", "/addresses"], "a client key of the operator's merchant"
    assert edge.call("GET", "/activity", key=edge.new_key("invoices:read")).status == 403


def test_it_is_filtered_and_paged(edge):
    for _ in range(5):
        ok(edge.call("POST", "/addresses", json={"network": "ethereum"}))
        edge.services.clock.shift_ms += 1
    second = edge.new_key()
    made = ok(edge.call("POST", "/invoices", key=second, json=INVOICE))["id"]
    ok(edge.call("DELETE", f"/invoices/{made}", key=second), 200)
    assert [e["method"] for e in listed(edge, key_id=own_id(edge, second))] == ["DELETE", "POST"]
    assert [e["method"] for e in listed(edge, object_id=made.upper())] == ["DELETE", "POST"]
    assert [e["method"] for e in listed(edge, key_id=own_id(edge, second), method="DELETE")] == ["DELETE"]
    assert len(listed(edge, route="/addresses")) == 5
    assert listed(edge, to="2020-01-01") == []
    assert len(listed(edge, **{"from": "2020-01-01"})) == 7
    seen, cursor = [], None
    while True:
        answer = edge.call("GET", "/activity", query={"limit": 3} | ({"cursor": cursor} if cursor else {})).json
        seen += [entry["id"] for entry in answer["data"]]
        cursor = answer["meta"]["pagination"]["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 7
    assert edge.call("GET", "/activity", query={"limit": 3}).json["meta"]["pagination"]["total"] == 7


def test_the_record_has_nothing_of_the_body_and_no_secret(edge):
    body = {"name": "hidden name", "permissions": ["read-only"], "restrictions": {"ip_whitelist": ["203.0.113.77"]}}
    key = ok(edge.call("POST", "/api-keys", json=body, headers={"Idempotency-Key": "hidden-idempotency"}))["data"]["key"]
    ok(edge.call("POST", "/invoices?description=x".partition("?")[0], json=INVOICE))
    payee = "0x" + "ab" * 20
    ok(edge.call("POST", "/whitelist/addresses", json={"network": "ethereum", "address": payee, "label": "a friend"}))
    items = boto3.client("dynamodb").scan(TableName=edge.services.settings.table("records"))["Items"]
    found = [repr(item) for item in items if item["pk"]["S"].startswith("act#")]
    assert len(found) == 3
    for secret in (key, edge.keys["client"], "hidden", "203.0.113.77", "nobody else", "friend", payee, payee.upper()):
        assert not any(secret.lower() in text.lower() for text in found), secret


def test_it_comes_on_top_of_a_transaction_with_all_its_items(edge):
    """A link, the eight shards of its stock, and the stored answer are ten items already."""
    link = {"name": "Ten", "amount": "1", "currency": "eth", "network": "ethereum", "stock": 80}
    made = ok(edge.call("POST", "/payment-links", json=link, headers={"Idempotency-Key": "ten"}))
    assert listed(edge)[0]["object_id"] == made.get("id", made.get("data", {}).get("id"))


def test_requests_at_the_same_time_have_a_record_each(edge):
    from concurrent.futures import ThreadPoolExecutor

    keys = [edge.new_key() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda n: edge.call("POST", "/addresses", key=keys[n % 4], json={"network": "ethereum"}), range(12))
        )
    assert {a.status for a in answers} == {201}
    by_object = {record.object_id: record.key_prefix for record in stored(edge)}
    assert by_object == {a.json["id"]: keys[n % 4][:12] for n, a in enumerate(answers)}
