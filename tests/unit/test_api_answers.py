"""Shapes of answers and errors, the route table, pages and cursors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.api import resources
from chalicelib.api.errors import STATUS, ExpiredApiKey, in_words, shaped
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.paging import DEEPEST, ListQuery, listed
from chalicelib.api.rendering import Answer, body_text, to_json
from chalicelib.api.routes import ROUTES, endpoint
from chalicelib.domain.errors import BusinessRule, FieldProblem, InvalidParameter, ServiceError
from chalicelib.usecases.ports import Page

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
        assert route.creates <= (route.method == "POST" and route.status == 201)
    assert all(len(several) == 1 for several in names.values()), names
    assert len(ROUTES) > 30


def test_the_table_refuses_mistakes():
    resources.load()
    with pytest.raises(ValueError, match="twice"):
        endpoint("GET", "/coins", family="flat", summary="")
    with pytest.raises(ValueError, match="unknown permission"):
        endpoint("GET", "/new", family="flat", permission="coins:eat", summary="")


class Records:
    """A list of numbers as texts, read as the store reads: in order, behind a key."""

    def __init__(self, count: int) -> None:
        self.all = [f"{n:06d}" for n in range(count)]
        self.reads = 0

    def fetch(self, limit: int, after: str | None, newest_first: bool) -> Page[str]:
        self.reads += 1
        rows = sorted(self.all, reverse=newest_first)
        if after is not None:
            rows = [row for row in rows if (row < after if newest_first else row > after)]
        return Page(rows[:limit], rows[limit - 1] if len(rows) > limit else None)


def ask(records: Records, keep: Any = None, **query: Any) -> tuple[list[int], dict[str, Any]]:
    found, pagination = listed(ListQuery.model_validate(query), records.fetch, lambda record: record, keep)
    return [int(record) for record in found], pagination


def test_pages():
    records = Records(45)
    found, pagination = ask(records, page=2)
    assert found == list(range(24, 4, -1))
    assert {name: pagination[name] for name in ("page", "limit", "total", "pages", "has_next", "has_prev")} == {
        "page": 2, "limit": 20, "total": 45, "pages": 3, "has_next": True, "has_prev": True,
    }  # fmt: skip
    assert ask(records, page=3)[0] == [4, 3, 2, 1, 0]
    assert ask(records, page=3)[1]["has_next"] is False
    assert ask(records, page=4)[0] == []
    assert ask(records, order="asc", limit=3)[0] == [0, 1, 2]
    assert ask(Records(0))[1]["pages"] == 0


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("keep", [None, lambda record: int(record) % 7 == 0])
def test_cursors_show_everything_once(order, keep):
    records = Records(3000)
    expected = [n for n in sorted(range(3000), reverse=order == "desc") if keep is None or n % 7 == 0]
    found, pagination = ask(records, keep, order=order, limit=100)
    while pagination["next_cursor"]:
        more, pagination = ask(records, keep, order=order, limit=100, cursor=pagination["next_cursor"])
        found += more
    assert found == expected


def test_a_page_behind_a_cursor_costs_one_read_wherever_it_is():
    records = Records(3000)
    cursor = ask(records, limit=100)[1]["next_cursor"]
    for _ in range(20):
        records.reads = 0
        cursor = ask(records, limit=100, cursor=cursor)[1]["next_cursor"]
        assert records.reads == 1


def test_totals_stop_counting_at_ten_thousand():
    _, pagination = ask(Records(DEEPEST + 50), limit=100)
    assert (pagination["total"], pagination["total_capped"], pagination["has_next"]) == (DEEPEST, True, True)
    _, pagination = ask(Records(DEEPEST), limit=100)
    assert pagination["total"] == DEEPEST
    assert "total_capped" not in pagination


def test_pages_beyond_ten_thousand_are_refused_and_the_last_one_leads_on_by_cursor():
    records = Records(DEEPEST + 150)
    with pytest.raises(InvalidParameter) as caught:
        ask(records, limit=100, page=101)
    assert "cursor" in caught.value.problems[0].constraints[0]
    _, pagination = ask(records, limit=100, page=100)
    assert ask(records, limit=100, cursor=pagination["next_cursor"])[0] == list(range(149, 49, -1))


@pytest.mark.parametrize("cursor", ["!", "a", "é", "////", "AA", "x" * 1999])
def test_cursors_that_no_list_gave(cursor):
    with pytest.raises(InvalidParameter) as caught:
        ask(Records(5), cursor=cursor)
    assert caught.value.problems[0].field == "cursor"
