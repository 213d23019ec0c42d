"""A bundle that the second reader reads otherwise is not signed, or not sent; first attempts and replacements alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.wiring import services
from chalicelib.wiring.custody import CustodyWiring
from chalicelib.wiring.second_readers import SecondReaders
from tests.support.bundles import COIN, Shop
from tests.support.fake_coins import Differs, DigestSigner


def pay(shop: Shop) -> None:
    first = min(services().store.every(Withdrawal), key=lambda w: w.id)
    with in_realm("live"):
        services().payouts.pay(first.tenant, first.id)


@pytest.mark.parametrize("what", ["order", "bytes"])
@pytest.mark.parametrize("attempt", ["first", "replacement"])
def test_what_two_readers_read_differently_is_not_sent(
    begin: Callable[[], Shop], attempt: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    shop = begin()
    ids = [shop.withdraw("1", 0), shop.withdraw("2", 1)]
    if attempt == "replacement":
        shop.run()
        shop.chain.mine(2, take=False)
        shop.chain.rate = 9_000
        shop.later(180)
    sent, signer = set(shop.chain.sent), DigestSigner()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecondReaders, "coins", lambda self, network: Differs(what))
        patch.setattr(CustodyWiring, "signer", signer)
        shop.reborn()
        for _ in range(2):  # and again, whoever comes next
            with pytest.raises(ReadersDiffer):
                shop.run() if attempt == "replacement" else pay(shop)
    assert bool(signer.signed) == (what == "bytes") and set(shop.chain.sent) == sent
    (bundle,) = shop.bundles()
    assert bundle.newest is not None and bundle.newest.raw is None and len(bundle.earlier) == (attempt == "replacement")
    assert f"ALARM live:litecoin: two readers differ about bundle {bundle.id} in " in caplog.text
    assert {shop.status(i) for i in ids} == {"confirming" if attempt == "replacement" else "processing"}
    shop.whole()
    shop.reborn()
    shop.run()
    (bundle,) = shop.bundles()
    assert bundle.newest is not None and bundle.newest.txid in shop.chain.pool
    shop.confirm()
    assert [shop.status(i) for i in ids] == ["confirmed"] * 2 and (shop.paid(0), shop.paid(1)) == (COIN, 2 * COIN)
    shop.whole()
