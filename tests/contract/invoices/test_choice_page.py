"""The checkout page of an invoice whose payer chooses: plain forms, no script, and whatever is typed is text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.usecases.invoices import choosing
from chalicelib.web import checkout
from chalicelib.web.choice import Offers
from chalicelib.web.parts import Frame
from chalicelib.web.words import words
from tests.support.shop import Shop, open_shop
from tests.support.stack import Response, Stack

OFFERS = [{"coin": "eth", "network": "ethereum"}, {"coin": "usdt", "network": "tron"}]
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


@pytest.fixture
def invoice(shop: Shop) -> dict[str, Any]:
    made = shop.post(
        "/v1/invoices", {"fiatAmount": "49.90", "fiatCurrency": "EUR", "accept": OFFERS, "description": "Two <b>shoes"}
    )
    assert made.status == 201, made.body
    return dict(made.json)


def page(shop: Shop, invoice: dict[str, Any]) -> str:
    answer = shop.stack.call("GET", f"/pay/{invoice['id']}")
    assert answer.status == 200, answer.body
    return answer.body.decode()


def send(shop: Shop, invoice: dict[str, Any], body: str, kind: str = FORM) -> Response:
    return shop.stack.call("POST", f"/pay/{invoice['id']}/choice", body=body, headers={"Content-Type": kind})


def forms(text: str) -> list[tuple[str, dict[str, str]]]:
    """Where each form of the page goes, and its fields, as a browser reads them."""
    found = re.findall(r'<form method="post" action="([^"]+)"[^>]*>(.*?)</form>', text, re.DOTALL)
    field = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
    return [
        (html.unescape(action), {name: html.unescape(value) for name, value in field.findall(inside)}) for action, inside in found
    ]


def test_the_form_picks_without_a_script(shop: Shop, invoice: dict[str, Any]) -> None:
    before = page(shop, invoice)
    assert "Choose how to pay" in before and "49.90 <span>EUR" in before and "Two &lt;b&gt;shoes" in before
    assert "Send only" not in before and "<svg" in before
    assert [fields for _, fields in forms(before)] == OFFERS
    assert re.search(r'<noscript><meta http-equiv="refresh" content="15; url=pay/inv_[^"]+"></noscript>', before)
    action, fields = forms(before)[0]
    answer = shop.stack.call("POST", f"/{action}", body=urlencode(fields), headers={"Content-Type": FORM})
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert "form-action 'self'" in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    chosen = shop.shown(invoice)
    text = answer.body.decode()
    for there in (
        chosen["address"],
        html.escape(chosen["paymentUri"]),
        f"{chosen['amount']} <span>ETH",
        "Rate kept until",
        "49.90 EUR",
    ):
        assert there in text, there
    assert [fields for _, fields in forms(text)] == OFFERS[1:], "another coin can be chosen"
    left = re.compile(r'data-left="\d+"')
    assert left.sub("", page(shop, invoice)) == left.sub("", text)


def test_what_was_paid_is_shown_as_it_was_sent(shop: Shop, invoice: dict[str, Any]) -> None:
    """In the coin that was sent and not at its worth in the latest one; the rest goes to the address of the latest."""
    send(shop, invoice, urlencode(OFFERS[0]))
    shop.pay(shop.shown(invoice)["address"], "0.01")
    shop.mine()
    shop.turn()
    send(shop, invoice, urlencode(OFFERS[1]))
    text = page(shop, invoice)
    assert "<dt>Received</dt><dd>0.01 ETH on Ethereum</dd>" in text and "Send the rest to the address shown here" in text
    assert shop.shown(invoice)["address"] in text and shop.shown(invoice)["choices"][0]["address"] not in parts_to_pay(text)


def parts_to_pay(text: str) -> str:
    return text.partition('data-part="pay">')[2]


def test_giving_up_is_the_lesser_button_and_the_time_is_told_before_a_choice(shop: Shop) -> None:
    made = shop.post(
        "/v1/invoices",
        {"fiatAmount": "49.90", "fiatCurrency": "EUR", "accept": OFFERS, "cancelUrl": "https://shop.example/basket"},
    ).json
    text = page(shop, made)
    assert '<a class="button quiet" href="https://shop.example/basket"' in text and "<dt>Time left</dt>" in text
    assert shop.stack.call("DELETE", f"/v1/invoices/{made['id']}", shop.key).status == 200
    assert '<a class="button" href="https://shop.example/basket"' in page(shop, made), "the only way on"


def test_a_refusal_is_said_on_the_page(shop: Shop, invoice: dict[str, Any]) -> None:
    for sent, said in (
        (
            {"coin": "btc", "network": "bitcoin"},
            "The invoice is not paid in btc on bitcoin; accepted: eth on ethereum, usdt on tron.",
        ),
        ({"coin": "<script>alert(1)</script>"}, "must be one of: eth, usdt"),
    ):
        answer = send(shop, invoice, urlencode(sent))
        text = answer.body.decode()
        assert answer.status == 400 and said in text and "<script>alert" not in text
        assert 'role="alert"' in text and len(forms(text)) == 2
    shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key)
    answer = send(shop, invoice, urlencode(OFFERS[0]))
    assert answer.status == 400 and "no coin can be chosen for it any more" in answer.body.decode()
    assert forms(answer.body.decode()) == []
    assert send(shop, {"id": "inv_" + "0" * 26}, urlencode(OFFERS[0])).status == 404


def test_too_many_choices_are_said_on_the_page(shop: Shop, invoice: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "MOST_CHOICES", 1)
    assert send(shop, invoice, urlencode(OFFERS[0])).status == 200
    answer = send(shop, invoice, urlencode(OFFERS[1]))
    text = answer.body.decode()
    assert (answer.status, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert int(answer.headers["retry-after"]) > 0 and 'role="alert"' in text and "At most 1 different coins" in text
    assert shop.shown(invoice)["address"] in text, "what was chosen can be paid still"


def test_settings_of_the_merchant_are_not_told(shop: Shop, invoice: dict[str, Any]) -> None:
    for settings, offer, said in (
        (
            {"minimumAmounts": {"eth": "1000"}},
            OFFERS[0],
            "The shop takes no eth for this amount: choose another coin.",
        ),
        ({"supportedCurrencies": ["eth"]}, OFFERS[1], "The shop takes no usdt for this amount: choose another coin."),
    ):
        assert shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, {"settings": settings}).status == 201
        answer = send(shop, invoice, urlencode(offer))
        assert answer.status == 400 and said in answer.body.decode()
        assert not any(name in answer.body.decode() for name in ("settings", "minimumAmounts", "supportedCurrencies"))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("coin=eth&coin=usdt", FORM), ("coin=%FF%FE", FORM), ("coin=%00", FORM), ("", FORM), ("a=1", FORM),
        ("coin=" + "x" * 300, FORM),
        ("&".join(f"f{n}=1" for n in range(200)), FORM), ("coin=eth", "text/plain"), ("coin=eth", "application/json"),
        ('{"coin": 7}', "application/json"), ('{"coin": null}', "application/json"), ("[]", "application/json"),
        ('{"coin": "eth", "network": {}}', "application/json"), ("coin=é", FORM),
    ],
)  # fmt: skip
def test_bad_input_is_refused(shop: Shop, invoice: dict[str, Any], body: str, kind: str) -> None:
    assert send(shop, invoice, body, kind).status == 400
    assert shop.shown(invoice)["choices"] == []


def test_an_invoice_that_names_its_coin_has_no_form(shop: Shop) -> None:
    plain = shop.invoice()
    assert forms(page(shop, plain)) == []
    answer = send(shop, plain, urlencode(OFFERS[0]))
    assert answer.status == 400 and "names its coin" in answer.body.decode()


def test_what_a_coin_is_called_stays_text() -> None:
    evil = '"><script>alert(1)</script>'
    shown = {
        "accept": [{"coin": evil, "network": evil}], "status": "pending", "expiresIn": 5, "currency": None, "network": None,
    }  # fmt: skip
    shown |= {
        "fiatCurrency": evil,
        "symbol": evil,
        "amount": None,
        "fiatAmount": "5",
        "rate": None,
        "lockedUntil": None,
        "expiresAt": evil,
        "paidPercent": "0",
    }
    shown["accept"][0] |= {"symbol": evil, "usualFee": "0.42", "usualSeconds": 60}
    shown |= {"choices": [], "description": evil, "misdirected": [{"amount": evil, "coin": evil, "network": "bsc"}]}
    shown |= {"shop": {"name": evil, "logo": f"data:image/png;base64,AA{evil}", "color": f"#000000{evil}"}}
    shown["delays"] = [{"network": evil, "delay": "halted"}]
    named, frame = {evil: evil, "bsc": "BNB Smart Chain"}, Frame("/api", words("ar"))
    text = Offers(frame, "pay/x", named, evil).html(shown) + checkout.page(
        frame, checkout.Visit("x", shown, evil, named, evil, evil)
    )
    assert "<script>" not in text and "data:image" not in text and "<style" not in text
    assert "BNB Smart Chain" in text
