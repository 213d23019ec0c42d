"""What a developer rehearses with a test key and HTTP alone (decisions §14): no node, no waiting."""

from __future__ import annotations

from typing import Any

import pytest

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
CONFIRMATIONS = 12
HOUR = 3_600


class Developer:
    """Asks; clocks and queues run after everything that was asked, as they do in a deployment."""

    def __init__(self, stack: Any) -> None:
        self.stack, self.key = stack, stack.keys["client_test"]

    def do(self, path: str, **body: Any) -> Any:
        answer = self.stack.call("POST", f"/v1{path}", self.key, json=body)
        assert answer.status in (200, 201), answer.body
        self.stack.drain(only=("poll_ethereum", "relay", "payout"), hurry=True)
        return answer.json.get("data", answer.json)

    def see(self, path: str) -> Any:
        answer = self.stack.call("GET", f"/v1{path}", self.key)
        assert answer.status == 200, answer.body
        return answer.json

    def invoice(self, amount: str = "10", **more: Any) -> dict[str, Any]:
        return dict(self.do("/invoices", currency="usdt", network="ethereum", amount=amount, **more))

    def shown(self, invoice: dict[str, Any]) -> Any:
        return self.see(f"/invoices?id={invoice['id']}")

    def pay(self, invoice: dict[str, Any], amount: str) -> str:
        paid = self.do("/sandbox/deposits", address=invoice["address"], network="ethereum", coin="usdt", amount=amount)
        return str(paid["txid"])

    def blocks(self, count: int = CONFIRMATIONS) -> None:
        self.do("/sandbox/blocks", network="ethereum", count=count)

    def later(self, seconds: int) -> None:
        self.do("/sandbox/clock", advance=seconds)

    def withdraw(self, amount: str) -> str:
        return str(self.do("/withdraws", network="ethereum", coin="usdt", amount=amount, address=PAYEE)["id"])

    def decide(self, withdrawal: str, outcome: str) -> Any:
        return self.do(f"/sandbox/withdrawals/{withdrawal}", outcome=outcome)

    def withdrawal(self, withdrawal: str) -> Any:
        return self.see(f"/withdrawals/{withdrawal}")["data"]

    def usdt(self) -> tuple[str, str]:
        """Available and frozen."""
        for entry in self.see("/balances")["data"]:
            if (entry["network"], entry["coin"]) == ("ethereum", "usdt"):
                return entry["available"], entry["frozen"]
        return "0", "0"

    def events(self) -> list[str]:
        return [event["event"] for event in self.see("/events?limit=100")["data"]]


@pytest.fixture
def developer(stack) -> Developer:
    found = Developer(stack)
    stack.drain(only=("poll_ethereum", "relay"))
    return found


def test_a_payment(developer):
    invoice = developer.invoice()
    developer.pay(invoice, "10")
    assert developer.shown(invoice)["status"] == "confirming"
    developer.blocks()
    done = developer.shown(invoice)
    assert (done["status"], done["received"]) == ("completed", "10")
    assert developer.usdt() == ("10", "0")


def test_an_underpayment(developer):
    invoice = developer.invoice()
    developer.pay(invoice, "4")
    developer.blocks()
    part = developer.shown(invoice)
    assert (part["status"], part["received"]) == ("partial", "4")
    developer.later(2 * HOUR)
    assert developer.shown(invoice)["status"] == "expired"
    assert developer.usdt() == ("4", "0")
    assert "invoice.expired" in developer.events()


def test_a_late_payment(developer):
    invoice = developer.invoice(expiresIn=HOUR)
    developer.later(HOUR - 60)
    assert developer.shown(invoice)["status"] == "pending"
    developer.later(120)
    assert developer.shown(invoice)["status"] == "expired"
    developer.pay(invoice, "10")
    developer.blocks()
    late = developer.shown(invoice)
    assert late["status"] == "expired"
    assert developer.usdt() == ("10", "0")
    assert "invoice.late_payment" in developer.events()


def test_a_reorganisation(developer):
    invoice = developer.invoice()
    paid = developer.pay(invoice, "10")
    developer.blocks()
    assert developer.shown(invoice)["status"] == "completed"
    gone = developer.do("/sandbox/reorg", network="ethereum", depth=CONFIRMATIONS + 1)
    assert gone["dropped"] == [paid]
    assert (developer.shown(invoice)["status"], developer.usdt()) == ("pending", ("0", "0"))
    assert "transaction.orphaned" in developer.events()
    developer.pay(invoice, "10")
    developer.blocks()
    assert developer.shown(invoice)["status"] == "completed"


def credited(developer: Developer) -> None:
    developer.pay(developer.invoice(), "10")
    developer.blocks()


def test_a_withdrawal_that_sticks_and_goes_on(developer):
    credited(developer)
    withdrawal = developer.withdraw("4")
    developer.decide(withdrawal, "stick")
    stuck = developer.withdrawal(withdrawal)
    assert stuck["status"] == "confirming"
    developer.later(24 * HOUR)
    assert developer.withdrawal(withdrawal)["status"] == "confirming"
    assert developer.usdt() == ("6", "4")
    developer.decide(withdrawal, "confirm")
    assert developer.withdrawal(withdrawal)["status"] == "confirmed"
    assert developer.usdt() == ("6", "0")


def test_a_withdrawal_that_fails(developer):
    credited(developer)
    withdrawal = developer.withdraw("4")
    developer.decide(withdrawal, "fail")
    assert developer.withdrawal(withdrawal)["status"] == "failed"
    assert developer.usdt() == ("10", "0")
    assert "withdrawal.status_changed" in developer.events()


def test_a_withdrawal_that_succeeds(developer):
    credited(developer)
    withdrawal = developer.withdraw("4")
    developer.blocks()
    assert developer.withdrawal(withdrawal)["status"] == "confirmed"
    assert developer.usdt() == ("6", "0")
