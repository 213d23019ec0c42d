"""A merchant's own rates in its sandbox: they count from then on for its prices in fiat, and for nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.domain.catalogue.rates import Rate
from chalicelib.domain.catalogue.sandbox_rates import MOST, OwnRate, SandboxRates
from chalicelib.domain.ids import TenantId
from chalicelib.usecases.ports.changes import Save
from infra.local.aws import LocalAws
from tests.support.edge import PREPARED, Edge


@pytest.fixture
def edge(aws: LocalAws) -> Edge:
    return PREPARED.edge(aws)


def set_rate(edge: Edge, **body: Any) -> Any:
    answer = edge.call("POST", "/sandbox/rates", json={"coin": "eth", "fiat": "EUR", **body})
    assert answer.status == 201, answer.body
    return answer.json["data"]


def priced(edge: Edge, key: str | None = None, **body: Any) -> Any:
    asked = {"currency": "eth", "fiatAmount": "10", "fiatCurrency": "EUR", **body}
    return edge.call("POST", "/invoices", json=asked, **({"key": key} if key else {}))


def test_it_counts_from_then_on_and_for_this_merchant_alone(edge: Edge) -> None:
    before = priced(edge).json
    assert set_rate(edge, value="1000.50") == {"coin": "eth", "fiat": "EUR", "value": "1000.50", "stale": False, "own": True}
    after = priced(edge).json
    assert (after["amount"], after["rate"]["value"], after["rate"]["source"]) == ("0.00999501", "1000.50", "sandbox")
    assert edge.call("GET", "/invoices", query={"id": before["id"]}).json["rate"]["value"] == "2700"
    assert priced(edge, key="other").json["rate"]["value"] == "2700"
    assert priced(edge, fiatCurrency="USD").json["rate"]["value"] == "3000", "another currency is as it was"
    assert set_rate(edge, value=None) == {"coin": "eth", "fiat": "EUR", "value": "2700", "stale": False, "own": False}
    assert priced(edge).json["amount"] == before["amount"]


def test_a_stale_rate_prices_nothing(edge: Edge) -> None:
    assert set_rate(edge, stale=True)["stale"] is True
    refused = priced(edge)
    assert (refused.status, refused.json["code"]) == (400, "VALIDATION_ERROR")
    assert "there is no fresh rate of eth in EUR now" in refused.body.decode()
    rates = edge.services.rates("test").of(TenantId(f"{edge.shop}:test"))
    now = edge.services.realm_clock.now_ms()
    old = rates.get("eth", "EUR")
    assert old is not None and old.stale(now) and rates.fresh("eth", now, "EUR") is None
    assert set_rate(edge, value=5, stale=False)["own"] is True
    assert priced(edge).json["amount"] == "2"


def test_an_answer_is_repeated_and_nothing_is_set_twice(edge: Edge) -> None:
    asked = {"coin": "eth", "fiat": "eur", "value": "7"}
    for _ in range(2):
        answer = edge.call("POST", "/sandbox/rates", json=asked, headers={"Idempotency-Key": "a"})
        assert (answer.status, answer.json["data"]["fiat"]) == (201, "EUR")
    stored = edge.services.store.get(SandboxRates, tenant=f"{edge.shop}:test")
    assert stored.version == 1 and stored.rates == (OwnRate("eth", "EUR", "7"),)


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "INVALID_PARAMETER", "value"),
        ({"stale": False}, "INVALID_PARAMETER", "value"),
        ({"value": "0"}, "INVALID_PARAMETER", "value"),
        ({"value": "-1"}, "INVALID_PARAMETER", "value"),
        ({"value": "1" + "0" * 13}, "INVALID_PARAMETER", "value"),
        ({"value": "0." + "0" * 12 + "1"}, "INVALID_PARAMETER", "value"),
        ({"value": "1", "stale": True}, "INVALID_PARAMETER", "stale"),
        ({"value": "1", "fiat": "EURO"}, "INVALID_PARAMETER", "fiat"),
        ({"value": "1", "fiat": "XAU"}, "VALIDATION_ERROR", "fiat"),
        ({"value": "1", "coin": "doge"}, "INVALID_PARAMETER", "coin"),
    ],
)
def test_what_is_no_rate_is_refused(edge: Edge, body: Any, code: str, field: str) -> None:
    answer = edge.call("POST", "/sandbox/rates", json={"coin": "eth", "fiat": "EUR", **body})
    assert (answer.status, answer.json["error"]["code"]) == (400, code)
    assert field in answer.body.decode()


def test_live_keys_have_no_such_endpoint(edge: Edge) -> None:
    answer = edge.call("POST", "/sandbox/rates", key="live", json={"coin": "eth", "fiat": "EUR", "value": "1"})
    assert answer.status in (403, 404)


def test_they_are_bounded(edge: Edge) -> None:
    tenant = TenantId(f"{edge.shop}:test")
    rates = tuple(OwnRate(f"c{n}", "USD", "1") for n in range(MOST))
    edge.services.store.commit([Save(SandboxRates(tenant, rates))])
    answer = edge.call("POST", "/sandbox/rates", json={"coin": "eth", "fiat": "EUR", "value": "1"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")


def test_nothing_is_read_for_live_prices_and_for_prices_in_coins(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    set_rate(edge, value="1")
    store, read = edge.services.store, list[type]()
    get = store.get
    monkeypatch.setattr(store, "get", lambda kind, /, **key: (read.append(kind), get(kind, **key))[1])
    assert edge.call("POST", "/invoices", json={"currency": "eth", "amount": "1"}).status == 201
    live = edge.services.rates("live")
    assert live.of(TenantId(f"{edge.shop}:live")) is live
    assert SandboxRates not in read
    assert priced(edge).json["amount"] == "10" and read.count(SandboxRates) == 1


def test_the_usual_rates_are_what_they_were(edge: Edge) -> None:
    rates = edge.services.rates("test")
    now = edge.services.realm_clock.now_ms()
    assert rates.constant and rates.fresh("eth", now, "EUR") == Rate("eth", "EUR", "2700", now, "fixed")
    assert rates.of(TenantId(f"{edge.other}:test")) is rates


def test_a_choice_is_priced_at_the_merchants_own_rate(edge: Edge) -> None:
    set_rate(edge, value="1000")
    made = edge.call("POST", "/invoices", json={"fiatAmount": "10", "fiatCurrency": "EUR", "accept": [{"coin": "eth"}]}).json
    chosen = edge.call("POST", f"/pay/{made['id']}/choice", json={"coin": "eth", "network": "ethereum"})
    assert chosen.status == 200, chosen.body
    assert (chosen.json["amount"], chosen.json["rate"]["source"]) == ("0.01", "sandbox")
