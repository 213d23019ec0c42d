"""Who gets in: headers, addresses, limits. Which key opens which route is in `test_permission_matrix`."""

from __future__ import annotations

import re

import pytest

from tests.contract.api.edge_routes import path_of, routes
from tests.support.edge import PREPARED, Edge


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def code_of(response) -> str:
    error = response.json["error"]
    return response.json["code"] if isinstance(error, str) else error["code"]


def test_every_route_answers_with_and_without_the_version(edge):
    from app import app

    for route in routes():
        assert route.method in app.routes[route.address]
        assert route.method in app.routes[route.path]


def test_public_routes_need_no_key(edge):
    assert edge.call("GET", "/health", key=None).status == 200
    assert edge.call("GET", "/health", key="nonsense").status == 200
    public = {route.path for route in routes() if route.level == "public"}
    pages = {f"/pay/{{invoiceId}}{part}" for part in ("", "/status", "/choice", "/transaction")}
    pages |= {"/claim/{token}", "/claim/{token}/status", "/link/{id}", "/portal", "/console", "/"}
    assert public - pages == {
        "/health",
        "/openapi",
        "/openapi/openapi.json",
        "/openapi/{file}",
    }


@pytest.mark.parametrize(
    ("headers", "prefix"),
    [
        ([], None),
        ([("X-Api-Key", "")], ""),
        ([("X-Api-Key", "nonsense")], "nonsense"),
        ([("X-Api-Key", "sk_test_aaaabbbbccccdddd")], "sk_test_aaaa"),
        ([("X-Api-Key", "sk_test_aaaabbbbccccddd")], "sk_test_"),
        ([("Authorization", "Bearer ")], ""),
        ([("Authorization", "Basic c2tfdGVzdA==")], None),
    ],
)
def test_what_an_error_shows_of_a_key_that_does_not_exist(edge, headers, prefix):
    for route in {route.family: route for route in routes() if route.level != "public"}.values():
        response = edge.call(route.method, path_of(route), key=None, headers=headers)
        assert response.status == 401, route
        assert code_of(response) == "INVALID_API_KEY"
        if route.family == "envelope":
            assert response.json["success"] is False
            assert response.json["error"]["details"] == {"key_prefix": prefix}
            assert response.json["meta"]["request_id"] == response.headers["x-request-id"]
        elif route.family == "object":
            assert response.json["error"]["details"] == {"key_prefix": prefix}
        else:
            assert isinstance(response.json["error"], str)


def test_malformed_keys_cost_no_call(edge):
    edge.call("GET", "/auth/test")
    calls = edge.calls()
    for key in ("", "nonsense", "sk_live_short", "sk_test_" + "a" * 17):
        assert edge.call("GET", "/auth/test", key=None, headers=[("X-Api-Key", key)]).status == 401
    assert calls.made == []


@pytest.mark.parametrize("name", ["X-Api-Key", "x-api-key", "X-API-KEY", "X-Api-key"])
def test_the_header_in_any_case(edge, name):
    assert edge.call("GET", "/auth/test", key=None, headers=[(name, edge.keys["client"])]).status == 200


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_bearer_token(edge, scheme):
    assert edge.call("GET", "/auth/test", key=None, headers=[("Authorization", f"{scheme} {edge.keys['client']}")]).status == 200


def test_both_headers(edge):
    mine, other = edge.keys["client"], edge.keys["other"]

    def status(*headers: tuple[str, str]) -> int:
        return edge.call("GET", "/auth/test", key=None, headers=headers).status

    assert status(("X-Api-Key", mine), ("Authorization", f"Bearer {mine}")) == 200
    assert status(("X-Api-Key", mine), ("Authorization", f"Bearer {other}")) == 401
    assert status(("X-Api-Key", mine), ("X-Api-Key", other)) == 401
    assert status(("X-Api-Key", mine), ("Authorization", "Basic x")) == 200


def test_a_key_in_another_place_does_not_count(edge):
    key = edge.keys["client"]
    assert edge.call("GET", "/auth/test", key=None, query={"api_key": key, "X-Api-Key": key}).status == 401


def test_an_expired_key_and_a_revoked_one(edge):
    now = edge.services.clock.now_ms()
    expired = edge.call("GET", "/auth/test", key=edge.new_key(expires_at=now - 1))
    assert (expired.status, code_of(expired)) == (401, "EXPIRED_API_KEY")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", expired.json["error"]["details"]["expired_at"])
    key = edge.new_key()
    found = edge.call("GET", "/auth/test", key=key)
    edge.services.api_keys.revoke(f"{edge.shop}:test", found.json["data"]["key_id"])
    revoked = edge.call("GET", "/auth/test", key=key)
    assert (revoked.status, code_of(revoked)) == (401, "INVALID_API_KEY")


