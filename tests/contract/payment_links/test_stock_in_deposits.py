"""Payments that move a piece of a link's stock: their transactions keep within ten items, and the piece follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.scanning.internal_transfers import BalanceBooking
from chalicelib.usecases.deposits import deposits
from chalicelib.usecases.ports.changes import Absent, Change
from tests.support.known_rates import rates_are
from tests.support.links import assert_whole, left, make, opened
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened_shop:
        opened_shop.turn()
        yield opened_shop


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a live EVM network: a payment in its own coin rests on a condition of its own."""

    def condition(store: Any, network: Network, block: Block, transfer: Transfer) -> list[Change]:
        return [Absent(BalanceBooking, {"network": network.id, "address": transfer.recipient})]

    monkeypatch.setattr(deposits, "not_booked_yet", condition)


def settle(shop: Shop, expires_in: int = 60, late: str = "accept") -> None:
    settings = {"defaultExpirationTime": expires_in, "latePayments": late}
    answer = shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, json={"settings": settings})
    assert answer.status == 201, answer.body


def expired(shop: Shop, invoice: dict[str, Any]) -> None:
    shop.wait(61)
    shop.mine(1)
    shop.turn()
    assert shop.status(invoice) == "expired"


def cancel(shop: Shop, invoice: dict[str, Any]) -> None:
    assert shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key).status == 200


def test_a_piece_that_comes_back_before_the_confirmations_is_taken(shop: Shop) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    late = opened(shop, link)
    expired(shop, late)
    settle(shop, 86_400)
    other = opened(shop, link)
    shop.pay(late["address"], "1")
    shop.turn()
    assert (shop.status(late), left(shop, link)) == ("expired", 0)
    cancel(shop, other)
    shop.mine()
    shop.turn()
    assert (shop.available(), shop.status(late), left(shop, link)) == ("1", "completed", 0)
    assert shop.told(late["id"])["invoice.completed"] == 1
    assert_whole(link, 1)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("sold", [True, False], ids=["sold meanwhile", "left"])
def test_a_late_native_payment_takes_a_piece(shop: Shop, sold: bool) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    late = opened(shop, link)
    expired(shop, late)
    settle(shop, 86_400)
    if sold:
        opened(shop, link)
    shop.pay(late["address"], "1")
    shop.turn()
    assert (shop.status(late), left(shop, link)) == ("expired" if sold else "confirming", 0)
    shop.mine()
    shop.turn()
    assert (shop.available(), shop.status(late)) == ("1", "expired" if sold else "completed")
    assert_whole(link, 1)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("late", ["manual", "accept"])
def test_a_native_payment_in_a_block_after_the_time_and_before_the_clock(shop: Shop, late: str) -> None:
    settle(shop, late=late)
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    shop.wait(61)
    shop.pay(invoice["address"], "1")
    shop.turn()
    assert (shop.status(invoice), left(shop, link)) == (("expired", 1) if late == "manual" else ("confirming", 0))
    assert shop.told(invoice["id"])["invoice.late_payment"] == 1
    shop.mine()
    shop.turn()
    assert (shop.available(), shop.status(invoice)) == ("1", "expired" if late == "manual" else "completed")
    assert_whole(link, 1)


@pytest.mark.parametrize("condition", [False, True], ids=["simulated", "native"])
def test_a_late_payment_without_a_rate_passes_its_block(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, condition: bool
) -> None:
    if condition:
        request.getfixturevalue("native")
    settle(shop, late="manual")
    offers = [{"coin": "eth", "network": "ethereum"}]
    price = {"amount": None, "currency": None, "network": None, "fiatAmount": "3000", "fiatCurrency": "USD", "accept": offers}
    link = make(shop, stock=1, **price)["id"]
    invoice = opened(shop, link)
    chosen = shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json={"coin": "eth"})
    shop.wait(1000)
    rates_are(monkeypatch)
    shop.pay(chosen.json["address"], "1")
    shop.turn()
    assert (shop.status(invoice), left(shop, link)) == ("expired", 1)
    shop.mine()
    shop.turn()
    assert shop.available() == "1"
    assert_whole(link, 1)


@pytest.mark.parametrize("fell_out", [False, True], ids=["confirmed", "orphaned"])
def test_a_payment_without_a_rate_to_an_invoice_that_was_paid_late_passes_its_block(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, fell_out: bool
) -> None:
    """It was sold out when it was paid, and a piece has come back since: the new payment does not take that in its transaction."""
    settle(shop)
    offers = [{"coin": coin, "network": "ethereum"} for coin in ("usdt", "eth")]
    price = {"amount": None, "currency": None, "network": None, "fiatAmount": "50", "fiatCurrency": "USD", "accept": offers}
    link = make(shop, stock=1, **price)["id"]
    invoice = opened(shop, link)
    chosen = shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json={"coin": "usdt"}).json
    expired(shop, invoice)
    settle(shop, 86_400)
    other = opened(shop, link)
    shop.pay(chosen["address"], chosen["missing"], "usdt")
    shop.turn()
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), left(shop, link)) == ("expired", 0)
    cancel(shop, other)
    assert left(shop, link) == 1
    rates_are(monkeypatch)
    shop.pay(chosen["address"], "1")
    shop.turn()
    assert (shop.status(invoice), left(shop, link)) == ("completed", 0)
    if fell_out:
        shop.post("/v1/sandbox/reorg", {"network": "ethereum", "depth": 1})
        shop.turn()
    shop.mine()
    shop.turn()
    assert (shop.available(), shop.available("usdt")) == ("0" if fell_out else "1", chosen["missing"])
    assert_whole(link, 1)


@pytest.mark.usefixtures("native")
def test_who_dies_behind_the_commit_leaves_the_piece_to_the_next_step(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    late = opened(shop, link)
    expired(shop, late)
    with monkeypatch.context() as patch:
        patch.setattr(deposits, "take_again", lambda *given: None)
        shop.pay(late["address"], "1")
        shop.turn()
    assert (shop.status(late), left(shop, link)) == ("expired", 1)
    shop.mine()
    shop.turn()
    assert (shop.status(late), left(shop, link)) == ("completed", 0)
    assert_whole(link, 1)
