"""Nobody spends our fees (money rule 14): a payment to an address of this service comes back to whoever ordered it, and costs the
operator a payout, a top-up and a sweep each time. So it is charged whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from chalicelib.domain.ledger import Book, JournalEntry, operator, totals
from chalicelib.domain.money import format_units
from chalicelib.usecases.audit import audit
from chalicelib.wiring import forget, services
from tests.support.shop import Shop
from tests.support.stack import Stack

ROUNDS = 25


@pytest.fixture
def shop(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A shop whose deposits are all swept, however little they are worth."""
    monkeypatch.setenv("COLLECT_FEE_PERCENT", "0")
    forget()
    shop = Shop(stack)
    shop.turn()
    for coin in ("eth", "usdt"):
        body = {"coin": coin, "network": shop.network, "collectThreshold": 0}
        assert stack.call("PUT", "/v1/coins", stack.keys["admin_test"], json=body).status == 200
    yield shop
    assert audit(services().store) == []
    forget()


def settled(shop: Shop, rounds: int = 4) -> None:
    """Payouts, the deposits that they are, top-ups and sweeps, each final before the next."""
    for _ in range(rounds):
        shop.turn()
        shop.mine()
    shop.turn()


def worth(shop: Shop, slug: str, units: int) -> Decimal:
    rate = services().rates("test").get(slug)
    assert rate is not None
    return Decimal(format_units(abs(units), shop.coin(slug).decimals)) * rate.decimal * (1 if units > 0 else -1)


def earned(shop: Shop) -> Decimal:
    """What the ledger says is the operator's, in USD at the rates of now."""
    found = totals(services().store.every(JournalEntry))
    mine = {asset: units for (book, account, asset), units in found.items() if (book, account) == (Book.WHOSE, operator("test"))}
    return sum((worth(shop, asset.rsplit(":", 1)[1], units) for asset, units in mine.items()), Decimal(0))


def test_payments_to_the_own_deposit_address_cost_the_operator_nothing(shop: Shop) -> None:
    address = shop.invoice("100", "usdt")["address"]
    shop.pay(address, "100", "usdt")
    settled(shop)
    before, asked = earned(shop), []
    for _ in range(ROUNDS):
        asked.append(shop.ask("4", "usdt", address).status)
    settled(shop)
    lost = before - earned(shop)
    assert lost <= 0, f"{asked.count(201)} payments: the merchant has {shop.available('usdt')} USDT, the operator lost {lost} USD"
