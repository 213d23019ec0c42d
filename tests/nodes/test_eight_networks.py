"""One scenario on all eight networks, each on its node: an invoice is paid, falls out of the chain before it is credited and comes
back, is credited; a withdrawal goes out; then a reorganisation takes both the payment and the withdrawal out of the chain, after
both were final. In the end everything is paid once, and the books are whole. Through the HTTP interface, the schedules and the
queues alone; KMS signs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses import Wallet
from chalicelib.domain.catalogue import NETWORK_ORDER
from chalicelib.domain.money import format_units
from chalicelib.usecases.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.grounds import CHAINS, DAY, Ground, ground_of
from tests.support.stack import Stack, first_stack

pytestmark = pytest.mark.nodes


class Merchant:
    """A live merchant on one network. Amounts are tenths of the native coin; on Tron whole ones, since a new account costs 1.1."""

    def __init__(self, stack: Stack, ground: Ground) -> None:
        self.stack, self.ground = stack, ground
        self.slug, self.network = ground.network.slug, ground.network
        self.coin = self.network.symbol.lower()

    def units(self, tenths: int) -> int:
        return tenths * 10 ** (self.network.decimals - (self.slug != "tron"))

    def shown(self, tenths: int) -> str:
        return format_units(self.units(tenths), self.network.decimals)

    def call(self, method: str, path: str, status: int, **how: Any) -> Any:
        answer = self.stack.call(method, path, self.stack.keys["client_live"], **how)
        assert answer.status == status, answer.body
        return answer.json

    def run(self) -> None:
        done = self.stack.drain(only=(f"poll_{self.slug}", "relay", "deliver", "payout"))
        assert done.settled, done

    def confirm(self) -> None:
        self.ground.mine(self.network.confirmations)
        self.run()
        self.run()

    def bill(self, tenths: int) -> Any:
        body = {"currency": self.coin, "amount": self.shown(tenths), "network": self.slug, "expiresIn": 7 * DAY}
        return self.call("POST", "/v1/invoices", 201, json=body)

    def invoice(self, made: Any) -> tuple[str, str]:
        found = self.call("GET", "/v1/invoices", 200, query={"id": made["id"]})
        return found["status"], found["received"]

    def withdraw(self, tenths: int) -> str:
        body = {"network": self.slug, "coin": self.coin, "address": self.ground.out, "amount": self.shown(tenths)}
        return str(self.call("POST", "/v1/withdraws", 201, json=body)["id"])

    def withdrawal(self, name: str) -> Any:
        return self.call("GET", f"/v1/withdrawals/{name}", 200)["data"]

    def available(self) -> str:
        for entry in self.call("GET", "/v1/balances", 200)["data"]:
            if entry["network"] == self.slug and entry["coin"] == self.coin:
                return str(entry["available"])
        return "0"


@pytest.fixture(params=NETWORK_ORDER)
def merchant(request: pytest.FixtureRequest, aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Merchant]:
    monkeypatch.setenv("LIVE_CHAINS", CHAINS)
    wiring.forget()
    ground = ground_of(request.param)
    try:
        made = Merchant(first_stack(aws, {request.param: ground.info}), ground)
        hot = services().store.get(Wallet, network=made.network.id, role="hot")
        assert hot is not None
        assert hot.custody == "kms"
        ground.fund(hot.address)
        made.confirm()
        yield made
    finally:
        ground.stop()


def test_paid_reorganised_credited_withdrawn_reorganised_again(merchant: Merchant) -> None:
    ground = merchant.ground
    made = merchant.bill(20)
    ground.pay(made["address"], merchant.units(20))
    ground.mine()
    merchant.run()
    assert merchant.invoice(made) == ("confirming", "0")

    # Before it is credited, its block falls out.
    ground.reorganise(2)
    merchant.run()
    assert merchant.invoice(made) == ("pending", "0")
    ground.pay_again(made["address"], merchant.units(20))
    merchant.confirm()
    assert merchant.invoice(made) == ("completed", merchant.shown(20))
    assert merchant.available() == merchant.shown(20)

    # Money goes out.
    before = ground.received(ground.out)
    name = merchant.withdraw(5)
    merchant.run()
    assert merchant.withdrawal(name)["status"] == "confirming"
    merchant.confirm()
    paid = merchant.withdrawal(name)
    assert paid["status"] == "confirmed"
    assert ground.received(ground.out) - before == merchant.units(5)
    assert merchant.available() == merchant.shown(15)

    # What was final falls out: the payment and the withdrawal.
    ground.reorganise(2 * merchant.network.confirmations + 3)
    merchant.run()
    merchant.run()
    assert merchant.invoice(made) == ("pending", "0")
    assert merchant.available() == "-" + merchant.shown(5)
    assert merchant.withdrawal(name)["status"] == "confirming"
    body = {"network": merchant.slug, "coin": merchant.coin, "address": ground.out, "amount": merchant.shown(2)}
    refused = merchant.call("POST", "/v1/withdraws", 400, json=body)
    assert refused["error"]["code"] == "INSUFFICIENT_BALANCE"

    # Both come back, once. On Tron the withdrawal names a block that is gone: it expires, and is made anew.
    services().clock.shift_ms += ground.wait_out()
    merchant.run()
    ground.pay_again(made["address"], merchant.units(20))
    merchant.confirm()
    merchant.confirm()
    assert merchant.invoice(made) == ("completed", merchant.shown(20))
    assert merchant.available() == merchant.shown(15)
    again = merchant.withdrawal(name)
    assert again["status"] == "confirmed"
    assert (again["transaction_hash"] == paid["transaction_hash"]) == (merchant.slug != "tron")
    assert ground.received(ground.out) - before == merchant.units(5)
    assert audit(services().store) == []
