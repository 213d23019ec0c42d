"""Pieces of a payment link's stock: taken and given back in the transaction that changes their invoice.

An expired or cancelled invoice has given its piece back, once, since the invoice's version guards both. What makes it open or paid
again takes a piece anew, on condition that one is left; without one it stays expired.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.payment_links.stock import SHARDS, LinkStock, any_piece, shard_key
from chalicelib.usecases.ports.changes import Add, Change, Take
from chalicelib.usecases.ports.store import Store


def stock_of(store: Store, link: str) -> list[LinkStock]:
    """The shards of a link's stock that were ever filled: one read. Raises Unavailable."""
    found = store.get_many(stock_keys(link))
    return [shard for shard in found if shard is not None]


def stock_keys(link: str) -> list[tuple[type[LinkStock], dict[str, str]]]:
    """What to read for the stock of a link."""
    return [(LinkStock, shard_key(link, str(number))) for number in range(SHARDS)]


def as_stored(invoice: Invoice) -> Invoice:
    """The invoice without a piece that it did not take after all."""
    return invoice if invoice.piece is None or invoice.given_back is None else replace(invoice, piece=None)


def piece_moved(before: Invoice | None, after: Invoice) -> list[Change]:
    """The change of the stock that goes with an invoice's; none for one that holds what it held."""
    had, link = None if before is None else before.held, after.payment_link
    if had == after.held or link is None:
        return []
    if after.held is not None:
        return [Take(LinkStock, shard_key(link, after.held), "left")]
    return [] if had is None else [Add(LinkStock, shard_key(link, had), {"left": 1})]


def within_reach(store: Store, invoice: Invoice) -> Invoice:
    """The invoice with a piece that it could take where it has given its own back, for a change to be decided on; unchanged where
    none is left. One read for such an invoice, none for others. Raises Unavailable."""
    if not invoice.without_piece or invoice.payment_link is None:
        return invoice
    piece = any_piece(stock_of(store, invoice.payment_link))
    return invoice if piece is None else replace(invoice, piece=piece)
