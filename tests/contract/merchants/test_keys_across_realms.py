"""A production key manages its merchant's test keys within what it has itself; a test key knows test keys alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.api.records.api_keys import NewApiKey
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.times import iso
from chalicelib.usecases.merchants.api_keys import MAX_KEYS
from chalicelib.usecases.ports.changes import Save
from tests.support.edge import PREPARED, Edge
from tests.support.revoked import MOMENTS, WAYS, asked, revoke_meanwhile

DAY = 86_400_000


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def make(edge: Edge, key: str = "live", status: int = 201, headers: dict[str, str] | None = None, **body: Any) -> Any:
    wanted = {"name": "made", "type": "test", "permissions": ["read-only"]} | body
    answer = edge.call("POST", "/v1/api-keys", key=key, json=wanted, headers=headers)
    assert answer.status == status, answer.body
    return answer.json["data"] if status == 201 else answer.json["error"]


def works(edge: Edge, key: str, **more: Any) -> bool:
    return edge.call("GET", "/auth/test", key=key, **more).status == 200


def own_id(edge: Edge, key: str) -> str:
    return str(edge.call("GET", "/auth/test", key=key).json["data"]["key_id"])


def test_a_production_key_makes_changes_rotates_and_revokes_a_test_key(edge):
    made = make(edge, permissions=["read-only", "keys:write"])
    NewApiKey.model_validate(made)
    assert (made["type"], made["created_by"], made["key"][:8]) == ("test", own_id(edge, "live"), "sk_test_")
    id = made["key_id"]
    assert works(edge, made["key"])
    assert edge.call("GET", f"/api-keys/{id}", key="live").json["data"]["name"] == "made"
    changed = edge.call("PUT", f"/api-keys/{id}", key="live", json={"name": "new", "permissions": ["full"]})
    assert (changed.status, changed.json["data"]["name"]) == (200, "new")
    rotated = edge.call("POST", f"/api-keys/{id}/rotate", key="live", json={"overlap": 60})
    assert (rotated.status, rotated.json["data"]["type"]) == (201, "test")
    new = rotated.json["data"]
    assert works(edge, made["key"])
    assert works(edge, new["key"])
    assert edge.call("DELETE", f"/api-keys/{new['key_id']}", key="live").json["data"]["status"] == "revoked"
    assert not works(edge, new["key"])


def test_the_list_of_a_production_key_has_both_kinds_on_request(edge):
    made = make(edge, name="sandbox")
    make(edge, type="production", name="second")

    def names(key: str, **query: Any) -> list[str]:
        answer = edge.call("GET", "/v1/api-keys", key=key, query=query)
        assert answer.status == 200, answer.body
        pagination = answer.json["meta"]["pagination"]
        if not query.get("cursor") and query.get("limit") is None:
            assert pagination["total"] == len(answer.json["data"])
        return [entry["name"] for entry in answer.json["data"]]

    assert names("live") == ["second", "live"]
    assert names("live", type="production") == ["second", "live"]
    assert names("live", type="test") == ["sandbox", "reader", "client"]
    assert names("live", **{"type[in]": "production,test"}) == ["second", "sandbox", "reader", "live", "client"]
    assert names("live", **{"type[in]": "production,test", "order": "asc"})[0] == "client"
    assert names("live", **{"type[ne]": "production", "sort": "name", "order": "asc"}) == ["client", "reader", "sandbox"]
    assert names("live", key_id=made["key_id"], type="test") == ["sandbox"]
    assert names("live", key_id=made["key_id"]) == []
    for query in ({"type": "production"}, {"type[ne]": "test"}):
        assert names("client", **query) == []
    assert names("client", **{"type[in]": "production,test"}) == ["sandbox", "reader", "client"]
    paged, cursor = [], None
    while True:
        query = {"type[in]": "production,test", "limit": 2} | ({"cursor": cursor} if cursor else {})
        answer = edge.call("GET", "/v1/api-keys", key="live", query=query).json
        paged += [entry["name"] for entry in answer["data"]]
        cursor = answer["meta"]["pagination"]["next_cursor"]
        if cursor is None:
            break
    assert paged == ["second", "sandbox", "reader", "live", "client"]
    second = edge.call("GET", "/v1/api-keys", key="live", query={"type[in]": "production,test", "limit": 2, "page": 2}).json
    assert [entry["name"] for entry in second["data"]] == ["reader", "live"]
    assert second["meta"]["pagination"]["total"] == 5


def test_a_test_key_reaches_no_production_key_whoever_made_it(edge):
    made = make(edge, permissions=["full"])["key"]
    ids = [own_id(edge, "live"), make(edge, type="production")["key_id"], own_id(edge, "other"), "key_nobodys"]
    for id in ids:
        answers = [
            edge.call("GET", f"/api-keys/{id}", key=made),
            edge.call("PUT", f"/api-keys/{id}", key=made, json={"name": "mine"}),
            edge.call("DELETE", f"/api-keys/{id}", key=made),
            edge.call("POST", f"/api-keys/{id}/rotate", key=made, json={}),
        ]
        assert {(a.status, a.json["error"]["message"]) for a in answers} == {(404, "API key not found")}
    assert make(edge, key=made, status=400, type="production")["details"]["field"] == "type"
    assert works(edge, "live")


def test_another_merchants_test_keys_look_like_none(edge):
    theirs = own_id(edge, "other")
    answers = [
        edge.call("GET", f"/api-keys/{theirs}", key="live"),
        edge.call("PUT", f"/api-keys/{theirs}", key="live", json={"name": "mine"}),
        edge.call("DELETE", f"/api-keys/{theirs}", key="live"),
        edge.call("POST", f"/api-keys/{theirs}/rotate", key="live", json={}),
    ]
    assert {(a.status, a.json["error"]["message"]) for a in answers} == {(404, "API key not found")}
    assert theirs not in str(edge.call("GET", "/api-keys", key="live", query={"type": "test", "limit": 100}).json)


def test_a_production_key_hands_a_test_key_no_more_than_it_holds(edge):
    soon = edge.services.clock.now_ms() + DAY
    poor = edge.new_key("keys:write", "keys:read", realm="live", ip_whitelist=["127.0.0.1", "10.0.0.0/8"], expires_at=soon)
    assert make(edge, key=poor, status=403, permissions=["sandbox:write"])["details"]["required"] == "sandbox:write"
    wide = {"ip_whitelist": ["0.0.0.0/0"]}
    assert make(edge, key=poor, status=400, permissions=["keys:read"], restrictions=wide)["code"] == "VALIDATION_ERROR"
    assert make(edge, key=poor, status=400, permissions=["keys:read"], expires_at=None)["details"]["field"] == "expires_at"
    assert make(edge, key=poor, status=403, permissions=["keys:read"], level="admin")["details"]["required"] == "admin"
    made = make(edge, key=poor, permissions=["keys:read"])
    assert made["restrictions"]["ip_whitelist"] == ["127.0.0.1", "10.0.0.0/8"]
    assert made["expires_at"] == iso(soon)
    strong = own_id(edge, "client")
    assert edge.call("POST", f"/api-keys/{strong}/rotate", key=poor, json={}).status == 403
    narrow = make(edge, permissions=["read-only"], restrictions={"ip_whitelist": ["203.0.113.7"]})["key_id"]
    assert edge.call("PUT", f"/api-keys/{narrow}", key=poor, json={"permissions": ["full"]}).status == 403
    widened = edge.call("PUT", f"/api-keys/{narrow}", key=poor, json={"restrictions": {"ip_whitelist": []}})
    assert widened.status in (400, 403)
    limited = edge.new_key(realm="live", rate_limit=10)
    assert make(edge, key=limited, status=400)["details"]["field"] == "restrictions"
    reader = edge.new_key("keys:read", realm="live")
    assert make(edge, key=reader, status=403)["code"] == "INSUFFICIENT_PERMISSIONS"


def test_an_admins_test_key_is_not_a_clients(edge):
    admin = edge.call("POST", "/api-keys", key="admin", json={"name": "a", "permissions": ["full"], "level": "admin"}).json["data"]
    # A client's production key of the operator's own merchant.
    from chalicelib.domain.merchants.merchants import ApiKey
    from infra.bootstrap import make_key

    merchant = next(key for key in edge.services.store.every(ApiKey) if key.id == admin["key_id"]).merchant
    client = make_key(edge.services, merchant, "live", "client", ("full",), "a client")
    for method, tail, body in (("PUT", "", {"name": "x"}), ("DELETE", "", None), ("POST", "/rotate", {})):
        refused = edge.call(method, f"/api-keys/{admin['key_id']}{tail}", key=client, json=body)
        assert (refused.status, refused.json["error"]["details"]["required"]) == (403, "admin")
    assert works(edge, admin["key"])


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_revoked_production_key_makes_no_test_key_any_more(edge, monkeypatch, way, moment):
    target, thief = make(edge, restrictions={"rate_limit": 5})["key_id"], edge.new_key(realm="live")
    before = edge.call("GET", "/api-keys", key="live", query={"type": "test"}).json["meta"]["pagination"]["total"]
    revoke_meanwhile(edge, monkeypatch, moment, f"{edge.shop}:live", own_id(edge, thief))
    late = asked(edge, way, thief, target, type="test")
    assert (late.status, late.json["error"]["code"]) == (401, "INVALID_API_KEY")
    after = edge.call("GET", "/api-keys", key="live", query={"type": "test"}).json["meta"]["pagination"]["total"]
    assert after == before


def test_test_keys_count_in_the_sandbox_alone(edge):
    store, tenant = edge.services.store, f"{edge.shop}:test"
    live_before = store.get(Tally, tenant=f"{edge.shop}:live", of="keys")
    tally = store.get(Tally, tenant=tenant, of="keys")
    assert tally is not None
    store.commit([Save(tally.plus(MAX_KEYS - tally.count - 1))])

    def one(key: str) -> Any:
        return edge.call("POST", "/api-keys", key=key, json={"name": "n", "type": "test", "permissions": ["read-only"]})

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(one, ["live", "client", "live", "client"]))
    assert sorted(a.status for a in answers) == [201, 400, 400, 400]
    (made,) = [a.json["data"] for a in answers if a.status == 201]
    assert store.get(Tally, tenant=f"{edge.shop}:live", of="keys") == live_before
    with ThreadPoolExecutor(4) as pool:
        gone = list(
            pool.map(lambda key: edge.call("DELETE", f"/api-keys/{made['key_id']}", key=key), ["live", "client", "live", "client"])
        )
    assert {a.status for a in gone} == {200}
    tally = store.get(Tally, tenant=tenant, of="keys")
    assert tally is not None
    assert tally.count == MAX_KEYS - 1, "a key that several revoke at once leaves the count once"


def test_the_answer_is_sealed_with_the_production_key(edge):
    headers = {"Idempotency-Key": "across-1"}
    body = {"name": "once", "type": "test", "permissions": ["read-only"]}
    first = edge.call("POST", "/api-keys", key="live", json=body, headers=headers)
    again = edge.call("POST", "/v1/api-keys", key="live", json=body, headers=headers)
    assert (first.status, again.status, again.body) == (201, 201, first.body)
    colleague = edge.new_key(realm="live")
    refused = edge.call("POST", "/api-keys", json=body, headers=headers, key=colleague)
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert first.json["data"]["key"] not in refused.body.decode()


def test_reading_one_key_of_either_kind_is_one_round_trip_more_than_letting_in(edge):
    made = make(edge)["key_id"]
    edge.call("GET", f"/api-keys/{made}", key="live")
    calls = edge.calls()
    for id in (made, own_id(edge, "live")):
        calls.made.clear()
        assert edge.call("GET", f"/api-keys/{id}", key="live").status == 200
        assert calls.made == ["UpdateItem", "BatchGetItem"]
