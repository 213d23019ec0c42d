"""Bad requests of every sort, at every route: the right status, the right shape, and never a 500."""

from __future__ import annotations

import json
import logging
import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib import wiring
from chalicelib.api.body import FORM
from chalicelib.api.routes import Route
from chalicelib.usecases.ports.failures import Unavailable
from tests.contract.api.edge_routes import path_of, routes
from tests.support.edge import PREPARED, Edge

FULL = os.environ.get("SWEEP") == "full"
STATUSES = {200, 201, 400, 401, 403, 404, 429, 500}
NAMES = ("network", "coin", "currency", "amount", "address", "to_address", "url", "events", "outcome", "count")
CREATE = {"currency": "eth", "amount": "1"}


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def check_shape(route: Route, response) -> str:
    """The error's code, after looking that it has the shape of the route's family."""
    sent = response.json
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    if route.family == "flat":
        assert set(sent) <= {"error", "code", "details"}
        assert isinstance(sent["error"], str)
        assert isinstance(sent.get("details", ""), str)
        return sent["code"]
    assert set(sent["error"]) == {"code", "message", "details"}
    assert isinstance(sent["error"]["details"], (dict, list))
    if route.family == "envelope":
        assert set(sent) == {"success", "error", "meta"}
        assert sent["success"] is False
        assert sent["meta"]["request_id"] == response.headers["x-request-id"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", sent["meta"]["timestamp"])
    else:
        assert set(sent) == {"error"}
    return sent["error"]["code"]


BODIES = {
    "no JSON": b"{",
    "no object": b"[1]",
    "no UTF-8": b'{"a": "\xff"}',
    "deep": b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "large": b'{"a": "' + b"x" * 300_000 + b'"}',
    "a NUL": b'{"a": "\\u0000"}',
    "half a pair": b'{"a": "\\ud800"}',
    "twice": b'{"a": 1, "a": 1}',
    "NaN": b'{"amount": NaN}',
    "huge": b'{"amount": ' + b"9" * 10_000 + b"}",
    "unknown fields": b'{"nobody": {"knows": ["this"]}}',
    "twice inside": b'{"metadata": {"a": 1, "a": 2}}',
    "a huge exponent": b'{"amount": 1e400}',
    "a tiny exponent": b'{"amount": 1e-400}',
    "brackets without end": b"[" * 100_000,
    "half a pair as a name": b'{"\\udfff": 1}',
    "UTF-16": '{"network": "ethereum"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a control character": b'{"network": "eth\x07"}',
    "names of JavaScript": b'{"__proto__": {"admin": true}, "constructor": 1}',
    "an operator": b'{"network[$ne]": {"$ne": null}}',
    "nothing": b"",
    "wrong types": json.dumps({name: [{}] for name in NAMES}).encode(),
    "empty texts": json.dumps(dict.fromkeys(NAMES, "")).encode(),
}


@pytest.mark.parametrize("name", BODIES)
def test_bad_bodies(edge, name):
    """All routes read their body by the same function: a check sends each body to every fourth of them, the next body to others;
    `make sweep` sends all to all."""
    key = edge.new_key(level="admin")
    taking = [route for route in routes() if route.method != "GET"]
    step = 1 if FULL else 4
    asked = taking if name == "nothing" else taking[list(BODIES).index(name) % step :: step]
    assert asked
    for route in asked:
        if route.body is None and name == "nothing":
            continue
        response = edge.call(route.method, path_of(route), key=key, body=BODIES[name])
        if name == "nothing" and "{" in route.path and needs_nothing(route):
            assert (response.status, check_shape(route, response)) == (404, "NOT_FOUND"), (route, response.body)
            continue
        if name == "nothing" and route.path == "/reconciliation":
            assert response.status == 201, "it needs nothing"
            continue
        assert response.status == 400, (route, response.body)
        assert check_shape(route, response) == "INVALID_PARAMETER"


@pytest.mark.parametrize("sent", [b"", b"{}", b" {\n} "])
def test_a_route_without_a_body_takes_none_and_an_empty_object(edge, sent):
    key = edge.new_key(level="admin")
    without = [route for route in routes() if route.method != "GET" and route.body is None]
    assert {route.path for route in without} >= {"/webhooks/{id}/test", "/webhooks/deliveries/{id}/redeliver", "/webhooks/{id}"}
    for route in without:
        response = edge.call(route.method, path_of(route), key=key, body=sent)
        wanted = (400, "INVALID_PARAMETER") if route.path == "/addresses/{address}" else (404, "NOT_FOUND")  # x is no address
        assert (response.status, check_shape(route, response)) == wanted, (route, response.body)
        assert '"body"' not in str(response.json)


def test_fields_for_a_route_without_a_body_are_all_named_and_not_repeated(edge):
    hook = {"event": "invoice.completed", "payload": {"secret": "s3cret"}}
    for path in ("/v1/webhooks/wh_1/test", "/v1/webhooks/deliveries/dlv_1/redeliver"):
        answer = edge.call("POST", path, json=hook)
        assert answer.status == 400
        told = answer.json["error"]["details"]
        assert [problem["field"] for problem in told] == ["event", "payload"]
        assert "s3cret" not in str(answer.json)
    many = edge.call("POST", "/v1/webhooks/wh_1/test", json={f"f{n}": n for n in range(150)})
    assert len(many.json["error"]["details"]) == 101


def needs_nothing(route: Route) -> bool:
    """Whether every field of its body may be left out: then nobody is told that it is missing."""
    return route.body.selecting is None and not any(field.is_required() for field in route.body.model_fields.values())


MALFORMED = ("application/json; a*=x; a*0=y", f"application/json; a*{'9' * 4301}=x")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "*/*", "", "application/jsonx", "?;;", *MALFORMED]
)
def test_wrong_content_types(edge, content_type):
    for route in routes():
        if route.method != "GET":
            response = edge.call(route.method, path_of(route), body=b"{}", headers={"Content-Type": content_type})
            if route.form and content_type == FORM and response.status in (400, 404):
                assert response.headers["content-type"].startswith("text/html"), "no wrong type here: a page says what is wrong"
            elif route.level != "admin":
                assert response.status == 400
                assert check_shape(route, response) == "INVALID_PARAMETER"


