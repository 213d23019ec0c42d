"""A merchant, the chain and the clock in any order, over HTTP alone: what the service answers is what a simple model says.

The model knows payments by their block and nothing of how the service works. Amounts are in whole units of the smallest
coin; everything is compared after the service has looked at the chain.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from chalicelib.domain.money import format_units, parse_units
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.stack import Response, Stack

FULL = os.environ.get("SWEEP") == "full"
NETWORK, CONFIRMATIONS = "ethereum", 12
DECIMALS = {"eth": 18, "usdt": 6}
PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example
COINS = st.sampled_from(sorted(DECIMALS))
CENTS = st.integers(1, 500)
"""Amounts in hundredths of a coin: small, so that sums meet exactly."""
LEAST_CENTS = {"usdt": 390}
"""What the network fee of a withdrawal is worth, 65,000 gas at 20 gwei at 3,000 USD: less is not paid out."""


@dataclass
class Payment:
    """A deposit on the chain. `seen` and `credited` are what the service knows since its last look."""

    txid: str
    coin: str
    units: int
    block: int
    dropped: bool = False
    seen: bool = False
    credited: bool = False


@dataclass
class ModelInvoice:
    id: str
    address: str
    coin: str
    units: int
    payments: list[Payment] = field(default_factory=list)
    manual: str | None = None

    def sums(self) -> tuple[int, int]:
        """Credited, and seen but not yet credited."""
        live = [p for p in self.payments if p.seen and not p.dropped and p.coin == self.coin]
        credited = sum(p.units for p in live if p.credited)
        return credited, sum(p.units for p in live) - credited

    def status(self) -> str:
        credited, seen = self.sums()
        if self.manual is not None:
            return self.manual
        if credited >= self.units:
            return "completed"
        if credited + seen >= self.units:
            return "confirming"
        return "partial" if credited + seen else "pending"


@dataclass
class ModelWithdrawal:
    id: str
    coin: str
    units: int
    status: str = "pending"

    @property
    def held_back(self) -> bool:
        """Whether its amount is away from what the merchant may use: reserved, or gone."""
        return self.status not in ("cancelled", "failed")


class Merchant(RuleBasedStateMachine):
    """`stack` is set by the test: one service for all examples, put back to its first state for each."""

    stack: Stack
    invoices = Bundle("invoices")
    withdrawals = Bundle("withdrawals")

    @initialize()
    def open(self) -> None:
        self.stack.reset()
        self.key = self.stack.keys["client_test"]
        self.known: list[ModelInvoice] = []
        self.payments: list[Payment] = []
        self.asked: list[ModelWithdrawal] = []
        self.requests = self.calls = 0
        self.looked = False
        self.look()

    # ---- The merchant ----------------------------------------------------------------------------------------------------

    @rule(target=invoices, coin=COINS, cents=CENTS, twice=st.booleans())
    def ask_to_be_paid(self, coin: str, cents: int, twice: bool) -> ModelInvoice:
        units = cents * 10 ** (DECIMALS[coin] - 2)
        body = {"currency": coin, "network": NETWORK, "amount": amount(coin, units), "expiresIn": 365 * 86400}
        made = self.create("/v1/invoices", body, twice)
        assert (made["amount"], made["status"], made["received"]) == (amount(coin, units), "pending", "0")
        invoice = ModelInvoice(made["id"], made["address"], coin, units)
        self.known.append(invoice)
        return invoice

    @rule(invoice=invoices, status=st.sampled_from(["completed", "cancelled", "refunded"]))
    def decide_by_hand(self, invoice: ModelInvoice, status: str) -> None:
        answer = self.call("PUT", "/v1/invoices", {"invoiceId": invoice.id, "status": status})
        assert self.expect(201, answer)["newStatus"] == status
        invoice.manual = status

    @rule(target=withdrawals, coin=COINS, cents=CENTS, form=st.booleans(), twice=st.booleans())
    def withdraw(self, coin: str, cents: int, form: bool, twice: bool) -> Any:
        units = cents * 10 ** (DECIMALS[coin] - 2)
        to = {"address": PAYEE} if form else {"to_address": PAYEE}
        path = "/v1/withdraws" if form else "/v1/withdrawals"
        body = {"network": NETWORK, "coin": coin, "amount": amount(coin, units), **to}
        if cents < LEAST_CENTS.get(coin, 0):
            refused = self.call("POST", path, body)
            assert refused.json["error"]["code"] == "VALIDATION_ERROR"
            return multiple()
        if units > self.available(coin):
            refused = self.call("POST", path, body)
            assert refused.status == 400
            assert refused.json["error"]["code"] == "INSUFFICIENT_BALANCE"
            return multiple()
        made = self.create(path, body, twice)
        record = made if form else made["data"]
        assert (record["status"], record["amount"]) == ("pending", amount(coin, units))
        withdrawal = ModelWithdrawal(record["id"], coin, units)
        self.asked.append(withdrawal)
        return withdrawal

    @rule(withdrawal=consumes(withdrawals))
    def cancel(self, withdrawal: ModelWithdrawal) -> None:
        answer = self.call("DELETE", f"/v1/withdrawals/{withdrawal.id}")
        if withdrawal.status == "pending":
            assert self.expect(200, answer)["data"]["status"] == "cancelled"
            withdrawal.status = "cancelled"
        else:
            assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR")

    # ---- The chain -------------------------------------------------------------------------------------------------------

    @rule(invoice=invoices, part=st.sampled_from([(1, 1), (1, 2), (3, 2), (1, 100)]), twice=st.booleans())
    def pay(self, invoice: ModelInvoice, part: tuple[int, int], twice: bool) -> None:
        units = max(1, invoice.units * part[0] // part[1])
        body = {"address": invoice.address, "network": NETWORK, "coin": invoice.coin, "amount": amount(invoice.coin, units)}
        made = self.create("/v1/sandbox/deposits", body, twice)["data"]
        payment = Payment(made["txid"], invoice.coin, units, made["blockNumber"])
        assert payment.block == self.tip + 1
        self.tip = payment.block
        invoice.payments.append(payment)
        self.payments.append(payment)

    @rule(count=st.integers(1, 14))
    def mine(self, count: int) -> None:
        answer = self.expect(201, self.call("POST", "/v1/sandbox/blocks", {"network": NETWORK, "count": count}))
        self.tip += count
        assert answer["data"]["blockNumber"] == self.tip

    @precondition(lambda self: self.payments)
    @rule(depth=st.integers(1, 20))
    def reorganise(self, depth: int) -> None:
        """What falls out stays out. The service looks first: a payment that it never saw leaves no trace anyway."""
        self.look()
        answer = self.call("POST", "/v1/sandbox/reorg", {"network": NETWORK, "depth": depth})
        first = self.tip - depth + 1
        if first < 1:
            assert answer.status == 400
            return
        assert self.expect(201, answer)["data"]["fromBlock"] == first
        self.tip += 1
        self.looked = False
        for payment in self.payments:
            payment.dropped |= payment.block >= first

    # ---- The service -----------------------------------------------------------------------------------------------------

    @rule()
    def look(self) -> None:
        """Its clocks and queues do all that there is to do now."""
        self.stack.drain(only=(f"poll_{NETWORK}", "relay", "payout"), hurry=True)
        self.tip = self.height()  # what was paid out was mined at once
        for payment in self.payments:
            payment.seen = True
            payment.credited |= not payment.dropped and self.tip - payment.block + 1 >= CONFIRMATIONS
        self.looked = True

    @invariant()
    def answers_what_the_model_says(self) -> None:
        if not self.looked:
            return
        self.looked = False
        for invoice in self.known:
            shown = self.expect(200, self.call("GET", "/v1/invoices", query={"id": invoice.id}))
            credited, seen = invoice.sums()
            expected = (invoice.status(), amount(invoice.coin, credited), amount(invoice.coin, seen))
            assert (shown["status"], shown["received"], shown["unconfirmed"]) == expected
        for withdrawal in self.asked:
            withdrawal.status = self.expect(200, self.call("GET", f"/v1/withdrawals/{withdrawal.id}"))["data"]["status"]
            assert withdrawal.status in ("pending", "confirming", "confirmed", "cancelled")
        for entry in self.expect(200, self.call("GET", "/v1/balances"))["data"]:
            assert entry["network"] == NETWORK
            coin = entry["coin"]
            frozen = sum(w.units for w in self.asked if w.coin == coin and w.status in ("pending", "confirming"))
            pending = sum(p.units for p in self.payments if p.coin == coin and p.seen and not p.dropped and not p.credited)
            shown = tuple(parse(coin, entry[name]) for name in ("available", "frozen", "pending"))
            assert shown == (self.available(coin), frozen, pending)

    def teardown(self) -> None:
        """In the end everything that was asked for has happened, and the books are whole."""
        self.mine(CONFIRMATIONS)
        for _ in range(4):
            self.look()
            self.mine(CONFIRMATIONS)
        self.look()
        self.answers_what_the_model_says()
        # A merchant whose credit fell out of the chain may owe: what was on its way then still arrives, and nothing new is begun.
        for withdrawal in self.asked:
            owes = self.available(withdrawal.coin) < 0
            assert withdrawal.status in ({"pending", "confirmed", "cancelled"} if owes else {"confirmed", "cancelled"})
        assert audit(services().store) == []

    # ---- Helpers ---------------------------------------------------------------------------------------------------------

    def height(self) -> int:
        return int(self.expect(200, self.call("GET", f"/v1/networks/last-number-block/{NETWORK}"))["lastBlockNumber"])

    def available(self, coin: str) -> int:
        credited = sum(p.units for p in self.payments if p.coin == coin and p.credited and not p.dropped)
        return credited - sum(w.units for w in self.asked if w.coin == coin and w.held_back)

    def call(self, method: str, path: str, json: Any = None, **more: Any) -> Response:
        self.calls += 1
        if self.calls % 80 == 0:
            services().clock.shift_ms += 61 * 60_000  # another hour: a test key's limits are not what is examined here
        return self.stack.call(method, path, self.key, json=json, **more)

    def expect(self, status: int, answer: Response) -> Any:
        assert answer.status == status, answer.body
        return answer.json

    def create(self, path: str, body: dict[str, Any], twice: bool) -> Any:
        """Sent once, or twice with one Idempotency-Key: it makes one thing either way."""
        self.requests += 1
        headers = {"Idempotency-Key": f"request-{self.requests}"}
        first = self.call("POST", path, body, headers=headers)
        made = self.expect(201, first)
        if twice:
            second = self.call("POST", path, body, headers=headers)
            assert (second.status, second.body) == (201, first.body)
            assert second.headers["idempotency-replayed"] == "true"
        return made


@pytest.mark.slow
def test_any_order_of_events(stack: Stack) -> None:
    Merchant.stack = stack
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Merchant,
        settings=settings(
            max_examples=5 if FULL else 3, stateful_step_count=20, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate],
        ),
    )  # fmt: skip


def amount(coin: str, units: int) -> str:
    return format_units(units, DECIMALS[coin])


def parse(coin: str, text: str) -> int:
    return -parse_units(text[1:], DECIMALS[coin]) if text.startswith("-") else parse_units(text, DECIMALS[coin])
