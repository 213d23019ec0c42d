"""The page to pay an invoice on, state by state, and what it never shows. What a browser makes of it: tests/browser."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.ids import new_id
from chalicelib.web import checkout
from chalicelib.web.files import named
from chalicelib.web.parts import Frame
from chalicelib.web.words import words as words_of
from chalicelib.wiring import services
from tests.support.edge import Calls
from tests.support.shop import Shop, open_shop
from tests.support.stack import Response, Stack

ALWAYS = {
    "amount", "received", "unconfirmed", "missing", "currency", "symbol", "network", "address", "status", "expiresAt", "expiresIn",
    "confirmations", "requiredConfirmations", "createdAt", "usualSeconds", "payments", "refunds", "delays",
}  # fmt: skip


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def status(shop: Shop, invoice: dict[str, Any]) -> Any:
    answer = shop.stack.call("GET", f"/v1/pay/{invoice['id']}/status")
    assert answer.status == 200, answer.body
    assert answer.headers["cache-control"] == "public, max-age=2"
    return answer.json


def page(shop: Shop, invoice: dict[str, Any], version: str = "") -> Response:
    answer = shop.stack.call("GET", f"{version}/pay/{invoice['id']}")
    assert answer.status == 200, answer.body
    return answer


def words(answer: Response) -> str:
    """What is to be read in the part that says how things stand."""
    state = re.search(r'data-part="state">(.*?)<dl', answer.body.decode(), re.DOTALL)
    assert state is not None
    return html.unescape(re.sub(r"<[^>]+>", " ", state[1]))


@pytest.mark.parametrize("version", ["", "/v1"])
def test_an_open_invoice(shop: Shop, version: str) -> None:
    invoice = shop.invoice(
        "1.5", externalId="order-77", description="Two pairs of shoes", redirectUrl="https://shop.example/thanks"
    )
    shown = status(shop, invoice)
    assert shown.keys() == ALWAYS | {"paymentUri", "description", "redirectUrl"}
    assert shown["paymentUri"] == invoice["paymentUri"]
    assert (shown["amount"], shown["missing"], shown["confirmations"], shown["requiredConfirmations"]) == ("1.5", "1.5", 0, 12)
    assert 3590 <= shown["expiresIn"] <= 3600
    answer = page(shop, invoice, version)
    text = answer.body.decode()
    for there in (
        invoice["address"],
        html.escape(invoice["paymentUri"]),
        "1.5 ETH",
        "Two pairs of shoes",
        "Ethereum",
        "<svg",
        "no real money",
    ):
        assert there in text
    for secret in ("order-77", services().store.catalogue("test").networks["ethereum"].id, "mch_", 'shop.example/thanks" rel'):
        assert secret not in text
    assert f'<base href="/api{version}/">' in text
    links = re.findall(r'(?:src|href)="(openapi/[^"]+)"', text)
    assert len(links) == 3
    assert [shop.stack.call("GET", f"{version}/{link}").status for link in links] == [200] * 3
    asks = re.search(r'data-ask="([^"]+)"', text)
    assert asks is not None
    assert shop.stack.call("GET", f"{version}/{asks[1]}").json["address"] == invoice["address"]


def test_a_part_asks_for_the_rest_alone(shop: Shop) -> None:
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "0.4")
    shop.turn()
    shown = status(shop, invoice)
    assert (shown["status"], shown["unconfirmed"], shown["missing"], shown["confirmations"]) == ("partial", "0.4", "0.6", 1)
    assert shown["paymentUri"].endswith(f"?value={6 * 10**17}")
    answer = page(shop, invoice)
    assert "0.6 ETH are missing" in words(answer)
    assert '<code id="send" dir="ltr">0.6</code>' in answer.body.decode()


def test_confirming_then_paid_with_too_much(shop: Shop) -> None:
    invoice = shop.invoice("1", redirectUrl="https://shop.example/thanks?a=1&b=2")
    shop.pay(invoice["address"], "1.25")
    shop.mine(2)
    shop.turn()
    shown = status(shop, invoice)
    assert (shown["status"], shown["confirmations"], "paymentUri" in shown) == ("confirming", 3, False)
    answer = page(shop, invoice)
    assert "3 of 12 confirmations" in words(answer)
    assert 'id="address"' not in answer.body.decode(), "who has paid is not asked to pay again"
    assert "thanks" not in re.sub(r'data-shown="[^"]*"', "", answer.body.decode())
    shop.mine()
    shop.turn()
    shown = status(shop, invoice)
    assert (shown["status"], shown["received"], shown["overpaid"], shown["missing"]) == ("completed", "1.25", "0.25", "0")
    answer = page(shop, invoice)
    assert "Paid" in words(answer)
    assert "0.25 ETH more than was asked" in words(answer)
    back = '<a class="button" href="https://shop.example/thanks?a=1&amp;b=2" target="_top" rel="noreferrer noopener">'
    assert f"{back}Back to shop.example</a>" in answer.body.decode()


def test_the_time_is_over_by_the_sandboxs_clock_and_money_comes_late(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=60)
    shop.post("/v1/sandbox/clock", {"advance": 61})
    shown = status(shop, invoice)
    assert (shown["status"], shown["expiresIn"], "paymentUri" in shown) == ("pending", 0, False), "nobody has looked yet"
    assert "time to pay is over" in words(page(shop, invoice))
    shop.turn()
    assert status(shop, invoice)["status"] == "expired"
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    shown = status(shop, invoice)
    assert (shown["status"], shown["late"], shown["missing"], "paymentUri" in shown) == ("expired", "1", "1", False)
    answer = page(shop, invoice)
    assert "The time to pay is over" in words(answer)
    assert "1 ETH came after the time was over" in words(answer)
    assert 'id="address"' not in answer.body.decode()


@pytest.mark.parametrize(("by_hand", "said"), [("cancelled", "The shop has cancelled"), ("on-hold", "Status: on-hold")])
def test_a_status_by_hand(shop: Shop, by_hand: str, said: str) -> None:
    invoice = shop.invoice("1")
    assert shop.stack.call("PUT", "/v1/invoices", shop.key, {"invoiceId": invoice["id"], "status": by_hand}).status == 201
    assert "paymentUri" not in status(shop, invoice)
    assert said in words(page(shop, invoice))
    assert 'id="address"' not in page(shop, invoice).body.decode()


def test_what_the_merchant_wrote_stays_text(shop: Shop) -> None:
    evil = "</p><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'\" &amp;"
    invoice = shop.invoice("1", description=evil, redirectUrl="https://shop.example/\"onmouseover='alert(1)'<script>")
    shop.stack.call("PUT", "/v1/invoices", shop.key, {"invoiceId": invoice["id"], "status": "completed"})
    answer = page(shop, invoice)
    text = answer.body.decode()
    assert html.escape(evil) in text
    assert re.findall(r"<script[^>]*>", text) == [f'<script type="module" src="openapi/{named("checkout/checkout.js")}">']
    tags = re.findall(r"<[a-z][^>]*>", text)
    assert not [tag for tag in tags if re.search(r"""\son\w+\s*=\s*["'\w]""", re.sub(r'="[^"]*"', '=""', tag))]
    assert "<img" not in text
    assert status(shop, invoice)["description"] == evil


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "data:text/html,x", "//shop.example", "https:", "https://[", "JAVASCRIPT:x"]
)
def test_only_pages_of_the_web_are_linked_to(target: str) -> None:
    """The API takes no other; a record of another time may hold anything."""
    shown = {
        "amount": "1",
        "symbol": "ETH",
        "status": "completed",
        "missing": "0",
        "unconfirmed": "0",
        "received": "1",
        "expiresIn": 0,
        "network": "ethereum",
        "payments": [
            {"txId": "x", "coin": "eth", "network": "ethereum", "amount": "1", "confirmations": 1, "requiredConfirmations": 2}
            | {"explorerUrl": target}
        ],
    }
    text = checkout.page(Frame("/api", words_of("en")), checkout.Visit("inv_x", {**shown, "redirectUrl": target}, "{}"))
    assert "<a " not in text
    assert "no real money" not in text


