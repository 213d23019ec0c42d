"""The status that payments give an invoice, step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.domain.ids import MerchantId, NetworkId, asset_id, tenant_id
from chalicelib.domain.invoices.invoices import Invoice

NETWORK = NetworkId("live:ethereum")
INVOICE = Invoice(
    id="inv_1", tenant=tenant_id(MerchantId("mch_a"), "live"), network=NETWORK, asset=asset_id(NETWORK, "eth"), address="0xa",
    address_id="addr_1", amount=100, created_at=0, expires_at=1000,
)  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({}, "pending"),
        ({"unconfirmed": 1}, "partial"),
        ({"confirmed": 99}, "partial"),
        ({"confirmed": 50, "unconfirmed": 50}, "confirming"),
        ({"confirmed": 100}, "completed"),
        ({"confirmed": 130}, "completed"),
        ({"expired": True}, "expired"),
        ({"expired": True, "confirmed": 99}, "expired"),
        ({"expired": True, "late": 100}, "expired"),
        ({"expired": True, "confirmed": 100}, "completed"),
        ({"cancelled": True}, "cancelled"),
        ({"cancelled": True, "confirmed": 100}, "cancelled"),
        ({"cancelled": True, "expired": True, "unconfirmed": 100}, "cancelled"),
        ({"manual_status": "on-hold", "confirmed": 100}, "on-hold"),
    ],
)
def test_status_follows_the_money(facts: dict[str, object], status: str) -> None:
    assert replace(INVOICE, **facts).settled_status() == status  # type: ignore[arg-type]


def test_overpaid_is_the_excess() -> None:
    assert replace(INVOICE, confirmed=130).overpaid == 30
    assert replace(INVOICE, confirmed=70).overpaid == 0


def test_received_counts_late_money_too() -> None:
    assert replace(INVOICE, confirmed=70, late=20).received == 90
