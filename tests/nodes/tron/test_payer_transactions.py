"""A payer's wallet signs what we build, and we send what pays exactly the invoice: on the strict Tron node."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.chains.tron.sending import Sending
from chalicelib.domain.invoices.sendings import MOST_SENT, PayerSendings
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from tests.nodes.tron_shops import Shop
from tests.support.tron import USDT, Customer

pytestmark = pytest.mark.nodes

SUN = 1_000_000


def silent(*_: Any) -> None:
    raise Unavailable("nothing")


class Till:
    """One invoice and the customer who pays it."""

    def __init__(self, shop: Shop, coin: str, amount: str, *, trx: int = 100, usdt: int = 0, invoice: Any = None) -> None:
        self.shop, self.coin, self.customer = shop, coin, Customer(shop.node)
        if trx:
            shop.node.faucet(self.customer.address, trx)
        if usdt:
            shop.node.faucet(self.customer.address, usdt, "USDT")
        shop.confirm()
        body = {"currency": coin, "amount": amount, "network": "tron"}
        self.invoice = invoice or shop.call("POST", "/v1/invoices", json=body)

    @property
    def path(self) -> str:
        return f"/v1/pay/{self.invoice['id']}/transaction"

    def build(self, status: int = 200, sender: str | None = None) -> Any:
        answer = self.shop.stack.call("POST", self.path, json={"from": sender or self.customer.address})
        assert answer.status == status, answer.body
        return answer.json["transaction"] if status == 200 else answer.json["error"]

    def signature(self, unsigned: Any) -> str:
        return self.customer.sign(unsigned["txID"])

    def send(self, unsigned: Any, signature: str | None = None, status: int = 200) -> Any:
        body = {"raw_data_hex": unsigned["raw_data_hex"], "signature": signature or self.signature(unsigned)}
        answer = self.shop.stack.call("PUT", self.path, json=body)
        assert answer.status == status, answer.body
        return answer.json if status == 200 else answer.json["error"]

    @property
    def status(self) -> str:
        return str(self.shop.stack.call("GET", f"/v1/pay/{self.invoice['id']}/status").json["status"])


@pytest.mark.parametrize(("coin", "funds"), [("usdt", {"usdt": 20}), ("trx", {})])
def test_a_wallet_pays_an_invoice(shop: Shop, coin: str, funds: dict[str, int]) -> None:
    till = Till(shop, coin, "12.5", **funds)
    unsigned = till.build()
    # The wallet reads what it signs, and the node makes the same id of the JSON.
    (contract,) = unsigned["raw_data"]["contract"]
    assert contract["type"] == ("TransferContract" if coin == "trx" else "TriggerSmartContract")
    checked = shop.node.call("wallet/getsignweight", **till.customer.signed(unsigned))
    assert checked["result"].get("code") in (None, "ENOUGH_PERMISSION"), checked
    signature = till.signature(unsigned)
    # As wallets end it.
    sent = till.send(unsigned, "0x" + signature[:-2] + {"00": "1b", "01": "1c"}[signature[-2:]])
    assert sent == {"txId": unsigned["txID"], "explorerUrl": f"https://tronscan.org/#/transaction/{unsigned['txID']}"}
    assert till.send(unsigned)["txId"] == unsigned["txID"], "an answer that was lost is asked for again"
    shop.node.mine()
    assert till.send(unsigned)["txId"] == unsigned["txID"]
    shop.run()
    assert till.status == "confirming"
    assert till.send(unsigned)["txId"] == unsigned["txID"], "seen already"
    assert "waits for no payment" in till.build(400)["message"]
    shop.confirm()
    assert till.status == "completed"


def test_an_account_without_money_sends_nothing(shop: Shop) -> None:
    poor = Till(shop, "usdt", "5", trx=100)
    before = poor.customer.balance
    assert "too little" in str(poor.send(poor.build(), status=400))
    shop.confirm()
    assert (poor.customer.balance, poor.status) == (before, "pending"), "nothing was burnt"
    without_fee = Till(shop, "usdt", "5", trx=0, usdt=10)
    assert "too little" in str(without_fee.send(without_fee.build(), status=400))


def test_only_what_pays_this_invoice_is_sent(shop: Shop) -> None:
    till, other = Till(shop, "trx", "5"), Till(shop, "trx", "5")
    mine, theirs = till.build(), other.build()
    foreign = till.customer.unsigned(other.customer.address, 5 * SUN)
    less = till.customer.unsigned(till.invoice["address"], 5 * SUN - 1)
    memo = till.customer.unsigned(till.invoice["address"], 5 * SUN, extra_data="00ff")
    token = till.customer.payment(till.invoice["address"], 5 * SUN, contract=USDT)
    for wrong in (foreign, less, memo, token, till.customer.stake(5 * SUN, "ENERGY")):
        assert till.send(wrong, status=400)["code"] == "VALIDATION_ERROR"
    assert "begin anew" in till.send(theirs, other.signature(theirs), 400)["message"]
    assert "key of the address" in till.send(mine, other.signature(mine), 400)["message"]
    for signature in ("00" * 65, "ff" * 65, "zz" * 65, till.signature(mine)[:-2] + "05"):
        assert till.send(mine, signature, 400)["code"] == "VALIDATION_ERROR"
    shop.node.mine()
    assert shop.on_chain(till.invoice["address"]) == 0
    # A part was paid otherwise meanwhile: the whole would be too much.
    shop.node.faucet(till.invoice["address"], 2)
    shop.confirm()
    assert "begin anew" in till.send(mine, status=400)["message"]
    assert till.build()["raw_data"]["contract"][0]["parameter"]["value"]["amount"] == 3 * SUN


def test_what_no_wallet_can_pay_is_said(shop: Shop) -> None:
    till = Till(shop, "trx", "5")
    for sender in ("T" + "x" * 33, "0x" + "5a" * 20, till.invoice["address"][:-1] + "1"):
        assert till.build(400, sender)["code"] == "INVALID_PARAMETER"
    assert till.build(400, till.invoice["address"])["code"] == "VALIDATION_ERROR"
    unknown = shop.stack.call("POST", "/v1/pay/inv_x/transaction", json={"from": till.customer.address})
    assert unknown.status == 404
    signed = till.build()
    shop.call("DELETE", f"/v1/invoices/{till.invoice['id']}")
    assert "no payment" in till.build(400)["message"]
    assert "no payment" in till.send(signed, status=400)["message"]


def test_a_caller_has_the_node_asked_so_often_and_no_more(shop: Shop) -> None:
    till = Till(shop, "usdt", "5")
    unsigned = till.build()
    for _ in range(MOST_SENT):
        till.send(unsigned, status=400)
    refused = shop.stack.call(
        "PUT", till.path, json={"raw_data_hex": unsigned["raw_data_hex"], "signature": till.signature(unsigned)}
    )
    assert refused.status == 429
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    (counted,) = [each for each in services().store.every(PayerSendings) if each.invoice == till.invoice["id"]]
    assert counted.sent == MOST_SENT
    assert counted.ttl > services().clock.now_ms() // 1000


def test_a_transaction_refers_to_a_deep_block_and_ends_with_the_invoice(shop: Shop) -> None:
    body = {"currency": "trx", "amount": "5", "network": "tron", "expiresIn": 120}
    till = Till(shop, "trx", "5", invoice=shop.call("POST", "/v1/invoices", json=body))
    data = till.build()["raw_data"]
    head = shop.node.call("wallet/getnowblock")["block_header"]["raw_data"]
    assert head["number"] - int(data["ref_block_bytes"], 16) >= 19
    assert 60_000 <= data["expiration"] - data["timestamp"] <= 121_000


def test_a_network_that_does_not_answer_is_asked_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    till = Till(shop, "trx", "5")
    unsigned = till.build()
    with monkeypatch.context() as patch:
        patch.setattr(Sending, "broadcast", silent)
        assert "does not answer now: send the same transaction again" in till.send(unsigned, status=400)["message"]
    assert till.send(unsigned)["txId"] == unsigned["txID"], "it was rehearsed, and is only sent"
    shop.node.mine()
    shop.run()
    assert till.status == "confirming"
