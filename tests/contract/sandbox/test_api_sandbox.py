"""The sandbox's endpoints, on the whole service: what a developer rehearses with curl alone."""

from __future__ import annotations

from typing import Any

from tests.support.shop import Shop
from tests.support.signing import ALICE, enabled
from tests.support.stack import Stack

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example


def post(stack: Any, path: str, body: Any, key: str = "client_test", **headers: str):
    return stack.call("POST", path, stack.keys[key], json=body, headers=headers)


def pay(stack: Any, invoice: dict[str, Any], amount: str, **headers: str):
    body = {"address": invoice["address"], "network": invoice["network"], "coin": invoice["currency"], "amount": amount}
    return post(stack, "/v1/sandbox/deposits", body, **headers)


def status(stack: Any, invoice: dict[str, Any]) -> dict[str, Any]:
    return stack.call("GET", f"/v1/invoices?id={invoice['id']}", stack.keys["client_test"]).json


def test_an_invoice_is_paid_withdrawn_and_told_of(stack):
    invoice = post(stack, "/v1/invoices", {"currency": "usdt", "amount": "10", "network": "ethereum"}).json
    paid = pay(stack, invoice, "10")
    assert paid.status == 201
    assert paid.json["data"]["address"] == invoice["address"]
    stack.drain()
    assert status(stack, invoice)["status"] == "confirming"
    mined = post(stack, "/v1/sandbox/blocks", {"network": "ethereum", "count": 12})
    assert (mined.status, mined.json["data"]["mined"]) == (201, 12)
    stack.drain()
    done = status(stack, invoice)
    assert (done["status"], done["received"]) == ("completed", "10")
    listed = stack.call("GET", "/transactions", stack.keys["client_test"]).json["data"]
    assert [(t["hash"], t["status"], t["amount"], t["invoiceId"]) for t in listed] == [
        (paid.json["data"]["txid"], "confirmed", "10", invoice["id"])
    ]
    asked = post(stack, "/withdraws", {"network": "ethereum", "coin": "usdt", "amount": "4", "address": PAYEE})
    assert asked.status == 201
    outcome = post(stack, f"/sandbox/withdrawals/{asked.json['id']}", {"outcome": "confirm"})
    assert outcome.status == 200
    stack.drain()
    found = stack.call("GET", f"/withdrawals/{asked.json['id']}", stack.keys["client_test"]).json["data"]
    assert found["status"] == "confirmed"
    balance = stack.call("GET", "/balances", stack.keys["client_test"]).json["data"]
    assert [(b["coin"], b["balance"], b["available"], b["frozen"]) for b in balance] == [("usdt", "6", "6", "0")]
    told = [event["event"] for event in stack.call("GET", "/events?limit=100", stack.keys["client_test"]).json["data"]]
    assert {"invoice.created", "invoice.completed", "transaction.confirmed", "withdrawal.completed"} <= set(told)


def test_a_deposit_with_an_idempotency_key_pays_once(stack):
    invoice = post(stack, "/v1/invoices", {"currency": "eth", "amount": "1", "network": "ethereum"}).json
    first = pay(stack, invoice, "1", **{"Idempotency-Key": "p-1"})
    second = pay(stack, invoice, "1", **{"Idempotency-Key": "p-1"})
    assert (second.status, second.body) == (201, first.body)
    assert second.headers["idempotency-replayed"] == "true"
    post(stack, "/sandbox/blocks", {"network": "ethereum", "count": 12})
    stack.drain()
    assert status(stack, invoice)["received"] == "1"


def test_a_reorganisation_takes_a_payment_back(stack):
    invoice = post(stack, "/v1/invoices", {"currency": "eth", "amount": "1", "network": "ethereum"}).json
    pay(stack, invoice, "1")
    stack.drain()
    assert status(stack, invoice)["status"] == "confirming"
    undone = post(stack, "/sandbox/reorg", {"network": "ethereum", "depth": 1})
    assert (undone.status, len(undone.json["data"]["dropped"])) == (201, 1)
    stack.drain()
    assert status(stack, invoice)["status"] == "pending"


def test_what_can_not_be_done_to_a_simulated_chain(stack):
    invoice = post(stack, "/v1/invoices", {"currency": "eth", "amount": "1", "network": "ethereum"}).json
    wrong = post(stack, "/sandbox/deposits", {"address": "x", "network": "bitcoin", "coin": "eth", "amount": "-1", "from": 5})
    assert wrong.status == 400
    assert {problem["field"] for problem in wrong.json["error"]["details"]} == {"coin", "amount", "from"}
    nowhere = post(stack, "/sandbox/deposits", {"address": "x", "network": "bitcoin", "coin": "btc", "amount": "1"})
    assert (nowhere.status, nowhere.json["error"]["code"]) == (400, "INVALID_ADDRESS")
    assert post(stack, "/sandbox/blocks", {"network": "ethereum", "count": 0}).status == 400
    assert post(stack, "/sandbox/blocks", {"network": "ethereum", "count": 1_001}).status == 400
    assert post(stack, "/sandbox/reorg", {"network": "ethereum", "depth": 10**9}).status == 400
    assert post(stack, "/sandbox/withdrawals/wd_nobodys", {"outcome": "fail"}).status == 404
    assert pay(stack, invoice, "1e3").status == 400
    for path in ("/sandbox/deposits", "/sandbox/blocks", "/sandbox/reorg", "/sandbox/withdrawals/x"):
        assert post(stack, path, {}, key="client_live").status == 403


def test_a_planned_outcome_is_no_other_merchants(stack: Stack) -> None:
    """Two merchants pay the same to the same address; one of them has planned that its own fails, and its signers wait."""
    mine, theirs = Shop(stack, "other_merchant_test"), Shop(stack)
    mine.turn()
    for shop in (mine, theirs):
        shop.credit("2")
    enabled(lambda body: stack.call("PUT", "/v1/merchant/settings", mine.key, json=body), "1", 1)
    waiting = mine.withdraw("1")
    planned = stack.call("POST", f"/v1/sandbox/withdrawals/{waiting}", mine.key, json={"outcome": "fail"})
    assert planned.json["data"]["state"] == "planned"
    paid = theirs.withdraw("1")
    theirs.turn()
    theirs.mine()
    theirs.turn()
    assert theirs.withdrawal(paid)["status"] == "confirmed"
    text = mine.withdrawal(waiting)["approval"]["signing_text"]
    accepted = {"id": waiting, "signer_id": "alice", "signature": ALICE.sign(text)}
    assert stack.call("PUT", "/v1/withdrawals/request/accept", mine.key, json=accepted).status == 200
    mine.turn()
    mine.mine()
    mine.turn()
    assert mine.withdrawal(waiting)["status"] == "failed"
