"""Transactions that the chain has and the tables lack, after a point-in-time restore."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain import ledger
from chalicelib.domain.ids import AssetId, NetworkId, Realm
from chalicelib.domain.ledger import Book, JournalEntry, Posting
from chalicelib.domain.money import Amount


@dataclass(frozen=True, slots=True)
class Stray:
    """An outgoing transfer from one of our addresses without a record in the tables. Addresses in storage form, `amount` in
    units of `asset`; 0 where the transaction failed, and only its fee is gone."""

    txid: str
    position: str
    asset: str
    sender: str
    recipient: str
    amount: int
    block_number: int


@dataclass(frozen=True, slots=True)
class Trace:
    """Progress of reading a network's blocks for them: from `first` on, and `next` is the next block. `since` names the restore
    by its start, in milliseconds since 1970."""

    network: NetworkId
    since: int
    first: int
    next: int
    strays: tuple[Stray, ...] = ()
    version: int = 1


def stray_entry_id(network: NetworkId, stray: Stray) -> str:
    return f"stray:{network}:{stray.txid}:{stray.position}"


def stray_booked(network: NetworkId, realm: Realm, stray: Stray, fee: Amount | None, at: int) -> JournalEntry:
    """An operator accepts a stray transfer: its coins are outside, and were the operator's, as is the `fee` of its transaction."""
    place, owner = ledger.wallet(network, stray.sender), ledger.operator(realm)
    amount = Amount(AssetId(stray.asset), stray.amount)
    gone = (
        Posting(Book.WHERE, place, ledger.OUTSIDE, amount),
        Posting(Book.WHOSE, owner, ledger.OUTSIDE, amount),
    )
    burnt: tuple[Posting, ...] = ()
    if fee is not None and fee.units:
        burnt = (Posting(Book.WHERE, place, ledger.BURNT, fee), Posting(Book.WHOSE, owner, ledger.FEES, fee))
    return JournalEntry(
        stray_entry_id(network, stray), "stray_booked", at, (gone if stray.amount else ()) + burnt, {"txid": stray.txid}
    )
