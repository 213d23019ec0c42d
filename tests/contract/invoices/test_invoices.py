"""Invoices by the interface: every row of their table, prices in fiat, the merchant's settings, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import botocore.client
import pytest
from botocore.exceptions import ClientError

from chalicelib import wiring
from chalicelib.api.edge import gateway_url
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.rates import STALE_MS, Rate
from chalicelib.domain.chain import Cursor
from chalicelib.usecases.ports.changes import Save
from infra.local.aws import REGION
from infra.local.gateway import Gateway
from tests.support.edge import PREPARED, Edge

SETTINGS = "/v1/invoices/configureSettings"
EMPTY = {
    "totalInvoices": 0, "totalAmount": "0.00", "totalReceived": "0.00", "completedInvoices": 0, "pendingInvoices": 0,
    "currencies": [],
}  # fmt: skip


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def make(edge: Edge, expect: int = 201, **body: Any) -> Any:
    answer = edge.call("POST", "/v1/invoices", json={"currency": "eth", **body})
    assert answer.status == expect, answer.body
    return answer.json


def wrong(edge: Edge, body: Any, method: str = "POST", path: str = "/v1/invoices") -> Any:
    answer = edge.call(method, path, json=body)
    assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER"), answer.body
    return answer.json["details"]


def against_a_rule(edge: Edge, **body: Any) -> str:
    answer = edge.call("POST", "/v1/invoices", json={"currency": "eth", **body})
    assert (answer.status, answer.json["code"]) == (400, "VALIDATION_ERROR"), answer.body
    return str(answer.json)


def test_the_summary_counts_by_currency_and_in_usd(edge):
    assert edge.call("GET", "/v1/invoices/summary").json == EMPTY
    make(edge, amount="0.5")
    make(edge, amount="0.000000000000000001")
    for network, amount in (("ethereum", "1.000001"), ("bsc", "2.000000000000000001")):
        make(edge, currency="usdt", network=network, amount=amount)
    by_hand = make(edge, amount="1")
    edge.call("PUT", "/invoices", json={"invoiceId": by_hand["id"], "status": "completed"})
    on_hold = make(edge, amount="1")
    edge.call("PUT", "/invoices", json={"invoiceId": on_hold["id"], "status": "on-hold"})
    assert edge.call("GET", "/invoices/summary").json == {
        "totalInvoices": 6, "totalAmount": "7503.00", "totalReceived": "0.00", "completedInvoices": 1, "pendingInvoices": 4,
        "currencies": [
            {"currency": "eth", "totalAmount": "2.500000000000000001", "totalReceived": "0"},
            {"currency": "usdt", "totalAmount": "3.000001000000000001", "totalReceived": "0"},
        ],
    }  # fmt: skip
    assert edge.call("GET", "/invoices/summary", key="other").json == EMPTY
    assert edge.call("GET", "/invoices/summary", key="live").json == EMPTY


def test_a_price_in_fiat_is_turned_into_coins_at_a_rate_that_is_kept(edge):
    made = make(edge, fiatAmount="10", fiatCurrency="EUR", externalId="a")
    assert (made["amount"], made["fiatAmount"], made["fiatCurrency"]) == ("0.00370371", "10", "EUR")
    assert (made["rate"]["fiat"], made["rate"]["value"], made["rate"]["source"]) == ("EUR", "2700", "fixed")
    assert made["paymentUri"].endswith("?value=3703710000000000")
    assert make(edge, fiatAmount=10.5, fiatCurrency="usd", currency="usdt", network="tron")["amount"] == "10.5"
    priced = make(edge, amount=1)
    assert ("fiatAmount" in priced, priced["rate"]["fiat"], priced["rate"]["value"]) == (False, "USD", "3000")
    for path, query in (("/invoices", {"id": made["id"]}), ("/invoices/getByExternalId", {"externalId": "a"})):
        assert edge.call("GET", path, query=query).json == made


def test_a_price_may_be_in_every_currency_that_the_providers_tell(edge):
    yen = make(edge, fiatAmount="4500", fiatCurrency="JPY")
    assert (yen["amount"], yen["fiatAmount"], yen["rate"]["fiat"], yen["rate"]["value"]) == ("0.01", "4500", "JPY", "450000")
    assert make(edge, fiatAmount="0.905", fiatCurrency="kwd")["amount"] == "0.00100556"
    refused = edge.call("POST", "/invoices", json={"currency": "eth", "fiatAmount": "1", "fiatCurrency": "XAU"})
    assert (refused.status, refused.json["code"]) == (400, "VALIDATION_ERROR")
    assert "fiatCurrency" in refused.body.decode() and "USD, EUR, GBP, AED" in refused.body.decode()


def test_a_rate_that_is_stale_or_missing_prices_nothing(edge):
    """In the live realm, whose rates are stored. The sandbox's are always fresh."""
    store = edge.services.store
    network = store.catalogue("live").networks["ethereum"]
    store.commit([Save(replace(network, status="active", rpc_url="http://127.0.0.1:1", version=network.version + 1))])
    now = edge.services.clock.now_ms()
    store.commit([Save(Rate("eth", "USD", "2000", now - STALE_MS + 60_000, "kraken"))])
    store.commit([Save(Rate("eth", "EUR", "1800", now - STALE_MS - 1, "kraken"))])
    wiring.forget()

    def ask(**body: Any) -> Any:
        return edge.call("POST", "/invoices", key="live", json={"currency": "eth", "network": "ethereum", **body})

    stale = ask(fiatAmount="10", fiatCurrency="EUR")
    assert (stale.status, stale.json["code"]) == (400, "VALIDATION_ERROR")
    assert "fiatCurrency" in stale.body.decode()
    missing = ask(fiatAmount="10", fiatCurrency="GBP")
    assert (missing.status, missing.json["code"]) == (400, "VALIDATION_ERROR")
    fresh = ask(fiatAmount="10", fiatCurrency="USD")
    assert (fresh.status, fresh.json["amount"], fresh.json["rate"]["source"]) == (201, "0.005", "kraken")
    edge.services.clock.shift_ms = 120_000
    unknown = ask(amount="1")
    assert (unknown.status, "rate" in unknown.json) == (201, False)
    summary = edge.call("GET", "/invoices/summary", key="live").json
    assert (summary["totalInvoices"], summary["totalAmount"]) == (2, "10.00")
    assert summary["currencies"] == [{"currency": "eth", "totalAmount": "1.005", "totalReceived": "0"}]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"amount"}),
        ({"amount": 1, "fiatAmount": 1, "fiatCurrency": "USD"}, {"fiatAmount"}),
        ({"fiatAmount": 1}, {"fiatCurrency"}),
        ({"fiatCurrency": "USD"}, {"fiatAmount"}),
        ({"amount": 1, "fiatCurrency": "USD"}, {"fiatAmount"}),
        ({"fiatAmount": "1.001", "fiatCurrency": "USD"}, {"fiatAmount"}),
        ({"fiatAmount": 0, "fiatCurrency": "EURO"}, {"fiatAmount", "fiatCurrency"}),
        ({"fiatAmount": "100.5", "fiatCurrency": "JPY"}, {"fiatAmount"}),
        ({"fiatAmount": "0.1234", "fiatCurrency": "kwd"}, {"fiatAmount"}),
        ({"fiatAmount": True, "fiatCurrency": 7}, {"fiatAmount", "fiatCurrency"}),
        ({"amount": "1", "expiresIn": 0}, {"expiresIn"}),
        ({"amount": "1", "expiresIn": 365 * 86400 + 1}, {"expiresIn"}),
        ({"amount": "1", "externalId": ""}, {"externalId"}),
        ({"amount": "1", "externalId": "x" * 256, "description": "x" * 1001}, {"externalId", "description"}),
        ({"amount": "1", "status": "completed"}, {"status"}),
        ({"amount": "-1", "network": "moon"}, {"amount", "network"}),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_invoice_is_named_at_once(edge, body, fields):
    assert fields <= {field for field in fields if field in str(wrong(edge, {"currency": "eth", **body}))}


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", "ftp://shop.example/", "https://", "https:///thanks", "//shop.example", "shop.example/thanks",
        "https://user@shop.example/", "https://user:password@shop.example/", "https://shop.example/a b",
        "https://shop.example/\r\nSet-Cookie: a=b", "https://shop.example/\t", "https://shop.example:99999/", "https://[::1/",
        "https://shop.example\\@evil.example/", "https://shop.example/\u202e", "", "https://shop.example/" + "x" * 2000, 7,
    ],
)  # fmt: skip
def test_redirects_lead_to_web_pages_only(edge, url):
    assert "redirectUrl" in str(wrong(edge, {"currency": "eth", "amount": 1, "redirectUrl": url}))


