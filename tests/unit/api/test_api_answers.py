"""Shapes of answers and errors, the route table, pages and cursors."""

from __future__ import annotations

import json

import pytest

from chalicelib.api import resources
from chalicelib.api.errors import STATUS, ExpiredApiKey, in_words, shaped
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.rendering import Answer, body_text, to_json
from chalicelib.api.routes import ROUTES, endpoint
from chalicelib.domain.errors import BusinessRule, FieldProblem, InvalidParameter, ServiceError

NOW = 1_700_000_000_123
AT = "2023-11-14T22:13:20.123Z"  # date -u -d @1700000000
PROBLEMS = InvalidParameter([FieldProblem("a", 1, ("is bad", "is worse")), FieldProblem("b", None, ("is required",))])


def every_error(kind: type[ServiceError] = ServiceError) -> set[str]:
    return {kind.code}.union(*(every_error(sub) for sub in kind.__subclasses__()))


def test_every_error_that_there_is_has_a_published_status():
    assert every_error() == set(STATUS)
    assert set(STATUS.values()) <= {400, 401, 403, 404, 429, 500}


def test_the_three_shapes():
    details = [
        {"field": "a", "value": 1, "constraints": ["is bad", "is worse"]},
        {"field": "b", "value": None, "constraints": ["is required"]},
    ]
    inner = {"code": "INVALID_PARAMETER", "message": "Invalid request parameters", "details": details}
    assert shaped(PROBLEMS, "object", NOW, "r1") == {"error": inner}
    assert shaped(PROBLEMS, "envelope", NOW, "r1") == {
        "success": False,
        "error": inner,
        "meta": {"timestamp": AT, "request_id": "r1"},
    }
    assert shaped(PROBLEMS, "flat", NOW, "r1") == {
        "error": "Invalid request parameters",
        "code": "INVALID_PARAMETER",
        "details": "a: is bad, is worse; b: is required",
    }


def test_details_of_a_rule_and_of_a_key():
    assert shaped(BusinessRule("amount", "too much"), "object", NOW, "r")["error"]["details"] == {
        "field": "amount",
        "reason": "too much",
    }
    assert in_words(BusinessRule("amount", "too much").details or {}) == "field: amount; reason: too much"
    assert ExpiredApiKey(NOW).details == {"expired_at": AT}


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("is more than can be refunded", "amount is more than can be refunded"),
        ("must be at least 1 ETH", "amount must be at least 1 ETH"),
        ("there is no fresh rate of eth", "there is no fresh rate of eth"),
        ("island coins are not taken", "island coins are not taken"),
    ],
)
def test_the_refusal_of_a_rule_is_a_sentence_with_its_field(reason, said):
    refused = BusinessRule("amount", reason)
    assert shaped(refused, "flat", NOW, "r")["error"] == said
    assert shaped(refused, "object", NOW, "r")["error"]["message"] == said
    assert refused.details == {"field": "amount", "reason": reason}


def test_the_envelope_of_a_success():
    text = body_text(Answer([1], pagination={"page": 1}), envelope=True, now_ms=NOW, request_id="r1")
    assert json.loads(text) == {
        "success": True,
        "data": [1],
        "meta": {"timestamp": AT, "request_id": "r1", "pagination": {"page": 1}},
    }
    assert body_text(Answer([1]), envelope=False, now_ms=NOW, request_id="r1") == "[1]"


def test_json_is_exact_and_always_utf8():
    assert to_json({"n": JsonNumber("0.10"), "s": "1.5"}) == '{"n":0.10,"s":"1.5"}'
    assert to_json("é") == '"é"'
    half = to_json({"half": "\ud800", "n": JsonNumber("1.5")})
    assert half.encode() == b'{"half":"\\ud800","n":1.5}'
    with pytest.raises(ValueError, match="JSON"):
        to_json(float("nan"))
    with pytest.raises(TypeError):
        to_json(object())


def test_each_route_names_one_permission_and_each_parameter_has_one_name_among_its_siblings():
    """API Gateway takes one name for a variable part at one place."""
    resources.load()
    names: dict[str, set[str]] = {}
    for route in ROUTES:
        place = ""
        for part in route.path.split("/")[1:]:
            if part.startswith("{"):
                names.setdefault(place, set()).add(part)
                part = "{}"  # noqa: PLW2901
            place += "/" + part
        assert route.permission or route.level == "public" or route.path == "/auth/test", route.path
        assert route.status in (200, 201)
        # A stored answer belongs to a key: without one nobody is known to have asked before.
        assert route.creates == (route.method == "POST" and route.status == 201 and route.level != "public"), route.path
    assert all(len(several) == 1 for several in names.values()), names
    assert len(ROUTES) > 30


def test_the_table_refuses_mistakes():
    resources.load()
    with pytest.raises(ValueError, match="twice"):
        endpoint("GET", "/coins", family="flat", summary="")
    with pytest.raises(ValueError, match="unknown permission"):
        endpoint("GET", "/new", family="flat", permission="coins:eat", summary="")
