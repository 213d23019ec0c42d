"""A list request that looks through many records counts as several requests of its key, and one by an index as one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api.filling import fill
from tests.support.edge import PREPARED, Edge

BY_INDEX: tuple[dict[str, str], ...] = ({}, {"status": "completed"}, {"page": "3"}, {"from": "2026-01-01", "to": "2026-01-02"})
THROUGH: tuple[dict[str, str], ...] = (
    {"amount[gt]": "9"},
    {"externalId[like]": "%no such%"},
    {"status[ne]": "pending"},
    {"sort": "amount"},
)


@pytest.fixture
def edge(aws, monkeypatch: pytest.MonkeyPatch) -> Edge:
    """In one minute, however long the test takes."""
    edge = PREPARED.edge(aws)
    now = edge.services.clock.now_ms()
    monkeypatch.setattr(edge.services.clock, "now_ms", lambda: now)
    return edge


def asked(edge: Edge, query: dict[str, str]) -> Any:
    return edge.call("GET", "/invoices/getAll", query={"limit": 5, **query})


def cost(edge: Edge, query: dict[str, str]) -> int:
    """Requests of the minute that the query counted as."""
    before = int(edge.call("GET", "/coins").headers["x-ratelimit-remaining"])
    answer = asked(edge, query)
    assert answer.status == 200, answer.body
    return before - int(answer.headers["x-ratelimit-remaining"])


def test_what_is_looked_through_is_counted(edge: Edge) -> None:
    fill(edge, 900)
    assert {cost(edge, query) for query in (*BY_INDEX, *THROUGH)} == {1}
    fill(edge, 1_300)
    assert {cost(edge, query) for query in BY_INDEX} == {1}
    assert [cost(edge, query) for query in THROUGH] == [7, 7, 7, 7]
    fill(edge, 4_300)
    assert cost(edge, THROUGH[0]) == 31


def test_a_cursor_that_looks_through_is_counted_as_well(edge: Edge) -> None:
    fill(edge, 1_300)
    cursor = asked(edge, {}).json["meta"]["pagination"]["next_cursor"]
    assert cost(edge, {"cursor": cursor}) == 1
    assert cost(edge, {"cursor": cursor, "amount[gt]": "9"}) == 7


def test_a_key_has_as_many_looks_a_minute_as_its_window_has_room_for(edge: Edge) -> None:
    """A hundred requests a minute are fifteen looks through 1,300 records: the next is refused before it has read them all."""
    fill(edge, 1_300)
    answers = [asked(edge, THROUGH[0]) for _ in range(16)]
    assert [answer.status for answer in answers] == [200] * 15 + [429]
    refused = answers[-1]
    assert refused.json["code"] == "RATE_LIMIT_EXCEEDED" and refused.headers["x-ratelimit-remaining"] == "0"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert asked(edge, {}).status == 429


def test_two_lists_that_are_compared_key_by_key_are_counted_by_their_keys(edge: Edge) -> None:
    fill(edge, 4_500)
    assert cost(edge, {"status": "pending", "currency": "eth"}) == 7
    assert cost(edge, {"status": "completed", "currency": "usdt"}) == 1
