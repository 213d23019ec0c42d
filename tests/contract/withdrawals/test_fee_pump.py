"""Nobody spends our fees (money rule 14): a payment to an address of this service comes back to whoever ordered it, and costs the
operator a payout, a top-up and a sweep each time. So it is charged whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ledger import Book, JournalEntry, operator, totals
from chalicelib.domain.money import format_units
from chalicelib.usecases.reconciliation.audit import audit
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
    shop.open()
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


def test_what_collecting_costs_is_quoted_with_the_fees(shop: Shop) -> None:
    quote = services().store.get(FeeQuote, network=shop.realm_network().id)
    assert quote is not None and set(quote.collecting) == set(quote.fees) >= {"eth", "usdt"}
    assert quote.collecting["eth"] == quote.fees["eth"]
    assert quote.collecting["usdt"] == quote.fees["eth"] + quote.fees["usdt"]


# The sweep: payments to the own address are charged alike, and stay; `test_fee_budget` has two merchants who pay each other.
@pytest.mark.sweep
def test_two_merchants_who_pay_each_other_cost_the_operator_nothing(shop: Shop) -> None:
    """Neither's own address, and both have their money again."""
    friend = Shop(shop.stack, "other_merchant_test")
    ours, theirs = (each.invoice("100", "usdt")["address"] for each in (shop, friend))
    for address in (ours, theirs):
        shop.pay(address, "100", "usdt")
    settled(shop)
    before, made = earned(shop), 0
    for _ in range(4):
        for who, to in ((shop, theirs), (friend, ours)):
            made += who.ask("4", "usdt", to).status == 201
        settled(shop, 2)
    settled(shop)
    lost = before - earned(shop)
    assert made == 8 and lost <= 0, f"the operator lost {lost} USD"
    assert Decimal(shop.available("usdt")) + Decimal(friend.available("usdt")) < 200 - 8 * 7


def test_what_failed_on_the_chain_pays_its_fee_and_no_collecting(shop: Shop) -> None:
    address = shop.invoice("100", "usdt")["address"]
    shop.pay(address, "100", "usdt")
    settled(shop)
    before = earned(shop)
    paid, failed = (shop.withdraw("4", "usdt", address) for _ in range(2))
    assert shop.withdrawal(failed)["fee_charged"] == "9.06"
    assert shop.post(f"/v1/sandbox/withdrawals/{failed}", {"outcome": "fail"}).status == 200
    settled(shop)
    shown = [shop.withdrawal(w) for w in (paid, failed)]
    assert [(w["status"], w["fee_charged"]) for w in shown] == [("confirmed", "9.06"), ("failed", "3.9")]
    assert shop.balance("usdt") == {"available": "87.04", "frozen": "0", "pending": "0"}
    assert earned(shop) >= before
