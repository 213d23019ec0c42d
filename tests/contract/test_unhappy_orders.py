"""A payment order that is altered in the store between its making and its signature: nothing is signed, an operator is called,
everybody else is paid (money rule 7). Put right again, it is paid once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.withdrawals import PaymentOrder
from chalicelib.usecases.changes import Save
from chalicelib.wiring import services
from tests.support.shop import Kms, Shop, open_shop
from tests.support.stack import Stack

THIEF = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"  # EIP-55's own example
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
UNITS = 12_500_000


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        opened.credit("30", "usdt")
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
    "both-amount": lambda order: row_with(amount=UNITS + 1)(bytes_with(amount=UNITS + 1)(order)),
}


@pytest.mark.parametrize("where", ["bytes", "row", "both"])
def test_an_altered_order_is_not_signed(where: str, shop: Shop, kms: Kms, caplog: pytest.LogCaptureFixture) -> None:
    kms.away = True
    withdrawal = shop.withdraw("12.5", "usdt")
    shop.turn()
    order = shop.order(withdrawal)
    assert (order.raw, order.amount, order.nonce) == (None, UNITS, 0)
    kms.away = False
    kms.calls.clear()
    names = [name for name in ALTERED if name.startswith(f"{where}-")]
    for version, name in enumerate(names, order.version + 1):
        altered = replace(ALTERED[name](order), version=version)
        assert altered != replace(order, version=version), name
        services().store.commit([Save(altered)])
        caplog.clear()
        shop.nudge()
        stored = services().store.get(PaymentOrder, id=order.id)
        assert (stored, kms.calls["Sign"]) == (altered, 0), name
        assert any("ALARM" in record.message for record in caplog.records), name
        assert shop.withdrawal(withdrawal)["status"] == "processing", name
    # Whoever comes after is signed and sent; the chain takes it when the nonce before it has come.
    second = shop.withdraw("5", "usdt")
    shop.turn()
    assert (shop.withdrawal(second)["status"], kms.calls["Sign"]) == ("confirming", 1)
    services().store.commit([Save(replace(order, version=order.version + len(names) + 1))])
    shop.nudge()
    shop.mine()
    shop.turn()
    assert {shop.withdrawal(w)["status"] for w in (withdrawal, second)} == {"confirmed"}
    assert (shop.paid(coin="usdt"), shop.paid(THIEF), shop.paid(THIEF, "usdt")) == (17_500_000, 0, 0)
    assert shop.available("usdt") == "12.5"
