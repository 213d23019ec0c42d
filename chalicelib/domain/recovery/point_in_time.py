"""What the chain has and the tables do not, after they were put back to an earlier second."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain import ledger
from chalicelib.domain.ids import AssetId, NetworkId, Realm
from chalicelib.domain.ledger import Book, JournalEntry, Posting
from chalicelib.domain.money import Amount


@dataclass(frozen=True, slots=True)
class Stray:
    """A transfer out of a place of ours that nothing in the tables asked for. Addresses in storage form, `amount` in units of
    `asset`; 0 where the transaction failed, and only its fee is gone."""

    txid: str
    position: str
    asset: str
    sender: str
    recipient: str
    amount: int
    block_number: int


@dataclass(frozen=True, slots=True)
class Trace:
    """How far the blocks of a network are read for it: from `first` on, and `next` comes next. `since` names the restore: when it
    was begun, in milliseconds since 1970."""

    network: NetworkId
    since: int
    first: int
    next: int
    strays: tuple[Stray, ...] = ()
    version: int = 1


def stray_entry_id(network: NetworkId, stray: Stray) -> str:
    return f"stray:{network}:{stray.txid}:{stray.position}"


def stray_booked(network: NetworkId, realm: Realm, stray: Stray, fee: Amount | None, at: int) -> JournalEntry:
    """The operator says so: its coins are outside, and were the operator's, as is the `fee` of its transaction."""
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
