"""A payment order that is altered in the store between its making and its signature: nothing is signed, an operator is called,
everybody else is paid (money rule 7). Bytes are built anew; what else is altered waits for an operator, and is paid once then.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.wiring import services
from infra.cli import main
from tests.support.shop import Kms, Shop, open_shop
from tests.support.stack import Stack

THIEF = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"  # EIP-55's own example
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
UNITS = 12_500_000


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("30", "usdt")) as opened:
        yield opened


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def bytes_with(**fields: Any) -> Callable[[PaymentOrder], PaymentOrder]:
    """The order with other bytes to sign, well-formed all the same."""

    def change(order: PaymentOrder) -> PaymentOrder:
        doc = {**json.loads(bytes.fromhex(order.unsigned)), **fields}
        return replace(order, unsigned=json.dumps(doc, sort_keys=True, separators=(",", ":")).encode().hex())

    return change


def row_with(**fields: Any) -> Callable[[PaymentOrder], PaymentOrder]:
    return lambda order: replace(order, **fields)


ALTERED: dict[str, Callable[[PaymentOrder], PaymentOrder]] = {
    "bytes-recipient": bytes_with(recipient=THIEF.lower()),
    "bytes-amount": bytes_with(amount=UNITS + 1),
    "bytes-contract": bytes_with(contract=USDC.lower()),
    "bytes-native": bytes_with(contract=None),
    "bytes-chain-id": bytes_with(chain_id=1),
    "bytes-network": bytes_with(network="test:bsc"),
    "bytes-nonce": bytes_with(nonce=7),
    "bytes-no-payment": row_with(unsigned="00"),
    "row-recipient": row_with(recipient=THIEF),
    "row-amount": row_with(amount=UNITS - 1),
    "row-contract": row_with(contract=USDC),
    "row-native": row_with(contract=None),
    "row-nonce": row_with(nonce=7),
    "row-network": row_with(network=NetworkId("test:bsc")),
    "row-wallet": row_with(wallet=THIEF),
    "row-asset": row_with(asset=AssetId("test:ethereum:usdc")),
    "row-withdrawal": row_with(withdrawal_id="wd_another"),
    "row-merchant": row_with(tenant=TenantId("mch_another:test")),
    "both-recipient": lambda order: row_with(recipient=THIEF)(bytes_with(recipient=THIEF.lower())(order)),
    "both-nonce": lambda order: row_with(nonce=7)(bytes_with(nonce=7)(order)),
    "both-next-nonce": lambda order: row_with(nonce=order.nonce + 1)(bytes_with(nonce=order.nonce + 1)(order)),
    "both-amount": lambda order: row_with(amount=UNITS + 1)(bytes_with(amount=UNITS + 1)(order)),
}


REBUILT = {name for name in ALTERED if name.startswith("bytes-")} - {"bytes-nonce"}
"""Only the bytes differ: they are built anew, with the nonce that was allotted. Whether a nonce that differs is the bytes' or the
row's nobody knows."""


ALTERED_SIGNED: dict[str, Callable[[PaymentOrder], PaymentOrder]] = {
    "signed-nothing": row_with(raw="00"),
    "signed-id": row_with(txid="0x" + "77" * 32),
    "signed-other-bytes": lambda order: replace(order, raw=_resigned(order)),
    "signed-and-both-nonce": lambda order: replace(ALTERED["both-next-nonce"](order), raw=_resigned(order)),
}


def _resigned(order: PaymentOrder) -> str:
    """Its bytes with the next nonce, under the signature of the first ones: nobody's, then."""
    doc = json.loads(bytes.fromhex(order.raw or ""))
    doc["unsigned"] = ALTERED["both-next-nonce"](order).unsigned
    return json.dumps(doc, sort_keys=True, separators=(",", ":")).encode().hex()