def test_all_wrong_fields_are_in_the_answer_with_what_was_sent(edge):
    body = '{"network": "dogecoin", "coin": "eth", "amount": 1.50e1, "address": 5, "more": true}'
    response = edge.call("POST", "/withdraws", body=body)
    assert response.status == 400
    details = {problem["field"]: problem for problem in response.json["error"]["details"]}
    assert set(details) == {"network", "amount", "address", "more"}
    assert details["network"]["value"] == "dogecoin"
    assert "bitcoin, ethereum" in details["network"]["constraints"][0]
    assert b'"value":1.50e1' in response.body, "a number as it was sent"
    flat = edge.call("POST", "/invoices", json={"currency": "doge", "amount": "x", "more": 1})
    assert all(f"{name}: " in flat.json["details"] for name in ("currency", "amount", "more"))


def test_unknown_names_are_answered_with_the_known_ones(edge):
    assert "usdt" in edge.call("GET", "/coins/doge").json["details"]
    for path in ("/networks/doge", "/networks/last-number-block/doge"):
        response = edge.call("GET", path)
        assert response.status == 400
        assert "bitcoin, ethereum, tron" in response.json["error"]["details"][0]["constraints"][0]


def test_unknown_query_fields_and_values(edge):
    for path, field in (
        ("/invoices/getAll?limit=101", "limit"),
        ("/withdrawals?amount[gt]=much", "amount[gt]"),
        ("/withdrawals?status=lost", "status"),
        ("/events?sort=colour", "sort"),
        ("/transactions?page=0", "page"),
        ("/addresses?cursor=%21", "cursor"),
        ("/coins?network=doge", "network"),
        ("/invoices", "id"),
        ("/invoices?id=", "id"),
        ("/invoices?id=" + "x" * 300, "id"),
    ):
        response = edge.call("GET", path)
        assert response.status == 400, path
        assert field in response.body.decode()


def test_unknown_paths_and_methods_are_404(edge):
    for method, path in (
        ("GET", "/nope"),
        ("GET", "/v2/coins"),
        ("PATCH", "/coins"),
        ("DELETE", "/v1/invoices"),
        ("POST", "/coins/eth"),
    ):
        response = edge.call(method, path)
        assert response.status == 404
        assert response.headers["x-request-id"]


def test_chalice_itself_is_not_heard(edge):
    """A method that the gateway let through, and an event that is missing a path parameter."""
    from app import app

    event = {
        "requestContext": {
            "resourcePath": "/v1/coins/{coin}",
            "httpMethod": "GET",
            "requestId": "r-1",
            "identity": {"sourceIp": "::1"},
        },
        "multiValueQueryStringParameters": None,
        "headers": {},
        "pathParameters": None,
        "stageVariables": None,
        "body": None,
    }
    broken = app(event, None)
    assert (broken["statusCode"], json.loads(broken["body"])["code"]) == (500, "INTERNAL_ERROR")
    event["requestContext"]["httpMethod"] = "PATCH"
    assert (app(event, None)["statusCode"], broken["headers"]["X-Request-Id"]) == (404, "r-1")


