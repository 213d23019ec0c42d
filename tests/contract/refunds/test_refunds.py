"""Refunds of invoices over the API: how much, to whom, through which rules, and what becomes of the money."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.refunds.refunds import Refund
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.refunds.refunds import Refunds
from chalicelib.wiring import services
from tests.faults.left_to_newer import Left, only
from tests.support.refunds import ask_refund, claim, claimed, paid_invoice, payout_link, priced_invoice, refund
from tests.support.shop import CONFIRMATIONS, PAYEE, Shop, as_operator, decide, open_shop
from tests.support.stack import Response, Stack

FOREIGN = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's example of an address in capitals alone


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def refused(answer: Response, code: str = "VALIDATION_ERROR") -> str:
    assert (answer.status, answer.json["code"]) == (400, code), answer.body
    return str(answer.json["error"])


def now(shop: Shop, found: dict[str, Any]) -> Any:
    return shop.get(f"/v1/refunds/{found['id']}")


def test_a_refund_with_an_address_is_paid(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    found = refund(shop, invoice, amount="0.4", address=PAYEE.lower(), reason="out of stock")
    assert found == {
        "id": found["id"],
        "invoiceId": invoice["id"],
        "mode": "same",
        "status": "pending",
        "amount": "0.4",
        "coin": "eth",
        "network": "ethereum",
        "address": PAYEE,
        "reason": "out of stock",
        "claimUrl": None,
        "expiresAt": None,
        "withdrawalId": found["withdrawalId"],
        "createdAt": found["createdAt"],
    }
    assert found["id"].startswith("ref_")
    assert shop.balance() == {"available": "0.6", "frozen": "0.4", "pending": "0"}
    withdrawal = shop.withdrawal(found["withdrawalId"])
    assert (withdrawal["amount"], withdrawal["to_address"], withdrawal["metadata"]) == ("0.4", PAYEE, {"refundId": found["id"]})
    shop.turn()
    assert now(shop, found)["status"] == "processing"
    shop.mine()
    shop.turn()
    assert now(shop, found) == {**found, "status": "completed"}
    assert shop.paid() == 4 * 10**17
    assert shop.balance() == {"available": "0.6", "frozen": "0", "pending": "0"}
    assert shop.told(found["id"]) == {"refund.created": 1, "refund.completed": 1}
    assert shop.get(f"/v1/invoices/{invoice['id']}/refunds") == [now(shop, found)]
    assert shop.status(invoice) == "completed"


def test_what_is_credited_is_all_that_there_is(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    refund(shop, invoice, amount="0.4", address=PAYEE)
    assert "0.6 ETH is not refunded yet" in refused(ask_refund(shop, invoice, amount="0.61", address=PAYEE))
    rest = refund(shop, invoice, address=PAYEE)
    assert rest["amount"] == "0.6"
    assert "nothing is left" in refused(ask_refund(shop, invoice, address=PAYEE))
    assert "0 ETH is not refunded yet" in refused(ask_refund(shop, invoice, amount="0.000000000000000001"))
    # What was given back can be refunded again.
    shop.stack.call("DELETE", f"/v1/refunds/{rest['id']}", shop.key)
    assert refund(shop, invoice)["amount"] == "0.6"


def test_nothing_is_refunded_before_it_is_credited(shop: Shop) -> None:
    invoice = shop.invoice("1")
    assert "nothing is credited" in refused(ask_refund(shop, invoice))
    shop.pay(invoice["address"], "0.5")
    shop.mine(1)
    shop.turn()
    assert "nothing is credited" in refused(ask_refund(shop, invoice))
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "partial"
    assert refund(shop, invoice)["amount"] == "0.5", "open invoices with credited money can be refunded too"


def test_an_overpaid_invoice_gives_back_what_is_too_much(shop: Shop) -> None:
    invoice = paid_invoice(shop, "1", "1.25")
    assert shop.shown(invoice)["overpaid"] == "0.25"
    assert refund(shop, invoice, address=PAYEE)["amount"] == "0.25"
    assert "overpaid is refunded already" in refused(ask_refund(shop, invoice, address=PAYEE))
    assert refund(shop, invoice, amount="1", address=PAYEE)["amount"] == "1"


def test_a_refund_in_fiat_at_the_rate_of_now(shop: Shop) -> None:
    invoice = priced_invoice(shop, "100")
    found = refund(shop, invoice, mode="fiat", amount="40.5", address=PAYEE)
    assert (found["fiatAmount"], found["fiatCurrency"], found["coin"]) == ("40.5", "USD", "eth")
    rate = services().rates("test").get("eth")
    assert rate is not None
    assert 0 <= 40.5 - float(found["amount"]) * float(rate.value) < 0.01
    # The price was rounded up to what can be typed: what was paid is worth the least bit more.
    assert "59.5" in refused(ask_refund(shop, invoice, mode="fiat", amount="59.6"))
    rest = refund(shop, invoice, mode="fiat")
    assert rest["fiatAmount"] == "59.5"
    assert "nothing is left" in refused(ask_refund(shop, invoice, mode="fiat"))


def test_a_price_in_coins_has_no_fiat(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    assert "no price in a fiat currency" in refused(ask_refund(shop, invoice, mode="fiat", amount="1"))
    assert "eth on ethereum" in refused(ask_refund(shop, invoice, coin="usdt"))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "mode"),
        ({"mode": "later"}, "mode"),
        ({"mode": "same", "amount": "0"}, "amount"),
        ({"mode": "same", "amount": "-1"}, "amount"),
        ({"mode": "same", "amount": "0.0000000000000000001"}, "amount"),
        ({"mode": "same", "coin": "doge"}, "coin"),
        ({"mode": "same", "address": PAYEE, "expiresIn": 60}, "expiresIn"),
        ({"mode": "fiat", "network": "tron"}, "coin"),
        ({"mode": "same", "colour": "red"}, "colour"),
    ],
)
def test_bad_input_names_its_field(shop: Shop, body: dict[str, Any], field: str) -> None:
    invoice = paid_invoice(shop)
    answer = shop.post(f"/v1/invoices/{invoice['id']}/refunds", body)
    assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER"), answer.body
    assert f"{field}: " in answer.json["details"]


def test_wrong_addresses_are_no_refund(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    refused(ask_refund(shop, invoice, address="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"), "INVALID_ADDRESS")
    hot = shop.hot().address
    assert "wallet of the service" in refused(ask_refund(shop, invoice, address=hot))
    assert shop.balance()["frozen"] == "0"


def test_another_merchants_invoice_is_none(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    found = refund(shop, invoice)
    other = shop.stack.keys["other_merchant_test"]
    for method, path in (
        ("POST", f"/v1/invoices/{invoice['id']}/refunds"),
        ("GET", f"/v1/invoices/{invoice['id']}/refunds"),
        ("GET", f"/v1/refunds/{found['id']}"),
        ("DELETE", f"/v1/refunds/{found['id']}"),
    ):
        answer = shop.stack.call(method, path, other, json={"mode": "same"} if method == "POST" else None)
        assert answer.status == 404, (method, path, answer.body)
    assert shop.get(f"/v1/refunds/{found['id']}")["status"] == "awaiting_claim"


def test_a_cancelled_refund_gives_its_money_back_once(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    found = refund(shop, invoice, amount="0.4", address=PAYEE)
    for _ in range(2):
        answer = shop.stack.call("DELETE", f"/v1/refunds/{found['id']}", shop.key)
        assert (answer.status, answer.json["status"]) == (200, "cancelled"), answer.body
    assert shop.balance() == {"available": "1", "frozen": "0", "pending": "0"}
    assert shop.withdrawal(found["withdrawalId"])["status"] == "cancelled"
    shop.turn()
    assert shop.told(found["id"]) == {"refund.created": 1, "refund.cancelled": 1}
    assert shop.paid() == 0


def test_a_refund_that_is_being_paid_is_not_cancelled(shop: Shop) -> None:
    found = refund(shop, paid_invoice(shop), address=PAYEE)
    shop.turn()
    answer = shop.stack.call("DELETE", f"/v1/refunds/{found['id']}", shop.key)
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR"), answer.body


def test_a_payout_that_fails_gives_the_money_back(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    found = refund(shop, invoice, amount="0.4", address=PAYEE)
    decide(shop, found["withdrawalId"], "fail")
    shop.turn()
    shop.mine()
    shop.turn()
    assert now(shop, found)["status"] == "failed"
    assert now(shop, found)["failureReason"]
    assert shop.balance() == {"available": "1", "frozen": "0", "pending": "0"}
    assert shop.told(found["id"]) == {"refund.created": 1, "refund.failed": 1}
    # A reorganisation could still bring the failed transaction back to be sent again: until then it takes its part.
    assert "0.6 ETH is not refunded yet" in refused(ask_refund(shop, invoice, amount="1"))
    shop.mine(140)
    shop.turn()
    assert refund(shop, invoice, amount="1")["amount"] == "1"


def test_a_reorganisation_undoes_the_end_of_a_refund(shop: Shop) -> None:
    found = refund(shop, paid_invoice(shop), amount="0.4", address=PAYEE)
    shop.turn()
    shop.mine()
    shop.turn()
    assert now(shop, found)["status"] == "completed"
    shop.reorg(CONFIRMATIONS + 1)
    shop.turn()
    assert now(shop, found)["status"] == "processing"
    shop.mine()
    shop.turn()
    assert now(shop, found)["status"] == "completed"
    assert shop.told(found["id"]) == {"refund.created": 1, "refund.completed": 2}


def test_a_payment_that_falls_out_takes_its_part_away(shop: Shop) -> None:
    invoice = paid_invoice(shop, "1")
    shop.credit("2")
    first = refund(shop, invoice, amount="0.4")
    shop.reorg(3 * CONFIRMATIONS)
    shop.turn()
    assert shop.status(invoice) in ("pending", "expired")
    assert "nothing is credited" in refused(ask_refund(shop, invoice, amount="0.1"))
    answer = claim(shop, first, address=PAYEE)
    assert answer.status == 400
    assert "not confirmed any more" in answer.json["error"]["message"]
    assert now(shop, first)["status"] == "awaiting_claim"


def test_a_refund_that_is_not_ordered_before_its_payment_falls_out_fails(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = paid_invoice(shop)
    with monkeypatch.context() as patch:
        patch.setattr(Refunds, "_order", lambda self, made: None)  # the function died behind its commit
        found = refund(shop, invoice, amount="0.4", address=PAYEE)
    shop.reorg(CONFIRMATIONS + 3)
    shop.wait(16)
    shop.turn()
    assert (now(shop, found)["status"], shop.balance()["frozen"]) == ("failed", "0")
    assert shop.told(found["id"]) == {"refund.created": 1, "refund.failed": 1}


def test_an_approval_holds_a_refund_as_any_withdrawal(shop: Shop) -> None:
    as_operator(shop, "POST", "/v1/addresses/grey-list", network="ethereum", address=PAYEE, reason="a test")
    found = refund(shop, paid_invoice(shop), address=PAYEE)
    shop.turn()
    assert now(shop, found)["status"] == "pending"
    assert shop.withdrawal(found["withdrawalId"])["pending_reason"] == "approval"
    as_operator(shop, "PUT", "/v1/withdrawals/request/reject", id=found["withdrawalId"], reason="no")
    assert (now(shop, found)["status"], now(shop, found)["failureReason"]) == ("failed", "rejected: no")
    assert shop.balance()["available"] == "1"


def test_the_whitelist_leaves_refunds_a_daily_limit(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    put = shop.stack.call("PUT", "/v1/merchant/settings", shop.key, json={"whitelist_enforced": True})
    assert put.json["data"]["refundDailyLimitUSD"] == "0"
    assert "refundDailyLimitUSD" in refused(ask_refund(shop, invoice, address=PAYEE))
    assert "refundDailyLimitUSD" in refused(ask_refund(shop, invoice))
    rate = services().rates("test").get("eth")
    assert rate is not None
    limit = str(int(float(rate.value) / 2))
    put = shop.stack.call("PUT", "/v1/merchant/settings", shop.key, json={"refundDailyLimitUSD": limit})
    assert put.json["data"]["refundDailyLimitUSD"] == limit
    refused(ask_refund(shop, invoice, amount="0.6"), "DAILY_LIMIT_EXCEEDED")
    first = refund(shop, invoice, amount="0.3", address=FOREIGN)
    refused(ask_refund(shop, invoice, amount="0.3"), "DAILY_LIMIT_EXCEEDED")
    link = refund(shop, invoice, amount="0.1")
    shop.stack.call("DELETE", f"/v1/refunds/{link['id']}", shop.key)
    again = refund(shop, invoice, amount="0.19")
    assert again["status"] == "awaiting_claim", "what was cancelled counts no more"
    assert shop.withdrawal(first["withdrawalId"])["status"] == "pending"
    assert shop.ask("0.01").json["error"]["code"] == "VALIDATION_ERROR", "a withdrawal still needs the whitelist"


def test_the_same_key_makes_one_refund(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    path, body = f"/v1/invoices/{invoice['id']}/refunds", {"mode": "same", "amount": "0.4"}
    first, again = (shop.post(path, body, **{"Idempotency-Key": "once"}) for _ in range(2))
    assert (first.status, again.status) == (201, 201)
    assert first.json == again.json
    assert first.json["claimUrl"], "the stored answer has it, sealed"
    assert shop.balance()["frozen"] == "0.4"
    stored = [str(item) for item in services().store.every(StoredAnswer)]
    token = first.json["claimUrl"].rpartition("/")[2]
    assert stored
    assert not any(token in item for item in stored)


def test_refunds_of_all_invoices_are_listed(shop: Shop) -> None:
    first, second = paid_invoice(shop), paid_invoice(shop)
    made = [refund(shop, first, amount="0.1"), refund(shop, second, amount="0.2", address=PAYEE), refund(shop, first, amount="0.3")]
    found = shop.get("/v1/refunds")
    assert [each["id"] for each in found["data"]] == [each["id"] for each in reversed(made)]
    assert [each["status"] for each in found["data"]] == ["awaiting_claim", "pending", "awaiting_claim"]
    assert {each["claimUrl"] for each in found["data"]} == {None}
    assert found["data"][1] == now(shop, made[1])
    of_first = shop.get("/v1/refunds", invoiceId=first["id"])
    assert [each["id"] for each in of_first["data"]] == [made[2]["id"], made[0]["id"]]
    page = shop.get("/v1/refunds", limit="2")
    rest = shop.get("/v1/refunds", limit="2", cursor=page["meta"]["pagination"]["next_cursor"])
    assert [each["id"] for each in rest["data"]] == [made[0]["id"]]
    other = shop.stack.call("GET", "/v1/refunds", shop.stack.keys["other_merchant_test"])
    assert other.json["data"] == []


def test_a_withdrawal_in_a_newer_form_keeps_no_other_refund_from_its_lists(shop: Shop) -> None:
    """It is there as processing. By its id it waits for the newer version, and so does a new refund of its invoice: what is left
    of it is not known here."""
    invoice = paid_invoice(shop)
    made = [refund(shop, invoice, amount=amount, address=PAYEE) for amount in ("0.1", "0.2")]
    paths = ("/v1/refunds", f"/v1/invoices/{invoice['id']}/refunds", f"/v1/pay/{invoice['id']}/status")
    left = newer_form(shop, made[0])
    known = {"0.1": "processing", "0.2": "pending"}
    assert [refunds_at(shop, path) for path in paths] == [known] * 3
    alone = shop.stack.call("GET", f"/v1/refunds/{made[0]['id']}", shop.key)
    assert (alone.status, "newer version" in alone.json["error"]["message"]) == (500, True)
    waits = ask_refund(shop, invoice, amount="0.1")
    assert (waits.status, "newer version" in waits.json["error"]) == (500, True)
    left.unform()
    assert [refunds_at(shop, path) for path in paths] == [{"0.1": "pending", "0.2": "pending"}] * 3
    assert refund(shop, invoice)["amount"] == "0.7"


def test_a_payout_link_paid_by_a_newer_form_keeps_no_other_from_the_list(shop: Shop) -> None:
    paid_invoice(shop)
    links = [payout_link(shop, "0.1"), payout_link(shop, "0.2")]
    assert claimed(shop, links[0], PAYEE).status == 200
    left = newer_form(shop, shop.get(f"/v1/payout-links/{links[0]['id']}"))
    shown = {each["id"]: each["status"] for each in shop.get("/v1/payout-links")["data"]}
    assert shown == {links[0]["id"]: "processing", links[1]["id"]: "awaiting_claim"}, "a second one would pay once more"
    left.unform()
    assert shop.get("/v1/payout-links")["data"][1]["status"] == "pending"


def test_a_withdrawal_in_a_newer_state_is_on_its_way(shop: Shop) -> None:
    """Its refund is neither paid nor given back, and can not be cancelled."""
    invoice = paid_invoice(shop)
    made = refund(shop, invoice, amount="0.4", address=PAYEE)
    Left(only(Withdrawal, lambda one: one.id == made["withdrawalId"]), "status")
    assert now(shop, made)["status"] == "processing"
    assert shop.stack.call("DELETE", f"/v1/refunds/{made['id']}", shop.key).status == 400
    assert refund(shop, invoice)["amount"] == "0.6"


def test_a_refund_in_a_newer_form_keeps_no_other_from_its_lists(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    made = [refund(shop, invoice, amount=amount) for amount in ("0.1", "0.2")]
    left = Left(only(Refund, lambda one: one.id == made[0]["id"]), "status")
    left.put("awaiting_claim")
    left.form(1)
    for path in ("/v1/refunds", f"/v1/invoices/{invoice['id']}/refunds", f"/v1/pay/{invoice['id']}/status"):
        assert refunds_at(shop, path) == {"0.2": "awaiting_claim"}
    left.unform()  # for the audit behind each test


def newer_form(shop: Shop, made: dict[str, Any]) -> Left:
    """The withdrawal that pays it, as a release saves it that demands more of its readers."""
    left = Left(only(Withdrawal, lambda one: one.id == made["withdrawalId"]), "status")
    left.put("pending")
    left.form(1)
    return left


def refunds_at(shop: Shop, path: str) -> dict[str, str]:
    """The status of each refund that is listed there, by its amount."""
    found = shop.get(path)
    listed = found["refunds"] if "/pay/" in path else found["data"] if isinstance(found, dict) else found
    return {each["amount"]: each["status"] for each in listed}
