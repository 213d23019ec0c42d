"""Rates of an invoice whose payer chooses: locked, moved, stale; and when such an invoice expires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.scanning.internal_transfers import BalanceBooking
from chalicelib.usecases.deposits import counted_rates, deposits
from chalicelib.usecases.invoices import choosing
from chalicelib.usecases.ports.changes import Absent, Change
from chalicelib.wiring import services
from tests.support.known_rates import rates_are
from tests.support.shop import Shop, as_operator, open_shop
from tests.support.stack import Response, Stack

OFFERS = [{"coin": "eth", "network": "ethereum"}, {"coin": "usdt", "network": "ethereum"}, {"coin": "ltc", "network": "litecoin"}]
SetRates = Callable[..., None]


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


@pytest.fixture
def set_rates(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> SetRates:
    """Gives coins a rate in US dollars as of now; those that are not named have none."""

    def to(**values: str) -> None:
        rates_are(monkeypatch, *((coin, "USD", value) for coin, value in values.items()))

    return to


def choosable(shop: Shop, price: str = "300", **more: Any) -> dict[str, Any]:
    made = shop.post("/v1/invoices", {"fiatAmount": price, "fiatCurrency": "USD", "accept": OFFERS, **more})
    assert made.status == 201, made.body
    return dict(made.json)


def choose(shop: Shop, invoice: dict[str, Any], coin: str) -> Any:
    network = next(one["network"] for one in OFFERS if one["coin"] == coin)
    answer = shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json={"coin": coin, "network": network})
    assert answer.status == 200, answer.body
    return answer.json


def advance(shop: Shop, seconds: int) -> None:
    assert shop.post("/v1/sandbox/clock", {"advance": seconds}).status == 201


def stored(invoice: dict[str, Any]) -> Invoice:
    (found,) = [one for one in services().store.every(Invoice) if one.id == invoice["id"]]
    return found


def test_a_payment_in_the_lock_counts_at_the_locked_rate(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop)
    choice = choose(shop, invoice, "eth")
    set_rates(eth="1000")
    shop.pay(choice["address"], "0.1")
    shop.turn()
    assert shop.status(invoice) == "confirming"


def test_a_payment_outside_every_lock_counts_at_the_rate_of_its_arrival(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop)
    choice = choose(shop, invoice, "eth")
    advance(shop, 901)
    set_rates(eth="2000")
    shop.pay(choice["address"], "0.1")
    shop.turn()
    set_rates(eth="4000")
    shown = shop.shown(invoice)
    assert (shown["status"], shown["amount"], shown["missing"]) == ("partial", "0.075", "0.025"), "200 of 300 are paid"
    assert shown["address"] == choice["address"], "the rest is quoted anew on the same address"
    shop.pay(choice["address"], "0.025")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["paidPercent"], shown["received"]) == ("completed", "100", "0.075")
    assert shown["choices"][0]["received"] == "0.125"


def test_stale_rates_refuse_the_choice(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop)
    advance(shop, 1000)
    answer = shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json={"coin": "eth", "network": "ethereum"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert "no fresh rate of eth in USD" in answer.json["error"]["message"]
    assert shop.shown(invoice)["address"] is None


def test_without_a_fresh_rate_a_lock_that_ended_stays_ended(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop)
    choose(shop, invoice, "eth")
    version = stored(invoice).version
    advance(shop, 1000)
    shown = shop.shown(invoice)
    assert stored(invoice).version == version
    status = shop.stack.call("GET", f"/v1/pay/{invoice['id']}/status").json
    assert "paymentUri" not in status
    assert status["lockedUntil"] == shown["choices"][0]["lockedUntil"]
    page = shop.stack.call("GET", f"/pay/{invoice['id']}").body.decode()
    assert "There is no rate for ETH now" in page
    assert "time to pay is over" not in page
    assert '<details class="others" open>' in page and "Rate kept until" not in page and "<dt>Rate</dt>" not in page


def test_a_payment_that_waits_for_a_rate_counts_once_there_is_one(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop)
    choice = choose(shop, invoice, "eth")
    advance(shop, 1000)
    shop.pay(choice["address"], "0.1")
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["choices"][0]["unconfirmed"]) == ("pending", "0.1")
    (deposit,) = [one for one in services().store.every(Deposit) if one.invoice_id == invoice["id"]]
    assert deposit.flags == ("unpriced",)
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("pending", "0.1"), "it is the merchant's whatever a rate says"
    set_rates(eth="1500")
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["paidPercent"]) == ("partial", "50")
    (deposit,) = [one for one in services().store.every(Deposit) if one.invoice_id == invoice["id"]]
    assert (deposit.flags, deposit.rate is not None) == ((), True)
    assert [work for work in services().store.every_work() if work.kind == "unpriced"] == []


def test_a_payment_that_waits_for_a_rate_may_fall_out(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop)
    choice = choose(shop, invoice, "eth")
    advance(shop, 1000)
    shop.pay(choice["address"], "0.1")
    shop.turn()
    shop.reorg(3, remine=True)
    shop.turn()
    assert [work.kind for work in services().store.every_work() if work.kind == "unpriced"] == ["unpriced"]
    set_rates(eth="3000")
    shop.turn()
    assert shop.status(invoice) == "confirming"
    shop.reorg(5)
    set_rates(eth="1")
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["choices"][0]["unconfirmed"]) == ("pending", "0")


def test_what_a_reorganisation_brings_back_counts_at_its_first_rate(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop)
    choice = choose(shop, invoice, "eth")
    shop.pay(choice["address"], "0.05")
    shop.turn()
    set_rates(eth="1")
    advance(shop, 1000)
    shop.reorg(3, remine=True)
    shop.turn()
    assert shop.shown(invoice)["choices"][0]["unconfirmed"] == "0.05"
    assert stored(invoice).choosing.choices[0].worth["unconfirmed"] == "150"  # type: ignore[union-attr]


def test_a_tolerated_shortfall_completes_it(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000", usdt="1")
    invoice = choosable(shop, tolerancePercent=1)
    address = choose(shop, invoice, "eth")["address"]
    shop.pay(address, "0.05")
    shop.pay(choose(shop, invoice, "usdt")["address"], "147", "usdt")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["missing"], shown["shortfall"], shown["paidPercent"]) == ("completed", "0", "3", "99")


def test_it_expires_once_every_chosen_network_is_scanned(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000", ltc="80")
    invoice = choosable(shop, expiresIn=60)
    choose(shop, invoice, "eth")
    place = choose(shop, invoice, "ltc")["address"]
    shop.turn()
    litecoin = services().catalogue("test").coins["litecoin", "ltc"]
    services().sandbox.deposit(litecoin.network, place, litecoin, 375_000_000)
    advance(shop, 61)
    shop.turn()
    assert shop.status(invoice) == "pending", "litecoin may hold a payment in time"
    assert [work.lane for work in services().store.every_work() if work.kind == "expiry"] == ["test:litecoin"]
    shop.stack.drain(only=("poll_litecoin", "relay"), hurry=True)
    assert shop.status(invoice) == "confirming", "it was in time"
    assert stored(invoice).expired
    assert [work for work in services().store.every_work() if work.kind == "expiry"] == []


def test_it_expires_in_the_lane_where_it_is_last(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000", ltc="80")
    invoice = choosable(shop, expiresIn=60)
    choose(shop, invoice, "ltc")
    choose(shop, invoice, "eth")
    advance(shop, 61)
    for _ in range(3):
        shop.stack.drain(only=("poll_ethereum", "poll_litecoin", "relay"), hurry=True)
    assert shop.status(invoice) == "expired"
    assert shop.told(invoice["id"])["invoice.expired"] == 1


def test_one_that_nobody_chose_for_expires(shop: Shop) -> None:
    invoice = choosable(shop, expiresIn=60)
    advance(shop, 61)
    shop.turn()
    assert shop.status(invoice) == "expired"


def test_it_is_cancelled_and_given_more_time_like_any_other(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000", ltc="80")
    invoice = choosable(shop, expiresIn=60)
    choose(shop, invoice, "ltc")
    choose(shop, invoice, "eth")
    advance(shop, 61)
    shop.turn()
    assert [work.lane for work in services().store.every_work() if work.kind == "expiry"] == ["test:litecoin"]
    assert shop.post(f"/v1/invoices/{invoice['id']}/extend", {"expiresIn": 600}).status == 200
    shop.stack.drain(only=("poll_ethereum", "poll_litecoin", "relay"), hurry=True)
    assert shop.status(invoice) == "pending"
    answer = shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key)
    assert (answer.status, answer.json["status"]) == (200, "cancelled")
    assert [work for work in services().store.every_work() if work.kind == "expiry"] == []
    refused = shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json={"coin": "eth"})
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")


def test_a_late_native_payment_that_waits_for_a_rate_passes_its_block(
    shop: Shop, set_rates: SetRates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a live EVM network, where it rests on a condition of its own: the transaction is kept to ten items."""

    def condition(store: Any, network: Network, block: Block, transfer: Transfer) -> list[Change]:
        return [Absent(BalanceBooking, {"network": network.id, "address": transfer.recipient})]

    monkeypatch.setattr(deposits, "not_booked_yet", condition)
    set_rates(eth="3000")
    invoice = choosable(shop, expiresIn=60)
    address = choose(shop, invoice, "eth")["address"]
    shop.wait(1000)
    shop.pay(address, "0.1")
    shop.turn()
    assert shop.status(invoice) == "expired"
    assert [work.kind for work in services().store.every_work() if work.kind == "unpriced"] == ["unpriced"]
    shop.mine()
    shop.turn()
    assert shop.available() == "0.1"