def test_long_and_strange_path_parts_are_not_found_or_invalid(edge):
    for part in ("x" * 201, "x" * 5000, "%00", "%ff", "%F0%9F%98%80" * 60, "..", "%2e%2e", "'; --", "addr_" + "é" * 190):
        for path in ("/addresses/{}", "/withdrawals/{}", "/webhooks/{}", "/transactions/{}", "/coins/{}", "/networks/{}"):
            response = edge.call("GET", path.format(part.replace(" ", "%20")))
            assert response.status in (400, 404), (path, part, response.body)


def test_what_is_longer_than_any_key_is_not_looked_for(edge):
    """DynamoDB refuses a sort key over 1,024 bytes with an error; here it must never get one."""
    edge.call("GET", "/balances")
    calls = edge.calls()
    for path in ("/addresses/addr_", "/withdrawals/", "/webhooks/", "/transactions/tx_"):
        calls.made.clear()
        assert edge.call("GET", path + "x" * 300).status == 404
        assert calls.made == ["UpdateItem"], "the key's own call"


def test_a_500_says_nothing_and_the_log_says_all_but_the_key(edge, monkeypatch, caplog):
    key = edge.keys["client"]

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"secret thing about {key} at 10.0.0.5")

    monkeypatch.setattr(type(edge.services.invoices), "creating", fail)
    with caplog.at_level(logging.ERROR):
        response = edge.call("POST", "/invoices", json=CREATE)
    assert response.status == 500
    assert response.json["code"] == "INTERNAL_ERROR"
    assert "secret" not in response.body.decode()
    assert response.headers["x-request-id"] in caplog.text
    assert "secret thing" in caplog.text
    assert key not in caplog.text
    assert key[12:] not in caplog.text


@pytest.mark.parametrize("error", [Unavailable("the node at 10.0.0.5"), KeyError("x"), RecursionError(), AssertionError()])
def test_what_is_not_published_is_a_500(edge, monkeypatch, error):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(type(edge.services.withdrawals), "get", fail)
    response = edge.call("GET", "/withdrawals/wd_1")
    assert response.status == 500
    assert response.json["error"] == {
        "code": "INTERNAL_ERROR",
        "message": "Something went wrong on our side. The request id helps us to find it.",
        "details": {},
    }


def test_a_key_store_that_does_not_answer_is_a_500_in_shape(edge, monkeypatch):
    def fail(*_: object) -> None:
        raise Unavailable("no")

    monkeypatch.setattr(type(edge.services.gate), "admit", fail)
    for route in routes():
        if route.level != "public":
            response = edge.call(route.method, path_of(route))
            assert response.status == 500
            assert check_shape(route, response) == "INTERNAL_ERROR"


def test_the_request_id_is_the_gateways(edge):
    response = edge.call("GET", "/balances")
    assert response.json["meta"]["request_id"] == response.headers["x-request-id"]
    assert edge.call("GET", "/balances").headers["x-request-id"] != response.headers["x-request-id"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(
    ("network", "coin", "currency", "amount", "address", "to_address", "mode", "type", "label", "metadata", "externalId",
     "expiresIn", "priority", "from_address_id", "url", "events", "secret", "count", "depth", "remine", "outcome",
     "invoiceId", "status", "from")
)  # fmt: skip
good = st.sampled_from(("ethereum", "bitcoin", "eth", "btc", "usdt", "1", 1, "0.5", "single", "cross", "user", "hot", "*", ["*"]))


@settings(max_examples=60 if FULL else 20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(names, values | good, max_size=6), place=st.integers(0, 10**6))
def test_no_body_makes_a_500(edge, body, place):
    """Sandbox routes are left out: what they do to the simulated chains is tested there."""
    wiring.services().clock.shift_ms += 60_000  # no request is refused for its number
    posts = [route for route in routes() if route.body is not None and "/sandbox" not in route.path]
    route = posts[place % len(posts)]
    raw = json.dumps(body).encode()
    response = edge.call(route.method, path_of(route), key="client" if route.level == "client" else "admin", body=raw)
    assert response.status in STATUSES - {500, 401, 429}, (route, body, response.body)
    if response.status >= 400:
        check_shape(route, response)


@settings(max_examples=40 if FULL else 15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.dictionaries(
        st.sampled_from(("page", "limit", "cursor", "status", "network", "coin", "id", "from", "to", "x[gt]")),
        st.text(max_size=12),
        max_size=4,
    ),
    place=st.integers(0, 10**6),
)
def test_no_query_makes_a_500(edge, query, place):
    wiring.services().clock.shift_ms += 60_000
    gets = [route for route in routes() if route.query is not None and route.method == "GET"]
    route = gets[place % len(gets)]
    encodable = {name: value.encode("utf-8", "replace").decode() for name, value in query.items()}
    response = edge.call(route.method, path_of(route), key="client" if route.level == "client" else "admin", query=encodable)
    assert response.status in (200, 400, *([404] if "{" in route.path else [])), (route, query, response.body)