def test_redirects_to_web_pages_are_kept_as_sent(edge):
    for url in ("https://shop.example/thanks?order=7&x=%20#top", "http://127.0.0.1:8080/", "https://bücher.example/danke"):
        assert make(edge, amount=1, redirectUrl=url)["redirectUrl"] == url


def test_a_checkout_link_is_there_where_the_deployment_has_a_public_url(edge, monkeypatch):
    assert "checkoutUrl" not in make(edge, amount=1)
    monkeypatch.setenv("PUBLIC_URL", "https://pay.example/api/")
    wiring.forget()
    answer = edge.call("POST", "/invoices", json={"currency": "eth", "amount": 1}, headers={"Host": "evil.example"})
    assert answer.json["checkoutUrl"] == f"https://pay.example/api/pay/{answer.json['id']}"


GATEWAY = {"apiId": "a1b2c3d4e5", "stage": "api", "domainName": "evil.example"}


def test_without_a_public_url_links_begin_with_the_gateways_own_address():
    """What the caller says of the host, which `domainName` repeats, has no part in it."""
    assert gateway_url(GATEWAY, "eu-central-1") == "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/api"
    assert gateway_url(GATEWAY, "cn-north-1") == "https://a1b2c3d4e5.execute-api.cn-north-1.amazonaws.com.cn/api"
    for wrong_one in ({"apiId": "local"}, {"apiId": None}, {"stage": ""}, {"stage": "a/b"}, {"apiId": "a1b2c3d4e5.evil"}):
        assert gateway_url(GATEWAY | wrong_one, "eu-central-1") is None
    assert gateway_url(GATEWAY, "") is None


