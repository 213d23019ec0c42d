"""Collection on a simulated network: from deposits to the service wallets, by HTTP, schedules and queues alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.collecting import Collection
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.moves import Move
from chalicelib.usecases.audit import audit
from chalicelib.wiring import services
from infra.cli import main
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.treasury import address_of, booked, cold, register, same

USDT = 10**6
HOT_ETHER = 1_000_000
"""What the simulated hot wallets begin with."""


@pytest.fixture
def shop(stack) -> Iterator[Shop]:
    with open_shop(stack) as found:
        yield found


def settings(shop: Shop, coin: str, **wanted: Any) -> None:
    body = {"coin": coin, "network": shop.network, **wanted}
    answer = shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=body)
    assert answer.status == 200, answer.body


def listed(shop: Shop, **query: Any) -> list[Any]:
    answer = shop.stack.call("GET", "/v1/collections", shop.stack.keys["admin_test"], query=query)
    assert answer.status == 200, answer.body
    return list(answer.json["data"])


def only(shop: Shop, **query: Any) -> Any:
    (found,) = listed(shop, **query)
    return found


def decide(shop: Shop, id: str, action: str, **more: Any) -> Any:
    key = shop.stack.keys["admin_test"]
    return shop.stack.call("PUT", f"/v1/collections/{id}", key, json={"action": action, **more})


def pay(shop: Shop, amount: str, coin: str = "usdt", address: str | None = None) -> str:
    """A deposit, credited; the address."""
    address = address or shop.invoice(amount, coin)["address"]
    shop.pay(address, amount, coin)
    shop.mine()
    go(shop, 3)
    return address


def go(shop: Shop, rounds: int = 2) -> None:
    """The poll and the queues, so often: nobody waits for a round in which nothing happens."""
    only = (f"poll_{shop.network}", "relay", "payout", "collect")
    shop.stack.drain(only=only, hurry=True, rounds=rounds)


def settle(shop: Shop, times: int = 1) -> None:
    """What is signed is final, and what follows from it is sent."""
    for _ in range(times):
        shop.mine()
        go(shop)


def later(shop: Shop, seconds: int) -> None:
    shop.wait(seconds)
    go(shop)


def moves(kind: str) -> list[Move]:
    return sorted((m for m in services().store.every(Move) if m.kind == kind), key=lambda m: m.created_at)


def test_a_token_is_swept_to_the_collector_and_shared_out(shop):
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


def test_native_coins_go_to_the_hot_wallet_in_one_move(shop):
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


def test_below_the_threshold_the_next_deposit_asks_again_and_what_is_too_small_stays(shop):
    settings(shop, "usdt", useUsdLimits=True, collectThreshold="1000", minDepositAmount="5")
    address = pay(shop, "999.99")
    assert listed(shop) == [] and "collectable" not in {w.kind for w in services().store.every_work()}
    pay(shop, "4.99", address=address)
    assert listed(shop) == []
    pay(shop, "5", address=address)
    assert only(shop, coin="usdt", network="ethereum")["amount"] == "1004.99"
    settle(shop, 2)
    assert (only(shop)["status"], only(shop)["arrived"]) == ("swept", "1004.99")
    assert same(shop, address, "usdt") == 4_990_000
    assert listed(shop, status="planned") == []


def test_above_the_threshold_an_operator_is_asked(shop):
    settings(shop, "usdt", approveThreshold="1000")
    address = pay(shop, "1000.5")
    found = only(shop, status="waits_for_approval")
    pay(shop, "200", address=address)
    assert decide(shop, found["id"], "retry").json["error"]["code"] == "VALIDATION_ERROR"
    agreed = decide(shop, found["id"], "approve", reason="looked at")
    assert (agreed.json["status"], agreed.json["approvedAmount"], agreed.json["note"]) == ("planned", "1000.5", "looked at")
    assert decide(shop, found["id"], "approve").status == 400
    later(shop, 1)
    settle(shop, 2)
    # What came meanwhile has its own collection, which is small enough.
    assert {c["status"]: c["amount"] for c in listed(shop)} == {"swept": "1000.5", "topup_sent": "200"}
    settle(shop, 2)
    assert same(shop, address, "usdt") == 0
    pay(shop, "2000", address=address)
    refused = only(shop, status="waits_for_approval")["id"]
    assert decide(shop, refused, "reject", reason="no").json["status"] == "rejected"
    later(shop, 3600)
    assert [c["id"] for c in listed(shop, status="rejected")] == [refused]
    # A higher threshold lets the next one pass, and takes all there is.
    settings(shop, "usdt", approveThreshold="5000")
    pay(shop, "1", address=address)
    assert only(shop, status="topup_sent")["amount"] == "2001"


def test_a_fee_that_is_a_large_part_waits_and_says_so(shop):
    settings(shop, "usdt", collectThreshold="0")
    address = pay(shop, "50")
    found = only(shop)
    assert (found["status"], found["reason"], found["feeCoin"]) == ("waiting", "fee_share", "eth")
    assert moves("topup") == []
    looks = []
    for _ in range(3):
        later(shop, 1 + 60 * 2 ** len(looks))
        looks.append(only(shop)["nextLookAt"])
    assert len(set(looks)) == 3
    # With more it is worth it; an operator need not wait for the next look.
    pay(shop, "500", address=address)
    assert decide(shop, found["id"], "retry").status == 200
    later(shop, 1)
    assert (only(shop)["status"], only(shop)["amount"]) == ("topup_sent", "550")
    settle(shop, 2)
    assert same(shop, address, "usdt") == 0


def test_a_top_up_waits_for_the_hot_wallets_own_floor(shop, caplog):
    settings(shop, "eth", hotFloor=str(HOT_ETHER))
    settings(shop, "usdt", collectThreshold="0")
    pay(shop, "500")
    assert only(shop)["reason"] == "liquidity"
    later(shop, 61)
    assert only(shop)["reason"] == "liquidity"
    settings(shop, "eth", hotFloor=str(HOT_ETHER - 1))
    later(shop, 121)
    assert only(shop)["status"] == "topup_sent"
    settle(shop, 2)
    assert only(shop)["status"] == "swept"
    # An alarm for each fall below the floor, and no more.
    with caplog.at_level(logging.ERROR):
        settings(shop, "eth", hotFloor=str(HOT_ETHER))
        later(shop, 31), later(shop, 31)
    assert len([r for r in caplog.records if "less than its floor" in r.getMessage()]) == 1


def test_held_money_and_grey_listed_addresses_park_and_the_rest_goes_on(shop, caplog):
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
    parked = {c["amount"]: c for c in listed(shop, status="parked")}
    assert {amount: c["reason"] for amount, c in parked.items()} == {"700": "held", "800": "grey_listed"} or parked
    assert only(shop, status="topup_sent")["amount"] == "900"
    assert caplog.text.count("is parked") == 2
    # Released, it goes on by itself; off the list, an operator says so.
    (deposit,) = (d for d in services().store.every(Deposit) if d.held)
    assert shop.stack.call("POST", f"/v1/transactions/{deposit.id}/release", admin).status == 200
    shop.stack.call("DELETE", "/v1/addresses/grey-list", admin, json={"network": "ethereum", "address": other})
    assert decide(shop, only(shop, status="parked", address=other)["id"], "retry").status == 200
    later(shop, 1)
    settle(shop, 3)
    assert {c["status"] for c in listed(shop)} == {"swept"}


def test_a_sweep_that_fails_on_the_chain_is_parked_and_can_be_retried(shop):
    settings(shop, "usdt", collectThreshold="0")
    address = pay(shop, "500")
    shop.mine()
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    (sweep,) = moves("sweep")
    shop.chain().plan(sweep.id, "fail")
    shop.turn()
    settle(shop)
    found = only(shop)
    assert (found["status"], found["reason"]) == ("parked", "reverted")
    assert booked(shop, address, "usdt") == 500 * USDT
    later(shop, 100_000)
    assert only(shop)["status"] == "parked"
    assert decide(shop, found["id"], "retry").json["status"] == "planned"
    later(shop, 1)
    settle(shop, 2)
    assert (only(shop)["status"], len(only(shop)["sweeps"])) == ("swept", 2)


def test_coins_that_fell_out_are_not_waited_for(shop):
    settings(shop, "usdt", collectThreshold="0")
    address = shop.invoice("500", "usdt")["address"]
    shop.pay(address, "500", "usdt")
    shop.mine()
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    shop.stack.drain(only=("relay",), rounds=2)
    shop.reorg(13)
    shop.turn()
    assert [c["status"] for c in listed(shop)] in ([], ["dropped"])
    # Lost after its top-up was sent: the top-up stays there, and the next collection needs none.
    pay(shop, "600", address=address)
    assert only(shop, status="topup_sent")["amount"] == "600"
    shop.reorg(14)
    shop.turn()
    settle(shop, 2)
    assert [c["status"] for c in listed(shop)] == ["dropped"]
    pay(shop, "700", address=address)
    settle(shop, 2)
    assert booked(shop, address, "usdt") == 0


def test_the_hot_wallets_ceiling_leaves_what_open_withdrawals_need(shop):
    far, hot = cold(shop), shop.hot().address
    shop.credit("5", "eth")
    settings(shop, "eth", hotCeiling=str(HOT_ETHER - 100))
    later(shop, 31)
    settle(shop)
    (first,) = moves("cold")
    assert first.path is None and same(shop, far, "eth") == first.amount
    assert same(shop, hot, "eth") == (HOT_ETHER - 100) * ETHER
    # Below a ceiling of nothing, what is open stays.
    shop.stack.drain(only=("relay",), rounds=1)
    shop.withdraw("2", "eth", address=hot_stranger())
    settings(shop, "eth", hotCeiling="1")
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    second = moves("cold")[-1]
    assert second.amount < (HOT_ETHER - 100 - 2) * ETHER
    shop.turn()
    settle(shop)
    assert moves("cold")[-1].state == "settled"


def hot_stranger() -> str:
    return "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe"


def test_the_list_and_its_records(shop):
    settings(shop, "usdt", collectThreshold="0")
    address = pay(shop, "500")
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


def test_the_command_asks_for_what_came_before(shop, capsys):
    address = pay(shop, "500")
    assert listed(shop) == [] and moves("topup") == []  # nothing is collected that nobody asked for
    words = ["--stage", "local", "collect", "--realm", "test", "--network", "ethereum", "--coin", "usdt"]
    assert main(words) == 1 and "is not collected" in capsys.readouterr().err
    settings(shop, "usdt", collectThreshold="0")
    assert main(words) == 0 and "addresses with usdt" in capsys.readouterr().out
    shop.turn()
    assert only(shop)["address"] == address
    assert main(words) == 0
    settle(shop, 2)
    assert {c["status"] for c in listed(shop)} == {"swept"}
    assert [c for c in services().store.every(Collection) if c.address != address] == []


def test_a_cross_address_is_collected_on_each_network(shop):
    for network in ("ethereum", "polygon"):
        body = {"coin": "usdt", "network": network, "collectThreshold": "0"}
        assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=body).status == 200
    made = shop.post("/v1/addresses", {"network": "ethereum", "mode": "cross"})
    address = made.json["address"]
    both = [shop, Shop(shop.stack, network="polygon")]
    for each in both:
        each.pay(address, "500", "usdt")
    for _ in range(3):
        for each in both:
            each.mine(20)
            each.turn()
    assert sorted((c["network"], c["status"]) for c in listed(shop)) == [("ethereum", "swept"), ("polygon", "swept")]


def test_two_coins_of_one_address_do_not_take_each_others_fee(shop):
    settings(shop, "usdt", collectThreshold="0")
    settings(shop, "eth", collectThreshold="0")
    address = shop.invoice("500", "usdt")["address"]
    shop.pay(address, "1", "eth")
    pay(shop, "500", address=address)
    for _ in range(4):
        shop.wait(61)
        settle(shop)
    assert {c["coin"]: c["status"] for c in listed(shop)} == {"usdt": "swept", "eth": "swept"}
    assert same(shop, address, "usdt") == 0 and same(shop, address, "eth") == 0
    assert audit(services().store) == []


def test_a_reorganisation_takes_deposit_and_sweep_and_the_books_stay_whole(shop):
    settings(shop, "usdt", collectThreshold="0")
    hot = shop.hot().address
    before = booked(shop, hot, "usdt")
    address = pay(shop, "500")
    settle(shop, 2)
    assert only(shop)["status"] == "swept" and booked(shop, hot, "usdt") == before + 500 * USDT
    shop.reorg(40)
    shop.turn(failures="count")
    assert shop.available("usdt") == "0"
    for _ in range(3):
        shop.wait(61)
        settle(shop)
    assert audit(services().store) == []
    # The sweep can not be made any more. What is paid anew is collected like anything else.
    shop.pay(address, "500", "usdt")
    for _ in range(4):
        shop.wait(61)
        settle(shop)
    assert same(shop, hot, "usdt") == before + 500 * USDT and same(shop, address, "usdt") == 0
    assert shop.available("usdt") == "500"
