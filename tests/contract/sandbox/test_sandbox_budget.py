"""What one merchant may ask of the simulated networks that all share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.usecases.sandbox.mining_budget import BLOCKS_AN_HOUR
from infra.local.aws import LocalAws
from tests.support.edge import PREPARED, Edge


@pytest.fixture
def edge(aws: LocalAws) -> Edge:
    made = PREPARED.edge(aws)
    for slug in ("ethereum", "bsc"):
        made.services.scanner(made.services.catalogue("test").networks[slug]).start()
    return made


def mine(edge: Edge, count: int, network: str = "ethereum", key: str = "client") -> Any:
    return edge.call("POST", "/v1/sandbox/blocks", key=key, json={"network": network, "count": count})


def test_a_call_mines_a_thousand_blocks_at_most(edge: Edge) -> None:
    assert mine(edge, 1_001).json["error"]["code"] == "INVALID_PARAMETER"
    assert mine(edge, 1_000).status == 201


def test_a_merchant_has_so_many_blocks_an_hour(edge: Edge) -> None:
    assert BLOCKS_AN_HOUR == 10_000
    for n in range(9):
        assert mine(edge, 1_000, ("ethereum", "bsc")[n % 2]).status == 201
    undone = edge.call("POST", "/v1/sandbox/reorg", json={"network": "ethereum", "depth": 10})
    assert undone.status == 201
    assert mine(edge, 1_000).status == 400
    with ThreadPoolExecutor(4) as pool:
        assert sorted(a.status for a in pool.map(lambda _: mine(edge, 400), range(4))) == [201, 201, 400, 400]
    refused = mine(edge, 190).json["error"]
    assert (refused["code"], refused["details"]["field"]) == ("VALIDATION_ERROR", "count")
    assert "10000 blocks an hour" in refused["message"] and "189 are left" in refused["message"]
    assert edge.call("POST", "/v1/sandbox/reorg", json={"network": "ethereum", "depth": 0}).status == 400
    assert mine(edge, 189).status == 201
    assert mine(edge, 1).status == 400
    # Everybody has his own, and moving the sandbox's clock gives nobody a new one.
    assert mine(edge, 1, key="other").status == 201
    assert edge.call("POST", "/v1/sandbox/clock", json={"advance": 7_200}).status == 201
    assert mine(edge, 1).status == 400
    edge.services.clock.shift_ms += 3_600_000  # type: ignore[attr-defined]
    assert mine(edge, 1_000).status == 201


def test_the_clock_is_moved_by_ten_years_in_all(edge: Edge) -> None:
    for _ in range(10):
        assert edge.call("POST", "/v1/sandbox/clock", json={"advance": 31_536_000}).status == 201
    refused = edge.call("POST", "/v1/sandbox/clock", json={"advance": 1})
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
