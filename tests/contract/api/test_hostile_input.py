"""Every endpoint, fed with what no honest client sends: an answer in its family's shape that says what is wrong, never a 500.

Generated from the route table, so that no endpoint is forgotten. What a right request does is not this file's matter. All endpoints
read their input by the same functions: a check sends each a fifth of what is no input, the next another fifth; `make sweep` all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.api import resources
from chalicelib.api.routes import ROUTES, Route
from infra.local.aws import LocalAws
from tests.support.edge import PREPARED, Edge
from tests.support.stack import Response

resources.load()
WITH_BODY = [route for route in ROUTES if route.body is not None]
WITH_PATH = [route for route in ROUTES if "{" in route.path]

VALUES: tuple[Any, ...] = (
    None, True, -1, 10**40, 0.5, "", "x" * 20_000, "	", "💥", "1e5", "٣", "../../etc", [None], {"a": {"b": []}}, ["x"] * 2000,
)  # fmt: skip
PIECES = (
    "%00", "%ff%fe", "..%2f..%2fetc", "a" * 5000, "%F0%9F%92%A5", "%7B%7D", "%20", "0", "-1", "%0d%0aX-A:%20b", "tx_", "inv_%23",
    "mch_x%3Atest", "1e400", "'%20OR%201=1",
)  # fmt: skip
QUERIES = (
    "limit=-1", "limit=101", "limit=1e9", "limit=%D9%A3", "limit=", "page=0", "page=99999999999999999999", "page=1&page=2",
    "cursor=%00", "cursor=AAAA", "cursor=" + "A" * 3000, "sort=__class__", "order=up", "a[b][c]=1", "=x&&&", "%00=1", "x[ne]=1",
    "status[in]=", "createdAt[gte]=yesterday", "createdAt[gte]=0001-01-01", "amount[gt]=1e400", "limit[ne]=3", "network=%ED%A0%80",
    "&".join(f"a{n}={n}" for n in range(2000)), "coin=" + "c" * 5000, "id=" + "i" * 5000, "perPage=5&limit=5", "from=2024-13-45",
    "status=" + "a," * 3000,
)  # fmt: skip


FULL = os.environ.get("SWEEP") == "full"


def some(values: tuple[Any, ...], turn: int) -> tuple[Any, ...]:
    """A fifth of them, another one at each turn."""
    return values if FULL else values[turn % 5 :: 5]


@pytest.fixture
def edge(aws: LocalAws) -> Edge:
    return PREPARED.edge(aws)


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


class Keys:
    """Keys that may do everything, a new one before the last is at its limit for a minute."""

    def __init__(self, edge: Edge) -> None:
        self._edge, self._used = edge, 0
        self._of: dict[str, str] = {}

    def key(self, level: str) -> str:
        if self._used % 40 == 0:
            self._of = {}
        self._used += 1
        if level not in self._of:
            self._of[level] = self._edge.new_key(level="admin" if level == "admin" else "client")
        return self._of[level]


def check(route: Route, answer: Response, sent: object) -> None:
    """A refusal in the family's shape; or what the endpoint does with something that it may have been right to take."""
    assert answer.status in (200, 201, 400, 403, 404), (named(route), sent, answer.body[:500])
    assert answer.headers["x-request-id"]
    if answer.status < 400 or route.level == "public":
        return
    body = answer.json
    if route.family == "flat":
        assert set(body) in ({"error", "code"}, {"error", "code", "details"}), (named(route), sent, body)
        code = body["code"]
    else:
        assert set(body) == ({"error"} if route.family == "object" else {"success", "error", "meta"}), (named(route), sent, body)
        assert set(body["error"]) == {"code", "message", "details"}
        code = body["error"]["code"]
    assert (answer.status == 404) == (code == "NOT_FOUND"), (named(route), sent, body)
    assert len(answer.body) < 40_000, (named(route), sent)


def fields(model: Any) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name


@pytest.mark.parametrize("route", WITH_BODY, ids=named)
def test_hostile_values(edge: Edge, route: Route) -> None:
    keys = Keys(edge)
    path = route.path.replace("{", "").replace("}", "")
    for turn, name in enumerate(fields(route.body), ROUTES.index(route)):
        for value in some(VALUES, turn):
            raw = json.dumps({name: value}).encode()
            check(route, edge.call(route.method, path, key=keys.key(route.level), body=raw), {name: str(value)[:80]})


@pytest.mark.parametrize("route", WITH_PATH, ids=named)
def test_hostile_paths(edge: Edge, route: Route) -> None:
    keys = Keys(edge)
    tail = route.path.partition("}")[2].replace("{", "").replace("}", "")
    body = b"{}" if route.body is not None else None
    for piece in some(PIECES, ROUTES.index(route)):
        answer = edge.call(route.method, f"{route.address.partition('{')[0]}{piece}{tail}", key=keys.key(route.level), body=body)
        assert answer.status in (200, 400, 403, 404), (named(route), piece, answer.status, answer.body[:500])


@pytest.mark.parametrize("route", [route for route in ROUTES if route.method == "GET"], ids=named)
def test_hostile_queries(edge: Edge, route: Route) -> None:
    keys = Keys(edge)
    path = route.address.replace("{", "").replace("}", "")
    for query in some(QUERIES, ROUTES.index(route)):
        check(route, edge.call("GET", f"{path}?{query}", key=keys.key(route.level)), query[:80])


def test_the_table_is_not_empty() -> None:
    assert len(WITH_BODY) > 10
    assert len(WITH_PATH) > 10
