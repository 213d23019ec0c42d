"""A bundle's replacement that is altered between its building and its signature is built anew: it is not stuck for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.wiring import services
from tests.support.bundles import COIN, Shop, hang
from tests.support.fake_coins import DigestSigner


def replaced(shop: Shop) -> tuple[list[str], Bundle]:
    """Two payments whose transaction takes another coin for its replacement, which is built and not signed."""
    ids = [shop.withdraw("7", 0), shop.withdraw("2.999985", 1)]
    shop.run()
    shop.chain.mine(2, take=False)
    shop.chain.rate = 9_000
    shop.later(180)
    with pytest.MonkeyPatch.context() as gone:
        gone.setattr(DigestSigner, "sign", lambda *_: hang())
        shop.run()
        shop.run()
    (bundle,) = shop.bundles()
    assert bundle.latest.raw is None and len(bundle.latest.inputs) > len(bundle.earlier[0].inputs)
    return ids, bundle


ALTERED: dict[str, dict[str, Any]] = {
    "bytes": {"unsigned": "00"},
    "fee": {"fee": 1},
    "change": {"change_amount": 5},
    "inputs": {"inputs": ()},
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_replacement_is_built_anew(begin: Callable[[], Shop], what: str, caplog: pytest.LogCaptureFixture) -> None:
    shop = begin()
    ids, bundle = replaced(shop)
    first, record = bundle.earlier[0], next(w for w in services().store.every(Withdrawal) if w.id == ids[0])
    altered = replace(bundle, newest=replace(bundle.latest, **ALTERED[what]), version=bundle.version + 1)
    services().store.commit([Save(altered)])
    sent = list(shop.chain.sent)
    with in_realm("live"), pytest.raises(OrderMismatch):
        services().payouts.pay(record.tenant, record.id)
    assert f"ALARM live:litecoin: bundle {bundle.id} differs from what was approved in" in caplog.text
    (back,) = shop.bundles()
    assert (back.newest, back.earlier, back.renew, back.state, shop.chain.sent) == (first, (), True, "signed", sent)
    shop.run()
    (again,) = shop.bundles()
    assert again.latest.raw is not None and again.earlier == (replace(first, unsigned=""),)
    reserved = {coin.outpoint for coin in shop.held().reserved(bundle.id)}
    assert reserved == set(again.coins), "nothing stays reserved that no attempt spends"
    shop.confirm()
    assert [shop.status(each) for each in ids] == ["confirmed"] * 2
    assert (shop.paid(0), shop.paid(1)) == (7 * COIN, 299_998_500)
    shop.whole()


def test_one_whose_first_attempt_was_altered_too_stands(begin: Callable[[], Shop]) -> None:
    """It can not be proved what was signed: nothing is built of it."""
    shop = begin()
    ids, bundle = replaced(shop)
    record = next(w for w in services().store.every(Withdrawal) if w.id == ids[0])
    wrong = replace(bundle, newest=replace(bundle.latest, fee=1), earlier=(replace(bundle.earlier[0], fee=2),))
    stored = replace(wrong, version=bundle.version + 1)
    services().store.commit([Save(stored)])
    with in_realm("live"), pytest.raises(OrderMismatch):
        services().payouts.pay(record.tenant, record.id)
    assert shop.bundles() == [stored]
