"""Crediting and returning a payment on the wrong network, with the function dying after each write: what was decided happens
once, to whom it was decided, and everything comes to its end.

Dying before a write leaves what dying after the one before it leaves. Every third write, and the last; with `SWEEP=full` every one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId, tenant_parts
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.cuts import Cutter, install
from tests.support.stack import Stack
from tests.support.world import World

NETWORK = "polygon"
CUSTOMER = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
READS = ("Get", "Query", "BatchGet", "TransactGet")


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    made = Cutter()
    install(made, monkeypatch)
    return made


def gone_astray(stack: Stack, cutter: Cutter) -> World:
    """A token was paid to an address for ethereum on polygon, and the operator has read it."""
    world = World(stack, cutter)
    made = world.request("POST", "/v1/addresses", {"network": "ethereum", "mode": "common"}, "address")
    network = NetworkId(f"test:{NETWORK}")
    coin = services().catalogue("test").coins[NETWORK, "usdt"]
    paid = services().sandbox.deposit(network, made.json["address"], coin, 5_000_000)
    services().simulated(network).mine(20)
    world.run()
    body = {"network": NETWORK, "txid": paid["txid"]}
    read = stack.call("POST", "/v1/stray-payments", stack.keys["admin_test"], json=body)
    world.memo["stray"], world.memo["admin"] = read.json["data"]["payments"][0]["id"], stack.keys["admin_test"]
    return world


def decide(world: World, decision: str) -> None:
    world.key = world.memo["admin"]
    body = {"address": CUSTOMER} if decision == "return" else None
    made = world.request("POST", f"/v1/stray-payments/{world.memo['stray']}/{decision}", body, decision)
    assert made.status == 201, made.body
    world.key = world.stack.keys["client_test"]
    world.run()


def finish(world: World, decision: str) -> None:
    for _ in range(3):
        world.stack.drain(only=(f"poll_{NETWORK}", "relay"))
    stray = services().store.get(StrayPayment, id=world.memo["stray"])
    assert stray is not None and stray.status == decision
    (deposit,) = (d for d in services().store.every(Deposit) if d.tenant is not None)
    assert (deposit.id, deposit.status, deposit.amount) == (stray.id, "confirmed", 5_000_000)
    owner = stray.tenant if decision == "credit" else stray.owner
    assert deposit.tenant == owner and owner is not None
    found = [(w.id, w.tenant, w.amount) for w in services().store.every(Withdrawal)]
    assert found == ([] if decision == "credit" else [(stray.withdrawal_id, owner, 5_000_000)])
    assert tenant_parts(owner)[1] == "test"
    assert not [w for w in services().store.every_work() if w.kind in ("stray", "rescan")]
    assert audit(services().store) == []


@pytest.mark.parametrize("decision", ["credit", "return"])
def test_a_decision_may_die_at_any_write(
    stack: Stack, cutter: Cutter, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None], decision: str
) -> None:
    monkeypatch.setattr("tests.support.world.HANDLERS", (f"poll_{NETWORK}",))
    world = gone_astray(stack, cutter)
    start, memo = stack.snapshot(), dict(world.memo)
    cutter.set(0, "death", "after")
    decide(world, decision)
    finish(world, decision)
    cuts = [n for n, name in enumerate(cutter.trace, 1) if not name.startswith(READS)]
    assert len(cuts) > 4
    if os.environ.get("SWEEP") != "full":
        cuts = sorted({*cuts[::3], cuts[-1]})
    for at in cuts:
        stack.restore(start)
        broken = world.again(memo)
        cutter.set(at, "death", "after")
        try:
            decide(broken, decision)
            finish(broken, decision)
        except AssertionError as error:
            raise AssertionError(f"died after call {at} ({cutter.trace[at - 1]}): {error}") from error
        assert cutter.fired
    record_property("cut_points", len(cuts))
