"""A reorganisation deeper than the confirmations takes out a payment that was settled: it is undone, sent again, settled again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.cuts import Cutter
from tests.support.stack import Stack
from tests.support.world import NETWORK, OUT, World

ETHER = 10**18
CONFIRMATIONS = 12


@pytest.fixture
def world(stack: Stack) -> Iterator[World]:
    made = World(stack, Cutter())

    def fund() -> None:
        body = {"currency": "eth", "amount": "1", "network": NETWORK}
        made.pay_in(made.request("POST", "/v1/invoices", body, "fund").json["address"], "eth", ETHER)
        made.mine(CONFIRMATIONS * 2)
        made.run()
        made.settle()

    stack.prepare("a merchant with one ether", fund)
    yield made
    assert audit(services().store) == []


def withdraw(world: World, amount: str, token: str) -> str:
    body = {"network": NETWORK, "coin": "eth", "address": OUT, "amount": amount}
    made = world.request("POST", "/v1/withdraws", body, token)
    assert made.status == 201, made.body
    world.run()
    return str(made.json["id"])


def shown(world: World, withdrawal: str) -> tuple[str, int]:
    record = world.get(f"/v1/withdrawals/{withdrawal}")["data"]
    return record["status"], record["confirmations"]


def received() -> int:
    return services().reader(services().catalogue("test").networks[NETWORK]).balance(OUT)


def confirm(world: World) -> None:
    world.mine(CONFIRMATIONS)
    world.run()
    world.settle()


def test_a_settled_payment_that_falls_out_is_paid_once(world: World) -> None:
    first = withdraw(world, "0.25", "first")
    confirm(world)
    assert shown(world, first)[0] == "confirmed"
    services().sandbox.reorg(NetworkId(f"test:{NETWORK}"), CONFIRMATIONS + 2)
    assert received() == 0
    world.run()
    assert shown(world, first)[0] == "confirming"
    assert audit(services().store) == []
    second = withdraw(world, "0.5", "second")
    confirm(world)
    confirm(world)
    assert shown(world, first)[0] == shown(world, second)[0] == "confirmed"
    assert received() == ETHER // 4 + ETHER // 2
    assert world.available("eth") == "0.25"
    told = [e["event"] for e in world.get("/v1/events", limit="100")["data"]]
    assert told.count("withdrawal.completed") == 3


def test_a_watch_that_is_over_undoes_nothing(world: World) -> None:
    """Of two polls at once one may undo the payment, which is settled again in another block, before the other looks at it."""
    withdrawal = withdraw(world, "0.25", "first")
    confirm(world)
    network = services().catalogue("test").networks[NETWORK]
    (watched,) = services().store.open_work("settled", network.id)
    services().sandbox.reorg(network.id, CONFIRMATIONS + 2)
    world.run()
    confirm(world)
    (again,) = services().store.open_work("settled", network.id)
    assert again != watched and shown(world, withdrawal)[0] == "confirmed"
    with in_realm("test"):
        services().settlement(network)._booking._unsettle(watched)
    assert shown(world, withdrawal)[0] == "confirmed"


def test_a_payment_that_failed_and_fell_out_may_still_succeed(world: World) -> None:
    """Its money was given back; when the same bytes succeed in another block, it is taken again."""
    withdrawal = world.request(
        "POST", "/v1/withdraws", {"network": NETWORK, "coin": "eth", "address": OUT, "amount": "0.25"}, "one"
    ).json["id"]
    world.stack.call("POST", f"/v1/sandbox/withdrawals/{withdrawal}", world.key, json={"outcome": "fail"})
    world.run()
    confirm(world)
    assert shown(world, withdrawal)[0] == "failed"
    assert world.available("eth") == "1"
    assert received() == 0
    services().sandbox.reorg(NetworkId(f"test:{NETWORK}"), 2 * CONFIRMATIONS + 2)
    world.run()
    assert shown(world, withdrawal)[0] == "confirming"
    assert world.available("eth") == "0.75"
    confirm(world)
    confirm(world)
    paid = received()
    assert (shown(world, withdrawal)[0], paid, world.available("eth")) in (
        ("confirmed", ETHER // 4, "0.75"),
        ("failed", 0, "1"),
    )


def test_what_no_reorganisation_reaches_is_watched_no_longer(world: World) -> None:
    withdraw(world, "0.25", "first")
    confirm(world)
    assert [work.kind for work in services().store.every_work() if work.kind == "settled"] == ["settled"]
    world.mine(64)
    world.run()
    assert [work.kind for work in services().store.every_work() if work.kind == "settled"] == []
