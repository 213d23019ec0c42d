"""What only somebody sends who looks for a hole: cursors nobody gave, control characters, secrets under the wrong name."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.api import resources
from chalicelib.api.lists.listing import Listing
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.rendering import to_json
from chalicelib.api.routes import ROUTES
from infra.local.aws import LocalAws
from tests.support.edge import PREPARED, Edge

resources.load()
PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"
SECRET = "11" * 31 + "22"
LISTS = [route for route in ROUTES if isinstance(route.query_of, Listing) and "{" not in route.path]
FEW = 3 if os.environ.get("SWEEP") == "full" else 6
"""One value in so many for a field: the next field gets the next ones."""
VALUES: tuple[Any, ...] = (
    "NaN", "sNaN", "-Infinity", "1e999999999", "", "\ud800", "x", 10**400, -1, True, None, "1",
)  # fmt: skip


@pytest.fixture
def edge(aws: LocalAws) -> Iterator[Edge]:
    made = PREPARED.edge(aws)
    made.credit("ethereum", "eth", 10 * 10**18)
    yield made


def filled(edge: Edge) -> None:
    for n in range(2):
        edge.call("POST", "/v1/invoices", json={"currency": "eth", "amount": "1", "externalId": f"x{n}"})
        edge.call("POST", "/v1/addresses", json={"network": "ethereum", "label": f"x{n}"})
        edge.call("POST", "/v1/withdrawals", json={"network": "ethereum", "coin": "eth", "amount": "0.1", "to_address": PAYEE})
        whitelisted = {"network": "ethereum", "address": PAYEE[:-1] + f"{n}", "label": "x", "daily_limit": "1"}
        edge.call("POST", "/v1/whitelist/addresses", json={**whitelisted, "address": whitelisted["address"].lower()})
        edge.call("POST", "/v1/webhooks", json={"url": f"https://shop.example/{n}", "events": ["*"]})


def forged(name: str, sort: str, order: str, position: str, value: Any) -> str:
    text = json.dumps([name, sort, order, position, value])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.slow
def test_no_forged_cursor_breaks_a_list(edge: Edge) -> None:
    filled(edge)
    assert len(LISTS) > 8
    seen = set()
    for route in LISTS:
        listing = route.query_of
        assert isinstance(listing, Listing)
        key = edge.new_key(level="admin" if route.level == "admin" else "client")
        for turn, sort in enumerate(("", "nothing", *(field.name for field in listing.fields))):
            edge.services.clock.shift_ms += 61_000  # type: ignore[attr-defined]
            for value in VALUES[turn % FEW :: FEW]:
                cursor = forged(listing.name, sort, "asc", "a", value)
                answer = edge.call("GET", f"/v1{route.path}?limit=1&cursor={cursor}", key=key)
                assert answer.status in (200, 400, 429), (route.path, sort, value, answer.body)
                seen.add(answer.status)
        edge.services.clock.shift_ms += 3_700_000  # type: ignore[attr-defined]
    assert {200, 400} <= seen


@pytest.mark.parametrize("value", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_a_cursor_at_no_number_is_none_that_the_list_gave(edge: Edge, value: str) -> None:
    filled(edge)
    answer = edge.call("GET", "/v1/withdrawals?cursor=" + forged("withdrawals", "amount", "asc", "wd_x", value))
    assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    assert answer.json["error"]["details"][0]["field"] == "cursor"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/withdrawals/%001e5", "/v1/withdrawals/%00--", "/v1/webhooks/%001.2.3", "/v1/addresses/%00-e-", "/v1/coins/%00--",
        "/v1/networks/%00--", "/v1/addresses/hot-wallet/%00--", "/v1/nowhere/%00--", "/v1/pay/%00--",
    ],
)  # fmt: skip
def test_a_path_with_nul_names_nothing(edge: Edge, path: str) -> None:
    answer = edge.call("GET", path)
    assert answer.status == 404
    if path.startswith("/v1/pay/"):
        assert "There is nothing here" in answer.body.decode(), "people read a page"
    else:
        json.loads(answer.body)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/invoices?id=%0012",
        "/v1/withdrawals?network=%001e400",
        "/v1/invoices/getAll?status[eq]=x&network=%00--",
        "/v1/events?%00--=1",
    ],
)
def test_a_query_with_nul_is_refused(edge: Edge, path: str) -> None:
    answer = edge.call("GET", path)
    assert answer.status == 400
    assert b"INVALID_PARAMETER" in answer.body and b"no NUL character" in answer.body
    json.loads(answer.body)


def test_nothing_that_is_sent_becomes_a_number_of_ours() -> None:
    for text in ("\x00--", "\x001", "\x001.5", "\x00\x001"):
        assert json.loads(to_json({"s": text, "n": JsonNumber("0.10")})) == {"s": text, "n": 0.1}


@pytest.mark.parametrize("name", ["key", "PrivateKey", "private_key", "privatkey", "k", "pk", "address2"])
def test_an_unknown_field_is_never_repeated(edge: Edge, name: str) -> None:
    body = {"network": "ethereum", "type": "hot", name: SECRET}
    for sent in (body, {**body, name: {"x": SECRET}}, {**body, name: [SECRET]}):
        answer = edge.call("POST", "/v1/addresses/service-wallets", key="admin", json=sent)
        assert answer.status == 400
        assert SECRET not in answer.body.decode()
        assert answer.json["error"]["details"][0]["field"] == name
    inside = {"url": "https://shop.example", "events": ["*"], "sicret": SECRET}
    assert SECRET not in edge.call("POST", "/v1/webhooks", json=inside).body.decode()


def test_an_invoice_takes_its_network_from_the_query_too(edge: Edge) -> None:
    def ask(query: str, **more: Any) -> Any:
        return edge.call("POST", f"/v1/invoices{query}", json={"currency": "usdt", "amount": "1", **more})

    assert ask("").json["network"] == "ethereum"
    assert ask("?network=tron").json["network"] == "tron"
    assert ask("", network="tron").json["network"] == "tron"
    assert ask("?network=tron", network="tron").json["network"] == "tron"
    for answer in (ask("?network=tron", network="bsc"), ask("?network=nowhere"), ask("?network=bitcoin"), ask("?coin=eth")):
        assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER")
    assert "must be the same in the query and in the body" in ask("?network=tron", network="bsc").json["details"]
    # 0.0000001 USDT: too fine where it has 6 decimals (tron), not where it has 18 (bsc).
    assert ask("?network=bsc", amount="0.0000001").status == 201
    assert ask("?network=tron", amount="0.0000001").status == 400


def test_the_network_in_the_query_belongs_to_what_an_idempotency_key_stands_for(edge: Edge) -> None:
    def ask(query: str) -> Any:
        body = {"currency": "usdt", "amount": "1"}
        return edge.call("POST", f"/v1/invoices{query}", json=body, headers={"Idempotency-Key": "once"})

    first = ask("?network=tron")
    assert first.status == 201
    assert ask("?network=tron").body == first.body
    assert (ask("").status, ask("?network=bsc").json["code"]) == (400, "VALIDATION_ERROR")


def test_both_addresses_of_a_simulated_payment_are_looked_at(edge: Edge) -> None:
    def pay(address: str, sender: str | None) -> Any:
        body = {"address": address, "network": "ethereum", "coin": "eth", "amount": "1"}
        return edge.call("POST", "/v1/sandbox/deposits", json=body if sender is None else {**body, "from": sender})

    for answer, wrong in (
        (pay("0x12", None), {"address": "0x12", "network": "ethereum"}),
        (pay(PAYEE, "0x34"), {"address": "0x34", "network": "ethereum", "fields": ["from"]}),
        (pay("0x12", "0x34"), {"address": "0x12", "network": "ethereum", "fields": ["address", "from"]}),
    ):
        assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_ADDRESS")
        assert answer.json["error"]["details"] == wrong
    assert "from" in pay("0x12", "0x34").json["error"]["message"]


@pytest.mark.parametrize("network", ["bitcoin", "tron", "litecoin"])
def test_a_default_of_the_deployment_makes_no_request_wrong(aws: LocalAws, monkeypatch: pytest.MonkeyPatch, network: str) -> None:
    monkeypatch.setenv("ADDRESSES_MODE", "cross")
    edge = PREPARED.edge(aws)
    made = edge.call("POST", "/v1/addresses", json={"network": network})
    assert (made.status, made.json["mode"]) == (201, "common")
    assert edge.call("POST", "/v1/addresses", json={"network": "bsc"}).json["mode"] == "cross"
    asked = edge.call("POST", "/v1/addresses", json={"network": network, "mode": "cross"})
    assert asked.json["error"]["code"] == "VALIDATION_ERROR"


def test_a_single_address_needs_its_coin_also_by_default(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADDRESSES_MODE", "single")
    edge = PREPARED.edge(aws)
    answer = edge.call("POST", "/v1/addresses", json={"network": "bitcoin"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    assert edge.call("POST", "/v1/addresses", json={"network": "bitcoin", "coin": "btc"}).json["mode"] == "single"
