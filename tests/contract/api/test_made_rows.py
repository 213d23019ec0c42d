"""Rows that are made when they are looked at answer as those that lie there (tests/bench/many_rows.py)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.domain.ids import TenantId, first_id
from chalicelib.domain.invoices.invoices import Invoice
from tests.bench.many_rows import lay
from tests.contract.api.filling import START, fill
from tests.support.edge import PREPARED, Edge

COUNT = 45
SHAPE: dict[str, Any] = {"network": "test:ethereum", "asset": "test:ethereum:eth", "address": "0x0", "address_id": "addr_0"}
QUERIES = ({}, {"page": 3}, {"status": "pending"}, {"from": "2026-01-01", "to": "2026-01-01"}, {"amount[gt]": "2"})


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def answers(edge: Edge) -> list[Any]:
    found = []
    for query in QUERIES:
        answer = edge.call("GET", "/invoices/getAll", query={"limit": 7, **query}).json
        behind = answer["meta"]["pagination"]["next_cursor"]
        found.append(answer)
        if behind:
            found.append(edge.call("GET", "/invoices/getAll", query={"limit": 7, "cursor": behind, **query}).json)
    return [(one["data"], one["meta"]["pagination"]["total"], one["meta"]["pagination"]["has_next"]) for one in found]


def pending(edge: Edge, at: int) -> Invoice:
    tenant = TenantId(f"{edge.shop}:test")
    return Invoice(id="inv_", tenant=tenant, amount=10**18, created_at=at, expires_at=START, **SHAPE)


def test_made_rows_answer_as_real_ones(edge: Edge, aws) -> None:
    store = edge.services.store

    def vary(n: int) -> dict[str, str | int]:
        id = f"{first_id('inv', START + n * 1_000)}{n:016d}"
        return {"sk": id, "id": id, "created_at": START + n * 1_000}

    lay(store, store.models.item(pending(edge, START)), COUNT, vary)
    made = answers(edge)
    by_id = edge.call("GET", "/invoices", query={"id": vary(31)["id"]}).json
    newest = edge.call("POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "1"})
    assert newest.status == 201, newest.body
    first, second = edge.call("GET", "/invoices/getAll", query={"limit": 2}).json["data"]
    assert (first["id"], second["id"]) == (newest.json["id"], vary(COUNT - 1)["id"])

    real = PREPARED.edge(aws)
    fill(real, COUNT, completed=False)
    assert answers(real) == made
    assert real.call("GET", "/invoices", query={"id": vary(31)["id"]}).json == by_id
    assert by_id["id"] == vary(31)["id"] and real.call("GET", "/invoices", query={"id": vary(COUNT)["id"]}).status == 400