@pytest.mark.parametrize("bound", ["time", "pages"])
def test_payments_in_a_coin_that_nobody_quotes_keep_no_others_waiting(
    shop: Shop, set_rates: SetRates, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(counted_rates, "_AT_ONCE", 2)
    monkeypatch.setattr(counted_rates, "MOST_PAGES", 1 if bound == "pages" else 100)
    more = (lambda: True) if bound == "pages" else (lambda: False)
    set_rates(eth="3000", usdt="1")
    invoice = choosable(shop)
    address = choose(shop, invoice, "eth")["address"]
    advance(shop, 1000)
    for _ in range(5):
        shop.pay(address, "1", "usdt")
    shop.pay(address, "0.1")
    shop.turn()
    assert shop.status(invoice) == "pending"
    set_rates(eth="1500")
    searching = services().unpriced(shop.realm_network())
    searching.work(more)
    assert bound == "pages" or shop.status(invoice) == "pending", "there was time for the oldest alone"
    for _ in range(2):
        searching.work(more)
    assert (shop.shown(invoice)["status"], shop.shown(invoice)["paidPercent"]) == ("partial", "0")
    assert len([work for work in services().store.every_work() if work.kind == "unpriced"]) == 5


def test_a_rate_that_makes_the_price_too_long_renews_no_lock(shop: Shop, set_rates: SetRates) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop, price="99999999999999999999")
    known = choose(shop, invoice, "eth")
    advance(shop, 1000)
    set_rates(eth="0.000000000001")
    shown = shop.shown(invoice)
    assert (shown["amount"], shown["choices"][0]["lockedUntil"]) == (known["amount"], known["lockedUntil"])
    answer = shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json={"coin": "eth", "network": "ethereum"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")


def test_going_to_and_fro_writes_no_more_than_so_often(shop: Shop, set_rates: SetRates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "MOST_VERSIONS", 6)
    set_rates(eth="3000", usdt="1")
    invoice = choosable(shop)
    answers = [choose(shop, invoice, coin) for _ in range(6) for coin in ("eth", "usdt")]
    assert stored(invoice).version == 7
    assert {(one["coin"], one["amount"]) for one in answers} == {("eth", "0.1"), ("usdt", "300")}


@pytest.mark.parametrize(
    ("terms", "rate", "status"),
    [
        ({}, "3000", "expired"),
        ({"latePayments": "accept"}, "3000", "completed"),
        ({"latePayments": "accept"}, "2900", "expired"),
        ({"latePayments": "accept", "tolerancePercent": 4}, "2900", "completed"),
        ({"latePayments": "acceptWithinPercent", "latePaymentsPercent": 3}, "2900", "expired"),
        ({"latePayments": "acceptWithinPercent", "latePaymentsPercent": 4}, "2900", "completed"),
    ],
)
def test_a_late_payment_is_worth_what_the_rate_of_then_says(
    shop: Shop, set_rates: SetRates, terms: dict[str, Any], rate: str, status: str
) -> None:
    set_rates(eth="3000")
    invoice = choosable(shop, expiresIn=60, **terms)
    address = choose(shop, invoice, "eth")["address"]
    advance(shop, 1000)
    shop.turn()
    set_rates(eth=rate)
    shop.pay(address, "0.1")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["choices"][0]["received"], shop.available()) == (status, "0.1", "0.1")
    told = ["created", "expired", "late_payment", *(["confirming", "completed"] if status == "completed" else [])]
    assert shop.told(invoice["id"]) == {f"invoice.{name}": 1 for name in told}
    assert shown["paidPercent"] == ("100" if rate == "3000" else "96.66")


