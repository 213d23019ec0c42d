"""Collection on a simulated network: from deposits to the service wallets, by HTTP, schedules and queues alone.

What it waits for and what parks it, reason by reason: `tests/unit/treasury/test_collecting.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.treasury.collections import Collection
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.cli import main
from infra.local.aws import Snapshot
from tests.support.collected_deposits import go, later, listed, moves, only, pay, settings, settle
from tests.support.shop import ETHER, Shop
from tests.support.stack import Stack
from tests.support.treasury import address_of, booked, cold, register, same
from tests.support.webhooks import a_listener

USDT = 10**6
HOT_ETHER = 1_000_000
"""What the simulated hot wallets begin with."""
Prepared = tuple[Stack, Snapshot, Snapshot, Snapshot, str]
HANDLERS = ("poll_ethereum", "relay", "payout", "collect")


@pytest.fixture(scope="module")
def prepared(started_stack: Stack) -> Iterator[Prepared]:
    """A service that has seen its hot wallets funded; the same with a collection of 500 USDT whose top-up is sent, and with one
    that is at its end; the address."""
    stack = started_stack
    with stack.aws.active():
        stack.reset()
        shop = Shop(stack)
        shop.turn()
        funded = stack.snapshot()
        settings(shop, "usdt", collectThreshold="0")
        address = pay(shop, "500")
        begun = stack.snapshot()
        settle(shop, 2)
        swept = stack.snapshot()
    yield stack, funded, begun, swept, address


def at(stack: Stack, snapshot: Snapshot) -> Iterator[Shop]:
    with stack.aws.active():
        stack.restore(snapshot)
        yield Shop(stack)
        assert audit(services().store) == []


@pytest.fixture
def shop(prepared: Prepared) -> Iterator[Shop]:
    yield from at(prepared[0], prepared[1])


@pytest.fixture
def begun(prepared: Prepared) -> Iterator[Shop]:
    """The top-up of the collection is sent."""
    yield from at(prepared[0], prepared[2])


@pytest.fixture
def swept(prepared: Prepared) -> Iterator[Shop]:
    """The collection is at its end, a moment ago."""
    yield from at(prepared[0], prepared[3])


@pytest.fixture
def address(prepared: Prepared) -> str:
    """Whose collection has `begun`, or is `swept`."""
    return prepared[4]


def decide(shop: Shop, id: str, action: str, **more: Any) -> Any:
    key = shop.stack.keys["admin_test"]
    return shop.stack.call("PUT", f"/v1/collections/{id}", key, json={"action": action, **more})


def test_a_token_is_swept_to_the_collector_and_shared_out(shop: Shop) -> None:
    collector, far, hot = register(shop, "collector"), cold(shop), shop.hot().address
    before = booked(shop, hot, "usdt")
    settings(shop, "usdt", collectThreshold="100", collectPercentageHot=30, collectServiceToColdThreshold="1500")
    address = pay(shop, "1000.000001")
    deposits = len(list(services().store.every(Deposit)))
    found = only(shop)
    assert (found["status"], found["amount"], found["destination"]) == ("topup_sent", "1000.000001", collector)
    settle(shop)
    assert only(shop)["status"] == "sweep_sent"
    settle(shop)
    swept = only(shop, status="swept")
    assert (swept["arrived"], swept["reason"], swept["nextLookAt"]) == ("1000.000001", None, None)
    (topup,), (sweep,) = moves("topup"), moves("sweep")
    assert (swept["topups"], swept["sweeps"], swept["hash"]) == ([topup.id], [sweep.id], sweep.txid)
    assert (topup.source, sweep.recipient, sweep.path) == (hot, collector, address_of(address).path)
    # What is left of the fee's coins stays there and is known; the merchant has what it had.
    assert same(shop, address, "eth") == topup.amount - sweep.fee > 0
    assert same(shop, collector, "usdt") == 1000 * USDT + 1
    assert shop.available("usdt") == "1000.000001"
    # Not enough yet for the way on; then it is, and the next top-up is smaller by what was left.
    assert moves("distribution") == []
    pay(shop, "600", address=address)
    settle(shop, 2)
    assert moves("topup")[1].amount == sweep.fee
    settle(shop, 2)
    assert same(shop, collector, "usdt") == 0
    assert same(shop, far, "usdt") == 1120 * USDT + 1
    assert same(shop, hot, "usdt") == before + 480 * USDT
    assert {d.tenant is None for d in services().store.every(Deposit) if d.address in (hot, far, collector)} <= {True}
    assert len(list(services().store.every(Deposit))) == deposits + 1
    same(shop, hot, "eth")


def test_native_coins_go_to_the_hot_wallet_in_one_move(shop: Shop) -> None:
    settings(shop, "eth", collectThreshold=0)
    address, before = pay(shop, "1", "eth"), booked(shop, shop.hot().address, "eth")
    assert only(shop)["status"] == "sweep_sent"
    settle(shop)
    (sweep,) = moves("sweep")
    assert only(shop)["status"] == "swept" and moves("topup") == []
    assert same(shop, address, "eth") == 0
    assert same(shop, shop.hot().address, "eth") == before + ETHER - sweep.fee
    # Another one for what comes later; an archived address is collected as well.
    assert shop.stack.call("DELETE", f"/v1/addresses/{address}", shop.stack.keys["client_test"]).status == 200
    pay(shop, "2", "eth", address=address)
    settle(shop)
    assert [c["status"] for c in listed(shop)] == ["swept", "swept"]


def test_above_the_threshold_an_operator_is_asked(shop: Shop) -> None:
    settings(shop, "usdt", approveThreshold="1000")
    other = shop.invoice("2000", "usdt")["address"]
    shop.pay(other, "2000", "usdt")
    address = pay(shop, "1000.5")
    found, doubtful = (only(shop, status="waits_for_approval", address=one) for one in (address, other))
    for action in ("retry", "approve"):
        live = shop.stack.call("PUT", f"/v1/collections/{found['id']}", shop.stack.keys["admin_live"], json={"action": action})
        assert (live.status, live.json["error"]["code"]) == (404, "NOT_FOUND")
    assert decide(shop, found["id"], "retry").json["error"]["code"] == "VALIDATION_ERROR"
    assert decide(shop, found["id"], "approve", reason="").json["error"]["code"] == "INVALID_PARAMETER"
    assert only(shop, address=address) == found
    agreed = decide(shop, found["id"], "approve", reason="looked at")
    assert (agreed.json["status"], agreed.json["approvedAmount"], agreed.json["note"]) == ("planned", "1000.5", "looked at")
    for action in ("approve", "reject", "retry"):
        assert decide(shop, found["id"], action).json["error"]["code"] == "VALIDATION_ERROR"
    assert decide(shop, doubtful["id"], "reject", reason="no").json["status"] == "rejected"
    later(shop, 3600)
    assert {c["id"]: c["status"] for c in listed(shop)} == {found["id"]: "topup_sent", doubtful["id"]: "rejected"}


def test_the_hot_wallets_floor_is_watched_by_the_poll(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    settings(shop, "eth", hotFloor=str(HOT_ETHER + 1))
    with caplog.at_level(logging.ERROR):
        later(shop, 31), later(shop, 31)
    assert len([r for r in caplog.records if "less than its floor" in r.getMessage()]) == 1


def test_held_money_parks_and_goes_on_when_it_is_released(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    settings(shop, "usdt", collectThreshold="0")
    admin = shop.stack.keys["admin_test"]
    evil = {"network": "ethereum", "address": "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"}
    shop.stack.call("POST", "/v1/addresses/grey-list", admin, json=evil)
    invoice = shop.invoice("700", "usdt")
    paid = {"address": invoice["address"], "network": "ethereum", "coin": "usdt", "amount": "700", "from": evil["address"]}
    assert shop.post("/v1/sandbox/deposits", paid).status == 201
    other = shop.invoice("800", "usdt")["address"]
    shop.stack.call("POST", "/v1/addresses/grey-list", admin, json={"network": "ethereum", "address": other})
    shop.pay(other, "800", "usdt")
    pay(shop, "900")
    parked = {c["amount"]: c["reason"] for c in listed(shop, status="parked")}
    assert parked == {"700": "held", "800": "grey_listed"}
    assert only(shop, status="topup_sent")["amount"] == "900"
    assert caplog.text.count("is parked") == 2
    # Released, it goes on by itself; off the list, an operator says so.
    (deposit,) = (d for d in services().store.every(Deposit) if d.held)
    assert shop.stack.call("POST", f"/v1/transactions/{deposit.id}/release", admin).status == 200
    shop.stack.call("DELETE", "/v1/addresses/grey-list", admin, json={"network": "ethereum", "address": other})
    assert decide(shop, only(shop, status="parked", address=other)["id"], "retry").status == 200
    later(shop, 1)
    go(shop)
    assert {c["status"] for c in listed(shop)} == {"topup_sent"}


def test_a_sweep_that_fails_on_the_chain_is_parked_and_can_be_retried(begun: Shop, address: str) -> None:
    shop = begun
    shop.mine()
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    (sweep,) = moves("sweep")
    shop.chain().plan(sweep.id, "fail")
    go(shop)
    settle(shop)
    found = only(shop)
    assert (found["status"], found["reason"]) == ("parked", "reverted")
    assert booked(shop, address, "usdt") == 500 * USDT
    assert decide(shop, found["id"], "retry").json["status"] == "planned"
    later(shop, 1)
    settle(shop, 2)  # its fee was burnt
    assert (only(shop)["status"], len(only(shop)["sweeps"])) == ("swept", 2)


def test_coins_that_fell_out_are_not_waited_for(shop: Shop) -> None:
    settings(shop, "usdt", collectThreshold="0")
    address = shop.invoice("500", "usdt")["address"]
    (merchant,) = {invoice.tenant for invoice in services().store.every(Invoice)}
    services().store.commit([Save(a_listener(merchant))])  # the hint comes behind the poll, by the outbox
    shop.pay(address, "500", "usdt")
    shop.mine()
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    shop.stack.drain(only=("relay",), rounds=2)
    assert "collectable" in {work.kind for work in services().store.every_work()}
    shop.reorg(13)
    go(shop, 2)
    assert listed(shop) == [] and "collectable" not in {work.kind for work in services().store.every_work()}
    # Lost after its top-up was sent: the top-up stays there, and the next collection needs none.
    pay(shop, "600", address=address)
    assert only(shop, status="topup_sent")["amount"] == "600"
    shop.reorg(14)
    go(shop, 2)
    settle(shop, 2)
    assert [c["status"] for c in listed(shop)] == ["dropped"]
    pay(shop, "700", address=address)
    settle(shop)
    assert booked(shop, address, "usdt") == 0 and len(moves("topup")) == 1


def test_a_settled_sweep_that_fails_after_all_is_made_again(swept: Shop, address: str) -> None:
    """A reorganisation undoes it once its collection is at its end, and in the new branch it moves nothing."""
    shop = swept
    (sweep,) = moves("sweep")
    assert only(shop)["status"] == "swept" and sweep.txid is not None
    shop.reorg(13)
    shop.chain().settle(sweep.txid, "fail")
    shop.mine()
    go(shop)
    assert [(m.state, m.round) for m in moves("sweep")] == [("failed", 1)]
    assert booked(shop, address, "usdt") == 500 * USDT
    go(shop)
    settle(shop, 2)
    assert [c["status"] for c in listed(shop)] == ["swept", "swept"]
    assert same(shop, address, "usdt") == 0


def test_the_hot_wallets_ceiling_leaves_what_open_withdrawals_need(shop: Shop) -> None:
    hot = shop.hot().address
    admin, client = shop.stack.keys["admin_test"], shop.stack.keys["client_test"]
    pay(shop, "5", "eth")
    settings(shop, "eth", hotCeiling=str(HOT_ETHER - 100))
    later(shop, 31)
    # What keeps it there is said to operators.
    path = "/v1/addresses/hot-wallet/ethereum"
    waits = {b["coin"]: b["waits"] for b in shop.stack.call("GET", path, admin).json["balances"]}
    assert waits == dict.fromkeys(waits) | {"eth": "no_wallet: no cold wallet is registered"}
    assert all("waits" not in b for b in shop.stack.call("GET", path, client).json["balances"])
    far = cold(shop)
    later(shop, 31)
    settle(shop)
    (first,) = moves("cold")
    assert first.path is None and same(shop, far, "eth") == first.amount
    assert same(shop, hot, "eth") == (HOT_ETHER - 100) * ETHER
    # Below a ceiling of nothing, what is open stays.
    shop.stack.drain(only=("relay",), rounds=1)
    shop.withdraw("2", "eth", address="0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe")
    settings(shop, "eth", hotCeiling="1")
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    second = moves("cold")[-1]
    assert second.amount < (HOT_ETHER - 100 - 2) * ETHER
    go(shop)
    settle(shop)
    assert moves("cold")[-1].state == "settled"


def test_the_list_and_its_records(begun: Shop, address: str) -> None:
    shop = begun
    found = only(shop)
    admin, client, live = (shop.stack.keys[name] for name in ("admin_test", "client_test", "admin_live"))
    assert shop.stack.call("GET", f"/v1/collections/{found['id']}", admin).json == found
    for key, status in ((client, 403), (live, 404)):
        assert shop.stack.call("GET", f"/v1/collections/{found['id']}", key).status == status
        assert shop.stack.call("PUT", f"/v1/collections/{found['id']}", key, json={"action": "retry"}).status == status
    assert shop.stack.call("GET", "/v1/collections", live).json["data"] == []
    assert decide(shop, found["id"], "burn").json["error"]["code"] == "INVALID_PARAMETER"
    assert decide(shop, "col_nothing", "retry").status == 404
    for query in ({"address": address}, {"network": "ethereum"}, {"coin": "usdt"}, {"id": found["id"]}, {"status": "topup_sent"}):
        assert [c["id"] for c in listed(shop, **query)] == [found["id"]], query
    for query in ({"network": "bsc"}, {"coin": "eth"}, {"status": "swept"}, {"id": "col_x"}):
        assert listed(shop, **query) == [], query


def test_the_command_asks_for_what_came_before(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    address = pay(shop, "500")
    assert listed(shop) == [] and moves("topup") == []  # nothing is collected that nobody asked for
    words = ["--stage", "local", "collect", "--realm", "test", "--network", "ethereum", "--coin", "usdt"]
    assert main(words) == 1 and "is not collected" in capsys.readouterr().err
    settings(shop, "usdt", collectThreshold="0")
    assert main(words) == 0 and "addresses with usdt" in capsys.readouterr().out
    go(shop)
    assert (only(shop)["address"], only(shop)["status"]) == (address, "topup_sent")
    assert main(words) == 0
    go(shop)
    assert [c for c in services().store.every(Collection) if c.address != address] == []


def test_a_cross_address_is_collected_on_each_network(shop: Shop) -> None:
    for network in ("ethereum", "polygon"):
        body = {"coin": "usdt", "network": network, "collectThreshold": "0"}
        assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=body).status == 200
    made = shop.post("/v1/addresses", {"network": "ethereum", "mode": "cross"})
    address = made.json["address"]
    both = [shop, Shop(shop.stack, network="polygon")]
    for each in both:
        each.pay(address, "500", "usdt")
        each.mine(20)
        go(each, 2)
    for _ in range(2):
        both[1].mine(20)
        go(both[1])
    assert sorted((c["network"], c["status"]) for c in listed(shop)) == [("ethereum", "topup_sent"), ("polygon", "swept")]


def test_a_reorganisation_takes_deposit_and_sweep_and_the_books_stay_whole(swept: Shop, address: str) -> None:
    shop, hot = swept, swept.hot().address
    before = booked(shop, hot, "usdt") - 500 * USDT
    assert only(shop)["status"] == "swept"
    shop.reorg(40)
    shop.stack.drain(only=HANDLERS, failures="count", hurry=True, rounds=3)
    assert shop.available("usdt") == "0"
    shop.wait(61)
    settle(shop)
    assert audit(services().store) == []
    # The sweep can not be made any more. What is paid anew is collected like anything else.
    shop.pay(address, "500", "usdt")
    for _ in range(3):
        shop.wait(61)
        settle(shop)
    assert same(shop, hot, "usdt") == before + 500 * USDT and same(shop, address, "usdt") == 0
    assert shop.available("usdt") == "500"
