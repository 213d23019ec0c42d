"""One record that a newer version stored, in a state or a form of its own, stops no other record of its network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import boto3
import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.reconciliation import Comparison, ComparisonReport
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import EventRecord, event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Command, OutboxRow, outbox_id
from chalicelib.store.newer import NOTHING, Newer, Unknown
from chalicelib.store.schema import where_is
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.ports.changes import Conflict, Emit
from chalicelib.usecases.ports.queues import COMPARISON_VERSION
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.reorganisations import Reorganisations
from chalicelib.usecases.webhooks.relay import Relay
from chalicelib.wiring import services
from chalicelib.workers import compare
from tests.faults.left_to_newer import DAY_MS, Left, invoice, only, run, sent, withdrawal
from tests.support.alarms import raised
from tests.support.cuts import Cutter
from tests.support.memory_store import HandClock, MemoryQueues
from tests.support.paths import CONFIRMATIONS, ETHER, funded
from tests.support.receiver import Receiver, answer
from tests.support.stack import Stack
from tests.support.world import NETWORK, World


@pytest.fixture
def world(stack: Stack) -> World:
    return World(stack, Cutter())


def pay(world: World, token: str, units: int) -> str:
    """The address of an invoice that is paid now."""
    address = str(invoice(world, token)["address"])
    world.pay_in(address, "eth", units)
    return address


def paid(world: World, token: str, units: int) -> Deposit:
    address = pay(world, token, units)
    run(world, 1)
    found: Deposit = only(Deposit, lambda one: one.address == address)
    return found


def told_of(deposit: Deposit, lines: Sequence[str]) -> bool:
    return any(deposit.id in line and "needs a newer version" in line for line in lines)


def cursor() -> Cursor:
    found = services().store.get(Cursor, network=f"test:{NETWORK}")
    assert found is not None
    return found


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("status", ["pending", "confirmed"])
def test_a_deposit_whose_block_falls_out(
    world: World, status: str, form: bool, again: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The scan goes on, and the deposit is orphaned once its state is known again. `again`: its payment is in another block, by
    which it is credited then."""
    deposit = paid(world, "one", ETHER)
    if status == "confirmed":
        world.mine(CONFIRMATIONS)
        run(world, 1)
        assert world.available("eth") == "1"
    left = Left(deposit, "status")
    if form:
        left.put(status)
        left.form(1)
    depth = CONFIRMATIONS + 2 if status == "confirmed" else 2
    services().sandbox.reorg(NetworkId(f"test:{NETWORK}"), depth, again)
    world.mine(depth)
    pay(world, "two", 2 * ETHER)
    world.mine(CONFIRMATIONS)
    run(world)
    assert world.available("eth") == ("3" if status == "confirmed" else "2")
    assert left.item() == left.before
    assert cursor().fallen == (deposit.block_hash,)
    lines = raised(caplog)
    assert told_of(deposit, lines)
    assert not any("is spent" in line for line in lines)
    if form:
        left.unform()
    else:
        left.put(status)
    run(world)
    assert cursor().fallen is None
    world.mine(CONFIRMATIONS)
    run(world)
    found = services().store.get(Deposit, id=deposit.id)
    assert found is not None and found.status == ("confirmed" if again else "orphaned")
    assert world.available("eth") == ("3" if again else "2")
    assert audit(services().store) == []
    world.check()


