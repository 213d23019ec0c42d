"""Forgiven shortfalls and late payments, through the API and the chain: by settings, by invoice, and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.catalogue.rates import ConstantRates, Rates
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.usecases.deposits import deposits, first_sight
from chalicelib.usecases.deposits.late_rates import at_its_worth
from chalicelib.wiring import services
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

SETTINGS = "/v1/invoices/configureSettings"
TERMS = ("tolerancePercent", "toleranceMaxUSD", "latePayments", "latePaymentsPercent")


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def put(shop: Shop, expect: int = 201, **settings: Any) -> Any:
    answer = shop.stack.call("PUT", SETTINGS, shop.key, json={"settings": settings})
    assert answer.status == expect, answer.body
    return answer.json


def pay(shop: Shop, invoice: dict[str, Any], amount: str, blocks: int = 12) -> Any:
    shop.pay(invoice["address"], amount)
    if blocks:
        shop.mine(blocks)
    shop.turn()
    return shop.shown(invoice)


def expire(shop: Shop, invoice: dict[str, Any]) -> None:
    shop.wait(61)
    shop.mine(1)
    shop.turn()
    assert shop.status(invoice) == "expired"


def told(shop: Shop, invoice: dict[str, Any]) -> list[str]:
    """Its events in their order."""
    events = shop.get("/v1/events", objectId=invoice["id"], order="asc", limit="100")["data"]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    return [event["event"].removeprefix("invoice.") for event in events]


def test_settings_are_exact_numbers_and_change_field_by_field(shop: Shop) -> None:
    assert not shop.get(SETTINGS)["settings"].keys() & set(TERMS), "who forgives nothing is shown what was shown before"
    first = put(shop, latePaymentsPercent=1)["settings"]
    assert [first[name] for name in TERMS] == [0, None, "manual", 1]
    put(shop, tolerancePercent="1.25", toleranceMaxUSD=0.5, latePayments="acceptWithinPercent", latePaymentsPercent=2.5)
    changed = put(shop, tolerancePercent=10)["settings"]
    wanted = {"tolerancePercent": 10, "toleranceMaxUSD": 0.5, "latePayments": "acceptWithinPercent", "latePaymentsPercent": 2.5}
    assert {name: changed[name] for name in TERMS} == wanted
    unbounded = put(shop, toleranceMaxUSD=None)["settings"]
    assert {name: unbounded[name] for name in TERMS} == wanted | {"toleranceMaxUSD": None}


@pytest.mark.parametrize(
    "wrong",
    [
        {"tolerancePercent": 10.01}, {"tolerancePercent": "10.0001"}, {"tolerancePercent": -1}, {"tolerancePercent": "1.00001"},
        {"tolerancePercent": "1e0"}, {"tolerancePercent": True}, {"toleranceMaxUSD": "-0.5"}, {"toleranceMaxUSD": 0.005},
        {"latePayments": "always"}, {"latePayments": 1}, {"latePaymentsPercent": 50.5}, {"latePaymentsPercent": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_none_of_it_is_named(shop: Shop, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    answers = [
        shop.stack.call("PUT", SETTINGS, shop.key, json={"settings": wrong}),
        shop.post("/v1/invoices", {"currency": "eth", "amount": "1", **wrong}),
    ]
    for answer in answers:
        assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER"), answer.body
        assert name in answer.json["details"]


def test_a_cent_is_forgiven_and_shown(shop: Shop) -> None:
    invoice = shop.invoice("1", tolerancePercent=1)
    assert invoice["tolerancePercent"] == 1 and "toleranceMaxUSD" not in invoice
    part = pay(shop, invoice, "0.989", blocks=0)
    assert (part["status"], part["missing"]) == ("partial", "0.011")
    seen = pay(shop, invoice, "0.001", blocks=0)
    assert (seen["status"], seen["missing"], seen["paymentUri"], "shortfall" in seen) == ("confirming", "0", None, False)
    shop.mine()
    shop.turn()
    done = shop.shown(invoice)
    assert (done["status"], done["missing"], done["shortfall"], done["received"]) == ("completed", "0", "0.01", "0.99")
    assert "overpaid" not in done and shop.available() == "0.99"
    page = shop.stack.call("GET", f"/pay/{invoice['id']}/status").json
    assert (page["status"], page["missing"]) == ("completed", "0") and "paymentUri" not in page
    more = pay(shop, invoice, "0.02")
    assert (more["status"], more["overpaid"], "shortfall" in more) == ("completed", "0.01", False)
    assert told(shop, invoice) == ["created", "partial", "confirming", "completed"]


@pytest.mark.parametrize(("usd", "status"), [("30", "confirming"), ("29.99", "partial"), (0, "partial"), (None, "confirming")])
def test_dollars_bound_it(shop: Shop, usd: Any, status: str) -> None:
    """One percent of an ether are 30 USD in the sandbox."""
    assert pay(shop, shop.invoice("1", tolerancePercent="1", toleranceMaxUSD=usd), "0.99", blocks=0)["status"] == status


def test_settings_count_for_new_invoices_unless_they_say_otherwise(shop: Shop) -> None:
    before = shop.invoice("1")
    put(shop, tolerancePercent=1, toleranceMaxUSD=30, latePayments="accept")
    lenient, strict = shop.invoice("1"), shop.invoice("1", tolerancePercent=0, latePayments="manual")
    assert (lenient["tolerancePercent"], lenient["toleranceMaxUSD"], lenient["latePayments"]) == (1, 30, "accept")
    assert not {"tolerancePercent", "latePayments"} & {*before, *strict}
    put(shop, tolerancePercent=0, latePayments="manual")
    statuses = [pay(shop, invoice, "0.99", blocks=0)["status"] for invoice in (before, lenient, strict)]
    assert statuses == ["partial", "confirming", "partial"]


def test_a_reorganisation_takes_back_what_was_forgiven(shop: Shop) -> None:
    invoice = shop.invoice("1", tolerancePercent=10, expiresIn=60)
    assert pay(shop, invoice, "0.9")["shortfall"] == "0.1"
    shop.reorg(14)
    shop.turn()
    back = shop.shown(invoice)
    assert (back["status"], back["missing"], "shortfall" in back, shop.available()) == ("pending", "1", False, "0")
    expire(shop, invoice)
    assert told(shop, invoice) == ["created", "confirming", "completed", "reverted", "expired"]


def test_late_payments_are_accepted(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=60, latePayments="accept", tolerancePercent=1)
    pay(shop, invoice, "0.5")
    expire(shop, invoice)
    assert shop.shown(invoice)["missing"] == "0.5"
    part = pay(shop, invoice, "0.4")
    assert (part["status"], part["missing"], part["paymentUri"]) == ("expired", "0.1", None)
    seen = pay(shop, invoice, "0.09", blocks=0)
    assert (seen["status"], seen["missing"]) == ("confirming", "0")
    shop.mine()
    shop.turn()
    done = shop.shown(invoice)
    assert (done["status"], done["received"], done["shortfall"]) == ("completed", "0.99", "0.01")
    assert "late" not in shop.stack.call("GET", f"/pay/{invoice['id']}/status").json, "it counts: nobody has to ask"
    assert told(shop, invoice) == ["created", "partial", "expired", "late_payment", "late_payment", "confirming", "completed"]
    totals = shop.get("/v1/invoices/summary")
    assert (totals["completedInvoices"], totals["pendingInvoices"], totals["totalReceived"]) == (1, 0, "2970.00")
    assert pay(shop, invoice, "0.11")["overpaid"] == "0.1", "what comes on top can be given back"


def test_accepted_and_taken_back(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=60, latePayments="accept")
    expire(shop, invoice)
    assert pay(shop, invoice, "1")["status"] == "completed"
    shop.reorg(14)
    shop.turn()
    assert (shop.shown(invoice)["status"], shop.available()) == ("expired", "0")
    assert pay(shop, invoice, "1")["status"] == "completed"
    first = ["created", "expired", "late_payment", "confirming", "completed", "reverted"]
    assert told(shop, invoice) == [*first, "late_payment", "confirming", "completed"]


def test_a_late_block_before_the_clock_is_accepted_at_once(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=60, latePayments="accept")
    shop.wait(61)
    assert pay(shop, invoice, "1")["status"] == "completed"
    assert told(shop, invoice) == ["created", "late_payment", "confirming", "completed"]


def test_never_for_cancelled_ones(shop: Shop) -> None:
    invoice = shop.invoice("1", latePayments="accept", tolerancePercent=10)
    assert shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key).status == 200
    shown = pay(shop, invoice, "1")
    assert (shown["status"], shown["received"], shown["missing"], "overpaid" in shown) == ("cancelled", "1", "1", False)
    assert told(shop, invoice) == ["created", "cancelled", "late_payment"]
    payer = shop.stack.call("GET", f"/pay/{invoice['id']}")
    assert b"1 ETH came after the shop had cancelled" in payer.body


@pytest.mark.parametrize(("amount", "status"), [("0.475", "completed"), ("0.474", "expired")])
def test_within_percent_of_the_rest(shop: Shop, amount: str, status: str) -> None:
    invoice = shop.invoice("1", expiresIn=60, latePayments="acceptWithinPercent", latePaymentsPercent=5)
    pay(shop, invoice, "0.5")
    expire(shop, invoice)
    assert pay(shop, invoice, amount)["status"] == status


def worth_now(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """From now on an ether is worth so many US dollars to late payments; None: nobody knows."""

    def rated(deposit: Deposit, invoice: Invoice | None, rates: Any, now: int) -> Deposit:
        known = Rates() if value is None else ConstantRates({("eth", "USD"): value}, lambda: now)
        return at_its_worth(deposit, invoice, lambda realm: known, now)

    for module in (deposits, first_sight):
        monkeypatch.setattr(module, "at_its_worth", rated)


def in_dollars(shop: Shop, **more: Any) -> dict[str, Any]:
    """3,000 USD, which are one ether when it is made; expired since."""
    terms = {"latePayments": "acceptWithinPercent", "latePaymentsPercent": 5, **more}
    body = {"currency": "eth", "network": "ethereum", "fiatAmount": "3000", "fiatCurrency": "USD", "expiresIn": 60, **terms}
    made = shop.post("/v1/invoices", body)
    assert (made.status, made.json["amount"]) == (201, "1"), made.body
    expire(shop, made.json)
    return dict(made.json)


@pytest.mark.parametrize(
    ("value", "amount", "status", "shortfall"),
    [
        ("3000", "1", "completed", None),
        ("3000", "0.95", "completed", "0.05"),
        ("2850", "1", "completed", "0.05"),
        ("2849.99", "1", "expired", None),
        ("2000", "1.5", "completed", None),
        ("6000", "0.475", "completed", "0.05"),
        (None, "1", "expired", None),
    ],
)
def test_the_worth_of_its_time_decides(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, value: str | None, amount: str, status: str, shortfall: str | None
) -> None:
    invoice = in_dollars(shop)
    worth_now(monkeypatch, value)
    shown = pay(shop, invoice, amount)
    assert (shown["status"], shown.get("shortfall"), shown["received"], shop.available()) == (status, shortfall, amount, amount)
    assert told(shop, invoice)[:3] == ["created", "expired", "late_payment"]


def test_the_rate_of_first_sight_stays(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a reorganisation too: what comes back counts as it did, whatever the coin is worth by then."""
    invoice = in_dollars(shop)
    worth_now(monkeypatch, "3000")
    assert pay(shop, invoice, "1", blocks=3)["status"] == "confirming"
    monkeypatch.undo()
    worth_now(monkeypatch, "1")
    shop.reorg(4, remine=True)
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.shown(invoice)["status"] == "completed"
    shop.reorg(20)
    shop.turn()
    assert shop.shown(invoice)["status"] == "expired"
    assert pay(shop, invoice, "1")["status"] == "expired", "another payment has another time"


def test_what_nobody_asked_for_costs_nothing(shop: Shop) -> None:
    """Neither a byte of a plain invoice or of its payment, nor a rate that is looked up."""
    invoice = shop.invoice("1", expiresIn=60)
    expire(shop, invoice)
    pay(shop, invoice, "1")
    (stored,) = (i for i in services().store.every(Invoice) if i.id == invoice["id"])
    (deposit,) = (d for d in services().store.every(Deposit) if d.invoice_id == invoice["id"])
    models = services().store.models
    assert not models.item(stored).to_dynamodb_dict().keys() & {"terms", "late_worth", "metadata", "cancel_url"}
    assert "rate" not in models.item(deposit).to_dynamodb_dict()