LOOKS: dict[str, Callable[[Shop, str], Response]] = {
    "page": lambda shop, id: shop.stack.call("GET", f"/v1/pay/{id}"),
    "status": lambda shop, id: shop.stack.call("GET", f"/v1/pay/{id}/status"),
    "choice": lambda shop, id: shop.stack.call("POST", f"/v1/pay/{id}/choice", json={"coin": "usdt"}),
    "path": lambda shop, id: shop.stack.call("GET", f"/v1/invoices/{id}", shop.key),
    "query": lambda shop, id: shop.stack.call("GET", "/v1/invoices", shop.key, query={"id": id}),
    "externalId": lambda shop, id: shop.stack.call("GET", "/v1/invoices/getByExternalId", shop.key, query={"externalId": "o-1"}),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_the_first_look_after_a_lock_quotes_anew_and_a_list_does_not(
    shop: Shop, set_rates: SetRates, look: Callable[[Shop, str], Response]
) -> None:
    set_rates(eth="3000", usdt="1")
    invoice = choosable(shop, externalId="o-1")
    choose(shop, invoice, "eth")
    advance(shop, 901)
    set_rates(eth="2500", usdt="1")
    shop.get("/v1/invoices/getAll")
    assert promised(invoice) == ["3000"]
    assert look(shop, invoice["id"]).status == 200
    assert promised(invoice) == ["3000", "2500"]


def promised(invoice: dict[str, Any]) -> list[str]:
    """The rates of its first choice, oldest first."""
    choosing = stored(invoice).choosing
    assert choosing is not None
    return [lock.quote.value for lock in choosing.choices[0].locks]


def test_a_coin_that_is_not_active_has_no_rate_but_a_promised_one(shop: Shop, set_rates: SetRates) -> None:
    """Rates go by a coin's name: on one network it may have lost its worth, which is why an operator takes it out."""
    set_rates(eth="3000", usdt="1")
    invoice = choosable(shop)
    address = choose(shop, invoice, "usdt")["address"]
    as_operator(shop, "PUT", "/v1/coins", coin="usdt", network="ethereum", status="INACTIVE")
    shop.pay(address, "30", "usdt")
    shop.turn()
    assert stored(invoice).choosing.choices[0].worth == {"unconfirmed": "30"}  # type: ignore[union-attr]
    shop.wait(901)
    set_rates(eth="3000", usdt="1")
    assert shop.shown(invoice)["choices"][0]["lockedUntil"] is not None
    lock = stored(invoice).choosing.choices[0].locked_until  # type: ignore[union-attr]
    shop.pay(address, "270", "usdt")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["paidPercent"], shop.available("usdt")) == ("partial", "10", "300")
    assert stored(invoice).choosing.choices[0].locked_until == lock, "it is quoted no more"  # type: ignore[union-attr]