def test_a_rescan_comes_before_the_poll(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its payment is in another block, which is looked at while the credit by the block that fell out still stands."""
    deposit = paid(world, "one", ETHER)
    world.mine(CONFIRMATIONS)
    run(world, 1)
    left = Left(deposit, "status")
    services().sandbox.reorg(NetworkId(f"test:{NETWORK}"), CONFIRMATIONS + 2, remine=True)
    run(world)
    assert cursor().fallen == (deposit.block_hash,)
    left.put("confirmed")
    with monkeypatch.context() as late:
        late.setattr(Reorganisations, "orphan_left", lambda _, cursor, more: cursor)
        world.mine(CONFIRMATIONS)
        run(world)
    found = services().store.get(Deposit, id=deposit.id)
    assert found is not None and (found.status, found.round) == ("confirmed", 1) and found.block_hash != deposit.block_hash
    run(world)
    assert cursor().fallen is None and world.available("eth") == "1"
    assert audit(services().store) == []
    world.check()


def test_a_deposit_in_a_newer_form(world: World, caplog: pytest.LogCaptureFixture) -> None:
    deposit = paid(world, "one", ETHER)
    left = Left(deposit, "status")
    left.put("pending")
    left.form(1)
    pay(world, "two", 2 * ETHER)
    world.mine(CONFIRMATIONS)
    run(world)
    assert world.available("eth") == "2"
    assert (left.item(), left.works()) == (left.before, ["deposit"])
    assert told_of(deposit, raised(caplog))
    left.unform()
    run(world)
    assert world.available("eth") == "3"
    world.check()


@pytest.mark.parametrize("at", ["asked", "broadcasting"])
def test_a_withdrawal_in_a_newer_form(world: World, at: str, caplog: pytest.LogCaptureFixture) -> None:
    funded(world)
    mine = withdrawal(world, "one", "0.25")
    if at == "broadcasting":
        run(world)
    stored = only(Withdrawal)
    left = Left(stored, "status")
    left.put(stored.status)
    left.form(1)
    withdrawal(world, "two", "0.5")
    withdrawal(world, "three", "0.125")
    run(world)
    world.mine(CONFIRMATIONS)
    run(world)
    before = ETHER // 4 if at == "broadcasting" else 0
    assert sent(world) == before + ETHER * 5 // 8
    assert left.item() == left.before
    if stored.txid is not None:
        assert world.get("/v1/withdrawals", transaction_hash=stored.txid)["data"] == []
    assert any(mine in line and "needs a newer version" in line for line in raised(caplog))
    left.unform()
    world.shift += DAY_MS
    run(world)
    world.mine(CONFIRMATIONS)
    run(world)
    assert sent(world) == ETHER * 7 // 8
    assert {one["status"] for one in world.get("/v1/withdrawals")["data"]} == {"confirmed"}
    assert audit(services().store) == []
    world.check()


def test_an_order_in_a_newer_form(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Other payments are paid and settled. The network is not compared with the chain before it can be read; others are."""
    funded(world)
    mine = withdrawal(world, "one", "0.25")
    run(world)
    stored = only(PaymentOrder)
    left = Left(stored, "state")
    left.put(stored.state)
    left.form(1)
    withdrawal(world, "two", "0.5")
    run(world)
    world.mine(CONFIRMATIONS)
    run(world)
    statuses = {one["id"]: one["status"] for one in world.get("/v1/withdrawals")["data"]}
    assert statuses.pop(mine) in ("broadcasting", "confirming")
    assert set(statuses.values()) == {"confirmed"}
    assert left.item() == left.before
    assert any(stored.id in line and "needs a newer version" in line for line in raised(caplog))
    assert [compared(slug) for slug in (NETWORK, "bitcoin")] == [None, True]
    open_ = services().store.get(Comparison, network=f"test:{NETWORK}")
    assert open_ is not None and open_.open and "which this version does not know" in str(open_.trouble)
    left.unform()
    assert compared(NETWORK) is True
    run(world)
    assert {one["status"] for one in world.get("/v1/withdrawals")["data"]} == {"confirmed"}
    world.check()


def compared(slug: str) -> bool | None:
    """Whether the ledger and the chain agree; None where they could not be compared."""
    compare.handle(json.dumps({"version": COMPARISON_VERSION, "realm": "test", "network": slug}))
    found = services().store.get(ComparisonReport, network=f"test:{slug}")
    return None if found is None else found.clean


def test_a_delivery_in_a_newer_form(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with Receiver() as receiver:
        world.stack.call("POST", "/v1/webhooks", world.key, json={"url": receiver.url(), "events": ["*"]})
        receiver.behaviours[:] = [answer(500)]
        invoice(world, "one")
        run(world, 1)
        left = Left(only(Delivery), "status")
        left.put("pending")
        left.form(1)
        receiver.behaviours[:] = [answer(200)]
        before = len(receiver.received)
        other = invoice(world, "two")
        world.shift += DAY_MS
        run(world)
        told = [json.loads(request.body) for request in receiver.received[before:]]
        assert [event["data"]["id"] for event in told if event["event"] == "invoice.created"] == [other["id"]]
        assert (left.item(), left.works()) == (left.before, ["delivery"])
        assert any(left.record.id in line and "needs a newer version" in line for line in raised(caplog))
        left.unform()
        run(world)
        assert left.item()["status"]["S"] == "delivered"


def test_an_outbox_row_in_a_newer_form(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody tells it, writes over it or removes it."""
    with Receiver() as receiver:
        world.stack.call("POST", "/v1/webhooks", world.key, json={"url": receiver.url(), "events": ["*"]})
        run(world, 1)
        mine = invoice(world, "one")
        left = Left(only(OutboxRow), "hue")
        left.form(1)
        other = invoice(world, "two")
        run(world)
        assert [event["data"]["id"] for event in told(receiver, "invoice.created")] == [other["id"]]
        assert (left.item(), left.works()) == (left.before, ["outbox"])
        with pytest.raises(Conflict):
            services().store.commit([Emit(left.record)])
        assert left.item() == left.before
        assert any(left.record.id in line and "needs a newer version" in line for line in raised(caplog))
        left.unform()
        run(world)
        assert {event["data"]["id"] for event in told(receiver, "invoice.created")} == {mine["id"], other["id"]}
        assert left.works() == []


def told(receiver: Receiver, name: str) -> list[Any]:
    events = [json.loads(request.body) for request in receiver.received]
    return [event for event in events if event["event"] == name]


def test_an_event_that_a_newer_version_stored_before_it_died(stack: Stack) -> None:
    """This version tells its row again: what the newer one said of the event stays, and nothing else is needed of its record."""
    store, at = services().store, 1_800_000_000_000
    event = Event("evt_1", TenantId("mch_1:test"), "invoice.paid", "inv_1", 1, at, {"id": "inv_1"}, more={"hue": "blue"})
    row = OutboxRow(outbox_id("out_1", [event]), at, (event,), (Command("payouts", "test:ethereum", {"id": "wd_1"}),))
    store.commit([Emit(row)])
    store.put_all([event_record(event, "2027-01-15T08:00:00.000Z", at)])
    left = Left(store.get(EventRecord, tenant=event.tenant, id=event.id), "hue")
    left.form(1)
    assert Relay(store, MemoryQueues(), HandClock(at)).tell(row.id)
    again = store.get(EventRecord, tenant=event.tenant, id=event.id)
    assert again is not None and json.loads(again.body)["hue"] == "blue"
    assert store.get(OutboxRow, id=row.id) is None


def test_two_kinds_share_an_id() -> None:
    """That one record is known again says nothing about another one with the same id."""
    newer, resting = Newer(), Unknown(state="resting")
    stray, deposit = ("chain", "stray#eth", "tx_1"), ("records", "tx#tx_1", "-")
    newer.remember(stray, 1, resting)
    newer.remember(deposit, 1, resting)
    assert newer.is_left(stray) and newer.is_left(deposit)
    newer.remember(deposit, 2, NOTHING)
    assert newer.is_left(stray) and not newer.is_left(deposit) and newer.left_by("tx_1") == stray
    newer.remember(stray, 2, NOTHING)
    assert newer.left_by("tx_1") is None and not newer.is_left(stray)


def test_a_cursor_keeps_what_a_newer_version_noted(world: World) -> None:
    run(world, 1)
    before, client = cursor(), boto3.client("dynamodb", region_name="eu-central-1")
    where = where_is(Cursor)
    place: dict[str, Any] = {
        "TableName": services().store.models.table(where.table),
        "Key": {"pk": {"S": where.pk(before)}, "sk": {"S": where.sk(before)}},
    }
    noted: Any = {":noted": {"S": "by a later version"}}
    client.update_item(**place, UpdateExpression="SET later = :noted", ExpressionAttributeValues=noted)
    world.mine(3)
    run(world, 1)
    assert cursor().number == before.number + 3
    assert client.get_item(**place)["Item"]["later"] == noted[":noted"]


@pytest.mark.parametrize("form", [0, 1])
def test_an_answer_that_a_newer_version_stored(world: World, form: int) -> None:
    """Read where an attribute is unknown; where its form is, the request waits for that version, and nothing is made twice."""
    body = {"currency": "eth", "amount": "2", "network": NETWORK}
    first = world.request("POST", "/v1/invoices", body, "once")
    stored, client = only(StoredAnswer), boto3.client("dynamodb", region_name="eu-central-1")
    where = where_is(StoredAnswer)
    client.update_item(
        TableName=services().store.models.table(where.table),
        Key={"pk": {"S": where.pk(stored)}, "sk": {"S": where.sk(stored)}},
        UpdateExpression="SET later = :one, s = :form" if form else "SET later = :one",
        ExpressionAttributeValues={":one": {"N": "1"}} | ({":form": {"N": str(form)}} if form else {}),
    )
    again = world.stack.call("POST", "/v1/invoices", world.key, json=body, headers={"Idempotency-Key": "once"})
    if form:
        assert again.status == 500 and "newer version" in again.json["error"]
    else:
        assert (again.status, again.json) == (201, first.json)
    assert len(list(services().store.every(Invoice))) == 1