def altered(shop: Shop, kms: Kms) -> tuple[str, PaymentOrder]:
    """A withdrawal whose order waits for its signature."""
    kms.away = True
    withdrawal = shop.withdraw("12.5", "usdt")
    shop.turn()
    order = shop.order(withdrawal)
    assert (order.raw, order.amount, order.nonce) == (None, UNITS, 0)
    kms.away = False
    kms.calls.clear()
    return withdrawal, order


def refused(shop: Shop, withdrawal: str) -> None:
    with in_realm("test"), pytest.raises(OrderMismatch):
        services().payouts.pay(shop.record(withdrawal).tenant, withdrawal)


def test_an_altered_order_is_not_signed(shop: Shop, kms: Kms, caplog: pytest.LogCaptureFixture) -> None:
    withdrawal, order = altered(shop, kms)
    version = order.version
    for name, change in ALTERED.items():
        wrong = replace(change(order), version=version + 1)
        assert wrong != replace(order, version=version + 1), name
        services().store.commit([Save(wrong)])
        caplog.clear()
        refused(shop, withdrawal)
        stored = services().store.get(PaymentOrder, id=order.id)
        assert stored is not None and kms.calls["Sign"] == 0, name
        assert any("ALARM" in record.message for record in caplog.records), name
        assert shop.withdrawal(withdrawal)["status"] == "processing", name
        thrown_away = replace(order, unsigned="", version=wrong.version + 1)
        assert stored == (thrown_away if name in REBUILT else wrong), name
        version = stored.version
        if name in REBUILT:
            services().store.commit([Save(replace(order, version=(version := version + 1)))])
    # Whoever comes after is signed and sent; the chain takes it when the nonce before it has come.
    second = shop.withdraw("5", "usdt")
    shop.turn()
    assert (shop.withdrawal(second)["status"], kms.calls["Sign"]) == ("confirming", 1)
    # The operator has looked: what the withdrawal says is paid, with the nonce that was allotted.
    merchant, stage = str(shop.record(withdrawal).tenant).split(":")
    assert main(["--stage", "local", "rebuild-order", merchant, withdrawal, "--realm", stage, "--nonce", "7"]) == 1
    assert main(["--stage", "local", "rebuild-order", merchant, withdrawal, "--realm", stage, "--nonce", "0"]) == 0
    shop.nudge()
    assert shop.order(withdrawal).unsigned == order.unsigned
    shop.mine()
    shop.turn()
    assert {shop.withdrawal(w)["status"] for w in (withdrawal, second)} == {"confirmed"}
    assert (shop.paid(coin="usdt"), shop.paid(THIEF), shop.paid(THIEF, "usdt")) == (17_500_000, 0, 0)
    assert shop.available("usdt") == "12.5"
    assert main(["--stage", "local", "rebuild-order", merchant, withdrawal, "--realm", stage]) == 1, "it is signed"


def test_altered_bytes_hold_up_nobody(shop: Shop, kms: Kms) -> None:
    withdrawal, order = altered(shop, kms)
    services().store.commit([Save(replace(ALTERED["bytes-recipient"](order), version=order.version + 1))])
    second = shop.withdraw("5", "usdt")
    shop.nudge()  # seen, and thrown away
    shop.nudge()
    shop.mine()
    shop.turn()
    assert {shop.withdrawal(w)["status"] for w in (withdrawal, second)} == {"confirmed"}
    assert [o.nonce for o in (shop.order(withdrawal), shop.order(second))] == [0, 1]
    assert (shop.paid(coin="usdt"), shop.paid(THIEF, "usdt")) == (17_500_000, 0)


def test_an_altered_withdrawal_is_not_paid(shop: Shop, kms: Kms) -> None:
    """Its order says otherwise: nothing is built anew from what somebody wrote into its record."""
    withdrawal, order = altered(shop, kms)
    record = shop.record(withdrawal)
    changes: list[dict[str, Any]] = [{"to_address": THIEF}, {"amount": UNITS + 1}, {"asset": AssetId("test:ethereum:usdc")}]
    version = record.version
    for change in changes:
        version += 1
        services().store.commit([Save(replace(record, **change, version=version))])
        refused(shop, withdrawal)
        assert (shop.order(withdrawal), kms.calls["Sign"]) == (order, 0)
    services().store.commit([Save(replace(record, version=version + 1))])
    shop.nudge()
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(coin="usdt")) == ("confirmed", UNITS)


