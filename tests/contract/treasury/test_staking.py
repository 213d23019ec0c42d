"""Staking TRX on the simulated Tron."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.sandbox.sandbox import FAUCET_COINS
from chalicelib.usecases.treasury.tron.stake_booking import StakeBooking
from chalicelib.wiring import services
from tests.support.shop import Shop

TRX = 10**6
CONFIRMATIONS = 19


@pytest.fixture
def tron(stack) -> Iterator[Shop]:
    shop = Shop(stack, network="tron")
    shop.open()
    yield shop
    assert audit(services().store) == []


def stake(shop: Shop, amount: Any, resource: Any = "ENERGY", key: str = "admin_test", **headers: str) -> Any:
    body = {"amount": amount, "resource": resource}
    return shop.stack.call("POST", "/v1/networks/tron/stake", shop.stack.keys[key], json=body, headers=headers)


def listed(shop: Shop) -> Any:
    return shop.stack.call("GET", "/v1/networks/tron/stake", shop.stack.keys["admin_test"]).json


def booked(shop: Shop) -> int:
    """TRX that the ledger has in the hot wallet."""
    place = services().rules.storage_form("tron", shop.hot().address)
    found = services().store.get(WalletBalance, network=shop.realm_network().id, address=place, asset=shop.coin("trx").asset)
    assert found is not None
    return found.units // TRX


def test_staking_freezes_coins_of_the_hot_wallet(tron):
    assert booked(tron) == FAUCET_COINS
    asked = stake(tron, "1000.5", "BANDWIDTH")
    assert asked.status == 201
    assert asked.json == {
        "transactionId": asked.json["transactionId"], "amount": "1000.5", "resource": "BANDWIDTH", "status": "pending",
    }  # fmt: skip
    assert listed(tron) == [asked.json]
    tron.turn()
    assert tron.chain().staked(tron.hot().address) == 1_000_500_000
    assert tron.paid(tron.hot().address, "trx") == FAUCET_COINS * TRX - 1_000_500_000
    assert listed(tron)[0]["status"] == "pending"
    tron.mine(CONFIRMATIONS)
    tron.turn()
    assert listed(tron)[0]["status"] == "confirmed"
    assert booked(tron) == FAUCET_COINS - 1001
    assert services().reader(tron.realm_network()).receipt(asked.json["transactionId"]) is not None
    tron.turn()
    assert tron.chain().staked(tron.hot().address) == 1_000_500_000


def test_more_than_the_wallet_has_is_refused(tron):
    refused = stake(tron, str(FAUCET_COINS + 1))
    assert (refused.status, refused.json["error"]["code"]) == (400, "INSUFFICIENT_BALANCE")
    assert refused.json["error"]["details"] == {"requested": "1000001", "available": "1000000", "coin": "trx"}
    assert stake(tron, str(FAUCET_COINS - 10)).status == 201
    assert stake(tron, "11").json["error"]["code"] == "INSUFFICIENT_BALANCE"
    assert stake(tron, "10").status == 201
    tron.turn()


def test_a_stake_leaves_the_floor_of_the_hot_wallet(tron):
    body = {"coin": "trx", "network": "tron", "hotFloor": "100"}
    assert tron.stack.call("PUT", "/v1/coins", tron.stack.keys["admin_test"], json=body).status == 200
    refused = stake(tron, str(FAUCET_COINS - 99))
    assert (refused.status, refused.json["error"]["code"]) == (400, "INSUFFICIENT_BALANCE")
    assert refused.json["error"]["details"]["available"] == str(FAUCET_COINS - 100)
    assert stake(tron, str(FAUCET_COINS - 100)).status == 201


def test_what_the_chain_refuses_fails_and_moves_nothing(tron):
    """The coins went elsewhere between the order and the poll."""
    assert stake(tron, "600000").status == 201
    other = stake(tron, "400000")
    assert other.status == 201
    tron.chain().stake("elsewhere", tron.hot().address, 500_000 * TRX)
    tron.turn()
    states = {entry["amount"]: entry["status"] for entry in listed(tron)}
    assert states == {"600000": "failed", "400000": "pending"}
    tron.mine(CONFIRMATIONS)
    tron.turn()
    assert {entry["amount"]: entry["status"] for entry in listed(tron)} == {"600000": "failed", "400000": "confirmed"}
    assert booked(tron) == 600_000


def test_a_poll_that_dies_between_chain_and_ledger_stakes_once(tron, monkeypatch):
    stake(tron, "1000")
    tron.turn()
    tron.mine(CONFIRMATIONS)
    store = services().store
    real = store.commit

    def dies(changes: Any) -> None:
        if any(isinstance(getattr(change, "record", None), Stake) for change in changes):
            raise Conflict(None)
        real(changes)

    monkeypatch.setattr(store, "commit", dies)
    tron.turn()
    monkeypatch.setattr(store, "commit", real)
    assert (listed(tron)[0]["status"], booked(tron)) == ("pending", FAUCET_COINS)
    tron.turn()
    assert (listed(tron)[0]["status"], booked(tron)) == ("confirmed", FAUCET_COINS - 1000)
    assert tron.chain().staked(tron.hot().address) == 1000 * TRX


def test_a_stake_that_falls_out_of_the_chain_is_made_again(tron):
    stake(tron, "1000")
    tron.turn()
    tron.reorg(1)
    assert tron.chain().staked(tron.hot().address) == 0
    tron.turn()
    tron.mine(CONFIRMATIONS)
    tron.turn()
    assert listed(tron)[0]["status"] == "confirmed"
    assert tron.chain().staked(tron.hot().address) == 1000 * TRX


def test_a_final_stake_that_falls_out_of_the_chain_is_undone_and_made_again(tron, monkeypatch):
    """Twice, and whoever undoes it dies the first time."""
    stake(tron, "1000")
    tron.turn()
    tron.mine(CONFIRMATIONS)
    tron.turn()
    assert (listed(tron)[0]["status"], booked(tron)) == ("confirmed", FAUCET_COINS - 1000)
    for _ in range(2):
        tron.reorg(CONFIRMATIONS + 1)
        with monkeypatch.context() as patch:
            patch.setattr(StakeBooking, "_undo", dying)
            tron.turn(failures="ignore")
            assert listed(tron)[0]["status"] == "confirmed"
        tron.turn()
        assert (listed(tron)[0]["status"], booked(tron)) == ("pending", FAUCET_COINS)
        assert stake(tron, str(FAUCET_COINS - 999)).json["error"]["code"] == "INSUFFICIENT_BALANCE"
        tron.mine(CONFIRMATIONS)
        tron.turn()
        assert (listed(tron)[0]["status"], booked(tron)) == ("confirmed", FAUCET_COINS - 1000)
        assert tron.chain().staked(tron.hot().address) == 1000 * TRX


def dying(*_: Any) -> None:
    raise Unavailable("here")


def test_a_stake_is_watched_until_no_reorganisation_reaches_it(tron):
    stake(tron, "1000")
    tron.turn()
    tron.mine(CONFIRMATIONS)
    tron.turn()
    network = tron.realm_network()
    assert len(services().store.open_work("staked", network.id)) == 1
    tron.mine(network.reorg_depth)
    tron.turn()
    assert services().store.open_work("staked", network.id) == []


def test_stakes_are_transactions_of_whose_key_ordered_them(tron):
    made = [stake(tron, amount).json for amount in ("1000", "2000")]

    def found(key: str = "admin_test", **query: str) -> Any:
        return tron.stack.call("GET", "/v1/transactions", tron.stack.keys[key], query=query).json["data"]

    address = tron.hot().address
    shown = found(type="stake")
    assert [(one["amount"], one["hash"]) for one in reversed(shown)] == [(one["amount"], one["transactionId"]) for one in made]
    for one in shown:
        assert one | {
            "type": "stake", "status": "pending", "network": "tron", "coin": "trx", "address": address, "from": address,
            "to": address, "fee": "0", "blockNumber": None, "withdrawalId": None, "invoiceId": None, "confirmedAt": None,
        } == one  # fmt: skip
    tron.turn()
    tron.mine(CONFIRMATIONS)
    tron.turn()
    final = found(type="stake", status="confirmed", hash=made[0]["transactionId"])
    assert [one["id"] for one in final] == [shown[1]["id"]] and final[0]["blockNumber"] is not None
    assert (final[0]["confirmations"], final[0]["confirmedAt"] is not None) == (CONFIRMATIONS, True)
    for query in ({"address": address}, {"from": address}, {"network": "tron"}, {"coin": "trx", "amount[gte]": "1000"}):
        assert len(found(**query)) == 2, query
    assert found(status="pending") == found(type="deposit") == found(type="withdrawal") == found(network="bsc") == []
    for name in (final[0]["id"], final[0]["hash"]):
        one = tron.stack.call("GET", f"/v1/transactions/{name}", tron.stack.keys["admin_test"])
        assert (one.status, one.json["data"]) == (200, final[0])
        assert tron.stack.call("GET", f"/v1/transactions/{name}", tron.stack.keys["admin_live"]).status == 404
    assert found(id=final[0]["id"]) == final
    tron.reorg(CONFIRMATIONS + 2)
    tron.turn()
    assert {one["status"] for one in found(type="stake")} == {"pending"}
    tron.mine(CONFIRMATIONS)
    tron.turn()


def test_one_key_orders_one_stake(tron):
    first = stake(tron, "5", **{"Idempotency-Key": "s"})
    second = stake(tron, "5", **{"Idempotency-Key": "s"})
    assert (second.status, second.body) == (201, first.body)
    assert len(listed(tron)) == 1


def test_what_can_not_be_staked(tron):
    wrong = stake(tron, "1.0000001", "POWER")
    assert {p["field"] for p in wrong.json["error"]["details"]} == {"amount", "resource"}
    for amount in (0, "-1", "1e3", None, True):
        assert stake(tron, amount).json["error"]["code"] == "INVALID_PARAMETER", amount
    assert stake(tron, "0.5").json["error"]["code"] == "VALIDATION_ERROR"
    live = stake(tron, "5", key="admin_live")
    assert (live.status, live.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert "tron is not active here" in live.json["error"]["message"]
    assert stake(tron, "5", key="client_test").status == 403