def test_an_invoice_of_a_deployment_without_a_public_url_has_a_link(edge, monkeypatch):
    ours = Gateway._event

    def deployed(*arguments: Any) -> dict[str, Any]:
        event = ours(*arguments)
        event["requestContext"] |= GATEWAY
        return event

    monkeypatch.setattr(Gateway, "_event", deployed)
    answer = edge.call("POST", "/invoices", json={"currency": "eth", "amount": 1}, headers={"Host": "evil.example"})
    link = answer.json["checkoutUrl"]
    assert link == f"https://a1b2c3d4e5.execute-api.{REGION}.amazonaws.com/api/pay/{answer.json['id']}"
    assert edge.call("GET", "/invoices", query={"id": answer.json["id"]}).json["checkoutUrl"] == link


@pytest.mark.parametrize("url", ["pay.example", "ftp://pay.example", "https://pay.example/?a=b", "https://u@pay.example"])
def test_a_public_url_that_is_none_stops_the_function(url, monkeypatch):
    monkeypatch.setenv("PUBLIC_URL", url)
    with pytest.raises(ValueError, match="PUBLIC_URL"):
        wiring.Settings.from_environment()


def test_settings_begin_with_defaults_and_are_changed_field_by_field(edge):
    defaults = {"defaultExpirationTime": 3600, "autoConfirmThreshold": 0, "supportedCurrencies": [], "minimumAmounts": {}}
    assert edge.call("GET", SETTINGS).json == {"settings": defaults}
    first = edge.call(
        "PUT", SETTINGS, body='{"settings": {"autoConfirmThreshold": 25.50, "minimumAmounts": {"btc": 0.00010, "eth": "0.1"}}}'
    )
    assert first.status == 201
    changed = {**defaults, "autoConfirmThreshold": 25.5, "minimumAmounts": {"btc": "0.0001", "eth": "0.1"}}
    assert first.json["settings"] == changed
    second = edge.call("PUT", SETTINGS, json={"settings": {"defaultExpirationTime": 60, "supportedCurrencies": ["eth", "eth"]}})
    assert second.json["settings"] == {**changed, "defaultExpirationTime": 60, "supportedCurrencies": ["eth"]}
    third = edge.call("PUT", SETTINGS, json={"settings": {"minimumAmounts": {"ltc": "0"}, "autoConfirmThreshold": "0"}})
    last = {"defaultExpirationTime": 60, "autoConfirmThreshold": 0, "supportedCurrencies": ["eth"], "minimumAmounts": {}}
    assert third.json["settings"] == edge.call("GET", SETTINGS).json["settings"] == last
    empty = edge.call("PUT", SETTINGS, json={"settings": {}})
    assert empty.status == 400
    assert "settings: must name something to change" in empty.json["details"]
    assert edge.call("GET", SETTINGS).json["settings"] == last
    for key in ("other", "live"):
        assert edge.call("GET", SETTINGS, key=key).json == {"settings": defaults}
    assert edge.call("PUT", SETTINGS, key="reader", json={"settings": {}}).status == 403


