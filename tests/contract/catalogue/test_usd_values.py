"""USD values: there with a fresh rate, null without one, rounded to cents, and read only where something is worth anything."""

from __future__ import annotations

import pytest

from chalicelib.domain.catalogue.rates import STALE_MS, Rate
from chalicelib.usecases.base.balance_views import total_usd
from chalicelib.usecases.ports.changes import Save
from tests.support.edge import PREPARED, Edge


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def test_balances_are_worth_what_the_rate_says(edge: Edge) -> None:
    edge.credit("ethereum", "eth", 123_456_789_012_345_678)
    edge.credit("tron", "usdt", 1_005_000)
    worth = {(b["network"], b["coin"]): b["balanceUSD"] for b in edge.call("GET", "/v1/balances").json["data"]}
    assert worth == {("ethereum", "eth"): 370.37, ("tron", "usdt"): 1.0}


def test_an_address_says_what_it_holds_in_all(edge: Edge) -> None:
    made = edge.call("POST", "/v1/addresses", json={"network": "ethereum"}).json
    assert {b["balanceUSD"] for b in made["balances"]} == {0}
    read = edge.call("GET", f"/v1/addresses/{made['id']}").json
    assert read["totalBalanceUSD"] == 0


def test_the_total_is_known_only_when_every_part_is() -> None:
    assert total_usd([{"balanceUSD": 0.1}, {"balanceUSD": 0.2}]) == 0.3
    assert total_usd([{"balanceUSD": 0.1}, {"balanceUSD": None}]) is None
    assert total_usd([]) == 0


def test_a_stale_rate_is_worth_nothing_and_a_zero_needs_none(edge: Edge) -> None:
    """In the live realm, whose rates are stored."""
    from chalicelib.domain.ids import TenantId, asset_id, network_id
    from chalicelib.domain.ledger import Balance

    store, now = edge.services.store, edge.services.clock.now_ms()
    asset, tenant = asset_id(network_id("live", "bitcoin"), "btc"), TenantId(f"{edge.shop}:live")
    store.commit([Save(Balance(tenant, asset, available=150_000_000, version=1))])
    rate = Rate("btc", "USD", "40000.505", now, "kraken")
    store.commit([Save(rate)])

    def worth() -> float | None:
        found: float | None = edge.call("GET", "/v1/balances", key="live").json["data"][0]["balanceUSD"]
        return found

    assert worth() == 60000.76
    edge.services.clock.shift_ms += STALE_MS + 1
    assert worth() is None


def test_creating_an_address_asks_for_no_rate(edge: Edge) -> None:
    edge.call("POST", "/v1/addresses", json={"network": "bitcoin"}, key="live")
    calls = edge.calls()
    assert edge.call("POST", "/v1/addresses", json={"network": "bitcoin"}, key="live").status == 201
    assert "Query" not in calls.made
