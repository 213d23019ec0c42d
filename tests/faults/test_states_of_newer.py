"""A record in a state that only a newer version of the service knows is left to that version: it stays in that state, nothing is
paid or credited by it, its work stays open, and everything else goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.faults.left_to_newer import DAY_MS, RESTING, Left, invoice, only, run, sent, shown, withdrawal
from tests.support.alarms import raised
from tests.support.cuts import Cutter
from tests.support.paths import CONFIRMATIONS, ETHER, funded
from tests.support.receiver import Receiver, answer
from tests.support.stack import Stack
from tests.support.world import World


@pytest.fixture
def world(stack: Stack) -> World:
    return World(stack, Cutter())


def test_an_invoice(world: World, caplog: pytest.LogCaptureFixture) -> None:
    mine, other = invoice(world, "one"), invoice(world, "two")
    left = Left(only(Invoice, lambda one: one.id == mine["id"]), "status")
    for each in (mine, other):
        world.pay_in(each["address"], "eth", 2 * ETHER)
    world.mine(CONFIRMATIONS)
    run(world)
    listed = {one["id"]: one["status"] for one in shown(world, "/v1/invoices/getAll")["data"]}
    assert listed == {mine["id"]: RESTING, other["id"]: "completed"}
    one = shown(world, f"/v1/invoices?id={mine['id']}")
    assert (one["status"], one["received"]) == (RESTING, "2")  # counted, and the merchant's
    assert world.available("eth") == "4"
    completed = [event["data"]["id"] for event in world.get("/v1/events")["data"] if event["event"] == "invoice.completed"]
    assert completed == [other["id"]]
    world.shift += DAY_MS
    third = invoice(world, "three")
    world.shift += DAY_MS
    run(world)
    assert world.get("/v1/invoices", id=third["id"])["status"] == "expired"
    assert (left.item()["status"]["S"], left.works()) == (RESTING, ["expiry"])
    assert any(f"{mine['id']} needs a newer version" in line for line in raised(caplog))
    by_hand = {"invoiceId": mine["id"], "status": "completed"}  # the fence, and not a rule
    refused = world.stack.call("PUT", "/v1/invoices", world.key, json=by_hand)
    assert refused.status == 500
    assert "newer version" in refused.json["error"]
    assert audit(services().store) == []
    left.put("confirming")
    run(world)
    assert world.get("/v1/invoices", id=mine["id"])["status"] == "completed"
    assert left.works() == []


def test_a_deposit(world: World) -> None:
    made = invoice(world, "one")
    world.pay_in(made["address"], "eth", ETHER)
    run(world, 1)
    left = Left(only(Deposit, lambda one: one.address == made["address"]), "status")
    world.pay_in(made["address"], "eth", ETHER)
    world.mine(CONFIRMATIONS)
    run(world)
    assert world.available("eth") == "1"
    assert (left.item(), left.works()) == (left.before, ["deposit"])
    assert {one["status"] for one in shown(world, "/v1/transactions")["data"]} == {RESTING, "confirmed"}
    left.put("pending")
    run(world)
    assert world.available("eth") == "2"
    world.check()


@pytest.mark.parametrize("at", ["asked", pytest.param("broadcasting", marks=pytest.mark.sweep)])
def test_a_withdrawal(world: World, at: str) -> None:
    funded(world)
    mine = withdrawal(world, "one", "0.25")
    if at == "broadcasting":
        run(world)
    left = Left(only(Withdrawal), "status")
    withdrawal(world, "two", "0.5")
    run(world)
    world.mine(CONFIRMATIONS)
    run(world)
    paid = ETHER // 2 + (ETHER // 4 if at == "broadcasting" else 0)
    assert sent(world) == paid
    assert (left.item(), left.works()) == (left.before, ["payout" if at == "asked" else "sent"])
    assert {one["status"] for one in shown(world, "/v1/withdrawals")["data"]} == {RESTING, "confirmed"}
    assert shown(world, f"/v1/withdrawals/{mine}")["data"]["status"] == RESTING
    assert audit(services().store) == []
    left.put("pending" if at == "asked" else "broadcasting")
    run(world)
    world.mine(CONFIRMATIONS)
    run(world)
    assert sent(world) == ETHER * 3 // 4
    assert left.works() in ([], ["settled"])
    world.check()


def test_an_order(world: World) -> None:
    funded(world)
    mine = withdrawal(world, "one", "0.25")
    run(world)
    left = Left(only(PaymentOrder), "state")
    withdrawal(world, "two", "0.5")
    run(world)
    world.mine(CONFIRMATIONS)
    run(world)
    assert left.item() == left.before
    statuses = {one["id"]: one["status"] for one in world.get("/v1/withdrawals")["data"]}
    assert statuses.pop(mine) in ("broadcasting", "confirming")
    assert set(statuses.values()) == {"confirmed"}
    assert audit(services().store) == []
    left.put("signed")
    run(world)
    assert {one["status"] for one in world.get("/v1/withdrawals")["data"]} == {"confirmed"}
    world.check()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def test_a_delivery(world: World, receiver: Receiver) -> None:
    world.stack.call("POST", "/v1/webhooks", world.key, json={"url": receiver.url(), "events": ["*"]})
    receiver.behaviours[:] = [answer(500)]
    invoice(world, "one")
    run(world, 1)
    left = Left(only(Delivery), "status")
    receiver.behaviours[:] = [answer(200)]
    before = len(receiver.received)
    other = invoice(world, "two")
    world.shift += DAY_MS
    run(world)
    told = [json.loads(request.body) for request in receiver.received[before:]]
    assert [event["data"]["id"] for event in told if event["event"] == "invoice.created"] == [other["id"]]
    assert (left.item(), left.works()) == (left.before, ["delivery"])
    left.put("pending")
    run(world)
    assert left.item()["status"]["S"] == "delivered"


def listed(world: World, **query: str) -> list[str]:
    """The ids of a whole list, page by page."""
    found, cursor = list[str](), None
    while True:
        page = world.get("/v1/invoices/getAll", **query, **({} if cursor is None else {"cursor": cursor}))
        found += [one["id"] for one in page["data"]]
        cursor = page["meta"]["pagination"]["next_cursor"]
        if cursor is None:
            return found


def test_a_form(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A record in a form that this version does not understand: nobody reads it, and nobody writes or removes it. Lists are whole
    without it."""
    other, mine = invoice(world, "one"), invoice(world, "two")
    left = Left(only(Invoice, lambda one: one.id == mine["id"]), "status")
    left.put("pending")
    left.form(1)
    refused = world.stack.call("GET", "/v1/invoices", world.key, query={"id": mine["id"]})
    assert (refused.status, refused.headers["retry-after"]) == (500, "120")
    assert "newer version" in refused.json["error"]
    third = invoice(world, "three")
    assert listed(world, limit="1") == listed(world, limit="1", status="pending") == [third["id"], other["id"]]
    assert listed(world, limit="10", sort="amount", order="asc") == [other["id"], third["id"]]
    for each in (mine, other):
        world.pay_in(each["address"], "eth", 2 * ETHER)
    world.mine(CONFIRMATIONS)
    run(world)
    assert world.get("/v1/invoices", id=other["id"])["status"] == "completed"
    assert (left.item(), left.works()) == (left.before, ["expiry"])
    assert any(f"{mine['id']} needs a newer version of the service: it has the form 1" in line for line in raised(caplog))
