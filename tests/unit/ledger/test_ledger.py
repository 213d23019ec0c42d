"""The two books: every entry keeps them in step, and an opposite entry undoes it."""

from __future__ import annotations

import pytest

from chalicelib.domain import ledger
from chalicelib.domain.ids import MerchantId, NetworkId, asset_id, tenant_id
from chalicelib.domain.ledger import Balance, Book, JournalEntry, Posting, totals
from chalicelib.domain.money import Amount

NETWORK = NetworkId("live:ethereum")
ETH = asset_id(NETWORK, "eth")
USDT = asset_id(NETWORK, "usdt")
SHOP = tenant_id(MerchantId("mch_shop"), "live")
USER = ledger.wallet(NETWORK, "0xuser")
HOT = ledger.wallet(NETWORK, "0xhot")


def inside(entries: list[JournalEntry], book: Book, asset: str) -> int:
    return sum(u for (b, account, a), u in totals(entries).items() if b is book and a == asset and account != ledger.OUTSIDE)


def paid_in() -> JournalEntry:
    return ledger.deposit_credited("tx_1", 0, 1, USER, ledger.merchant(SHOP, "available"), Amount(USDT, 100))


def funded() -> list[JournalEntry]:
    return [
        ledger.deposit_credited("tx_2", 0, 1, HOT, ledger.operator("live"), Amount(USDT, 500)),
        ledger.deposit_credited("tx_3", 0, 1, HOT, ledger.operator("live"), Amount(ETH, 50)),
    ]


@pytest.mark.parametrize("bounced", [False, True])
def test_a_withdrawal_moves_both_books_alike(bounced: bool) -> None:
    end = ledger.withdrawal_bounced if bounced else ledger.withdrawal_settled
    amount = Amount(USDT, 40)
    entries = [
        *funded(),
        paid_in(),
        ledger.withdrawal_reserved("wd_1", 2, SHOP, amount),
        ledger.payment_signed("ord_1", 3, HOT, amount),
        end(ledger.SignedPayment("wd_1", "ord_1", 0, SHOP, "live", HOT, amount), 4, Amount(ETH, 7)),
    ]
    sums = totals(entries)
    for asset in (ETH, USDT):
        assert inside(entries, Book.WHERE, asset) == inside(entries, Book.WHOSE, asset)
    assert sums[Book.WHERE, HOT, ETH] == 43
    assert sums[Book.WHERE, ledger.BURNT, ETH] == sums[Book.WHOSE, ledger.FEES, ETH] == 7
    assert sums[Book.WHERE, HOT, USDT] == (500 if bounced else 460)
    assert (Book.WHERE, ledger.in_flight("ord_1"), USDT) not in sums
    balance = Balance(SHOP, USDT)
    for entry in entries:
        balance = balance.after(entry)
    assert (balance.available, balance.frozen) == ((100, 0) if bounced else (60, 0))


def test_a_reversal_is_the_exact_opposite() -> None:
    back = ledger.deposit_reversed("tx_1", 0, 2, USER, ledger.merchant(SHOP, "available"), Amount(USDT, 100))
    assert totals([paid_in(), back]) == {}


def test_releasing_gives_back_what_was_reserved() -> None:
    amount = Amount(USDT, 40)
    balance = Balance(SHOP, USDT, available=100)
    reserved = balance.after(ledger.withdrawal_reserved("wd_1", 2, SHOP, amount))
    assert (reserved.available, reserved.frozen) == (60, 40)
    assert reserved.after(ledger.withdrawal_released("wd_1", 3, SHOP, amount)).available == 100


def test_a_posting_is_never_negative_and_never_to_itself() -> None:
    with pytest.raises(ValueError, match="negative"):
        Posting(Book.WHERE, "a", "b", Amount(ETH, -1))
    with pytest.raises(ValueError, match="two accounts"):
        Posting(Book.WHERE, "a", "a", Amount(ETH, 1))


def test_an_entry_of_another_coin_leaves_a_balance_alone() -> None:
    assert Balance(SHOP, ETH, available=5).after(paid_in()).available == 5


@pytest.mark.parametrize("bounced", [False, True])
def test_a_settlement_can_be_undone_to_the_unit(bounced: bool) -> None:
    end = ledger.withdrawal_bounced if bounced else ledger.withdrawal_settled
    settled = end(ledger.SignedPayment("wd_1", "ord_1", 0, SHOP, "live", HOT, Amount(USDT, 40)), 4, Amount(ETH, 7))
    assert totals([settled, ledger.settlement_reversed(settled, "ord_1", 0, 5)]) == {}
