"""A merchant, a chain and a service that may fail anywhere: what the fault sweeps play with.

Requests are repeated with their Idempotency-Key until they are answered, as a careful client does. Schedules and queues run
again after every failure, as they do on AWS. What must hold afterwards is `check`.
"""

from __future__ import annotations

from typing import Any

from chalicelib import wiring
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.webhooks.lookouts import PERIOD_MS
from chalicelib.wiring import services
from infra.local.pump import Order
from tests.support.cuts import Cutter, Died
from tests.support.stack import Response, Stack

HANDLERS = ("poll_ethereum", "relay", "deliver", "deliver_slow", "payout", "collect")
SWEEPERS = (*HANDLERS, "housekeeping")
NETWORK = "ethereum"
OUT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
STEP_MS = 60_000
LATER_ROUNDS = 6


class World:
    def __init__(self, stack: Stack, cutter: Cutter, realm: str = "test", order: Order = "normal", shift: int = 0) -> None:
        self.stack, self.cutter, self.order = stack, cutter, order
        self.key = stack.keys[f"client_{realm}"]
        self.memo: dict[str, str] = {}
        self.shift = shift
        """Milliseconds by which the service's clock is ahead."""

    def again(self, memo: dict[str, str]) -> World:
        """A fresh process in the same world; `memo` is what the merchant remembers."""
        other = World(self.stack, self.cutter, order=self.order, shift=self.shift)
        other.memo = dict(memo)
        other.reborn()
        return other

    def invoice(self) -> Any:
        return self.get("/v1/invoices", id=self.memo["invoice"])

    def later(self) -> None:
        """A minute passes: leases end, sweeps find what is old."""
        self.shift += STEP_MS
        services().clock.shift_ms = self.shift

    def align(self) -> None:
        """The clock goes on to the beginning of a lookout's period: which calls a step makes depends on where these end."""
        self.shift += PERIOD_MS - services().clock.now_ms() % PERIOD_MS
        services().clock.shift_ms = self.shift

    def reborn(self) -> None:
        """The process is gone with all that it remembered."""
        wiring.forget()
        services().clock.shift_ms = self.shift

    def request(self, method: str, path: str, body: dict[str, Any], token: str) -> Response:
        """Ask until there is an answer, with the same Idempotency-Key. At most one failure is cut in, so three times do."""
        for _ in range(3):
            try:
                with self.cutter.arm():
                    answer = self.stack.call(method, path, self.key, json=body, headers={"Idempotency-Key": token})
            except Died:
                self.reborn()
                continue
            if answer.status != 500:
                return answer
        raise AssertionError(f"{method} {path} was not answered: {answer.body!r}")

    def run(self) -> None:
        """Schedules and queues, until nothing is left to do, through whatever failure is cut in."""
        for _ in range(2):
            try:
                with self.cutter.arm():
                    self.stack.drain(only=HANDLERS, failures="count", order=self.order, hurry=True)
            except Died:
                self.reborn()
            else:
                return
        raise AssertionError("died twice of one cut")

    def settle(self) -> None:
        """Time passes and everything that is due happens, until no obligation is open. Nothing is cut in here."""
        for _ in range(LATER_ROUNDS):
            self.later()
            self.stack.drain(only=SWEEPERS, failures="count", order=self.order, hurry=True)
            if not self.open_work():
                return

    def settle_payouts(self) -> None:
        """Time passes until what is open only waits for the chain: deposits for confirmations, payments in blocks."""
        for _ in range(LATER_ROUNDS):
            if not self.stuck():
                return
            self.later()
            self.stack.drain(only=SWEEPERS, failures="count", order=self.order, hurry=True)

    def stuck(self) -> list[Work]:
        """Obligations that the service itself could fulfil now."""
        store = services().store
        waiting = {f"{w.tenant}|{w.id}" for w in store.every(Withdrawal) if w.status == "confirming"}
        return [w for w in self.open_work() if w.kind != "deposit" and not (w.kind == "sent" and w.id in waiting)]

    def sweep(self) -> None:
        """What the clock does once a minute, with the cut in it."""
        self.later()
        try:
            with self.cutter.arm():
                self.stack.drain(only=("housekeeping",), failures="count", rounds=1)
        except Died:
            self.reborn()

    def open_work(self) -> list[Work]:
        """Obligations, but those that only wait: invoices for their time, settled payments for the chain to go on."""
        return [work for work in services().store.every_work() if work.kind not in ("expiry", "settled", "staked", "moved")]

    def mine(self, count: int) -> None:
        sandbox = services().sandbox
        sandbox.blocks(services().catalogue("test").networks[NETWORK].id, count)

    def pay_in(self, address: str, coin: str, units: int) -> dict[str, Any]:
        catalogue = services().catalogue("test")
        found = catalogue.coins[NETWORK, coin]
        return services().sandbox.deposit(found.network, address, found, units)

    def get(self, path: str, **query: str) -> Any:
        answer = self.stack.call("GET", path, self.key, query=query)
        assert answer.status == 200, answer.body
        return answer.json

    def available(self, coin: str) -> str:
        for entry in self.get("/v1/balances")["data"]:
            if (entry["network"], entry["coin"]) == (NETWORK, coin):
                return str(entry["available"])
        return "0"

    def check(self) -> None:
        """The books are whole, and nothing is open that the service could have done."""
        assert audit(services().store) == []
        assert self.stuck() == []
