"""Tron through the whole stack with a second reader that disagrees: no key signs, or what was signed is neither kept nor sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.staking import TronStaking
from chalicelib.chains.tron.transactions import Unsigned, decode
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts.attempts import PayoutAttempts
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.usecases.treasury.tron.stake_attempts import StakeAttempts
from chalicelib.wiring import services
from tests.nodes.tron_shops import TRON, Shop
from tests.support.shop import Kms
from tests.support.treasury import address_of, plan_units
from tests.support.tron_chain import TRX, USDT, stranger
from tests.support.tron_second_reader import FAULTS, Fault, disagree

pytestmark = pytest.mark.nodes

SIGNED_IN_THE_SWEEP = [pytest.param(fault, marks=[pytest.mark.sweep] * (fault != "digest")) for fault in FAULTS]


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


# The sweep: what a key has signed is read again in one way, and test_a_payment has an unknown field in it, and stays.
@pytest.mark.parametrize("fault", SIGNED_IN_THE_SWEEP)
def test_a_stake_and_its_replacement(shop: Shop, caplog: pytest.LogCaptureFixture, fault: Fault) -> None:
    frozen, made = shop.frozen("ENERGY"), shop.stake("10")
    first = shop.staked(made)

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
# The sweep: test_a_sweep has two readers differ about TRX, and stays.
@pytest.mark.parametrize("coin", [pytest.param("trx", marks=pytest.mark.sweep), "usdt"])
def test_a_payment(shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, coin: str, fault: Fault) -> None:
    shop.paid(25, coin)
    to = stranger()
    before = shop.unsigned(Kms(monkeypatch), to, 10, coin)
    withdrawal = before.withdrawal_id
    order = refused(caplog, fault, lambda: services().payouts.pay(before.tenant, withdrawal))
    contract = USDT if coin == "usdt" else None
    assert (order.kind, order.recipient, order.contract, order.amount) == ("payment", to, contract, 10 * TRX)
    assert services().store.get(PaymentOrder, id=before.id) == before and before.raw is None
    with in_realm("live"):
        services().payouts.pay(before.tenant, withdrawal)
    shop.confirm()
    assert shop.on_chain(to, contract) == 10 * TRX


# The sweep: as with a stake.
@pytest.mark.parametrize("fault", SIGNED_IN_THE_SWEEP)
def test_a_sweep(shop: Shop, caplog: pytest.LogCaptureFixture, fault: Fault) -> None:
    trx = services().catalogue("live").coins["tron", "trx"]
    address = shop.paid(5)
    sweep = plan_units(trx, "sweep", address_of(address), shop.hot(), 4 * TRX)

    def sign() -> None:
        services().deposit_moves.advance(TRON, sweep)

    caplog.clear()
    with pytest.MonkeyPatch.context() as patch:
        asked = disagree(patch, fault)
        with in_realm("live"), pytest.raises(ReadersDiffer):
            sign()
    (order,) = asked
    assert (order.kind, order.sender, order.recipient, order.amount) == ("payment", address, shop.hot(), 4 * TRX)
    stopped = services().store.get(Move, network=TRON, id=sweep)
    assert stopped is not None and (stopped.state, stopped.raw) == ("built", None)
    assert "ALARM live:tron: " in caplog.text
    before = shop.on_chain(shop.hot())
    shop.run("collect")
    shop.confirm()
    assert shop.on_chain(shop.hot()) == before + 4 * TRX


def alterations(real: Unsigned) -> dict[str, bytes]:
    """Unsigned bytes that do something else than `real`, or more than it."""
    ref, raw = real.reference, real.encode()
    wrong = {
        "owner": replace(real, owner=stranger()),
        "amount": replace(real, amount=real.amount + 1),
        "late": replace(real, reference=replace(ref, expiration=ref.timestamp + 25 * 3_600_000)),
        "fee limit": replace(real, fee_limit=2**40),
        "kind": replace(real, kind="TransferContract", recipient=stranger(), contract=None, resource=None, fee_limit=0),
    }
    if real.recipient is not None:
        wrong["recipient"] = replace(real, recipient=stranger())
    if real.contract is not None:
        wrong["contract"] = replace(real, contract=stranger())
    if real.resource is not None:
        wrong["resource"] = replace(real, resource="BANDWIDTH")
    made = {name: each.encode() for name, each in wrong.items()} | {"unknown field": raw + b"\xa0\x06\x01", "nothing": b""}
    if real.contract is not None:
        made |= {"approve": raw.replace(bytes.fromhex("a9059cbb"), bytes.fromhex("095ea7b3"))}
    assert raw not in made.values()
    return made


# The sweep: a payment of USDT has more fields to alter than one of TRX, and stays.
@pytest.mark.parametrize("coin", [pytest.param("trx", marks=pytest.mark.sweep), "usdt"])
def test_the_second_reader_alone_lets_no_altered_payment_be_signed(shop: Shop, monkeypatch: pytest.MonkeyPatch, coin: str) -> None:
    """Our own check is turned off, and what it would have allowed as a fee is the right one."""
    shop.paid(25, coin)
    kms = Kms(monkeypatch)
    order = shop.unsigned(kms, stranger(), 10, coin)
    withdrawal, version = order.withdrawal_id, order.version
    allowed = services().payer(services().catalogue("live").networks["tron"]).explain(order.unsigned)
    with monkeypatch.context() as patch:
        patch.setattr(TronPayer, "digest", lambda _, unsigned: sha256(bytes.fromhex(unsigned)).digest())
        patch.setattr(PayoutAttempts, "_approve", lambda *_, **__: allowed)
        for name, raw in alterations(decode(bytes.fromhex(order.unsigned))).items():
            altered = replace(order, unsigned=raw.hex() or "00", version=(version := version + 1))
            services().store.commit([Save(altered)])
            with in_realm("live"), pytest.raises(ReadersDiffer):
                services().payouts.pay(order.tenant, withdrawal)
            assert (services().store.get(PaymentOrder, id=order.id), kms.calls["Sign"]) == (altered, 0), name
    services().store.commit([Save(replace(order, version=version + 1))])
    shop.run("housekeeping")
    with in_realm("live"):
        services().payouts.pay(order.tenant, withdrawal)
    shop.confirm()


# The sweep: the unit tests alter each field of a stake before this reader, and test_a_stake_and_its_replacement asks it. They stay.
@pytest.mark.sweep
def test_the_second_reader_alone_lets_no_altered_stake_be_signed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    made, kms = shop.stake("10"), Kms(monkeypatch)
    stake = shop.staked(made)
    assert stake.unsigned is not None
    version = stake.version
    with monkeypatch.context() as patch:
        patch.setattr(TronStaking, "digest", lambda _, unsigned: sha256(bytes.fromhex(unsigned)).digest())
        patch.setattr(StakeAttempts, "altered", lambda *_: [])
        for name, raw in alterations(decode(bytes.fromhex(stake.unsigned))).items():
            altered = replace(stake, unsigned=raw.hex(), hash=sha256(raw).hexdigest(), version=(version := version + 1))
            services().store.commit([Save(altered)])
            with in_realm("live"), pytest.raises(ReadersDiffer):
                services().stake_signing.sign(TRON, stake.id)
            assert (services().store.get(Stake, network=TRON, id=stake.id), kms.calls["Sign"]) == (altered, 0), name
    services().store.commit([Save(replace(stake, version=version + 1))])
    shop.run()
    shop.confirm()
