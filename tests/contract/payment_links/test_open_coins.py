"""Payment links whose payer chooses the coin: an invoice without an address until then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Address
from chalicelib.wiring import services
from tests.support.links import assert_whole, invoices_of, left, make, opened, page, submit, visit
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

OPEN: dict[str, Any] = {"currency": None, "network": None, "amount": None, "fiatAmount": "50", "fiatCurrency": "USD"}


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        opened.turn()
        yield opened


def choose(shop: Shop, invoice: dict[str, Any], **choice: str) -> Any:
    return shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json=choice)


def test_opening_costs_no_address_and_a_choice_makes_one(shop: Shop) -> None:
    before = len(list(services().store.every(Address)))
    link = make(shop, **OPEN, accept=[{"coin": "eth", "network": "ethereum"}, {"coin": "BTC"}], stock=2, metadata={"a": 1})["id"]
    invoice = opened(shop, link)
    assert (invoice["currency"], invoice["address"], invoice["amount"]) == (None, None, None)
    assert invoice["accept"] == [{"coin": "eth", "network": "ethereum"}, {"coin": "btc", "network": "bitcoin"}]
    assert (invoice["fiatAmount"], invoice["paymentLinkId"], invoice["metadata"]) == ("50", link, {"a": 1})
    assert len(list(services().store.every(Address))) == before and left(shop, link) == 1
    chosen = choose(shop, invoice, coin="eth", network="ethereum").json
    shop.pay(chosen["address"], chosen["amount"])
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed" and assert_whole(link, 2) == {"completed": 1}


def test_without_accept_every_coin_that_the_merchant_takes(shop: Shop) -> None:
    made = make(shop, **OPEN)
    assert not made.keys() & {"accept", "currency", "network"}
    invoice = opened(shop, made["id"])
    assert {"coin": "usdt", "network": "tron"} in invoice["accept"] and len(invoice["accept"]) > 5


def test_the_page_of_an_open_link(shop: Shop) -> None:
    link = make(shop, **{**OPEN, "fiatAmount": {"min": 5, "max": 50}})["id"]
    shown = page(shop, link).body.decode()
    assert "Amount in USD" in shown and "Paid in" not in shown
    answer = submit(shop, link, "amount=12.50")
    assert answer.status == 303
    (invoice,) = invoices_of(link)
    assert invoice.fiat_amount == "12.50" and invoice.address is None
    checkout = shop.stack.call("GET", f"/v1/pay/{invoice.id}")
    assert checkout.status == 200 and "Choose how to pay" in checkout.body.decode()


def test_an_unchosen_one_expires_and_gives_its_piece_back(shop: Shop) -> None:
    link = make(shop, **OPEN, stock=1)["id"]
    invoice = opened(shop, link)
    assert visit(shop, link).status == 400
    shop.wait(3_601)
    for _ in range(2):
        for network in services().catalogue("test").networks:
            shop.stack.drain(only=(f"poll_{network}",), hurry=True)
        shop.mine(1)
        shop.turn()
    assert shop.status(invoice) == "expired" and left(shop, link) == 1
    assert assert_whole(link, 1) == {"expired": 1}
    assert choose(shop, invoice, coin="eth").status == 400


def test_what_the_merchant_does_not_take_is_refused(shop: Shop) -> None:
    made = make(shop, **OPEN, accept=[{"coin": "eth"}])
    shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, json={"settings": {"supportedCurrencies": ["btc"]}})
    error = make(shop, 400, **OPEN, accept=[{"coin": "eth"}])["error"]
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "accept")
    refused = visit(shop, made["id"])
    assert refused.status == 400 and "supported" not in refused.body.decode()
    assert "can not be paid at the moment" in refused.json["error"]["message"]
