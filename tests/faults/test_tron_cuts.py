"""Calls to a Tron node fail before or after their effect, or kill the function there, while a withdrawal is paid: it is paid once,
and the books are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.tron_shops import CONFIRMATIONS, HANDLERS, Shop, staking_shop
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.tron_chain import TRX, stranger

pytestmark = [pytest.mark.nodes, pytest.mark.slow]

BROADCAST = "node wallet/broadcast"
READS = ("node wallet/getblock", "node wallet/getaccount", "node wallet/gettransactioninfobyid")
POINTS: list[tuple[str, How, When]] = [
    *((BROADCAST, how, when) for how, when in WAYS),
    *((read, how, "before") for read, how in zip(READS, ("death", "error", "death"), strict=True)),
]


@pytest.fixture(scope="module")
def started(running_aws: LocalAws) -> Iterator[Shop]:
    """One first start for all tests here, which take turns with the wallet."""
    with staking_shop(running_aws) as made:
        yield made


class PathCutter(Cutter):
    """Counts and cuts the calls of one kind alone."""

    name = ""

    def around(self, name: str, call: Callable[[], Any], error: Exception) -> Any:
        return super().around(name, call, error) if name.startswith(self.name) else call()


@pytest.mark.parametrize(("name", "how", "when"), POINTS, ids=["-".join(point).removeprefix("node ") for point in POINTS])
def test_a_payout_is_made_once_whatever_fails(
    started: Shop, name: str, how: How, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, cutter, to = started, PathCutter(), stranger()
    install(cutter, monkeypatch)
    cutter.name = name
    invoice = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "60", "network": "tron"})
    shop.node.faucet(invoice["address"], 60)
    shop.confirm()
    sent = shop.call("POST", "/v1/withdraws", json={"network": "tron", "coin": "trx", "address": to, "amount": "25"})
    cutter.set(1, how, when)
    for blocks in (CONFIRMATIONS, 0):
        try:
            with cutter.arm():
                shop.stack.drain(only=HANDLERS, failures="count", hurry=True, rounds=4)
        except Died:
            wiring.forget()
        if blocks:
            shop.node.mine(blocks)
    assert cutter.fired, "the call never came"

    def status() -> str:
        return str(shop.call("GET", f"/v1/withdrawals/{sent['id']}")["data"]["status"])

    for _ in range(6):
        if status() == "confirmed":
            break
        services().clock.shift_ms += 60_000
        shop.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True, rounds=4)
        shop.node.mine(CONFIRMATIONS)
    assert status() == "confirmed"
    assert shop.on_chain(to) == 25 * TRX
    assert shop.booked() == shop.on_chain(shop.hot())
    assert audit(services().store) == []
