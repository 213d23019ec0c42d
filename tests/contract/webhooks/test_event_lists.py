"""`GET /v1/events`: what can be asked of it, and what that costs."""

from __future__ import annotations

import pytest

from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.endpoints import EventRecord, event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.usecases.ports.changes import Save
from tests.support.edge import PREPARED, Edge

NOON = 1_767_268_800_000
"""2026-01-01, 12:00 UTC."""
HOUR = 3_600_000
LIFE = ("invoice.created", "invoice.partial", "invoice.confirming", "invoice.completed")


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def fill(edge: Edge, shop: str, *objects: str) -> list[EventRecord]:
    """An event of each object every hour from noon on."""
    tenant, made = TenantId(f"{shop}:test"), []
    for n, name in enumerate(LIFE):
        for object_id in objects:
            at = NOON + n * HOUR
            event = Event(new_id("evt", at), tenant, name, object_id, n + 1, at, {"id": object_id})
            made.append(event_record(event, iso(at), at))
    edge.services.store.commit([Save(record) for record in made])
    return made


@pytest.fixture
def filled(edge: Edge) -> list[EventRecord]:
    return fill(edge, edge.shop, "inv_a", "inv_b")


def found(edge: Edge, query: str) -> list[tuple[str, str]]:
    answer = edge.call("GET", f"/events?{query}")
    assert answer.status == 200, answer.body
    return [(event["data"]["id"], event["event"]) for event in answer.json["data"]]


def rows(*numbers: int, objects: str = "ba") -> list[tuple[str, str]]:
    return [(f"inv_{one}", LIFE[n]) for n in numbers for one in objects]


ASKED = [
    ("event=invoice.created", rows(0)),
    ("event=invoice.created&event=invoice.completed", rows(3, 0)),
    ("event=invoice.created,invoice.completed", rows(3, 0)),
    ("event%5Bin%5D=invoice.created,invoice.completed", rows(3, 0)),
    ("event%5Bne%5D=invoice.created&sequence%5Blt%5D=3", rows(1)),
    ("event%5Blike%5D=invoice.co%25", rows(3, 2)),
    ("objectId=inv_a", rows(3, 2, 1, 0, objects="a")),
    ("objectId=inv_a&order=asc", rows(0, 1, 2, 3, objects="a")),
    ("objectId=inv_a&limit=3&page=2", rows(0, objects="a")),
    ("objectId=inv_a&event=invoice.partial", rows(1, objects="a")),
    ("objectId=inv_a&from=2026-01-01T13:00:00Z&to=2026-01-01T14:00:00Z", rows(2, 1, objects="a")),
    ("objectId%5Bin%5D=inv_a,inv_b&sequence=4", rows(3)),
    ("objectId=INV_A", []),
    ("objectId=inv_c", []),
    ("from=2026-01-01&to=2026-01-01", rows(3, 2, 1, 0)),
    ("from=2026-01-02", []),
    ("to=2025-12-31", []),
    ("timestamp%5Bgte%5D=2026-01-01T14:00:00Z&createdAt%5Blt%5D=2026-01-01T15:00:00Z", rows(2)),
    ("sort=sequence&order=asc&sequence%5Bin%5D=1,4", rows(0, 3)),
]


def test_filters(edge: Edge, filled: list[EventRecord]) -> None:
    for query, expected in ASKED:
        got = found(edge, query)
        # Two objects share each millisecond here.
        assert sorted(got) == sorted(expected), query
        assert [name for _, name in got] == [name for _, name in expected], query


def test_one_objects_events_cost_the_same_however_many_there_are(edge: Edge, filled: list[EventRecord]) -> None:
    fill(edge, edge.other, "inv_a")
    edge.call("GET", "/coins")  # warm
    counted = edge.calls()
    page = edge.call("GET", "/events?objectId=inv_a&limit=2").json
    assert counted.made == ["UpdateItem", "Query", "BatchGetItem", "Query"]
    assert [event["sequence"] for event in page["data"]] == [4, 3]
    pagination = page["meta"]["pagination"]
    assert (pagination["total"], pagination["pages"], "total_capped" in pagination) == (4, 2, False)
    rest = edge.call("GET", f"/events?objectId=inv_a&limit=2&cursor={pagination['next_cursor']}").json
    assert [event["sequence"] for event in rest["data"]] == [2, 1]


def test_one_event(edge: Edge, filled: list[EventRecord]) -> None:
    (foreign, *_) = fill(edge, edge.other, "inv_x")
    edge.call("GET", "/coins")  # warm
    counted = edge.calls()
    shown = edge.call("GET", f"/events/{filled[0].id}").json["data"]
    assert len(counted.made) == 2
    assert (shown["id"], shown["timestamp"], shown["sequence"]) == (filled[0].id, "2026-01-01T12:00:00.000Z", 1)
    for unknown in (foreign.id, filled[0].id[:-1], "nonsense"):
        answer = edge.call("GET", f"/events/{unknown}")
        assert (answer.status, answer.json["error"]["code"]) == (404, "NOT_FOUND")
        assert edge.call("GET", f"/events?id={unknown}").json["data"] == []
    assert edge.call("GET", f"/events/{filled[0].id}", key="live").status == 404
    assert edge.call("GET", "/events?objectId=inv_x").json["data"] == []


WRONG = [
    "event=invoice.paid", "event=invoice.created,nothing", "event%5Bgt%5D=invoice.created", "status=completed", "sort=data",
    "sequence=first", "sequence%5Blike%5D=1", "from=yesterday", "to=2026-13-01", "timestamp%5Bnear%5D=2026-01-01", "limit=101",
]  # fmt: skip


def test_what_can_not_be_asked(edge: Edge) -> None:
    for query in WRONG:
        answer = edge.call("GET", f"/events?{query}").json["error"]
        field = query.split("=")[0].replace("%5B", "[").replace("%5D", "]")
        assert (answer["code"], [problem["field"] for problem in answer["details"]]) == ("INVALID_PARAMETER", [field])
