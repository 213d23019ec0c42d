"""API keys over HTTP: made, shown once, changed, rotated, revoked, and never a way to more than one has."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest

from chalicelib.api.records.api_keys import ApiKey as KeyRecord
from chalicelib.api.records.api_keys import NewApiKey
from chalicelib.domain.merchants.merchants import PERMISSIONS, PRESETS, ApiKey, Tally
from chalicelib.domain.times import iso
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.merchants.api_keys import MAX_KEYS, MAX_OVERLAP
from chalicelib.usecases.ports.changes import Save
from tests.support.edge import PREPARED, Edge
from tests.support.revoked import MOMENTS, WAYS, asked, revoke_meanwhile

DAY = 86_400_000


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def make(edge: Edge, key: str = "client", status: int = 201, headers: dict[str, str] | None = None, **body: Any) -> Any:
    answer = edge.call("POST", "/v1/api-keys", key=key, json={"name": "made", "permissions": ["read-only"]} | body, headers=headers)
    assert answer.status == status, answer.body
    return answer.json["data"] if status == 201 else answer.json["error"]


def change(edge: Edge, id: str, key: str = "client", status: int = 200, **body: Any) -> Any:
    answer = edge.call("PUT", f"/v1/api-keys/{id}", key=key, json=body)
    assert answer.status == status, answer.body
    return answer.json["data"] if status == 200 else answer.json["error"]


def rotate(edge: Edge, id: str, key: str = "client", status: int = 201, **body: Any) -> Any:
    answer = edge.call("POST", f"/v1/api-keys/{id}/rotate", key=key, json=body)
    assert answer.status == status, answer.body
    return answer.json["data"] if status == 201 else answer.json["error"]


def works(edge: Edge, key: str, **kwargs: Any) -> bool:
    return edge.call("GET", "/auth/test", key=key, **kwargs).status == 200


def own_id(edge: Edge, key: str) -> str:
    return edge.call("GET", "/auth/test", key=key).json["data"]["key_id"]


def test_a_key_is_made_shown_once_and_works(edge):
    made = make(
        edge,
        name="Shop",
        type="test",
        permissions=["read-only", "addresses:create"],
        restrictions={"ip_whitelist": ["203.0.113.9/24", "2001:DB8::/32"], "rate_limit": 7, "daily_limit": 70},
        expires_at="2099-01-31T12:00:00+02:00",
    )
    NewApiKey.model_validate(made)
    assert (made["name"], made["type"], made["status"], made["level"]) == ("Shop", "test", "active", "client")
    assert made["restrictions"] == {"ip_whitelist": ["203.0.113.0/24", "2001:db8::/32"], "rate_limit": 7, "daily_limit": 70}
    assert made["permissions"] == [p for p in PERMISSIONS if p in PRESETS["read-only"] or p == "addresses:create"]
    assert made["expires_at"] == "2099-01-31T10:00:00.000Z"
    assert made["key"].startswith(made["key_prefix"])
    used = edge.call("GET", "/auth/test", key=made["key"], source_ip="203.0.113.250")
    assert (used.status, used.headers["x-ratelimit-limit"]) == (200, "7")
    assert not works(edge, made["key"], source_ip="203.0.114.1")
    shown = edge.call("GET", f"/api-keys/{made['key_id']}").json["data"]
    KeyRecord.model_validate(shown)
    assert shown == {name: value for name, value in made.items() if name != "key"}


def test_the_list_shows_this_environments_keys_and_no_others(edge):
    made = make(edge)
    assert works(edge, made["key"])
    answer = edge.call("GET", "/v1/api-keys", query={"limit": 2})
    listed = answer.json["data"]
    for entry in listed:
        KeyRecord.model_validate(entry)
    assert listed[0]["key_id"] == made["key_id"]
    assert listed[0]["last_used_at"].endswith(":00.000Z")
    assert answer.json["meta"]["pagination"]["total"] == 3
    everything = edge.call("GET", "/v1/api-keys", query={"limit": 100}).json["data"]
    assert {entry["name"] for entry in everything} == {"made", "client", "reader"}
    assert {entry["type"] for entry in everything} == {"test"}
    assert "last_used_at" not in next(entry for entry in everything if entry["name"] == "reader")
    assert not any("key" in entry or "hash" in entry for entry in everything)


def test_the_list_is_filtered_by_status_and_type(edge):
    soon = edge.services.clock.now_ms() + 1000
    gone = make(edge, name="gone")
    make(edge, name="short", expires_at=iso(soon))
    assert edge.call("DELETE", f"/api-keys/{gone['key_id']}").status == 200

    def names(**query: str) -> set[str]:
        answer = edge.call("GET", "/v1/api-keys", query=query)
        assert answer.status == 200, answer.body
        assert answer.json["meta"]["pagination"]["total"] == len(answer.json["data"])
        return {entry["name"] for entry in answer.json["data"]}

    assert names(status="active") == {"client", "reader", "short"}
    edge.services.clock.shift_ms += 2000
    assert names(status="active") == {"client", "reader"}
    assert names(status="expired") == {"short"}
    assert names(status="revoked") == {"gone"}
    assert names(**{"status[in]": "expired,revoked"}) == {"gone", "short"}
    assert names(**{"status[ne]": "active", "name": "gone"}) == {"gone"}
    assert names(type="test", status="revoked") == {"gone"}
    assert names(type="production") == set()
    wrong = edge.call("GET", "/v1/api-keys", query={"status": "dead", "type": "live"})
    assert {problem["field"] for problem in wrong.json["error"]["details"]} == {"status", "type"}


def test_foreign_keys_keys_of_the_other_realm_and_none_look_the_same(edge):
    ids = [own_id(edge, "other"), own_id(edge, "live"), "key_nobodys"]
    for id in ids:
        answers = [
            edge.call("GET", f"/api-keys/{id}"),
            edge.call("PUT", f"/api-keys/{id}", json={"name": "mine"}),
            edge.call("DELETE", f"/api-keys/{id}"),
            edge.call("POST", f"/api-keys/{id}/rotate", json={}),
        ]
        assert {(a.status, a.json["error"]["message"]) for a in answers} == {(404, "API key not found")}
    assert works(edge, "other")
    assert works(edge, "live")


def test_a_test_key_makes_no_live_key(edge):
    assert make(edge, status=400, type="production")["details"]["field"] == "type"
    assert make(edge, key="live", type="production")["key"].startswith("sk_live_")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"permissions": []}, "permissions"),
        ({"permissions": ["coins:eat"]}, "permissions.0"),
        ({"permissions": "full"}, "permissions"),
        ({"type": "live"}, "type"),
        ({"level": "root"}, "level"),
        ({"restrictions": {"ip_whitelist": ["10.0.0.300"]}}, "restrictions.ip_whitelist.0"),
        ({"restrictions": {"ip_whitelist": ["10.0.0.0/255.0.0.0"]}}, "restrictions.ip_whitelist.0"),
        ({"restrictions": {"rate_limit": 0}}, "restrictions.rate_limit"),
        ({"restrictions": {"daily_limit": 1.5}}, "restrictions.daily_limit"),
        ({"restrictions": {"rate_limit": 2**40}}, "restrictions.rate_limit"),
        ({"restrictions": {"ip_whitlist": []}}, "restrictions.ip_whitlist"),
        ({"ip_restrictions": {"enabled": True, "allowed_ips": []}}, "ip_restrictions.allowed_ips"),
        ({"ip_restrictions": {"enabled": True, "allowed_ips": ["here"]}}, "ip_restrictions.allowed_ips.0"),
        ({"ip_restrictions": {"allowed_ips": []}}, "ip_restrictions.enabled"),
        ({"restrictions": {}, "ip_restrictions": {"enabled": False}}, "ip_restrictions"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2027-02-30"}, "expires_at"),
        ({"expires_at": "20270101"}, "expires_at"),
        ({"expires_at": 5}, "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-12:00"}, "expires_at"),
        ({"expires_at": "0001-01-01T00:00:00+12:00"}, "expires_at"),
        ({"hash": "x"}, "hash"),
    ],
)
def test_what_is_malformed_is_named(edge, body, field):
    error = make(edge, status=400, **body)
    assert error["code"] == "INVALID_PARAMETER"
    assert [problem["field"] for problem in error["details"]] == [field]


def test_everything_wrong_at_once(edge):
    error = edge.call("POST", "/api-keys", json={"type": "x", "expires_at": "x", "restrictions": {"rate_limit": 0}}).json["error"]
    wrong = {problem["field"] for problem in error["details"]}
    assert wrong == {"name", "permissions", "type", "expires_at", "restrictions.rate_limit"}


def test_the_other_form_of_ip_restrictions(edge):
    made = make(edge, ip_restrictions={"enabled": True, "allowed_ips": ["203.0.113.7", "203.0.113.7"]})
    assert made["restrictions"]["ip_whitelist"] == ["203.0.113.7"]
    off = change(edge, made["key_id"], ip_restrictions={"enabled": False, "allowed_ips": ["203.0.113.8"]})
    assert off["restrictions"]["ip_whitelist"] == []


def test_an_expiry_in_the_past_is_no_expiry(edge):
    assert make(edge, status=400, expires_at="2020-01-01")["details"]["field"] == "expires_at"
    assert make(edge, expires_at=None)["expires_at"] is None


def test_nobody_hands_out_what_they_do_not_hold(edge):
    poor = edge.new_key("keys:write", "keys:read", "addresses:read", ip_whitelist=["127.0.0.1", "10.0.0.0/8"])
    error = make(edge, key=poor, status=403, permissions=["addresses:read", "withdrawals:create"])
    assert (error["code"], error["details"]["required"]) == ("INSUFFICIENT_PERMISSIONS", "withdrawals:create")
    assert make(edge, key=poor, status=403, permissions=["full"])["code"] == "INSUFFICIENT_PERMISSIONS"
    for restrictions in ({"ip_whitelist": []}, {"ip_whitelist": ["0.0.0.0/0"]}):
        error = make(edge, key=poor, status=400, permissions=["addresses:read"], restrictions=restrictions)
        assert error["code"] == "VALIDATION_ERROR", restrictions
    made = make(edge, key=poor, permissions=["addresses:read"])
    assert made["restrictions"]["ip_whitelist"] == ["127.0.0.1", "10.0.0.0/8"], "what is left out is the maker's"
    assert made["created_by"] == own_id(edge, poor)
    assert make(edge, key=poor, status=403, permissions=["addresses:read"], level="admin")["details"]["required"] == "admin"


def test_a_key_does_not_outlive_itself_by_another(edge):
    soon = edge.services.clock.now_ms() + DAY
    short = edge.new_key(expires_at=soon)
    made = make(edge, key=short)
    assert made["expires_at"] is not None
    for later in (None, "2099-01-01"):
        assert make(edge, key=short, status=400, expires_at=later)["details"]["field"] == "expires_at"
        assert change(edge, made["key_id"], key=short, status=400, expires_at=later)["details"]["field"] == "expires_at"
    assert rotate(edge, own_id(edge, short), key=short)["expires_at"] == made["expires_at"]


def test_a_key_can_not_free_itself_of_its_restrictions(edge):
    key = edge.new_key("keys:write", ip_whitelist=["127.0.0.1"], daily_limit=50)
    id = own_id(edge, key)
    for body in ({"restrictions": {"ip_whitelist": []}}, {"restrictions": {"daily_limit": None}}):
        assert change(edge, id, key=key, status=400, **body)["code"] == "VALIDATION_ERROR"
    assert change(edge, id, key=key, status=403, permissions=["full"])["code"] == "INSUFFICIENT_PERMISSIONS"
    assert change(edge, id, key=key, name="still me")["restrictions"]["daily_limit"] == 50


def test_a_weak_key_gets_no_strong_one_by_rotating_it(edge):
    strong, weak = own_id(edge, "client"), edge.new_key("keys:write")
    assert rotate(edge, strong, key=weak, status=403)["code"] == "INSUFFICIENT_PERMISSIONS"
    assert change(edge, strong, key=weak, name="renamed")["name"] == "renamed"
    assert works(edge, "client")


def test_a_weak_key_makes_no_strong_one_wider(edge):
    """What it widens it must hold all of, even where what it widens is nothing that it lacks itself."""
    soon = edge.services.clock.now_ms() + DAY
    weak = edge.new_key("keys:write", "keys:read")
    strong = edge.new_key(
        "keys:write", "withdrawals:create", ip_whitelist=["203.0.113.7"], rate_limit=5, daily_limit=9, expires_at=soon
    )
    id = next(k["key_id"] for k in edge.call("GET", "/api-keys").json["data"] if strong.startswith(k["key_prefix"]))
    for body in (
        {"restrictions": {"ip_whitelist": []}},
        {"restrictions": {"ip_whitelist": ["203.0.113.0/24"]}},
        {"restrictions": {"rate_limit": None}},
        {"restrictions": {"daily_limit": 10}},
        {"expires_at": None},
        {"permissions": ["keys:write", "keys:read", "withdrawals:create"]},
        {"restrictions": {"ip_whitelist": ["198.51.100.1"], "rate_limit": 1}},
    ):
        error = change(edge, id, key=weak, status=403, **body)
        assert (error["code"], error["details"]["required"]) == ("INSUFFICIENT_PERMISSIONS", "withdrawals:create"), body
    narrow = change(edge, id, key=weak, restrictions={"rate_limit": 4}, expires_at=iso(soon - 1000), name="less")
    assert narrow["restrictions"]["rate_limit"] == 4
    elsewhere = edge.new_key("keys:write", "withdrawals:create", ip_whitelist=["127.0.0.1"])
    error = change(edge, id, key=elsewhere, status=400, restrictions={"rate_limit": 5})
    assert error["details"]["field"] == "restrictions.ip_whitelist", "a key it could not make"
    assert change(edge, id, restrictions={"ip_whitelist": []}, expires_at=None)["expires_at"] is None


def test_an_expired_key_stays_what_it_is(edge):
    soon = edge.services.clock.now_ms() + 1000
    id = make(edge, expires_at=iso(soon))["key_id"]
    edge.services.clock.shift_ms += 2000
    for body in ({"expires_at": None}, {"name": "again"}, {"expires_at": "2099-01-01"}):
        error = change(edge, id, status=400, **body)
        assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "id")
    assert rotate(edge, id, status=400)["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize("limit", ["rate_limit", "daily_limit"])
def test_a_limit_is_not_shed_by_making_keys(edge, limit):
    limited = edge.new_key(**{limit: 50})
    assert make(edge, key=limited, status=400)["details"]["field"] == "restrictions"
    for id in (own_id(edge, limited), own_id(edge, "reader")):
        assert rotate(edge, id, key=limited, status=400)["code"] == "VALIDATION_ERROR"
    higher = edge.new_key(**{limit: 1_000_000})
    assert rotate(edge, own_id(edge, higher), key=higher), "that of its type is nothing of its own"
    new = rotate(edge, own_id(edge, limited))
    assert (new["restrictions"][limit], new["created_by"]) == (50, own_id(edge, "client"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_revoked_key_has_under_way_comes_too_late(edge, monkeypatch, way, moment):
    target, thief = make(edge, restrictions={"rate_limit": 5})["key_id"], edge.new_key()
    before = edge.call("GET", "/api-keys").json["meta"]["pagination"]["total"]
    revoke_meanwhile(edge, monkeypatch, moment, f"{edge.shop}:test", own_id(edge, thief))
    late = asked(edge, way, thief, target)
    assert (late.status, late.json["error"]["code"]) == (401, "INVALID_API_KEY")
    assert edge.call("GET", "/api-keys").json["meta"]["pagination"]["total"] == before
    assert edge.call("GET", f"/api-keys/{target}").json["data"]["restrictions"]["rate_limit"] == 5


def test_a_maker_that_was_only_renamed_meanwhile_makes_its_key(edge, monkeypatch):
    maker = edge.new_key()
    me, store, done = own_id(edge, maker), type(edge.services.store), []
    real = store.commit

    def renamed(self, changes):
        if not done:
            done.append(None)
            change(edge, me, name="renamed")
        return real(self, changes)

    monkeypatch.setattr(store, "commit", renamed)
    assert works(edge, make(edge, key=maker)["key"])


def test_admin_keys_are_the_admins(edge):
    made = make(edge, key="admin", level="admin", permissions=["full"])
    assert make(edge, key="admin")["level"] == "client", "the least that is asked for"
    operator_client = make(edge, key="admin", permissions=["full"])["key"]
    id = made["key_id"]
    assert change(edge, id, key=operator_client, status=403, name="x")["details"]["required"] == "admin"
    assert rotate(edge, id, key=operator_client, status=403)["code"] == "INSUFFICIENT_PERMISSIONS"
    assert edge.call("DELETE", f"/api-keys/{id}", key=operator_client).status == 403
    assert rotate(edge, id, key="admin")["level"] == "admin"


def test_a_change_counts_from_the_next_request_on(edge):
    clock = edge.services.clock
    clock.shift_ms += 60_000 - clock.now_ms() % 60_000  # so that no minute ends in the middle of this
    made = make(edge, permissions=["addresses:read", "coins:read"])
    key, id = made["key"], made["key_id"]
    assert edge.call("GET", "/coins", key=key).status == 200
    remaining = int(edge.call("GET", "/auth/test", key=key).headers["x-ratelimit-remaining"])
    changed = change(edge, id, permissions=["addresses:read"], name="new", restrictions={"rate_limit": 50})
    assert (changed["permissions"], changed["name"], changed["restrictions"]["rate_limit"]) == (["addresses:read"], "new", 50)
    assert edge.call("GET", "/coins", key=key).status == 403
    after = edge.call("GET", "/auth/test", key=key)
    assert int(after.headers["x-ratelimit-remaining"]) == remaining - 50 - 1, (
        "what was counted stays counted, and what is refused is not"
    )
    change(edge, id, restrictions={"ip_whitelist": ["203.0.113.7"]})
    assert not works(edge, key)
    change(edge, id, restrictions={"ip_whitelist": None}, expires_at="2099-01-01")
    assert works(edge, key)
    edge.services.clock.shift_ms += 80 * 365 * DAY
    assert edge.call("GET", "/auth/test", key=key).json["error"]["code"] == "EXPIRED_API_KEY"


def test_revoking_counts_at_once_also_for_oneself(edge):
    made = make(edge)
    gone = edge.call("DELETE", f"/api-keys/{made['key_id']}")
    assert (gone.status, gone.json["data"]["status"]) == (200, "revoked")
    refused = edge.call("GET", "/auth/test", key=made["key"])
    assert (refused.status, refused.json["error"]["code"]) == (401, "INVALID_API_KEY")
    assert edge.call("DELETE", f"/api-keys/{made['key_id']}").json["data"] == gone.json["data"]
    assert change(edge, made["key_id"], status=400, name="x")["code"] == "VALIDATION_ERROR"
    assert rotate(edge, made["key_id"], status=400)["code"] == "VALIDATION_ERROR"
    assert edge.call("GET", f"/api-keys/{made['key_id']}").json["data"]["status"] == "revoked"
    me = own_id(edge, "client")
    assert edge.call("DELETE", f"/api-keys/{me}").status == 200
    assert not works(edge, "client")


def test_rotation_with_an_overlap(edge):
    old = make(edge, restrictions={"rate_limit": 9}, expires_at="2099-01-01")
    new = rotate(edge, old["key_id"], overlap=3600)
    NewApiKey.model_validate(new)
    same = ("name", "permissions", "restrictions", "expires_at", "level", "type")
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert works(edge, old["key"])
    assert works(edge, new["key"])
    assert rotate(edge, old["key_id"], status=400)["code"] == "VALIDATION_ERROR", "it has a successor"
    assert change(edge, old["key_id"], status=400, expires_at=None)["code"] == "VALIDATION_ERROR"
    edge.services.clock.shift_ms += 3_600_000
    assert edge.call("GET", "/auth/test", key=old["key"]).json["error"]["code"] == "EXPIRED_API_KEY"
    assert works(edge, new["key"])
    shown = edge.call("GET", f"/api-keys/{old['key_id']}").json["data"]
    assert (shown["status"], shown["replaced_by"]) == ("expired", new["key_id"])


def test_rotating_oneself_without_an_overlap(edge):
    me = own_id(edge, "client")
    new = rotate(edge, me)
    assert edge.call("GET", "/auth/test", key="client").json["error"]["code"] == "INVALID_API_KEY"
    assert works(edge, new["key"])


@pytest.mark.parametrize("overlap", [-1, MAX_OVERLAP + 1, 1.5, "60", None])
def test_overlaps_that_are_none(edge, overlap):
    answer = edge.call("POST", f"/api-keys/{own_id(edge, 'reader')}/rotate", json={"overlap": overlap})
    assert (answer.status, answer.json["error"]["details"][0]["field"]) == (400, "overlap")


def together(count: int, act: Any) -> list[Any]:
    start = threading.Barrier(count)

    def run(n: int) -> Any:
        start.wait()
        return act(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_of_two_rotations_at_once_one_counts(edge):
    old = make(edge)["key_id"]
    answers = together(6, lambda _: edge.call("POST", f"/api-keys/{old}/rotate", json={"overlap": 60}))
    assert sorted(a.status for a in answers) == [201, 400, 400, 400, 400, 400]
    (new,) = [a.json["data"] for a in answers if a.status == 201]
    assert edge.call("GET", f"/api-keys/{old}").json["data"]["replaced_by"] == new["key_id"]


def test_the_same_rotation_sent_many_times_is_one(edge):
    old = make(edge)["key_id"]
    headers = {"Idempotency-Key": "r-1"}
    answers = together(6, lambda _: edge.call("POST", f"/api-keys/{old}/rotate", json={"overlap": 60}, headers=headers))
    assert {a.status for a in answers} == {201}
    assert len({a.body for a in answers}) == 1


def test_a_repeated_answer_shows_the_key_again_and_the_store_has_it_nowhere(edge):
    headers = {"Idempotency-Key": "k-1"}
    body = {"name": "once", "permissions": ["read-only"]}
    first = edge.call("POST", "/api-keys", json=body, headers=headers)
    again = edge.call("POST", "/v1/api-keys", json=body, headers=headers)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
    plain = first.json["data"]["key"]
    client = boto3.client("dynamodb")
    for table in client.list_tables()["TableNames"]:
        assert plain not in repr(client.scan(TableName=table)["Items"])
    stored = edge.services.store.get(StoredAnswer, tenant=f"{edge.shop}:test", key="k-1")
    assert stored is not None
    assert stored.sealed
    colleague = edge.new_key()
    refused = edge.call("POST", "/api-keys", json=body, headers=headers, key=colleague)
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert plain not in refused.body.decode()


def test_a_hundred_keys_and_no_more_also_at_once(edge):
    store = edge.services.store
    tenant = f"{edge.shop}:test"
    tally = store.get(Tally, tenant=tenant, of="keys")
    assert tally is not None
    store.commit([Save(tally.plus(MAX_KEYS - tally.count - 2))])
    answers = together(6, lambda _: edge.call("POST", "/api-keys", json={"name": "n", "permissions": ["read-only"]}))
    assert sorted(a.status for a in answers) == [201, 201, 400, 400, 400, 400]
    made = [a.json["data"]["key_id"] for a in answers if a.status == 201]
    rotate(edge, made[0], overlap=60)
    assert make(edge, status=400)["code"] == "VALIDATION_ERROR"
    assert edge.call("DELETE", f"/api-keys/{made[0]}").status == 200
    assert make(edge, status=400)["code"] == "VALIDATION_ERROR", "its successor counts in its place"
    assert edge.call("DELETE", f"/api-keys/{made[1]}").status == 200
    make(edge)


def test_what_is_listed_and_what_is_enforced_never_part(edge):
    """Changes, rotations and revocations at once: every key works exactly when its record says so."""
    made = [make(edge) for _ in range(3)]

    def act(n: int) -> None:
        id = made[n % 3]["key_id"]
        match n % 4:
            case 0:
                edge.call("PUT", f"/api-keys/{id}", json={"name": f"n{n}", "restrictions": {"rate_limit": n + 1}})
            case 1:
                edge.call("POST", f"/api-keys/{id}/rotate", json={"overlap": 60})
            case 2:
                edge.call("DELETE", f"/api-keys/{id}")
            case _:
                edge.call("GET", "/auth/test", key=made[n % 3]["key"])

    together(12, act)
    for entry in made:
        record = edge.call("GET", f"/api-keys/{entry['key_id']}").json["data"]
        assert works(edge, entry["key"]) == (record["status"] == "active")
    store = edge.services.store
    usable = [k for k in store.page(ApiKey, limit=100, tenant=f"{edge.shop}:test").items if not k.revoked_at and not k.replaced_by]
    tally = store.get(Tally, tenant=f"{edge.shop}:test", of="keys")
    assert tally is not None
    assert tally.count == len(usable)


def test_what_it_costs(edge):
    make(edge)
    id = own_id(edge, "reader")
    calls = edge.calls()
    edge.call("GET", f"/api-keys/{id}")
    assert calls.made == ["UpdateItem", "GetItem"]
    calls.made.clear()
    edge.call("GET", "/api-keys")
    assert calls.made == ["UpdateItem", "Query", "BatchGetItem"]