def test_a_threshold_is_exact_to_the_last_digit(edge):
    edge.call("PUT", SETTINGS, body='{"settings": {"autoConfirmThreshold": 0.123456789012345678901}}')
    assert b'"autoConfirmThreshold":0.123456789012345678901,' in edge.call("GET", SETTINGS).body


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        (None, ["settings"]),
        ([], ["settings"]),
        ("all", ["settings"]),
        (
            {"defaultExpirationTime": 0, "autoConfirmThreshold": -1, "supportedCurrencies": ["btc", "doge"], "color": "red",
             "minimumAmounts": {"btc": "1e3", "eth": -1, "doge": "1", "ltc": "0.000000001"}},
            ["settings.defaultExpirationTime", "settings.autoConfirmThreshold", "settings.supportedCurrencies.1", "settings.color",
             "settings.minimumAmounts.btc", "settings.minimumAmounts.eth", "settings.minimumAmounts.doge",
             "settings.minimumAmounts.ltc"],
        ),
        ({"defaultExpirationTime": 1.5, "supportedCurrencies": "btc", "minimumAmounts": ["btc"]},
         ["settings.defaultExpirationTime", "settings.supportedCurrencies", "settings.minimumAmounts"]),
        ({"minimumAmounts": {"": "1", "x" * 5000: "1", "btc": None, "eth": {"a": 1}, "ltc": True}},
         ["settings.minimumAmounts.", "settings.minimumAmounts.btc", "settings.minimumAmounts.eth", "settings.minimumAmounts.ltc"]),
    ],
)  # fmt: skip
def test_settings_that_are_none_are_all_named(edge, settings, fields):
    details = str(wrong(edge, {"settings": settings} if settings is not None else {}, "PUT", SETTINGS))
    assert [field for field in fields if field not in details] == []
    assert edge.call("GET", SETTINGS).json["settings"]["minimumAmounts"] == {}


def test_settings_count_for_new_invoices(edge):
    rules = {"supportedCurrencies": ["eth", "usdt"], "minimumAmounts": {"eth": "0.1", "usdt": 5}, "defaultExpirationTime": 90}
    edge.call("PUT", SETTINGS, json={"settings": rules})
    assert "supportedCurrencies" in against_a_rule(edge, currency="btc", amount=1)
    assert "minimumAmounts" in against_a_rule(edge, amount="0.099999999999999999")
    for network in ("ethereum", "bsc"):
        assert "amount" in against_a_rule(edge, currency="usdt", network=network, amount="4.999999")
        make(edge, currency="usdt", network=network, amount="5")
    assert "fiatAmount" in against_a_rule(edge, fiatAmount="299.99", fiatCurrency="USD")
    made = make(edge, fiatAmount=300, fiatCurrency="USD")
    assert made["amount"] == "0.1"
    record = edge.services.invoices.get(f"{edge.shop}:test", made["id"])
    assert record.expires_at - record.created_at == 90_000
    assert edge.call("POST", "/invoices", key="other", json={"currency": "btc", "amount": "0.00000001"}).status == 201


