"""Records on Tron that were altered until they look unsigned, or put back to an attempt that has expired: no nonce binds a second
signature to the first, and none is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Close, Conflict, Delete, Open
from chalicelib.usecases.transactions.accounts import signing
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.withdrawals.steps import sent_work
from chalicelib.wiring import services
from tests.nodes.tron_shops import TRON, Shop, put
from tests.support.treasury import address_of, plan_units
from tests.support.tron_chain import TRX, stranger

pytestmark = pytest.mark.nodes


def refused(caplog: pytest.LogCaptureFixture, sign: Callable[[], object]) -> None:
    """Nothing more is signed: the engine says so, and behind it the item that is stored once."""
    not_signed(caplog, sign, "was signed before", "was signed before, and is to be signed for the first time", "signed_before")


def put_back(caplog: pytest.LogCaptureFixture, sign: Callable[[], object]) -> None:
    """As `refused`, of an order that has its expired first attempt alone while its second one is mined."""
    not_signed(caplog, sign, "in its attempts", "differs from what was signed in its attempts", "unlike_attempts")


def not_signed(caplog: pytest.LogCaptureFixture, sign: Callable[[], object], why: str, alarm: str, guard: str) -> None:
    """`sign` is refused with an alarm; and without the engine's `guard`, by the store's condition."""
    caplog.clear()
    with in_realm("live"), pytest.raises(OrderMismatch, match=why):
        sign()
    assert alarm in caplog.text
    with in_realm("live"), pytest.MonkeyPatch.context() as patch, pytest.raises(Conflict):
        patch.setattr(signing, guard, lambda *_: False)
        sign()


def test_a_payment(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, to = services().store, stranger()
    shop.paid(25)
    id = shop.withdraw(to, 10)
    shop.run()
    shop.node.mine()
    withdrawal = next(w for w in store.every(Withdrawal) if w.id == id)
    order = shop.order(id)
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


# The sweep: payments and moves are signed by one engine, and the payment stays.
@pytest.mark.sweep
def test_a_move(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store = services().store
    trx = services().catalogue("live").coins["tron", "trx"]
    address = shop.paid(9)
    sweep = plan_units(trx, "sweep", address_of(address), shop.hot(), 4 * TRX)
    shop.run("collect")
    shop.node.mine()
    left, move = shop.on_chain(address), store.get(Move, network=TRON, id=sweep)
    assert move is not None and move.state == "signed" and left <= 5 * TRX
    put(replace(move, state="built", raw=None, txid=None, earlier=(), unsigned="", fee=0, signed_at=0))
    refused(caplog, lambda: services().deposit_moves.advance(TRON, sweep))
    put(move)
    shop.confirm()
    assert shop.on_chain(address) == left


def test_a_stake(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, frozen = services().store, shop.frozen("ENERGY")
    made = shop.stake("10")
    shop.run()
    shop.node.mine()
    stake = shop.staked(made)
    assert stake.raw is not None and store.get(FirstSignature, owner=stake.id) is not None
    put(replace(stake, raw=None, earlier=(), touched_at=0))
    refused(caplog, lambda: services().stake_signing.sign(TRON, stake.id))
    put(stake)
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 10 * TRX


def test_a_payment_put_back_to_its_expired_attempt(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, to = services().store, stranger()
    shop.paid(25)
    shop.node.call("dev/drop", count=1)
    id = shop.withdraw(to, 10)
    assert shop.stack.drain(only=("relay", "payout")).settled
    first = shop.order(id)
    shop.expire()
    shop.run("housekeeping")
    shop.node.mine()
    second = shop.order(id)
    withdrawal = next(w for w in store.every(Withdrawal) if w.id == id)
    assert ([each.txid for each in second.earlier], shop.on_chain(to)) == ([first.txid], 10 * TRX)
    put(replace(first, renew=True))
    put(replace(withdrawal, txid=first.txid))
    put_back(caplog, lambda: services().payouts.pay(withdrawal.tenant, id))
    put(second)
    put(withdrawal)
    shop.confirm()
    assert shop.on_chain(to) == 10 * TRX


# The sweep: as above, and the payment stays.
@pytest.mark.sweep
def test_a_move_put_back_to_its_expired_attempt(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    trx = services().catalogue("live").coins["tron", "trx"]
    address = shop.paid(9)
    shop.node.call("dev/drop", count=1)
    sweep = plan_units(trx, "sweep", address_of(address), shop.hot(), 4 * TRX)

    def now() -> Move:
        found = services().store.get(Move, network=TRON, id=sweep)
        assert found is not None and found.state == "signed"
        return found

    assert shop.stack.drain(only=("relay", "collect")).settled
    first = now()
    shop.expire()
    shop.run("collect")
    shop.node.mine()
    second, left = now(), shop.on_chain(address)
    assert [each.txid for each in second.earlier] == [first.txid] and left <= 5 * TRX
    put(replace(first, renew=True))
    put_back(caplog, lambda: services().deposit_moves.advance(TRON, sweep))
    put(second)
    shop.confirm()
    assert shop.on_chain(address) == left


# The sweep: the engine asks the same question of a stake's attempts; a stripped stake and this of a payment stay.
@pytest.mark.sweep
def test_a_stake_put_back_to_its_expired_attempt(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    store, frozen = services().store, shop.frozen("ENERGY")
    shop.node.call("dev/drop", count=1)
    made = shop.stake("10")
    assert shop.stack.drain(only=("relay", "payout")).settled
    first = shop.staked(made)
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
    stake = shop.staked(made)
    put(replace(stake, raw=None, earlier=(), touched_at=0))
    store.commit([Delete(FirstSignature, {"owner": owner}) for owner in (stake.id, f"{stake.id}#1")])
    services().stake_signing.sign(TRON, stake.id)
    shop.node.mine()
    shop.confirm()
    assert shop.frozen("ENERGY") - frozen == 10 * TRX
