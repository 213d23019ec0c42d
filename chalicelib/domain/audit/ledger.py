"""Audit rules of the ledger: its two books agree, and balances and wallets are the sums of the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

from chalicelib.domain.audit.books import Books
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import BURNT, FEES, OUTSIDE, Book, in_flight
from chalicelib.domain.ledger import wallet as wallet_account


def taken_back(books: Books) -> set[str]:
    """Places, in lower case, where a reorganisation took back a credited deposit, or coins of our own: a payment that spent it
    may be missing there."""
    gone = {(d.network, d.address) for d in books.deposits if d.round and d.status != "confirmed"}
    gone |= {(m.network, m.recipient) for m in books.coin_moves if m.round and m.state != "settled"}
    return {wallet_account(network, address).lower() for network, address in gone}


def books_agree(sums: Mapping[tuple[Book, str, AssetId], int], taken_back: Container[str]) -> Iterable[str]:
    """Assets = liabilities + operator + fees: both books have the same totals inside and the same fees burnt."""
    inside: dict[tuple[AssetId, Book], int] = defaultdict(int)
    for (book, account, asset), units in sums.items():
        if account != OUTSIDE:
            inside[asset, book] += units
        if account.startswith(("wallet:", "in_flight:")) and units < 0 and account.lower() not in taken_back:
            yield f"{account} holds {units} of {asset}: less than nothing"
    for asset in sorted({asset for asset, _ in inside}):
        where, whose = inside[asset, Book.WHERE], inside[asset, Book.WHOSE]
        if where != whose:
            yield f"{asset}: the places hold {where}, the owners {whose}"
        burnt, fees = sums.get((Book.WHERE, BURNT, asset), 0), sums.get((Book.WHOSE, FEES, asset), 0)
        if burnt != fees:
            yield f"{asset}: {burnt} was burnt, {fees} was booked as fees"


def balances_agree(sums: Mapping[tuple[Book, str, AssetId], int], books: Books) -> Iterable[str]:
    booked = {(account, asset): units for (book, account, asset), units in sums.items() if account.startswith("merchant:")}
    for balance in books.balances:
        for purse in ("available", "frozen", "held"):
            expected = booked.pop((f"merchant:{balance.tenant}:{purse}", balance.asset), 0)
            if getattr(balance, purse) != expected:
                yield f"{balance.tenant} {balance.asset}: {purse} is {getattr(balance, purse)}, the journal says {expected}"
    for (account, asset), units in booked.items():
        yield f"{account} has {units} of {asset} in the journal and no balance"


def wallets_agree(sums: Mapping[tuple[Book, str, AssetId], int], books: Books) -> Iterable[str]:
    booked = {(account, asset): units for (book, account, asset), units in sums.items() if account.startswith("wallet:")}
    for wallet in books.wallets:
        expected = booked.pop((f"wallet:{wallet.network}:{wallet.address}", wallet.asset), 0)
        if wallet.units != expected:
            yield f"wallet {wallet.address} {wallet.asset}: {wallet.units}, the journal says {expected}"
    for (account, asset), units in booked.items():
        yield f"{account} has {units} of {asset} in the journal and no stored balance"


def in_flight_agrees(sums: Mapping[tuple[Book, str, AssetId], int], books: Books) -> Iterable[str]:
    booked = {account: units for (book, account, _), units in sums.items() if account.startswith("in_flight:")}
    for order in books.orders:
        expected = order.amount if order.state == "signed" else 0
        found = booked.pop(in_flight(order.id), 0)
        if found != expected and order.id not in books.left:
            yield f"order {order.id} is {order.state} and {found} is in flight, not {expected}"
    for move in books.moves:
        expected = move.units if move.state == "signed" else 0
        found = booked.pop(in_flight(move.id), 0)
        if found != expected and move.id not in books.left:
            yield f"move {move.id} is {move.state} and {found} is in flight, not {expected}"
    for coin_move in books.coin_moves:
        found = booked.pop(in_flight(coin_move.id), 0)
        if found != coin_move.in_flight and coin_move.id not in books.left:
            yield f"coin move {coin_move.id} is {coin_move.state} and {found} is in flight, not {coin_move.in_flight}"
    for account, units in booked.items():
        yield f"{account} holds {units} and there is no such order, nor such a move"
