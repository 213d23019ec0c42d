"""A merchant who makes addresses without end is stopped for the day, whatever its keys allow; nobody else is."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.domain.withdrawals.limits import DAY_MS
from chalicelib.usecases.addresses import daily_limit as daily_addresses
from chalicelib.usecases.addresses.daily_limit import SETTLED_MS, DailyAddresses
from tests.support.edge import PREPARED, Edge

MOST = 6
ADDRESS = {"network": "ethereum", "coin": "eth", "type": "user"}
INVOICE = {"network": "ethereum", "currency": "eth", "amount": "1"}


@pytest.fixture
def edge(aws, monkeypatch: pytest.MonkeyPatch) -> Edge:
    """Counted after every second address that a process makes, in the middle of a day."""
    edge = PREPARED.edge(aws)
    monkeypatch.setattr(daily_addresses, "STEP", 2)
    monkeypatch.setattr(daily_addresses, "COUNTED_AT_ONCE", 4)
    edge.services.clock.shift_ms = DAY_MS // 2 - edge.services.clock.now_ms() % DAY_MS
    monkeypatch.setattr(edge.services.addresses, "_daily", DailyAddresses(edge.services.store, MOST))
    return edge


def made(edge: Edge, path: str, body: dict[str, str], key: str = "client") -> Any:
    """Another one, a while later."""
    edge.services.clock.shift_ms += SETTLED_MS
    return edge.call("POST", path, json=body, key=key)


def test_a_merchant_with_many_keys_makes_no_more_addresses_than_a_day_has(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    keys = [edge.new_key() for _ in range(3)]
    answers = [made(edge, "/addresses", ADDRESS, keys[n % 3]) for n in range(12)]
    statuses = [answer.status for answer in answers]
    assert statuses == sorted(statuses) and MOST <= statuses.count(201) <= MOST + 2
    refused = answers[-1].json["error"]
    assert (refused["code"], refused["details"]["field"]) == ("VALIDATION_ERROR", "network")
    assert caplog.text.count("ALARM") == 1
    assert made(edge, "/invoices", INVOICE).json["code"] == "VALIDATION_ERROR"
    assert made(edge, "/addresses", ADDRESS, "other").status == 201
    assert edge.call("GET", "/addresses").status == 200
    edge.services.clock.shift_ms += DAY_MS
    assert made(edge, "/addresses", ADDRESS).status == 201


def test_addresses_of_invoices_count_and_those_of_other_processes(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(MOST):
        assert made(edge, "/invoices", INVOICE).status == 201
    monkeypatch.setattr(edge.services.addresses, "_daily", DailyAddresses(edge.services.store, MOST))  # a new process
    statuses = [made(edge, "/addresses", ADDRESS).status for _ in range(8)]
    assert statuses[0] == 201 and statuses[-1] == 400 and statuses == sorted(statuses)
    assert statuses.count(201) <= 4  # it counts four at once


def test_what_is_made_at_an_ordinary_pace_is_not_counted(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daily_addresses, "STEP", 100)
    assert edge.call("POST", "/addresses", json=ADDRESS).status == 201
    counted = edge.calls()
    assert edge.services.settings.addresses_per_day == 500_000
    for _ in range(3):
        assert edge.call("POST", "/addresses", json=ADDRESS).status == 201
    assert "Query" not in counted.made


def test_no_number_means_any(edge: Edge) -> None:
    daily = DailyAddresses(edge.services.store, 0)
    for _ in range(10):
        daily.demand_room(f"{edge.shop}:test", edge.services.clock.now_ms())  # type: ignore[arg-type]
