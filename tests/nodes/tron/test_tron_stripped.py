"""Records on Tron that were altered until they look unsigned, or put back to an attempt that has expired: no nonce binds a second
signature to the first, and none is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Close, Conflict, Delete, Open, Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions.accounts import signing
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.withdrawals.steps import sent_work
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.tron_shops import TRON, Shop, staking_shop
from tests.support.treasury import address_of, plan_units
from tests.support.tron_chain import TRX, stranger

pytestmark = pytest.mark.nodes


@pytest.fixture(scope="module")
def started(running_aws: LocalAws) -> Iterator[Shop]:
    with staking_shop(running_aws) as made:
        yield made


@pytest.fixture
def shop(started: Shop) -> Iterator[Shop]:
    yield started
    assert audit(services().store) == []
    assert started.booked() == started.on_chain(started.hot())


def put(record: Any) -> None:
    """Store `record` over what is there, as somebody with rights on the table can."""
    store = services().store
    keys = {"network": record.network} if isinstance(record, Move | Stake) else {}
    keys |= {"tenant": record.tenant} if isinstance(record, Withdrawal) else {}
    now = store.get(type(record), id=record.id, **keys)
    assert now is not None
    store.commit([Save(replace(record, version=now.version + 1))])


def refused(caplog: pytest.LogCaptureFixture, sign: Callable[[], object]) -> None:
    """Nothing more is signed: the engine says so, and behind it the item that is stored once."""
    caplog.clear()
    with in_realm("live"), pytest.raises(OrderMismatch, match="was signed before"):
        sign()
    assert "was signed before, and is to be signed for the first time" in caplog.text
    with in_realm("live"), pytest.MonkeyPatch.context() as patch, pytest.raises(Conflict):
        patch.setattr(signing, "signed_before", lambda *_: False)
        sign()


def put_back(caplog: pytest.LogCaptureFixture, sign: Callable[[], object]) -> None:
    """As `refused`, of an order that has its expired first attempt alone while its second one is mined."""
    caplog.clear()
    with in_realm("live"), pytest.raises(OrderMismatch, match="in its attempts"):
        sign()
    assert "differs from what was signed in its attempts" in caplog.text
    with in_realm("live"), pytest.MonkeyPatch.context() as patch, pytest.raises(Conflict):
        patch.setattr(signing, "unlike_attempts", lambda *_: False)
        sign()


def test_a_payment(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, to = services().store, stranger()
    made = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "25", "network": "tron"})
    shop.node.faucet(made["address"], 25)
    shop.confirm()
    body = {"network": "tron", "coin": "trx", "address": to, "amount": "10"}
    id = shop.call("POST", "/v1/withdraws", json=body)["id"]
    shop.run()
    shop.node.mine()
    withdrawal = next(w for w in store.every(Withdrawal) if w.id == id)
    order = next(o for o in store.every(PaymentOrder) if o.withdrawal_id == id)
    assert (withdrawal.status, order.state, shop.on_chain(to)) == ("confirming", "signed", 10 * TRX)
    put(replace(order, state="built", raw=None, txid=None, earlier=(), unsigned="", fee=0, signed_at=0))
    stripped = replace(withdrawal, status="processing", txid=None)
    put(stripped)
    store.commit([Close(sent_work(withdrawal)), Open(payout_work(stripped))])
    refused(caplog, lambda: services().payouts.pay(withdrawal.tenant, id))
    put(order)
    put(withdrawal)
    store.commit([Open(sent_work(withdrawal)), Close(payout_work(stripped))])
    shop.confirm()
    assert shop.on_chain(to) == 10 * TRX


def test_a_move(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store = services().store
    trx = services().catalogue("live").coins["tron", "trx"]
    made = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "9", "network": "tron"})
    shop.node.faucet(made["address"], 9)
    shop.confirm()
    sweep = plan_units(trx, "sweep", address_of(made["address"]), shop.hot(), 4 * TRX)
    shop.run("collect")
    shop.node.mine()
    left, move = shop.on_chain(made["address"]), store.get(Move, network=TRON, id=sweep)
    assert move is not None and move.state == "signed" and left <= 5 * TRX
    put(replace(move, state="built", raw=None, txid=None, earlier=(), unsigned="", fee=0, signed_at=0))
    refused(caplog, lambda: services().deposit_moves.advance(TRON, sweep))
    put(move)
    shop.confirm()
    assert shop.on_chain(made["address"]) == left


def test_a_stake(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, frozen = services().store, shop.frozen("ENERGY")
    made = shop.stake("10")
    shop.run()
    shop.node.mine()
    stake = next(each for each in store.every(Stake) if each.txid == made["transactionId"])
    assert stake.raw is not None and store.get(FirstSignature, owner=stake.id) is not None
    put(replace(stake, raw=None, earlier=(), touched_at=0))
    refused(caplog, lambda: services().stake_signing.sign(TRON, stake.id))
    put(stake)
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 10 * TRX


def test_a_payment_put_back_to_its_expired_attempt(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, to = services().store, stranger()
    made = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "25", "network": "tron"})
    shop.node.faucet(made["address"], 25)
    shop.confirm()
    shop.node.call("dev/drop", count=1)
    id = shop.call("POST", "/v1/withdraws", json={"network": "tron", "coin": "trx", "address": to, "amount": "10"})["id"]
    assert shop.stack.drain(only=("relay", "payout")).settled
    first = next(o for o in store.every(PaymentOrder) if o.withdrawal_id == id)
    shop.expire()
    shop.run("housekeeping")
    shop.node.mine()
    second = next(o for o in store.every(PaymentOrder) if o.withdrawal_id == id)
    withdrawal = next(w for w in store.every(Withdrawal) if w.id == id)
    assert ([each.txid for each in second.earlier], shop.on_chain(to)) == ([first.txid], 10 * TRX)
    put(replace(first, renew=True))
    put(replace(withdrawal, txid=first.txid))
    put_back(caplog, lambda: services().payouts.pay(withdrawal.tenant, id))
    put(second)
    put(withdrawal)
    shop.confirm()
    assert shop.on_chain(to) == 10 * TRX


def test_a_move_put_back_to_its_expired_attempt(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    trx = services().catalogue("live").coins["tron", "trx"]
    made = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "9", "network": "tron"})
    shop.node.faucet(made["address"], 9)
    shop.confirm()
    shop.node.call("dev/drop", count=1)
    sweep = plan_units(trx, "sweep", address_of(made["address"]), shop.hot(), 4 * TRX)

    def now() -> Move:
        found = services().store.get(Move, network=TRON, id=sweep)
        assert found is not None and found.state == "signed"
        return found

    assert shop.stack.drain(only=("relay", "collect")).settled
    first = now()
    shop.expire()
    shop.run("collect")
    shop.node.mine()
    second, left = now(), shop.on_chain(made["address"])
    assert [each.txid for each in second.earlier] == [first.txid] and left <= 5 * TRX
    put(replace(first, renew=True))
    put_back(caplog, lambda: services().deposit_moves.advance(TRON, sweep))
    put(second)
    shop.confirm()
    assert shop.on_chain(made["address"]) == left


def test_a_stake_put_back_to_its_expired_attempt(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, frozen = services().store, shop.frozen("ENERGY")
    shop.node.call("dev/drop", count=1)
    made = shop.stake("10")
    assert shop.stack.drain(only=("relay", "payout")).settled
    first = next(each for each in store.every(Stake) if each.txid == made["transactionId"])
    shop.expire()
    shop.run()
    shop.node.mine()
    second = store.get(Stake, network=TRON, id=first.id)
    assert second is not None and [each.txid for each in second.earlier] == [first.txid]
    put(replace(first, renew=True))
    put_back(caplog, lambda: services().stake_signing.sign(TRON, first.id))
    put(second)
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 10 * TRX


def test_who_deletes_the_row_as_well_is_not_stopped(shop: Shop) -> None:
    """Out of what the store can tell: said at the top of `transactions.first_signatures`. Bytes of the same id are sent, once."""
    store, frozen = services().store, shop.frozen("ENERGY")
    made = shop.stake("10")
    shop.run()
    stake = next(each for each in store.every(Stake) if each.txid == made["transactionId"])
    put(replace(stake, raw=None, earlier=(), touched_at=0))
    store.commit([Delete(FirstSignature, {"owner": owner}) for owner in (stake.id, f"{stake.id}#1")])
    services().stake_signing.sign(TRON, stake.id)
    shop.node.mine()
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 10 * TRX
