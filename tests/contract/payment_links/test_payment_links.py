"""Payment links as their merchant makes, reads, changes and deletes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.payment_links.links import PaymentLink
from chalicelib.wiring import services
from tests.support.links import TERMS, left, make, one, opened, page, visit
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def test_a_link_with_everything(shop: Shop) -> None:
    terms = {
        "description": "Size 42", "stock": 3, "expiresAt": "2099-01-01T00:00:00Z", "redirectUrl": "https://shop.example/thanks",
        "metadata": {"sku": "A-17"},
    }  # fmt: skip
    made = make(shop, **terms)
    assert made == {
        **TERMS,
        **terms,
        "expiresAt": "2099-01-01T00:00:00.000Z",
        "id": made["id"],
        "url": f"/link/{made['id']}",
        "status": "active",
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    }
    assert made["id"].startswith("plk_") and one(shop, "GET", made["id"]).json == made
    assert shop.get("/v1/payment-links")["data"] == [made]


def test_its_url_begins_with_the_public_one(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBLIC_URL", "https://pay.example/api")
    wiring.forget()
    made = make(shop)
    assert made["url"] == f"https://pay.example/api/link/{made['id']}"
    answer = visit(shop, made["id"]).json
    assert answer["checkoutUrl"] == f"https://pay.example/api/pay/{answer['invoiceId']}"
    assert "form-action 'self' https://pay.example;" in page(shop, made["id"]).headers["content-security-policy"]


def test_what_is_not_sent_is_not_there(shop: Shop) -> None:
    made = make(shop)
    assert not made.keys() & {"description", "stock", "expiresAt", "redirectUrl", "metadata", "fiatAmount", "fiatCurrency"}


@pytest.mark.parametrize(
    ("terms", "shown"),
    [
        ({"amount": 0.5}, {"amount": "0.5"}),
        ({"amount": "1.50"}, {"amount": "1.5"}),
        ({"amount": {"min": 5, "max": "50.0"}}, {"amount": {"min": "5", "max": "50"}}),
        ({"currency": "ETH", "network": "Ethereum"}, {"currency": "eth", "network": "ethereum"}),
        ({"network": None}, {"network": "ethereum"}),
        ({"amount": None, "fiatAmount": "49.9", "fiatCurrency": "eur"}, {"fiatAmount": "49.9", "fiatCurrency": "EUR"}),
        (
            {"amount": None, "fiatAmount": {"min": "1", "max": "1"}, "fiatCurrency": "USD"},
            {"fiatAmount": {"min": "1", "max": "1"}, "fiatCurrency": "USD"},
        ),
    ],
)
def test_prices(shop: Shop, terms: dict[str, Any], shown: dict[str, Any]) -> None:
    made = make(shop, **terms)
    assert made | shown == made and ("amount" in made) != ("fiatAmount" in made)


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": 7}, "name"),
        ({"amount": None}, "amount"),
        ({"amount": "0"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": True}, "amount"),
        ({"amount": "0.0000000000000000001"}, "amount"),
        ({"amount": {"min": 1}}, "amount"),
        ({"amount": {"min": 1, "max": 2, "step": 1}}, "amount"),
        ({"amount": {"min": 2, "max": 1}}, "amount"),
        ({"amount": {"min": 0, "max": 1}}, "amount"),
        ({"amount": {"min": "1", "max": "1.0000000000000000001"}}, "amount"),
        ({"amount": {"min": {"min": 1, "max": 2}, "max": 1}}, "amount"),
        ({"amount": [1, 2]}, "amount"),
        ({"amount": {"min": "1" * 38, "max": "1." + "1" * 37}}, "amount"),
        ({"currency": None, "network": None}, "currency"),
        ({"currency": None, "amount": None, "fiatAmount": "1", "fiatCurrency": "EUR"}, "network"),
        ({"accept": [{"coin": "eth"}]}, "accept"),
        ({"fiatAmount": "1", "fiatCurrency": "EUR"}, "fiatAmount"),
        ({"amount": None, "fiatAmount": "1"}, "fiatCurrency"),
        ({"amount": None, "fiatCurrency": "EUR"}, "fiatAmount"),
        ({"amount": None, "fiatAmount": "1.001", "fiatCurrency": "EUR"}, "fiatAmount"),
        ({"amount": None, "fiatAmount": "1.5", "fiatCurrency": "jpy"}, "fiatAmount"),
        ({"amount": None, "fiatAmount": {"min": 1, "max": "1.5"}, "fiatCurrency": "JPY"}, "fiatAmount"),
        ({"amount": None, "fiatAmount": "1", "fiatCurrency": "X1X"}, "fiatCurrency"),
        ({"currency": "nope"}, "currency"),
        ({"network": "nope"}, "network"),
        ({"currency": "btc"}, "currency"),
        ({"stock": -1}, "stock"),
        ({"stock": 1.5}, "stock"),
        ({"stock": "3"}, "stock"),
        ({"stock": 10**9 + 1}, "stock"),
        ({"expiresAt": "tomorrow"}, "expiresAt"),
        ({"expiresAt": "2099-01-01"}, "expiresAt"),
        ({"expiresAt": "0001-01-01T00:00:00Z"}, "expiresAt"),
        ({"expiresAt": 4070908800}, "expiresAt"),
        ({"redirectUrl": "javascript:alert(1)"}, "redirectUrl"),
        ({"metadata": {"x": "y" * 5000}}, "metadata"),
        ({"metadata": "x"}, "metadata"),
        ({"description": "x" * 1001}, "description"),
        ({"color": "red"}, "color"),
    ],
)
def test_what_is_wrong_is_named(shop: Shop, terms: dict[str, Any], field: str) -> None:
    error = make(shop, 400, **terms)["error"]
    assert error["code"] == "INVALID_PARAMETER" and field in [problem["field"] for problem in error["details"]], error
    assert list(services().store.every(PaymentLink)) == []


def test_a_price_that_no_invoice_can_have_is_refused(shop: Shop) -> None:
    made = make(shop)
    settings = {"minimumAmounts": {"eth": "0.5"}, "supportedCurrencies": ["eth"]}
    shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, json={"settings": settings})
    for terms, field in (
        ({"amount": "0.4"}, "amount"),
        ({"amount": {"min": "0.1", "max": "0.4"}}, "amount"),
        ({"currency": "btc", "network": "bitcoin"}, "currency"),
        ({"amount": None, "fiatAmount": "1", "fiatCurrency": "XXX"}, "fiatCurrency"),
    ):
        sent = {name: value for name, value in terms.items() if value is not None}
        for answer in (make(shop, 400, **terms), one(shop, "PUT", made["id"], **sent).json):  # type: ignore[arg-type]
            assert (answer["error"]["code"], answer["error"]["details"]["field"]) == ("VALIDATION_ERROR", field), answer
    assert make(shop, amount={"min": "0.1", "max": "0.5"})["status"] == "active"
    assert one(shop, "GET", made["id"]).json == made


def test_one_idempotency_key_makes_one_link(shop: Shop) -> None:
    first, second = (shop.post("/v1/payment-links", {**TERMS, "stock": 20}, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert (first.status, first.body) == (201, second.body) and second.headers["idempotency-replayed"] == "true"
    assert len(list(services().store.every(PaymentLink))) == 1 and left(shop, first.json["id"]) == 20


def test_another_merchants_link_is_none(shop: Shop, stack: Stack) -> None:
    link, other = make(shop, stock=2)["id"], stack.keys["other_merchant_test"]
    for id, key in ((link, other), ("plk_00000000000000000000000000", shop.key), ("x", shop.key)):
        for method, body in (("GET", {}), ("PUT", {"name": "Mine"}), ("PUT", {"amount": 3}), ("DELETE", {})):
            answer = one(shop, method, id, key, **body)
            assert (answer.status, answer.json["error"]["code"]) == (404, "NOT_FOUND"), answer.body
    assert stack.call("GET", "/v1/payment-links", other).json["data"] == []
    assert one(shop, "GET", link).json["name"] == TERMS["name"]


def test_a_change_changes_what_is_sent(shop: Shop) -> None:
    made = make(shop, stock=5, description="Old", redirectUrl="https://shop.example/a", metadata={"a": 1})
    changed = one(shop, "PUT", made["id"], name="New", stock=40, description=None, metadata={"b": 2}).json
    expected = made | {"name": "New", "stock": 40, "metadata": {"b": 2}, "updatedAt": changed["updatedAt"]}
    del expected["description"]
    assert changed == expected == one(shop, "GET", made["id"]).json
    invoice = opened(shop, made["id"])
    assert (invoice["description"], invoice["metadata"], invoice["redirectUrl"]) == ("New", {"b": 2}, "https://shop.example/a")


@pytest.mark.parametrize(
    ("before", "change", "price"),
    [
        ({}, {"amount": "2"}, {"amount": "2", "currency": "eth", "network": "ethereum"}),
        ({}, {"amount": {"min": 1, "max": 3}}, {"amount": {"min": "1", "max": "3"}, "currency": "eth", "network": "ethereum"}),
        ({}, {"network": "arbitrum"}, {"amount": "1", "currency": "eth", "network": "arbitrum"}),
        ({}, {"currency": "btc"}, {"amount": "1", "currency": "btc", "network": "bitcoin"}),
        (
            {},
            {"fiatAmount": "5", "fiatCurrency": "EUR"},
            {"fiatAmount": "5", "fiatCurrency": "EUR", "currency": "eth", "network": "ethereum"},
        ),
        (
            {"amount": None, "fiatAmount": "5", "fiatCurrency": "EUR"},
            {"fiatAmount": "6"},
            {"fiatAmount": "6", "fiatCurrency": "EUR", "currency": "eth", "network": "ethereum"},
        ),
        (
            {"amount": None, "fiatAmount": "5", "fiatCurrency": "EUR"},
            {"accept": [{"coin": "btc"}, {"coin": "USDT", "network": "tron"}]},
            {"fiatAmount": "5", "fiatCurrency": "EUR", "accept": [{"coin": "btc"}, {"coin": "usdt", "network": "tron"}]},
        ),
        (
            {"amount": None, "fiatAmount": "5", "fiatCurrency": "EUR"},
            {"currency": None},
            {"fiatAmount": "5", "fiatCurrency": "EUR"},
        ),
        ({}, {"currency": None, "fiatAmount": "5", "fiatCurrency": "EUR"}, {"fiatAmount": "5", "fiatCurrency": "EUR"}),
        (
            {
                "amount": None,
                "currency": None,
                "network": None,
                "fiatAmount": "5",
                "fiatCurrency": "EUR",
                "accept": [{"coin": "btc"}],
            },
            {"currency": "eth"},
            {"fiatAmount": "5", "fiatCurrency": "EUR", "currency": "eth", "network": "ethereum"},
        ),
        (
            {
                "amount": None,
                "currency": None,
                "network": None,
                "fiatAmount": "5",
                "fiatCurrency": "EUR",
                "accept": [{"coin": "btc"}],
            },
            {"accept": None, "fiatAmount": {"min": 1, "max": 2}},
            {"fiatAmount": {"min": "1", "max": "2"}, "fiatCurrency": "EUR"},
        ),
        (
            {"amount": None, "fiatAmount": "5", "fiatCurrency": "EUR"},
            {"amount": "2"},
            {"amount": "2", "currency": "eth", "network": "ethereum"},
        ),
    ],
)
def test_a_price_is_changed_in_part(shop: Shop, before: dict[str, Any], change: dict[str, Any], price: dict[str, Any]) -> None:
    made = make(shop, **before)
    changed = one(shop, "PUT", made["id"], **change).json
    names = ("amount", "fiatAmount", "fiatCurrency", "currency", "network", "accept")
    assert {name: changed[name] for name in names if name in changed} == price
    assert changed["name"] == made["name"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, "body"),
        ({"name": None}, "name"),
        ({"amount": None}, "amount"),
        ({"currency": None}, "currency"),
        ({"accept": [{"coin": "btc"}]}, "currency"),
        ({"accept": [{"coin": "btc", "network": "tron"}], "fiatAmount": "5", "fiatCurrency": "EUR"}, "accept.0.network"),
        ({"accept": []}, "accept"),
        ({"fiatAmount": "5"}, "fiatCurrency"),
        ({"amount": "1", "fiatAmount": "5"}, "fiatAmount"),
        ({"network": "bitcoin"}, "currency"),
        ({"currency": "usdt", "network": "tron", "amount": "0.0000001"}, "amount"),
        ({"currency": "usdt", "network": "tron", "amount": "1", "stock": -3}, "stock"),
        ({"id": "plk_1"}, "id"),
    ],
)
def test_a_wrong_change_changes_nothing(shop: Shop, change: dict[str, Any], field: str) -> None:
    made = make(shop)
    answer = shop.stack.call("PUT", f"/v1/payment-links/{made['id']}", shop.key, json=change)
    assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMETER"), answer.body
    assert field in [problem["field"] for problem in answer.json["error"]["details"]], answer.body
    assert one(shop, "GET", made["id"]).json == made


@pytest.mark.parametrize("steps", [(0,), (3,), (100,), (7, 100, 2), (5, None), (5, None, 6), (None, 4)])
def test_stock_is_what_is_left_from_now_on(shop: Shop, steps: tuple[int | None, ...]) -> None:
    link = make(shop, stock=10)["id"]
    for _ in range(2):
        opened(shop, link)
    assert left(shop, link) == 8
    for stock in steps:
        changed = one(shop, "PUT", link, stock=stock)
        assert changed.status == 200 and changed.json.get("stock") == left(shop, link) == stock
        assert changed.json["status"] == ("sold_out" if stock == 0 else "active")


def test_a_deleted_link_is_gone_and_its_invoices_stay(shop: Shop) -> None:
    kept, link = make(shop)["id"], make(shop, stock=2)["id"]
    invoice = opened(shop, link)
    gone = one(shop, "DELETE", link)
    assert (gone.status, gone.json["id"], gone.json["stock"]) == (200, link, 1)
    for method, body in (("GET", {}), ("PUT", {"name": "Back"}), ("DELETE", {})):
        assert one(shop, method, link, **body).status == 404
    assert (visit(shop, link).status, page(shop, link).status) == (404, 404)
    assert [each["id"] for each in shop.get("/v1/payment-links")["data"]] == [kept]
    assert shop.get("/v1/payment-links", id=link)["data"] == []
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed"


def test_lists_are_paged(shop: Shop) -> None:
    made = [make(shop, name=f"Shoes {n}", stock=n or None)["id"] for n in range(5)]
    first = shop.get("/v1/payment-links", limit="2")
    assert [each["id"] for each in first["data"]] == made[:2:-1] and first["meta"]["pagination"]["total"] == 5
    after = shop.get("/v1/payment-links", limit="2", cursor=first["meta"]["pagination"]["next_cursor"])
    assert [each["id"] for each in after["data"]] == [made[2], made[1]]
    assert [each.get("stock") for each in after["data"]] == [2, 1]
    assert [each["id"] for each in shop.get("/v1/payment-links", name="Shoes 3")["data"]] == [made[3]]
    assert [each["id"] for each in shop.get("/v1/payment-links", id=made[0])["data"]] == [made[0]]


def test_rights(shop: Shop, stack: Stack) -> None:
    link, key = make(shop)["id"], stack.keys["read_only_test"]
    assert one(shop, "GET", link, key).status in (200, 404)
    for method, path, body in (
        ("POST", "/v1/payment-links", TERMS),
        ("PUT", f"/v1/payment-links/{link}", {"name": "x"}),
        ("DELETE", f"/v1/payment-links/{link}", None),
    ):
        refused = stack.call(method, path, key, json=body)
        assert (refused.status, refused.json["error"]["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