def test_no_invoice_where_nothing_is_credited(edge):
    store = edge.services.store
    store.commit([Save(Cursor("test:bsc", 5, "0x5", 0, 5, 0, halted="a reorganisation deeper than is followed"))])
    assert "network" in against_a_rule(edge, currency="bnb", amount=1)
    coin: Coin = store.catalogue("test").coins["tron", "usdt"]
    network: Network = store.catalogue("test").networks["litecoin"]
    store.commit([Save(replace(coin, status="INACTIVE", version=coin.version + 1))])
    store.commit([Save(replace(network, status="inactive", version=network.version + 1))])
    wiring.forget()
    assert "currency" in against_a_rule(edge, currency="usdt", network="tron", amount=1)
    assert "network" in against_a_rule(edge, currency="ltc", amount=1)


def test_the_most_that_can_be_asked_for_does_not_harm_the_sums(edge):
    most = "9" * 20 + "." + "9" * 18
    for _ in range(3):
        make(edge, amount=most)
    summary = edge.call("GET", "/invoices/summary").json
    assert summary["currencies"][0]["totalAmount"] == "299999999999999999999.999999999999999997"
    assert summary["totalAmount"] == "900000000000000000000000.00"
    assert "fiatAmount" in against_a_rule(edge, fiatAmount="9" * 30, fiatCurrency="USD")


def test_sums_that_are_being_moved_elsewhere_are_waited_for(edge, monkeypatch):
    """The only item that two creations share is a shard. DynamoDB refuses a transaction while another is at work on it."""
    send, refusals = botocore.client.BaseClient._make_api_call, [0]

    def busy(self: Any, operation: str, sent: Any) -> Any:
        if operation == "TransactWriteItems" and refusals[0] < 7:
            refusals[0] += 1
            reasons = [{"Code": "TransactionConflict" if "Update" in item else "None"} for item in sent["TransactItems"]]
            error = {"Error": {"Code": "TransactionCanceledException", "Message": "conflict"}, "CancellationReasons": reasons}
            raise ClientError(error, operation)
        return send(self, operation, sent)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", busy)
    answer = edge.call("POST", "/v1/invoices", json={"currency": "eth", "amount": 1}, headers={"Idempotency-Key": "a"})
    assert (answer.status, refusals) == (201, [7])
    assert edge.call("GET", "/invoices/summary").json["totalInvoices"] == 1


def test_reading_costs_what_it_says(edge):
    made = make(edge, amount=1, externalId="x")
    for path, query, most in (
        ("/invoices", {"id": made["id"]}, 2),
        (f"/invoices/{made['id']}", {}, 2),
        ("/invoices/getByExternalId", {"externalId": "x"}, 3),
        ("/invoices/summary", {}, 2),
        ("/invoices/configureSettings", {}, 2),
        ("/invoices/getAll", {}, 2),
    ):
        calls = edge.calls()
        assert edge.call("GET", path, query=query).status == 200
        assert len(calls.made) <= most, (path, calls.made)


@pytest.mark.parametrize("status", ["", "Completed", "a b", "x" * 65, "é", 7, None, ["a"]])
def test_a_status_by_hand_is_one_word(edge, status):
    assert "status" in str(wrong(edge, {"invoiceId": "inv_1", "status": status}, "PUT"))


def test_a_foreign_invoice_can_not_be_set(edge):
    made = make(edge, amount=1)
    answer = edge.call("PUT", "/invoices", key="other", json={"invoiceId": made["id"], "status": "completed"})
    assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER")
    assert edge.call("GET", "/invoices", query={"id": made["id"]}).json == made