@pytest.mark.parametrize(
    ("allowed", "client", "status"),
    [
        (["203.0.113.7"], "203.0.113.7", 200),
        (["203.0.113.7"], "203.0.113.8", 403),
        (["203.0.113.0/24"], "203.0.113.255", 200),
        (["203.0.113.0/24"], "203.0.114.0", 403),
        (["203.0.113.9/24"], "203.0.113.1", 200),
        (["2001:db8::/32"], "2001:db8:1::5", 200),
        (["2001:db8::/32"], "2001:db9::5", 403),
        (["203.0.113.7"], "::ffff:203.0.113.7", 200),
        (["::ffff:203.0.113.7"], "203.0.113.7", 200),
        (["::ffff:203.0.113.0/120"], "203.0.113.99", 200),
        (["::/0"], "203.0.113.7", 403),
        (["0.0.0.0/0"], "2001:db8::1", 403),
        (["10.0.0.1", "203.0.113.7"], "203.0.113.7", 200),
        (["10.0.0.1"], "no address", 403),
    ],
)
def test_addresses_that_a_key_may_be_used_from(edge, allowed, client, status):
    response = edge.call("GET", "/auth/test", key=edge.new_key(ip_whitelist=allowed), source_ip=client)
    assert response.status == status
    if status == 403:
        assert code_of(response) == "IP_NOT_WHITELISTED"
        assert response.json["error"]["details"] == {"client_ip": client, "whitelisted_ips": allowed}


def test_who_may_not_use_a_key_can_not_use_it_up(edge):
    key = edge.new_key("coins:read", "keys:read", ip_whitelist=["203.0.113.7"], rate_limit=2)
    clock = edge.services.clock
    clock.shift_ms = -(clock.now_ms() % 60_000)
    tries = [
        ("GET", "/coins", "198.51.100.9", 403),
        ("GET", "/balances", "203.0.113.7", 403),
        ("POST", "/coins", "203.0.113.7", 403),
    ]
    for method, path, client, status in tries * 3:
        refused = edge.call(method, path, key=key, source_ip=client)
        assert (refused.status, refused.headers["x-ratelimit-remaining"]) == (status, "2"), (path, client)
    used = [edge.call("GET", "/coins", key=key, source_ip="203.0.113.7") for _ in range(3)]
    assert [answer.status for answer in used] == [200, 200, 429]
    told = edge.call("GET", "/coins", key=key, source_ip="198.51.100.9")
    assert (told.status, "retry-after" in told.headers) == (403, False), "what it may not is told before what is left"


def test_headers_can_not_claim_an_address(edge):
    key = edge.new_key(ip_whitelist=["203.0.113.7"])
    for name in ("X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "X-Client-Ip"):
        assert edge.call("GET", "/auth/test", key=key, headers={name: "203.0.113.7"}, source_ip="198.51.100.1").status == 403


def test_the_limit_is_told_on_every_answer_and_429_says_when_to_come_back(edge):
    key = edge.new_key(rate_limit=4)
    clock = edge.services.clock
    clock.shift_ms = -(clock.now_ms() % 60_000)  # so that no minute ends in the middle of this
    answers = [edge.call("GET", path, key=key) for path in ("/auth/test", "/coins/nope", "/withdrawals/nope")]
    answers.append(edge.call("POST", "/invoices", key=key, body="{"))
    assert [answer.status for answer in answers] == [200, 400, 404, 400]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["3", "2", "1", "0"]
    assert {(a.headers["x-ratelimit-limit"], a.headers["x-ratelimit-window"]) for a in answers} == {("4", "60")}
    refused = edge.call("GET", "/auth/test", key=key)
    assert (refused.status, code_of(refused)) == (429, "RATE_LIMIT_EXCEEDED")
    assert refused.headers["x-ratelimit-remaining"] == "0"
    reset = int(refused.headers["x-ratelimit-reset"])
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert reset % 60 == 0
    details = refused.json["error"]["details"]
    assert (details["limit"], details["window"]) == (4, 60)
    flat = edge.call("GET", "/coins", key=key)
    assert flat.status == 429
    assert isinstance(flat.json["error"], str)


def test_auth_test_tells_what_the_key_is(edge):
    response = edge.call("GET", "/v1/auth/test", key="reader")
    data = response.json["data"]
    assert data["authenticated"] is True
    assert data["key_id"].startswith("key_")
    assert all(permission.endswith(":read") for permission in data["permissions"])
    assert data["rate_limits"]["remaining"] == int(response.headers["x-ratelimit-remaining"])


def test_realms_do_not_see_each_other(edge):
    made = edge.call("POST", "/addresses", json={"network": "ethereum"}).json
    assert edge.call("GET", f"/addresses/{made['id']}").status == 200
    assert edge.call("GET", f"/addresses/{made['id']}", key="live").status == 404
    assert edge.call("GET", f"/addresses/{made['address']}", key="live").status == 404
    assert edge.call("GET", f"/addresses/{made['address']}", key="other").status == 404
