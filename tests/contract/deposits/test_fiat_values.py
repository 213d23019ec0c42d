"""What payments were worth when they were made: in the records of transactions, invoices and withdrawals, and in no event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.known_rates import rates_are
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

SetRates = Callable[..., None]
WORTH_150 = {"amount": "150.00", "currency": "USD", "source": "test"}


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


@pytest.fixture
def set_rates(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> SetRates:
    """Gives ether a rate by currency as of now; without one nobody knows any."""

    def to(**values: str) -> None:
        rates_are(monkeypatch, *(("eth", fiat, value) for fiat, value in values.items()))

    return to


def transactions(shop: Shop, **query: str) -> list[dict[str, Any]]:
    return list(shop.get("/v1/transactions", **query)["data"])


def test_a_payment_keeps_the_value_of_its_time(shop: Shop, set_rates: SetRates) -> None:
    set_rates(USD="3000")
    invoice = shop.invoice("0.05")
    shop.pay(invoice["address"], "0.05")
    shop.turn()
    set_rates(USD="1")
    shop.mine()
    shop.turn()
    (paid,) = transactions(shop, invoiceId=invoice["id"])
    assert paid["fiatValue"] == WORTH_150
    assert [one["fiatValue"] for one in shop.shown(invoice)["transactions"]] == [WORTH_150]
    events = shop.get("/v1/events", objectId=paid["id"])["data"]
    assert events
    assert all("fiatValue" not in event["data"] for event in events), "events stay as small as they were"


def test_a_price_in_fiat_values_in_its_currency(shop: Shop, set_rates: SetRates) -> None:
    set_rates(USD="3000", EUR="2500")
    made = shop.post("/v1/invoices", {"currency": "eth", "network": "ethereum", "fiatAmount": "100", "fiatCurrency": "EUR"})
    set_rates(USD="3000", EUR="2000.55")
    shop.pay(made.json["address"], made.json["amount"])
    shop.turn()
    (paid,) = transactions(shop, invoiceId=made.json["id"])
    assert paid["fiatValue"] == {"amount": "80.02", "currency": "EUR", "source": "test"}


def test_a_chosen_coin_is_worth_what_it_counts_for(shop: Shop, set_rates: SetRates) -> None:
    set_rates(USD="3000")
    offers = [{"coin": "eth", "network": "ethereum"}]
    made = shop.post("/v1/invoices", {"fiatAmount": "150", "fiatCurrency": "USD", "accept": offers})
    choice = shop.stack.call("POST", f"/v1/pay/{made.json['id']}/choice", json=offers[0]).json
    set_rates(USD="1000")
    shop.pay(choice["address"], choice["amount"])
    shop.turn()
    (paid,) = transactions(shop, invoiceId=made.json["id"])
    assert paid["fiatValue"] == WORTH_150, "the rate was promised"
    assert [one["fiatValue"] for one in shop.shown(made.json)["transactions"]] == [WORTH_150]


def test_without_a_fresh_rate_nobody_guesses(shop: Shop, set_rates: SetRates) -> None:
    set_rates()
    invoice = shop.invoice("0.05")
    shop.pay(invoice["address"], "0.05")
    shop.turn()
    set_rates(USD="3000")
    shop.mine()
    shop.turn()
    (paid,) = transactions(shop, invoiceId=invoice["id"])
    assert (paid["status"], paid["fiatValue"]) == ("confirmed", None)
    assert [one["fiatValue"] for one in shop.shown(invoice)["transactions"]] == [None]


def test_what_is_found_long_after_it_was_paid_has_no_value(shop: Shop, set_rates: SetRates) -> None:
    set_rates(USD="3000")
    invoice = shop.invoice("0.05", expiresIn=86_400)
    shop.pay(invoice["address"], "0.05")
    assert shop.post("/v1/sandbox/clock", {"advance": 3 * 3600}).status == 201
    set_rates(USD="4000")
    shop.turn()
    (paid,) = transactions(shop, invoiceId=invoice["id"])
    assert paid["fiatValue"] is None, "nobody kept the rate of then"


def test_a_withdrawal_has_the_value_of_its_confirmation(shop: Shop, set_rates: SetRates) -> None:
    shop.open(("1", "eth"))
    set_rates(USD="5000")
    asked = shop.ask("0.05").json
    assert "fiat_value" not in asked
    shop.turn()
    set_rates(USD="3000")
    shop.mine()
    shop.turn()
    shown = shop.get(f"/v1/withdrawals/{asked['id']}")["data"]
    assert (shown["status"], shown["fiat_value"]) == ("confirmed", WORTH_150)
    (sent,) = transactions(shop, withdrawalId=asked["id"])
    assert sent["fiatValue"] == WORTH_150
