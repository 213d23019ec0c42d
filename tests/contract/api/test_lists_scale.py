"""A page costs the same calls of AWS at ten records and at a hundred thousand."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.contract.api.filling import fill
from tests.support.edge import PREPARED, Edge

MANY = 100_000 if os.environ.get("SWEEP") == "full" else 12_000


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def calls_of(edge: Edge, **query: Any) -> tuple[list[str], Any]:
    edge.call("GET", "/coins")  # warm
    counted = edge.calls()
    answer = edge.call("GET", "/invoices/getAll", query={"limit": 5, **query})
    assert answer.status == 200, answer.body
    return list(counted.made), answer.json


QUERIES: dict[str, dict[str, Any]] = {
    "the first page": {},
    "of one status": {"status": "completed"},
    "of one status and coin": {"status": "completed", "currency": "eth"},
    "since a day": {"from": "2026-01-01", "to": "2026-01-01"},
    "the second page": {"page": 2},
}


@pytest.mark.slow
def test_pages_cost_the_same_calls_at_a_hundred_thousand(edge):
    fill(edge, 20)
    few = {name: calls_of(edge, **query)[0] for name, query in QUERIES.items()}
    fill(edge, MANY)
    for name, query in QUERIES.items():
        calls, answer = calls_of(edge, **query)
        # A query stops at 1 MB: counting ten thousand keys takes two, comparing twenty thousand of two lists a few, and one call
        # counts them as more requests of the key.
        assert calls[: len(few[name])] == few[name] or "coin" in name, name
        assert len(calls) <= len(few[name]) + (9 if "coin" in name else 2), (name, calls)
        pagination = answer["meta"]["pagination"]
        assert len(answer["data"]) == 5
        again, _ = calls_of(edge, cursor=pagination["next_cursor"], **{k: v for k, v in query.items() if k != "page"})
        assert len(again) == {"of one status": 3, "of one status and coin": 5}.get(name, 2), (name, again)
    assert answer["meta"]["pagination"] | {"next_cursor": None} == {
        "page": 2, "limit": 5, "total": 10_000, "pages": None, "has_next": True, "has_prev": True, "next_cursor": None,
        "total_capped": True,
    }  # fmt: skip
