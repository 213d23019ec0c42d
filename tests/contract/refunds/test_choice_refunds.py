"""Refunds of an invoice that was paid in several coins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.shop import PAYEE, Shop, open_shop
from tests.support.stack import Response, Stack

OFFERS = [{"coin": "eth", "network": "ethereum"}, {"coin": "usdt", "network": "ethereum"}]


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def paid(shop: Shop, *, eth: str, usdt: str) -> dict[str, Any]:
    """An invoice over 90 US dollars, paid in both coins and credited."""
    made = shop.post("/v1/invoices", {"fiatAmount": "90", "fiatCurrency": "USD", "accept": OFFERS})
    assert made.status == 201, made.body
    answer = shop.stack.call("POST", f"/v1/pay/{made.json['id']}/choice", json=OFFERS[0])
    assert answer.status == 200, answer.body
    shop.pay(answer.json["address"], eth)
    shop.pay(answer.json["address"], usdt, "usdt")
    shop.mine()
    shop.turn()
    return dict(made.json)


def refund(shop: Shop, invoice: dict[str, Any], **body: Any) -> Response:
    return shop.post(f"/v1/invoices/{invoice['id']}/refunds", {"address": PAYEE, **body})


def test_each_coin_and_no_more_than_came_in_it(shop: Shop) -> None:
    invoice = paid(shop, eth="0.02", usdt="30")
    assert shop.shown(invoice)["status"] == "completed"
    answer = refund(shop, invoice, mode="same")
    assert answer.status == 400 and "paid in several coins" in answer.json["error"]
    answer = refund(shop, invoice, mode="same", coin="usdt", amount="30.000001")
    assert answer.status == 400 and "30 USDT" in answer.json["error"]
    assert refund(shop, invoice, mode="same", coin="usdt").json["amount"] == "30"
    assert refund(shop, invoice, mode="same", coin="eth", amount="0.01").json["amount"] == "0.01"
    assert refund(shop, invoice, mode="same", coin="eth").json["amount"] == "0.01"
    assert refund(shop, invoice, mode="fiat", amount="0.01").status == 400


def test_in_fiat_the_coin_that_was_paid_most(shop: Shop) -> None:
    invoice = paid(shop, eth="0.02", usdt="30")
    made = refund(shop, invoice, mode="fiat", amount="45").json
    assert (made["coin"], made["amount"], made["fiatAmount"]) == ("eth", "0.015", "45")
    assert refund(shop, invoice, mode="same", coin="usdt").json["amount"] == "30"
    answer = refund(shop, invoice, mode="fiat", amount="15.01")
    assert answer.status == 400 and "15 USD" in answer.json["error"]


def test_by_default_what_was_overpaid(shop: Shop) -> None:
    invoice = paid(shop, eth="0.02", usdt="60")
    assert shop.shown(invoice)["overpaid"] == "0.01"
    made = refund(shop, invoice, mode="same", coin="usdt")
    assert made.status == 201, made.body
    assert made.json["amount"] == "30"
