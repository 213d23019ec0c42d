"""Bounds of sums: whether a deposit's sums stay within the 38 digits that are stored exactly.

A token may log any amount, as often as its owner pays for: sums of its deposits would pass the 38 digits of a stored number, and
the block that holds the next one could never be passed. Such a deposit is set aside: recorded, and part of no sum.
"""

from __future__ import annotations

from collections.abc import Iterable

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.money import MOST_SUM

MATTERS = 10**20
"""Units below which an amount is not compared with what an address has: 10^17 of them would be needed to come to MOST_SUM, so the
crediting of ordinary payments reads nothing more."""
NEAR = MOST_SUM // 100
"""From here on a commit that adds to a sum rests on the sum as it was read. Below it several may add at once."""


def fits(units: int, sums: Iterable[int]) -> bool:
    """Whether each of `sums` can grow by `units`."""
    return units + max((0, *sums)) <= MOST_SUM


def seen_sums(deposit: Deposit, balance: Balance | None, invoice: Invoice | None, wallet: WalletBalance | None) -> list[int]:
    """The sums that a new deposit would be added to, all awaited ones included, in units: the merchant's balance, the invoice,
    and the address. None for a sum that it does not touch."""
    sums = []
    if balance is not None:
        sums.append(balance.available + balance.frozen + balance.held + balance.pending)
    if invoice is not None and _adds_to(invoice, deposit):
        sums.append(invoice.received + invoice.unconfirmed + invoice.late_unconfirmed)
    if wallet is not None:
        sums.append(wallet.units + wallet.pending)
    return sums


def posted_sums(deposit: Deposit, balance: Balance | None, invoice: Invoice | None, wallet: WalletBalance | None) -> list[int]:
    """The same sums for an awaited deposit that is about to be credited, without awaited amounts."""
    sums = []
    if balance is not None:
        sums.append(balance.available + balance.frozen + balance.held)
    if invoice is not None and _adds_to(invoice, deposit):
        sums.append(invoice.received)
    if wallet is not None:
        sums.append(wallet.units)
    return sums


def _adds_to(invoice: Invoice, deposit: Deposit) -> bool:
    """Whether the invoice has a sum in a stored number that the deposit adds to: those of choices are text, without a bound."""
    return invoice.choosing is None and invoice.asset == deposit.asset
