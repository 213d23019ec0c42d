"""A bundle whose record was altered until it looks unsigned is not signed anew, and its coins are not freed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts.bundle_booking import SentBundle
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.wiring import services
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
