"""A bundle whose record was altered until it looks unsigned is not signed anew, and its coins are not freed. One in the mempool is
given back for no row that says so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.domain.transactions.given_up import GivenUp, given_up_work
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts.bundle_booking import SentBundle
from chalicelib.usecases.ports.changes import Close, Open, Save
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.withdrawals.steps import settled_work
from chalicelib.wiring import services
from tests.support.alarms import raised
from tests.support.bundles import COIN, Shop
from tests.support.cuts import Died


@pytest.mark.parametrize("bytes_too", [False, True])
def test_a_bundle_that_was_signed_is_never_a_first_attempt_again(
    begin: Callable[[], Shop], bytes_too: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where it was not booked yet, so that no order of it says so; and where its bytes were altered as well."""
    shop = begin()
    ids = [shop.withdraw("1", 0), shop.withdraw("2", 1)]
    first = min(services().store.every(Withdrawal), key=lambda w: w.id)

    def died(*_: object) -> Bundle:
        raise Died

    with monkeypatch.context() as patch, in_realm("live"):
        patch.setattr(SentBundle, "book", died)
        with pytest.raises(Died):
            services().payouts.pay(first.tenant, first.id)
    (signed,) = shop.bundles()
    assert signed.state == "signed" and signed.newest is not None
    built = replace(signed.newest, raw=None, txid=None, signed_at=0, fee=signed.newest.fee + bytes_too)
    store = services().store
    store.commit([Save(replace(signed, state="built", newest=built, version=signed.version + 1))])
    with in_realm("live"), pytest.raises(OrderMismatch, match="what was signed before"):
        services().payouts.pay(first.tenant, first.id)
    assert f"ALARM live:litecoin: bundle {signed.id} differs from what was approved in what was signed before" in caplog.text
    (stands,) = shop.bundles()
    assert (stands.state, stands.newest) == ("built", built)
    assert {coin.outpoint for coin in shop.held().reserved(signed.id)} == set(signed.coins) and not shop.chain.pool
    store.commit([Save(replace(signed, version=stands.version + 1))])
    shop.run()
    shop.confirm()
    assert [shop.status(each) for each in ids] == ["confirmed"] * 2
    assert (shop.paid(0), shop.paid(1)) == (COIN, 2 * COIN)
    shop.whole()


def test_a_payment_that_a_bundle_paid_joins_no_other(begin: Callable[[], Shop], caplog: pytest.LogCaptureFixture) -> None:
    """Its record and its order were altered until it looks as if it was between bundles."""
    shop, store = begin(), services().store
    shop.withdraw("1", 0)
    shop.run()
    shop.confirm()
    (order,), (withdrawal,), (first,) = store.every(PaymentOrder), store.every(Withdrawal), shop.bundles()
    assert (withdrawal.status, shop.paid(0)) == ("confirmed", COIN)
    again = replace(
        withdrawal, status="processing", pending_reason="liquidity", block_number=None, block_hash=None, txid=None,
        version=withdrawal.version + 1,
    )  # fmt: skip
    altered = replace(order, bundle=None, state="built", txid=None, signed_at=0, version=order.version + 1)
    settled = settled_work(withdrawal, withdrawal.block_number or 0, withdrawal.block_hash or "")
    store.commit([Save(again), Save(altered), Close(settled), Open(payout_work(again))])
    caplog.clear()
    for _ in range(2):
        shop.later(2)
        with in_realm("live"), contextlib.suppress(OrderMismatch):
            services().payouts.pay(again.tenant, again.id)
    assert [bundle.id for bundle in shop.bundles() if bundle.signed] == [first.id]
    assert any("what was signed before" in line for line in raised(caplog))
    assert not shop.chain.pool
    assert shop.paid(0) == COIN


@pytest.mark.parametrize("decided", [True, False])
def test_a_bundle_in_the_mempool_is_given_back_for_no_row(
    begin: Callable[[], Shop], decided: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither for a decision that no command took, nor for one beside a state that says that it was carried out."""
    shop, store = begin(), services().store
    id = shop.withdraw("1", 0)
    shop.run()
    (bundle,), before = shop.bundles(), (shop.status(id), shop.available())
    assert bundle.state == "signed" and set(shop.chain.pool) == {bundle.latest.txid}
    made = GivenUp(bundle.id, bundle.network, "bundle", "", "an operator", "why", 1, 1, bundle.txids)
    if decided:
        store.commit([Save(made), Open(given_up_work(made))])
    else:
        dead = replace(bundle, state="dead", doubtful_since=1, version=bundle.version + 1)
        store.commit([Save(replace(made, state="over")), Save(dead)])
    for _ in range(3):
        shop.later(2)
        shop.run()
    assert (shop.status(id), shop.available()) == before
    if not decided:
        assert f"{bundle.id} differs from what was signed in its state: it can be mined" in caplog.text
        store.commit([Save(replace(bundle, version=shop.bundles()[0].version + 1))])
    shop.confirm()
    assert (shop.status(id), shop.paid(0), shop.available()) == ("confirmed", COIN, before[1])
    shop.whole()
