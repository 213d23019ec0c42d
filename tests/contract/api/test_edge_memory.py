"""What a request brought is let go with its answer, without a search for garbage: `app.py` lets these be far apart."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

from tests.support.edge import PREPARED, Edge

LARGE = "x" * (1 << 20)


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/claim/unknown", {"confirm": LARGE}, 400),  # anybody can send it
        ("/claim/unknown", {"address": "0x1", "confirm": "x", LARGE: 1}, 400),
        ("/withdrawals", {"coin": LARGE}, 400),
        ("/webhooks/wh_none/redeliver", {"from": "2026-01-01", "events": [LARGE]}, 400),
        ("/nothing", {"a": LARGE}, 404),
    ],
)
def test_no_refused_body_waits_for_a_search_for_garbage(edge: Edge, path: str, body: dict[str, Any], status: int) -> None:
    def send() -> None:
        assert edge.call("POST", path, json=body).status == status

    send()  # what the first request loads stays
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        send()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            send()
        assert tracemalloc.get_traced_memory()[0] - before < len(LARGE)
    finally:
        tracemalloc.stop()
        gc.enable()
