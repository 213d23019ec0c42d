"""Visitors open payment links: by a program, and by the page's form. They are strangers, and send anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from chalicelib.domain.payment_links.openings import HOUR_MS, LinkOpenings
from chalicelib.wiring import services
from tests.support.links import TERMS, VISITOR, invoices_of, left, make, one, opened, page, submit, visit
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

BUTTON = '<button class="button" type="submit">Pay</button>'


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def words(body: bytes) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body.decode().partition("<body>")[2])).split())


def test_every_visitor_gets_an_invoice(shop: Shop) -> None:
    link = make(shop, description="Size 42", redirectUrl="https://shop.example/thanks", metadata={"sku": "A-17"})["id"]
    first, second = opened(shop, link), opened(shop, link)
    assert first["id"] != second["id"] and first["address"] != second["address"]
    for invoice in (first, second):
        assert {name: invoice[name] for name in ("currency", "network", "amount", "status", "description", "redirectUrl")} == {
            "currency": "eth", "network": "ethereum", "amount": "1", "status": "pending", "description": "Size 42",
            "redirectUrl": "https://shop.example/thanks",
        }  # fmt: skip
        assert (invoice["metadata"], invoice["paymentLinkId"]) == ({"sku": "A-17"}, link)
    shop.turn()
    assert shop.told(first["id"]) == {"invoice.created": 1}
    shop.pay(first["address"], "1")
    shop.mine()
    shop.turn()
    assert (shop.status(first), shop.status(second), shop.available()) == ("completed", "pending", "1")


def test_an_invoice_that_was_asked_for_names_no_link(shop: Shop) -> None:
    assert "paymentLinkId" not in shop.invoice()


def test_a_price_in_fiat_is_made_into_coins_when_it_is_opened(shop: Shop) -> None:
    link = make(shop, amount=None, fiatAmount="49.90", fiatCurrency="EUR")["id"]
    invoice = opened(shop, link)
    assert (invoice["fiatAmount"], invoice["fiatCurrency"], invoice["rate"]["fiat"]) == ("49.90", "EUR", "EUR")


@pytest.mark.parametrize(
    ("asked", "amount"), [("5", "5"), (5, "5"), ("50", "50"), ("7.000000000000000001", "7.000000000000000001")]
)
def test_the_payer_names_an_amount_in_a_range(shop: Shop, asked: Any, amount: str) -> None:
    link = make(shop, amount={"min": "5", "max": "50"})["id"]
    assert opened(shop, link, amount=asked)["amount"] == amount


@pytest.mark.parametrize(
    ("terms", "body", "code"),
    [
        ({}, {"amount": "1"}, "VALIDATION_ERROR"),
        ({"amount": {"min": "5", "max": "50"}}, {}, "VALIDATION_ERROR"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": None}, "VALIDATION_ERROR"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "4.999999999999999999"}, "VALIDATION_ERROR"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "50.000000000000000001"}, "VALIDATION_ERROR"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "10.0000000000000000001"}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "-10"}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "0"}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "ten"}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "1e1"}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": True}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": ["10"]}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "1" * 101}, "INVALID_PARAMETER"),
        ({"amount": {"min": "5", "max": "50"}}, {"amount": "10", "currency": "usdt"}, "INVALID_PARAMETER"),
        ({"amount": None, "fiatAmount": {"min": 5, "max": 50}, "fiatCurrency": "EUR"}, {"amount": "5.001"}, "INVALID_PARAMETER"),
    ],
)
def test_a_wrong_amount_opens_nothing(shop: Shop, terms: dict[str, Any], body: dict[str, Any], code: str) -> None:
    link = make(shop, stock=3, **terms)["id"]
    answer = shop.stack.call("POST", f"/v1/link/{link}", json=body)
    assert (answer.status, answer.json["error"]["code"]) == (400, code), answer.body
    assert "amount" in answer.body.decode() or "currency" in answer.body.decode()
    assert invoices_of(link) == [] and left(shop, link) == 3
    assert list(services().store.every(LinkOpenings)) == [], "nothing is counted for it"


def test_the_form_leads_to_the_invoices_page(shop: Shop) -> None:
    link = make(shop)["id"]
    answer = submit(shop, link)
    (invoice,) = invoices_of(link)
    assert (answer.status, answer.headers["location"]) == (303, f"/api/v1/pay/{invoice.id}") and answer.body == b""
    shown = shop.stack.call("GET", f"/v1/pay/{invoice.id}")
    assert shown.status == 200 and TERMS["name"] in words(shown.body)


def test_whose_time_is_over_begins_anew_at_the_link(shop: Shop) -> None:
    link = make(shop)["id"]
    invoice = opened(shop, link)
    again = f'<a class="button" href="link/{link}">Begin anew</a>'
    assert again not in shop.stack.call("GET", f"/v1/pay/{invoice['id']}").body.decode()
    assert shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key).status == 200
    over = shop.stack.call("GET", f"/v1/pay/{invoice['id']}").body.decode()
    assert again in over and '<base href="/api/v1/">' in over
    assert link not in shop.stack.call("GET", f"/v1/pay/{invoice['id']}/status").body.decode()
    assert "Begin anew" not in shop.stack.call("GET", f"/v1/pay/{shop.invoice()['id']}").body.decode()


def test_the_page_opens_nothing(shop: Shop) -> None:
    link = make(shop, description="Size 42", stock=1)["id"]
    for _ in range(3):
        shown = page(shop, link)
    assert shown.status == 200 and shown.headers["content-type"] == "text/html; charset=utf-8"
    policy = shown.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "form-action 'self';" in policy and "script-src" not in policy
    assert "frame-ancestors 'none'" in policy and shown.headers["cache-control"] == "no-store"
    assert "<script" not in shown.body.decode() and BUTTON in shown.body.decode()
    assert f'action="link/{link}"' in shown.body.decode() and '<base href="/api/v1/">' in shown.body.decode()
    assert words(shown.body) == ("Pay Test network: no real money Two pairs of shoes 1 ETH Size 42 Paid in ETH on Ethereum. Pay")
    assert invoices_of(link) == [] and left(shop, link) == 1


def test_a_price_is_shown_as_it_was_written(shop: Shop) -> None:
    link = make(shop, amount=None, currency=None, network=None, fiatAmount="49.90", fiatCurrency="EUR")["id"]
    assert "49.90 EUR" in words(page(shop, link).body)


def test_the_page_asks_for_an_amount_and_says_what_is_wrong_with_it(shop: Shop) -> None:
    link = make(shop, amount=None, fiatAmount={"min": 5, "max": 50}, fiatCurrency="EUR")["id"]
    assert "Amount in EUR From 5 to 50 EUR." in words(page(shop, link).body)
    for typed, said in (
        ("", "The amount is needed: from 5 to 50 EUR."),
        ("4", "The amount must be from 5 to 50 EUR."),
        ("5,50", "This amount must be a plain decimal such as 12.5"),
        ("5.555", "This amount must have at most 2 decimals in EUR."),
        ('"><script>alert(1)</script>', "This amount must be a plain decimal"),
    ):
        answer = submit(shop, link, f"amount={quote(typed)}")
        assert answer.status == 400 and answer.headers["content-type"] == "text/html; charset=utf-8"
        assert said in words(answer.body), words(answer.body)
        assert "<script" not in answer.body.decode() and BUTTON in answer.body.decode()
        if typed:
            assert f'value="{typed}"' in unescape(answer.body.decode())
    assert invoices_of(link) == []
    assert submit(shop, link, "amount=+12.50+").status == 303
    (invoice,) = invoices_of(link)
    assert invoice.fiat_amount == "12.50"


def test_what_the_merchant_wrote_is_text(shop: Shop) -> None:
    evil = '</h1><script>alert("x")</script>'
    link = make(shop, name=evil, description=evil, redirectUrl="https://shop.example/secret", metadata={"cost": "7"})["id"]
    body = page(shop, link).body.decode()
    assert "<script" not in body and body.count("&lt;script&gt;") == 3
    assert "secret" not in body and "cost" not in body and "mch_" not in body


def test_sold_out_and_expired_are_said(shop: Shop) -> None:
    sold, over = make(shop, stock=0)["id"], make(shop, expiresAt="2000-01-01T00:00:00Z")["id"]
    for link, status, title, refusal in ((sold, "sold_out", "Sold out", "sold out"), (over, "expired", "has ended", "expired")):
        shown = page(shop, link)
        assert shown.status == 200 and title in words(shown.body) and "<form" not in shown.body.decode()
        answer, by_form = visit(shop, link), submit(shop, link)
        assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")
        assert refusal in answer.json["error"]["message"]
        assert by_form.status == 400 and refusal in words(by_form.body) and title in words(by_form.body)
        assert one(shop, "GET", link).json["status"] == status and invoices_of(link) == []


def test_the_sandboxs_clock_ends_a_link(shop: Shop) -> None:
    from chalicelib.domain.times import iso

    link = make(shop, expiresAt=iso(services().clock_of("test").now_ms() + 60_000))["id"]
    assert visit(shop, link).status == 201
    shop.wait(61)
    assert visit(shop, link).status == 400 and "has ended" in words(page(shop, link).body)


@pytest.mark.parametrize(
    "id", ["plk_00000000000000000000000000", "x", "plk_", "%00", "../pay", "a" * 199, "a" * 201, "%F0%9F%92%A9", "<script>"]
)
def test_an_unknown_link_is_404(shop: Shop, id: str) -> None:
    id = quote(id, safe="%")
    for answer in (visit(shop, id), submit(shop, id), page(shop, id)):
        assert answer.status == 404, (id, answer.body)
        assert answer.headers["content-type"] == "application/json" or "<script>" not in answer.body.decode()


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xfe",
        b"amount=1&amount=2",
        b"amount=%ff",
        b"amount=%00",
        b"&".join(b"a%d=1" % n for n in range(200)),
        b"x" * 300_000,
        b"b=1",
    ],
    ids=["bytes", "twice", "no UTF-8", "NUL", "many", "long", "unknown"],
)
def test_any_form_is_answered(shop: Shop, sent: bytes) -> None:
    link = make(shop, amount={"min": 1, "max": 5})["id"]
    answer = shop.stack.call(
        "POST",
        f"/v1/link/{link}",
        body=sent,
        headers={"Content-Type": "application/x-www-form-urlencoded"},  # type: ignore[arg-type]
    )
    assert answer.status == 400 and invoices_of(link) == []
    assert answer.headers["content-type"] == "text/html; charset=utf-8" and "Go back, and try again." in words(answer.body)


def test_what_can_not_be_paid_says_nothing_of_the_merchants_settings(shop: Shop) -> None:
    cheap = make(shop, amount="0.001")["id"]
    ranged = make(shop, amount={"min": "0.001", "max": "5"})["id"]
    shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, json={"settings": {"minimumAmounts": {"eth": "0.5"}}})
    for link, body, said in ((cheap, {}, "can not be paid at the moment"), (ranged, {"amount": "0.1"}, "is too little")):
        answer = visit(shop, link, **body)
        assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")
        assert said in answer.json["error"]["message"] and "ettings" not in answer.body.decode()
    assert visit(shop, ranged, amount="0.5").status == 201
    shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, json={"settings": {"supportedCurrencies": ["btc"]}})
    assert "supported" not in visit(shop, ranged, amount="1").body.decode()
    assert sum(each.opened for each in services().store.every(LinkOpenings)) == 1


def test_a_caller_opens_so_many_in_an_hour(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chalicelib.usecases.payment_links.opening.MOST_OPENED", 3)
    link, other = make(shop, stock=50)["id"], make(shop)["id"]
    for n in range(3):
        assert visit(shop, link).status == 201, n
    for answer in (visit(shop, link), submit(shop, link)):
        assert answer.status == 429 and 1 <= int(answer.headers["retry-after"]) <= 3600
    assert answer.headers["content-type"].startswith("text/html") and "Try again later" in words(answer.body)
    assert visit(shop, link).json["error"]["code"] == "RATE_LIMIT_EXCEEDED"
    assert page(shop, link).status == 200 and left(shop, link) == 47
    assert visit(shop, other).status == 201, "on another link"
    assert visit(shop, link, "198.51.100.1").status == 201, "another caller"
    assert visit(shop, link, "::ffff:203.0.113.7").status == 429, "the same one"
    for last in range(3):
        assert visit(shop, link, f"2001:db8:1:2::{last}").status == 201
    assert visit(shop, link, "2001:db8:1:2:ffff::1").status == 429, "one network"
    services().clock.shift_ms += HOUR_MS  # type: ignore[attr-defined]
    assert visit(shop, link).status == 201, "an hour later"
    counts = list(services().store.every(LinkOpenings))
    assert VISITOR not in repr(counts) and all(count.ttl * 1000 > services().clock.now_ms() for count in counts)


def test_one_hundred_is_the_number(shop: Shop) -> None:
    from chalicelib.domain.payment_links.openings import MOST_OPENED

    assert MOST_OPENED == 100
