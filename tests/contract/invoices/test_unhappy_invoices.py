"""Invoices that are paid too late, too little, too much, twice, or by a payment that the chain takes back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from chalicelib.domain.chain import Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.money import parse_units
from chalicelib.wiring import services
from tests.support.shop import ETHER, PAYEE, Shop, bent_node, open_shop, with_also
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def test_an_unpaid_invoice_expires_once(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.turn()
    assert shop.status(invoice) == "pending"
    for _ in range(3):
        shop.wait(61)
        shop.mine(1)
        shop.turn("housekeeping")
    assert shop.status(invoice) == "expired"
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.expired": 1}


def test_a_part_is_credited_and_the_invoice_expires(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.pay(invoice["address"], "0.4")
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "partial"
    shop.wait(61)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("expired", "0.4", "0.4")
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.partial": 1, "invoice.expired": 1}


def test_the_rest_after_a_part_and_the_expiry_is_late(shop: Shop) -> None:
    """Enough money altogether, but not in time: credited, told, and the invoice stays expired."""
    invoice = shop.invoice(expiresIn=60)
    shop.pay(invoice["address"], "0.4")
    shop.turn()
    shop.wait(61)
    shop.turn()
    shop.pay(invoice["address"], "0.6")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("expired", "1", "1")
    assert shop.told(invoice["id"])["invoice.late_payment"] == 1
    assert shop.told(invoice["id"])["invoice.expired"] == 1


def test_a_payment_in_time_counts_however_late_it_is_scanned(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.pay(invoice["address"], "1")
    shop.wait(3600)
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("completed", "1", "1")
    told = shop.told(invoice["id"])
    assert told["invoice.completed"] == 1
    assert not {"invoice.expired", "invoice.late_payment"} & set(told)


@pytest.mark.parametrize("expired_before", [True, False], ids=["expired-before", "expires-by-it"])
def test_a_payment_after_the_time_is_credited_and_late(shop: Shop, expired_before: bool) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.wait(61)
    if expired_before:
        shop.turn()
        assert shop.status(invoice) == "expired"
    shop.pay(invoice["address"], "1")
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("expired", "0")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("expired", "1", "1")
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.expired": 1, "invoice.late_payment": 1}


def test_a_late_payment_that_falls_out_is_taken_back(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.wait(61)
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert shop.available() == "1"
    shop.reorg(14)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("expired", "0", "0")


def test_too_much_completes_and_shows(shop: Shop) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1.5")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shown["overpaid"], shop.available()) == ("completed", "1.5", "0.5", "1.5")
    shop.pay(invoice["address"], "0.25")
    shop.mine()
    shop.turn()
    assert (shop.shown(invoice)["overpaid"], shop.available()) == ("0.75", "1.75")
    assert shop.told(invoice["id"])["invoice.completed"] == 1


def test_another_coin_is_credited_and_does_not_count(shop: Shop) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "5000", "usdt")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"]) == ("pending", "0")
    assert (shop.available("usdt"), shop.available()) == ("5000", "0")


def test_confirming_at_its_expiry_and_then_taken_back(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.pay(invoice["address"], "1")
    shop.turn()
    shop.wait(61)
    shop.turn()
    assert shop.status(invoice) == "confirming"
    assert shop.told(invoice["id"])["invoice.expired"] == 0
    shop.reorg(1)
    shop.turn()
    assert shop.status(invoice) == "expired"
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "0"}
    assert shop.told(invoice["id"])["invoice.reverted"] == 1


def test_a_status_by_hand_stays_and_money_is_credited_all_the_same(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    answer = shop.stack.call("PUT", "/v1/invoices", shop.key, json={"invoiceId": invoice["id"], "status": "settled-in-cash"})
    assert answer.status == 201, answer.body
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.wait(120)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("settled-in-cash", "1", "1")
    shop.reorg(14)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("settled-in-cash", "0", "0")
    assert shop.told(invoice["id"]) == {"invoice.created": 1}


def test_an_external_id_belongs_to_one_invoice(shop: Shop) -> None:
    """Ten at once: one is made, and the others say why not."""
    body = {"currency": "eth", "amount": "1", "network": shop.network, "externalId": "order-7"}
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: shop.post("/v1/invoices", body), range(10)))
    made = [a for a in answers if a.status == 201]
    assert len(made) == 1
    for refused in (a for a in answers if a.status != 201):
        assert (refused.status, refused.json["code"]) == (400, "VALIDATION_ERROR")
        assert "externalId" in refused.body.decode(), refused.body
    assert shop.get("/v1/invoices/getByExternalId", externalId="order-7")["id"] == made[0].json["id"]
    assert len(shop.get("/v1/invoices/getAll")["data"]) == 1
    other = Shop(shop.stack, "other_merchant_test").post("/v1/invoices", body)
    assert other.status == 201


@pytest.mark.parametrize("same_transaction", [True, False], ids=["of-one-transaction", "of-two-transactions"])
def test_two_payments_in_one_block(shop: Shop, monkeypatch: pytest.MonkeyPatch, same_transaction: bool) -> None:
    """The simulated chain has one payment a block, so the node's answer is given another one: two logs, or two transactions."""
    invoice = shop.invoice("3", "usdt")
    paid = shop.pay(invoice["address"], "1", "usdt")
    form = services().rules.storage_form
    contract = form(shop.network, shop.coin("usdt").contract or "")
    recipient = form(shop.network, invoice["address"])
    txid = paid["txid"] if same_transaction else "0x" + "ab" * 32
    extra = Transfer(txid, "log:7", contract, form(shop.network, PAYEE), recipient, parse_units("2", 6))
    with_also(bent_node(shop, monkeypatch), [extra], paid["blockHash"])
    shop.turn()
    assert shop.status(invoice) == "confirming"
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available("usdt")) == ("completed", "3", "3")
    found = [d for d in services().store.every(Deposit) if d.invoice_id == invoice["id"]]
    assert sorted(d.amount for d in found) == [1_000_000, 2_000_000]
    shop.reorg(14)
    shop.turn()
    assert (shop.status(invoice), shop.available("usdt")) == ("pending", "0")


@pytest.mark.parametrize("remine", [True, False], ids=["in-another-block", "in-none"])
def test_a_reorganisation_before_the_credit(shop: Shop, remine: bool) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    shop.mine(3)
    shop.turn()
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "1"}
    shop.reorg(4, remine)
    shop.turn()
    assert shop.status(invoice) == ("confirming" if remine else "pending")
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "1" if remine else "0"}
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == (("completed", "1") if remine else ("pending", "0"))
    assert len(shop.journal("deposit_reversed")) == 0


def test_a_credited_payment_in_another_block_is_credited_again_once(shop: Shop) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed"
    shop.reorg(13, remine=True)
    shop.turn()
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("completed", "1")
    assert shop.told(invoice["id"])["invoice.reverted"] == 1


def test_money_that_was_taken_back_and_is_spent_is_owed(shop: Shop) -> None:
    """The payment falls out after the merchant has withdrawn it: the balance is below nothing, for all to see."""
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    withdrawal = shop.withdraw("0.75")
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    shop.reorg(27)
    shop.turn()
    assert shop.status(invoice) == "pending"
    assert shop.available() == "-0.75"
    refused = shop.ask("0.01")
    assert (refused.status, refused.json["error"]["code"]) == (400, "INSUFFICIENT_BALANCE")
    shop.mine()
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    assert shop.paid() == 3 * ETHER // 4
    assert shop.available() == "-0.75"
    shop.credit("1")
    assert shop.available() == "0.25"
