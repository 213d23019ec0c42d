"""Which networks a payer may pay on at any moment, and since when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.domain.ids import AssetId, MerchantId, NetworkId, asset_id, tenant_id
from chalicelib.domain.invoices.choices import LOCKS_KEPT, Choice, Choosing, Lock
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.waiting import expected_since

ETHEREUM, BITCOIN = NetworkId("test:ethereum"), NetworkId("test:bitcoin")
ETHER, BTC, USDT = asset_id(ETHEREUM, "eth"), asset_id(BITCOIN, "btc"), asset_id(ETHEREUM, "usdt")
INVOICE = Invoice(
    id="inv_1", tenant=tenant_id(MerchantId("mch_a"), "test"), network=ETHEREUM, asset=ETHER, address="0xa", address_id="addr_1",
    amount=100, created_at=77, expires_at=1000,
)  # fmt: skip


def choice(asset: AssetId, *locked: int) -> Choice:
    """A coin that was locked at these times."""
    locks = tuple(Lock(Quote("EUR", "2", 18, 0, "test"), since, since + 900_000) for since in locked)
    return Choice(asset, 18, "evm", "0xa", "addr_1", locks=locks)


def chosen(*choices: Choice) -> dict[NetworkId, int]:
    return expected_since(replace(INVOICE, choosing=Choosing("EUR", "10", (), ETHEREUM, choices)))


@pytest.mark.parametrize("status", ["pending", "partial", "confirming"])
def test_an_open_invoice_is_expected_to_be_paid_since_its_creation(status: str) -> None:
    assert expected_since(replace(INVOICE, status=status)) == {ETHEREUM: 77}


@pytest.mark.parametrize("status", ["completed", "expired", "cancelled", "on-hold"])
def test_no_other_invoice_is(status: str) -> None:
    asked = Choosing("EUR", "10", (), ETHEREUM, (choice(ETHER, 5),))
    assert expected_since(replace(INVOICE, status=status)) == {}
    assert expected_since(replace(INVOICE, status=status, choosing=asked)) == {}


def test_a_coin_is_expected_since_it_was_chosen_first() -> None:
    """Later locks are of payers who look again."""
    assert chosen(choice(ETHER, 5, 1_000_000, 2_000_000)) == {ETHEREUM: 5}


def test_nobody_is_expected_where_nobody_chose_or_hours_ago() -> None:
    """Of a choice as old as all its locks the first one is forgotten."""
    hours = range(5, 5 + LOCKS_KEPT)
    assert chosen(choice(ETHER), choice(BTC, *hours)) == {}
    assert chosen(choice(BTC, *hours[1:])) == {BITCOIN: 6}


def test_each_network_is_expected_since_the_newest_choice_there() -> None:
    assert chosen(choice(ETHER, 9), choice(USDT, 5), choice(BTC, 3)) == {ETHEREUM: 9, BITCOIN: 3}
    assert chosen(choice(USDT, 5), choice(ETHER, 9)) == {ETHEREUM: 9}
