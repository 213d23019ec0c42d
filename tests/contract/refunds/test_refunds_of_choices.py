"""Refunds in both modes, one after the other, of an invoice that was paid in two coins: each takes its part of the worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.refunds import ask_refund, refund
from tests.support.shop import PAYEE, Shop, open_shop
from tests.support.stack import Response, Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def paid_in_two(shop: Shop, over: str = "0") -> dict[str, Any]:
    """300 US dollars, half of them in ether and half in USDT, and `over` USDT more."""
    accept = [{"coin": coin, "network": "ethereum"} for coin in ("eth", "usdt")]
    made = shop.post("/v1/invoices", {"fiatAmount": "300", "fiatCurrency": "USD", "accept": accept})
    assert made.status == 201, made.body
    invoice = dict(made.json)
    choose(shop, invoice, "eth")
    shop.pay(choose(shop, invoice, "eth")["address"], "0.05")
    settle(shop)
    rest = choose(shop, invoice, "usdt")
    assert rest["missing"] == "150"
    shop.pay(rest["address"], str(150 + float(over)), "usdt")
    settle(shop)
    assert shop.status(invoice) == "completed"
    return invoice


def choose(shop: Shop, invoice: dict[str, Any], coin: str) -> dict[str, Any]:
    answer = shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json={"coin": coin, "network": "ethereum"})
    assert answer.status == 200, answer.body
    return dict(answer.json)


def settle(shop: Shop) -> None:
    shop.turn()
    shop.mine()
    shop.turn()


def refused(answer: Response) -> str:
    assert (answer.status, answer.json["code"]) == (400, "VALIDATION_ERROR"), answer.body
    return str(answer.json["error"])


def test_each_refund_takes_its_part_of_the_worth(shop: Shop) -> None:
    invoice = paid_in_two(shop)
    assert "eth on ethereum, usdt on ethereum" in refused(ask_refund(shop, invoice))
    assert "0.05 ETH is not refunded yet" in refused(ask_refund(shop, invoice, coin="eth", amount="0.051"))
    assert refund(shop, invoice, coin="eth", address=PAYEE)["amount"] == "0.05"
    found = refund(shop, invoice, mode="fiat", amount="100", coin="usdt")
    assert (found["amount"], found["coin"], found["fiatAmount"]) == ("100", "usdt", "100")
    assert "50 USDT is not refunded yet" in refused(ask_refund(shop, invoice, coin="usdt", amount="50.01"))
    assert refund(shop, invoice, coin="usdt")["amount"] == "50"
    assert "nothing is left" in refused(ask_refund(shop, invoice, coin="usdt"))
    assert "nothing is left" in refused(ask_refund(shop, invoice, mode="fiat"))


def test_what_was_overpaid_goes_back_in_either_coin(shop: Shop) -> None:
    invoice = paid_in_two(shop, over="30")
    assert shop.shown(invoice)["overpaid"] == "30"
    assert refund(shop, invoice, coin="usdt", address=PAYEE)["amount"] == "30"
    assert "overpaid is refunded already" in refused(ask_refund(shop, invoice, coin="eth"))
    assert refund(shop, invoice, coin="eth", amount="0.01")["amount"] == "0.01"


def test_overpaid_in_fiat(shop: Shop) -> None:
    invoice = paid_in_two(shop, over="30")
    assert refund(shop, invoice, mode="fiat")["fiatAmount"] == "30"