def test_headers_let_nothing_in_and_nothing_out(shop: Shop) -> None:
    for answer in (page(shop, shop.invoice()), shop.stack.call("GET", "/pay/inv_x")):
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["form-action"] == "'none'"
        assert {policy[name] for name in ("script-src", "style-src", "connect-src", "base-uri")} == {"'self'"}
        assert policy["img-src"] == "'self' data:", "a logo"
        assert "unsafe" not in str(policy)
        assert (answer.headers["referrer-policy"], answer.headers["x-content-type-options"]) == ("no-referrer", "nosniff")
        assert answer.headers["cache-control"] == "no-cache"
        assert "set-cookie" not in answer.headers
        assert not re.search(r"style=|<style", answer.body.decode())


OURS = "inv_01kdyak34ephzqksby3vx1mhfa"


@pytest.mark.parametrize(
    "id",
    ["inv_0", OURS.upper(), "%3Cscript%3E", "x" * 300, OURS + "0", OURS[:-1] + "u", OURS.replace("inv_", "wd_"),
     "..%2f..%2fhealth", OURS + "%0a", "%F0%9F%91%9F", "inv%23" + OURS],
)  # fmt: skip
def test_other_ids_are_404_and_cost_nothing(stack: Stack, id: str) -> None:
    calls = Calls()
    calls.attach(services().store.models.connection.client)
    answer = stack.call("GET", f"/pay/{id}")
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "No such invoice" in answer.body.decode()
    assert "<script>" not in answer.body.decode()
    refused = stack.call("GET", f"/pay/{id}/status")
    assert (refused.status, refused.json["error"]["code"]) == (404, "NOT_FOUND")
    assert calls.made == []


def test_an_id_of_a_moment_ago_is_looked_for_again(stack: Stack) -> None:
    """The index follows the invoice by a moment, and a shop sends its customer at once."""
    now = services().clock.now_ms()
    assert stack.call("GET", f"/pay/{new_id('inv', now)}").headers["refresh"] == "2"
    for made_at in (now - 61_000, now + 90_000):
        answer = stack.call("GET", f"/pay/{new_id('inv', made_at)}")
        assert (answer.status, "refresh" in answer.headers) == (404, False)


def test_three_reads_at_most_and_no_write(shop: Shop) -> None:
    """How networks are doing is read once in half a minute: by the first look here."""
    invoice = shop.invoice()
    calls = Calls()
    page(shop, invoice)
    calls.attach(services().store.models.connection.client)
    status(shop, invoice)
    assert calls.made == ["Query", "BatchGetItem"]
    shop.pay(invoice["address"], "1")
    shop.turn()
    status(shop, invoice)
    calls.made.clear()
    page(shop, invoice)
    assert calls.made == ["Query", "BatchGetItem", "BatchGetItem"]
