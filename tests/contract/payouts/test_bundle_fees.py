"""What a payment bears of a transaction's fee is worth no more than the payment: it waits with the reason `fees`, and fails after a
day. Transactions of many payments; the chain is `tests.support.fake_coins`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import Rate, Rates
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.withdrawals.fee_budget import set_budget
from chalicelib.usecases.withdrawals.steps import order_id
from chalicelib.wiring import services
from tests.support.bundles import COIN, Shop

DAY = 24 * 60
SMALL = "0.00002"
DEAR = 200_000


@pytest.fixture
def shop(begin: Callable[[], Shop]) -> Shop:
    return begin()


def record(name: str) -> Withdrawal:
    (found,) = (w for w in services().store.every(Withdrawal) if w.id == name)
    return found


def order(name: str) -> PaymentOrder | None:
    found: PaymentOrder | None = services().store.get(PaymentOrder, id=order_id(record(name)))
    return found


def test_one_that_is_worth_less_than_its_share_waits_and_holds_up_nobody(shop: Shop) -> None:
    small, large = shop.withdraw(SMALL, 0), shop.withdraw("1", 1)
    shop.chain.rate = DEAR
    shop.run()
    shop.confirm()
    assert (record(small).status, record(small).pending_reason, shop.status(large)) == ("pending", "fees", "confirmed")
    shop.chain.rate = 2_000
    shop.later(3)
    shop.run()
    shop.confirm()
    assert (shop.status(small), shop.paid(0)) == ("confirmed", 2_000)
    shop.whole()


def test_it_fails_after_a_day(shop: Shop) -> None:
    small = shop.withdraw(SMALL)
    shop.chain.rate = DEAR
    shop.run()
    shop.later(DAY - 10)
    shop.run()
    assert record(small).pending_reason == "fees"
    shop.later(10)
    shop.run()
    shop.run()
    assert (shop.status(small), shop.available()) == ("failed", "30")
    shop.whole()


def test_one_whose_share_rises_before_the_seal_leaves_and_fails_after_a_day(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from chalicelib.usecases.payouts.bundle_building import BundleBuilding

    small, large = shop.withdraw(SMALL, 0), shop.withdraw("1", 1)

    def away(*_: Any) -> Any:
        raise Unavailable("died before the seal")

    with monkeypatch.context() as patch:
        patch.setattr(BundleBuilding, "seal", away)
        shop.run()
    (bundle,) = shop.bundles()
    assert (bundle.state, {p.withdrawal for p in bundle.payouts}) == ("gathering", {small, large})
    shop.chain.rate = DEAR
    shop.run()
    shop.confirm()
    left = order(small)
    assert left is not None and left.unbundled
    assert (record(small).status, record(small).pending_reason, shop.status(large)) == ("processing", "fees", "confirmed")
    shop.whole()
    shop.later(DAY)
    shop.run()
    shop.run()
    assert (shop.status(small), shop.available(), shop.paid(0)) == ("failed", "29", 0)
    shop.whole()


def test_the_operators_word_lets_it_join(shop: Shop) -> None:
    small = shop.withdraw(SMALL)
    shop.chain.rate = DEAR
    shop.run()
    body = {"id": small}
    accepted = shop.stack.call("PUT", "/v1/withdrawals/request/accept", shop.stack.keys["admin_live"], json=body)
    assert accepted.status == 200, accepted.body
    shop.run()
    shop.confirm()
    assert shop.status(small) == "confirmed"
    shop.whole()


@pytest.mark.parametrize("others", [(), ("1",)])
def test_a_replacement_is_worth_it_to_one_of_its_payments(
    shop: Shop, caplog: pytest.LogCaptureFixture, others: tuple[str, ...]
) -> None:
    """0.00002 LTC is less than its share of the replacement's fee: alone it is not replaced, beside a payment of 1 LTC it is."""
    for number, amount in enumerate((SMALL, *others)):
        shop.withdraw(amount, number)
    shop.run()
    (bundle,) = shop.bundles()
    assert bundle.state == "signed"
    shop.chain.rate = 19_000
    shop.later(90)
    shop.run()
    shop.run()
    (bundle,) = shop.bundles()
    assert len(bundle.earlier) == len(others)
    assert ("is not replaced" in caplog.text) is not bool(others)
    shop.confirm()
    shop.run()
    assert {shop.status(p.withdrawal) for p in bundle.payouts} == {"confirmed"}
    assert (shop.paid(0), shop.paid(1)) == (2_000, COIN if others else 0)
    shop.whole()


def test_what_waits_for_its_merchants_budget_is_not_judged_for_everybody_elses_bundle(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One merchant may have thousands of them."""
    monkeypatch.setattr(services().fee_budgets, "_rates_of", lambda realm: Rates([Rate("ltc", "USD", "80", 0, "old")]))
    waiting = [shop.withdraw("0.01") for _ in range(5)]
    tenant = record(waiting[0]).tenant
    set_budget(services().store, tenant, 0, 0, "a test")
    shop.run()
    assert [record(name).pending_reason for name in waiting] == ["fees"] * 5
    judged: list[str] = []
    of = PayoutChecks.screened

    def noted(self: PayoutChecks, network: Network, before: Withdrawal) -> Any:
        judged.append(before.id)
        return of(self, network, before)

    monkeypatch.setattr(PayoutChecks, "screened", noted)
    with in_realm("live"):
        services().payouts.pay(tenant, waiting[-1])
    assert judged == [waiting[-1]]
    # With room again they share one transaction.
    set_budget(services().store, tenant, None, 0, "a test")
    services().clock.shift_ms += 125_000
    shop.stack.drain(only=("housekeeping", "payout"), rounds=2)
    (bundle,) = shop.bundles()
    assert {payout.withdrawal for payout in bundle.payouts} == {*waiting}
