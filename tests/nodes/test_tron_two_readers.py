"""Tron through the whole stack with a second reader that disagrees: no key signs, or what was signed is neither kept nor sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.tron_shops import TRON, Shop, staking_shop
from tests.support.shop import Kms
from tests.support.treasury import address_of, plan_units
from tests.support.tron_chain import TRX, USDT, stranger
from tests.support.tron_second_reader import FAULTS, Fault, disagree

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


def refused(caplog: pytest.LogCaptureFixture, fault: Fault, sign: Callable[[], Any]) -> Order:
    """The order that `sign` was to sign, which the second reader read otherwise: an alarm, and the key asked only where the bytes
    had to be signed to be read."""
    caplog.clear()
    with pytest.MonkeyPatch.context() as patch:
        kms, asked = Kms(patch), disagree(patch, fault)
        with in_realm("live"), pytest.raises(ReadersDiffer):
            sign()
        assert kms.calls["Sign"] == (0 if fault == "digest" else 1)
    (order,) = asked
    assert "ALARM live:tron: " in caplog.text
    return order


@pytest.mark.parametrize("fault", FAULTS)
def test_a_stake_and_its_replacement(shop: Shop, caplog: pytest.LogCaptureFixture, fault: Fault) -> None:
    frozen, made = shop.frozen("ENERGY"), shop.stake("10")
    first = next(stake for stake in services().store.every(Stake) if stake.txid == made["transactionId"])

    def now() -> Stake:
        found = services().store.get(Stake, network=TRON, id=first.id)
        assert found is not None
        return found

    def sign() -> None:
        services().stake_signing.sign(TRON, first.id)

    order = refused(caplog, fault, sign)
    assert (order.kind, order.sender, order.amount, order.resource) == ("stake", shop.hot(), 10 * TRX, "ENERGY")
    assert now() == first and first.raw is None
    shop.node.call("dev/drop", count=1)
    assert shop.stack.drain(only=("relay", "payout")).settled
    shop.expire()
    with pytest.MonkeyPatch.context() as patch:
        disagree(patch, fault)
        shop.stack.drain(only=("poll_tron",), failures="ignore")
        sent = now()
        assert sent.renew and sent.raw is not None
    refused(caplog, fault, sign)
    assert now() == sent
    shop.run()
    shop.confirm()
    assert now().status == "confirmed" and shop.frozen("ENERGY") - frozen == 10 * TRX


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("coin", ["trx", "usdt"])
def test_a_payment(shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, coin: str, fault: Fault) -> None:
    made = shop.call("POST", "/v1/invoices", json={"currency": coin, "amount": "25", "network": "tron"})
    shop.node.faucet(made["address"], 25, coin.upper())
    shop.confirm()
    to, kms = stranger(), Kms(monkeypatch)
    kms.away = True
    body = {"network": "tron", "coin": coin, "address": to, "amount": "10"}
    withdrawal = shop.call("POST", "/v1/withdraws", json=body)["id"]
    shop.run()
    kms.away = False
    before = next(o for o in services().store.every(PaymentOrder) if o.withdrawal_id == withdrawal)
    order = refused(caplog, fault, lambda: services().payouts.pay(before.tenant, withdrawal))
    contract = USDT if coin == "usdt" else None
    assert (order.kind, order.recipient, order.contract, order.amount) == ("payment", to, contract, 10 * TRX)
    assert services().store.get(PaymentOrder, id=before.id) == before and before.raw is None
    with in_realm("live"):
        services().payouts.pay(before.tenant, withdrawal)
    shop.confirm()
    assert shop.on_chain(to, contract) == 10 * TRX


@pytest.mark.parametrize("fault", FAULTS)
def test_a_sweep(shop: Shop, caplog: pytest.LogCaptureFixture, fault: Fault) -> None:
    trx = services().catalogue("live").coins["tron", "trx"]
    made = shop.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "5", "network": "tron"})
    shop.node.faucet(made["address"], 5)
    shop.confirm()
    sweep = plan_units(trx, "sweep", address_of(made["address"]), shop.hot(), 4 * TRX)

    def sign() -> None:
        services().deposit_moves.advance(TRON, sweep)

    caplog.clear()
    with pytest.MonkeyPatch.context() as patch:
        asked = disagree(patch, fault)
        with in_realm("live"), pytest.raises(ReadersDiffer):
            sign()
    (order,) = asked
    assert (order.kind, order.sender, order.recipient, order.amount) == ("payment", made["address"], shop.hot(), 4 * TRX)
    stopped = services().store.get(Move, network=TRON, id=sweep)
    assert stopped is not None and (stopped.state, stopped.raw) == ("built", None)
    assert "ALARM live:tron: " in caplog.text
    before = shop.on_chain(shop.hot())
    shop.run("collect")
    shop.confirm()
    assert shop.on_chain(shop.hot()) == before + 4 * TRX