def test_an_altered_order_is_not_replaced(shop: Shop, kms: Kms) -> None:
    """What is out stays out; nothing else is signed with its nonce."""
    withdrawal = shop.withdraw("12.5", "usdt")
    answer = shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "stick"})
    assert answer.status == 200
    shop.turn()
    order = shop.order(withdrawal)
    assert (order.state, kms.calls["Sign"]) == ("signed", 1)
    version = order.version
    for name, change in {**ALTERED, **ALTERED_SIGNED}.items():
        version += 1
        services().store.commit([Save(replace(change(order), renew=True, version=version))])
        with in_realm("test"), pytest.raises((OrderMismatch, ValueError)):
            services().payouts.pay(shop.record(withdrawal).tenant, withdrawal)
        stored = services().store.get(PaymentOrder, id=order.id)
        assert stored is not None and (stored.version, kms.calls["Sign"]) == (version, 1), name
    services().store.commit([Save(replace(order, version=version + 1))])
    shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "confirm"})
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(coin="usdt")) == ("confirmed", UNITS)


def test_a_replacement_is_bounded_by_what_was_signed(
    shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """How often, and at what price: whatever the record says of fees and attempts when the replacement is signed."""
    withdrawal, other = shop.withdraw("12.5", "usdt"), shop.withdraw("5", "usdt")
    for each in (withdrawal, other):
        assert shop.post(f"/v1/sandbox/withdrawals/{each}", {"outcome": "stick"}).status == 200
    shop.turn()
    order, foreign = shop.order(withdrawal), shop.order(other)
    assert order.raw is not None and order.txid is not None and foreign.raw is not None and foreign.txid is not None
    first, real = Attempt(order.raw, order.txid, order.fee, 1), SandboxPayer.renew

    def dear(payer: SandboxPayer, unsigned: str, *rest: Any) -> str:
        for _ in range(25):
            unsigned = real(payer, unsigned, *rest)
        return unsigned

    dear_ones = {
        "fee": replace(order, fee=order.fee * 100),
        "no fee": replace(order, fee=0),
        "fee of the first": replace(order, earlier=(replace(first, fee=order.fee * 100),)),
    }
    altered_ones = {
        "another's": replace(order, earlier=(Attempt(foreign.raw, foreign.txid, order.fee, 1),)),
        "nobody's": replace(order, earlier=(replace(first, raw="00"),)),
        "id of the first": replace(order, earlier=(replace(first, txid="0x" + "77" * 32),)),
        "often": replace(order, earlier=(first,) * 5),
    }
    version, signed = order.version, kms.calls["Sign"]
    for name, record in (dear_ones | altered_ones).items():
        services().store.commit([Save(replace(record, renew=True, version=(version := version + 1)))])
        caplog.clear()
        with in_realm("test"), monkeypatch.context() as patch:
            patch.setattr(SandboxPayer, "renew", dear if name in dear_ones else real)
            with contextlib.suppress(OrderMismatch):
                assert services().payouts.pay(shop.record(withdrawal).tenant, withdrawal) == "waiting"
        assert (shop.order(withdrawal).version, kms.calls["Sign"]) == (version, signed), name
        assert "ALARM" in caplog.text, name
    services().store.commit([Save(replace(order, renew=True, version=version + 1))])
    with in_realm("test"):
        services().payouts.pay(shop.record(withdrawal).tenant, withdrawal)
    assert ([a.txid for a in shop.order(withdrawal).earlier], kms.calls["Sign"]) == ([order.txid], signed + 1)
