"""A merchant of the live realm on one network of `grounds`: through the HTTP interface, the schedules and the queues alone."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.money import format_units
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.grounds import CHAINS, DAY, Ground
from tests.support.stack import Stack, first_stack


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

    def run(self, *more: str) -> None:
        """The network's poll and the queues, until nothing changes; `more` handlers beside them."""
        done = self.stack.drain(only=(f"poll_{self.slug}", "relay", "deliver", "payout", *more), rounds=60)
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

    def operator(self, method: str, path: str, status: int, **how: Any) -> Any:
        answer = self.stack.call(method, path, self.stack.keys["admin_live"], **how)
        assert answer.status == status, answer.body
        return answer.json

    def cursor(self) -> Cursor:
        found = services().store.get(Cursor, network=self.network.id)
        assert found is not None
        return found

    def deposits(self, address: str) -> list[Deposit]:
        return sorted((d for d in services().store.every(Deposit) if d.address == address), key=lambda d: d.created_at)


def open_shop(aws: LocalAws, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Merchant:
    """A merchant on a stack of its own, with a hot wallet that KMS signs for and that can pay."""
    monkeypatch.setenv("LIVE_CHAINS", CHAINS)
    wiring.forget()
    made = Merchant(first_stack(aws, {ground.network.slug: ground.info}), ground)
    hot = services().store.get(Wallet, network=made.network.id, role="hot")
    assert hot is not None
    assert hot.custody == "kms"
    ground.fund(hot.address)
    made.confirm()
    return made
