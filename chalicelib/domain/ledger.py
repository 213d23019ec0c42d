"""Double-entry ledger in two books (money rule 3).

The book *where* says in which place coins are: outside, a wallet address, in flight, burnt as a network fee.
The book *whose* says to whom they belong: outside, a merchant (available, frozen, held), the operator, network fees.
Every change of coins that are here is posted in both, so for each asset, always::

    wallets + in flight + burnt  =  merchants + operator + fees        and        burnt = fees

Postings are append-only; a correction is a new entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, Realm, TenantId
from chalicelib.domain.money import Amount
from chalicelib.domain.versions import next_version

OUTSIDE = "outside"
BURNT = "burnt"
FEES = "fees"


class Book(StrEnum):
    WHERE = "where"
    WHOSE = "whose"


Purse = Literal["available", "frozen", "held"]


def wallet(network: NetworkId, address: str) -> str:
    """The account of one of our addresses on one network (the address in its storage form)."""
    return f"wallet:{network}:{address}"


def in_flight(order: str) -> str:
    """The account of a signed payment that is not yet final. `order` is the payment order's id."""
    return f"in_flight:{order}"


def merchant(tenant: TenantId, purse: Purse) -> str:
    return f"merchant:{tenant}:{purse}"


def operator(realm: Realm) -> str:
    return f"operator:{realm}"


@dataclass(frozen=True, slots=True)
class Posting:
    """`amount` (>= 0) moves from `source` to `destination` in one book."""

    book: Book
    source: str
    destination: str
    amount: Amount

    def __post_init__(self) -> None:
        if self.amount.units < 0:
            raise ValueError("a posting never has a negative amount: swap source and destination")
        if self.source == self.destination:
            raise ValueError("a posting moves between two accounts")


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The postings of one event. The id is derived from the event, so that it is posted at most once.

    `at` is in milliseconds since 1970; `ref` names the records behind it.
    """

    id: str
    kind: str
    at: int
    postings: tuple[Posting, ...]
    ref: Mapping[str, str] = field(default_factory=dict)

    def deltas(self, book: Book) -> dict[tuple[str, AssetId], int]:
        """The net change of every account of `book`, in units."""
        net: dict[tuple[str, AssetId], int] = {}
        for p in self.postings:
            if p.book is book:
                for account, sign in ((p.source, -1), (p.destination, 1)):
                    key = (account, p.amount.asset)
                    net[key] = net.get(key, 0) + sign * p.amount.units
        return {key: change for key, change in net.items() if change}


@dataclass(frozen=True, slots=True)
class Balance:
    """A merchant's balance of one asset, in units. Always the sum of the journal's postings to the three purses.

    `pending` is seen on the chain and not credited yet: no posting stands behind it. Only an earlier version counts it here; the
    rest lies in shards beside the totals of invoices, and reads add all of it up (`awaited_deposits`). `received` has what was
    credited on each of the last days (`domain.deposits.received`); None before the first deposit.
    """

    tenant: TenantId
    asset: AssetId
    available: int = 0
    frozen: int = 0
    held: int = 0
    pending: int = 0
    emitted: int = 0
    version: int = 0
    received: bytes | None = None

    def after(self, entry: JournalEntry) -> Balance:
        """This balance once `entry` is posted, with the next version."""
        change = entry.deltas(Book.WHOSE)

        def purse(name: Purse) -> int:
            return change.get((merchant(self.tenant, name), self.asset), 0)

        return replace(
            next_version(self),
            available=self.available + purse("available"),
            frozen=self.frozen + purse("frozen"),
            held=self.held + purse("held"),
        )


def _both(source_place: str, place: str, source_owner: str, owner: str, amount: Amount) -> tuple[Posting, ...]:
    return (Posting(Book.WHERE, source_place, place, amount), Posting(Book.WHOSE, source_owner, owner, amount))


def deposit_credited(deposit: str, round_: int, at: int, place: str, owner: str, amount: Amount) -> JournalEntry:
    """A deposit is final: its coins are at `place` and belong to `owner`. `round_` counts how often the deposit was orphaned
    before."""
    return JournalEntry(
        f"credit:{deposit}:{round_}", "deposit_credited", at, _both(OUTSIDE, place, OUTSIDE, owner, amount), {"deposit": deposit}
    )


def deposit_reversed(deposit: str, round_: int, at: int, place: str, owner: str, amount: Amount) -> JournalEntry:
    """A credited deposit fell out of the chain: the exact opposite of `deposit_credited` of the same round."""
    return JournalEntry(
        f"reverse:{deposit}:{round_}", "deposit_reversed", at, _both(place, OUTSIDE, owner, OUTSIDE, amount), {"deposit": deposit}
    )


def deposit_released(deposit: str, round_: int, at: int, tenant: TenantId, amount: Amount) -> JournalEntry:
    """An operator releases a held deposit: it becomes the merchant's available balance. The coins stay where they are."""
    moved = Posting(Book.WHOSE, merchant(tenant, "held"), merchant(tenant, "available"), amount)
    return JournalEntry(f"unhold:{deposit}:{round_}", "deposit_released", at, (moved,), {"deposit": deposit})


def deposit_admitted(deposit: str, round_: int, at: int, realm: Realm, tenant: TenantId, amount: Amount) -> JournalEntry:
    """An operator releases a credited deposit below its coin's minimum: it becomes the merchant's, and the coins stay where
    they are."""
    moved = Posting(Book.WHOSE, operator(realm), merchant(tenant, "available"), amount)
    return JournalEntry(f"admit:{deposit}:{round_}", "deposit_admitted", at, (moved,), {"deposit": deposit})


def withdrawal_reserved(withdrawal: str, at: int, tenant: TenantId, amount: Amount) -> JournalEntry:
    moved = Posting(Book.WHOSE, merchant(tenant, "available"), merchant(tenant, "frozen"), amount)
    return JournalEntry(f"reserve:{withdrawal}", "withdrawal_reserved", at, (moved,), {"withdrawal": withdrawal})


def fee_reserved(withdrawal: str, part: int, at: int, tenant: TenantId, amount: Amount) -> JournalEntry:
    """A further reservation for the fee of a withdrawal; `part` numbers it. `withdrawal_released` releases it, too."""
    moved = Posting(Book.WHOSE, merchant(tenant, "available"), merchant(tenant, "frozen"), amount)
    return JournalEntry(f"reserve:{withdrawal}:{part}", "withdrawal_reserved", at, (moved,), {"withdrawal": withdrawal})


def batch_reserved(batch: str, at: int, tenant: TenantId, total: Amount) -> JournalEntry:
    """One reservation for all withdrawals of a batch. Each releases its own part by `withdrawal_released`."""
    moved = Posting(Book.WHOSE, merchant(tenant, "available"), merchant(tenant, "frozen"), total)
    return JournalEntry(f"reserve:{batch}", "withdrawal_reserved", at, (moved,), {"batch": batch})


def withdrawal_released(withdrawal: str, at: int, tenant: TenantId, amount: Amount) -> JournalEntry:
    """Cancelled, rejected or failed before a signature: the reserved amount is available again."""
    moved = Posting(Book.WHOSE, merchant(tenant, "frozen"), merchant(tenant, "available"), amount)
    return JournalEntry(f"release:{withdrawal}", "withdrawal_released", at, (moved,), {"withdrawal": withdrawal})


def refund_reserved(refund: str, at: int, tenant: TenantId, amount: Amount) -> JournalEntry:
    """The amount of a refund or a payout link is frozen. The withdrawal that pays it takes this reservation over: it has none of
    its own, but for its fee."""
    moved = Posting(Book.WHOSE, merchant(tenant, "available"), merchant(tenant, "frozen"), amount)
    return JournalEntry(f"reserve:{refund}", "refund_reserved", at, (moved,), {"refund": refund})


def refund_released(refund: str, at: int, tenant: TenantId, amount: Amount) -> JournalEntry:
    """A refund or a payout link ended before it had a withdrawal: its amount is available again."""
    moved = Posting(Book.WHOSE, merchant(tenant, "frozen"), merchant(tenant, "available"), amount)
    return JournalEntry(f"release:{refund}", "refund_released", at, (moved,), {"refund": refund})


def signature_id(owner: str) -> str:
    """The id of the entry that posts the first signature of an order or a move, `owner` by its id."""
    return f"sign:{owner}"


def payment_signed(order: str, at: int, place: str, amount: Amount) -> JournalEntry:
    """A payment is signed and can reach the chain at any time: its coins leave the wallet's account and are in flight."""
    moved = Posting(Book.WHERE, place, in_flight(order), amount)
    return JournalEntry(signature_id(order), "payment_signed", at, (moved,), {"order": order})


def staked(
    stake: str, round_: int, at: int, realm: Realm, network: NetworkId, address: str, amount: Amount, fee: Amount | None = None
) -> JournalEntry:
    """Coins of a wallet are staked: they keep their place and their owner, and can not be spent.

    `stake` is what it is done once for: its transaction; `round_` counts how often that fell out of the chain before. `fee` is
    what the chain burnt, at the operator's cost.
    """
    place = wallet(network, address)
    moved = (Posting(Book.WHERE, place, f"staked:{network}:{address}", amount),) if amount.units else ()
    burnt = () if fee is None else _fee(realm, place, fee)
    return JournalEntry(f"stake:{stake}:{round_}", "staked", at, moved + burnt, {"stake": stake})


def stake_reversed(entry: JournalEntry, stake: str, round_: int, at: int) -> JournalEntry:
    """The block of a stake fell out of the chain: the exact opposite of `entry`, which posted the stake in that round."""
    return JournalEntry(f"unstake:{stake}:{round_}", "stake_reversed", at, _back(entry), entry.ref)


def _fee(realm: Realm, place: str, fee: Amount) -> tuple[Posting, ...]:
    return _both(place, BURNT, operator(realm), FEES, fee) if fee.units else ()


@dataclass(frozen=True, slots=True)
class SignedPayment:
    """A withdrawal's signed payment: `amount` left the wallet at `place` and is in flight.

    `order` is the payment order's id; `round` counts how often its block fell out of the chain before.
    """

    withdrawal: str
    order: str
    round: int
    tenant: TenantId
    realm: Realm
    place: str
    amount: Amount

    def ended(self, kind: str, at: int, postings: tuple[Posting, ...]) -> JournalEntry:
        """The journal entry that ends this round: a settlement or a bounce, never both."""
        ref = {"withdrawal": self.withdrawal, "order": self.order}
        return JournalEntry(f"settle:{self.order}:{self.round}", kind, at, postings, ref)


def withdrawal_settled(payment: SignedPayment, at: int, fee: Amount, charge: int = 0, debited: int = 0) -> JournalEntry:
    """A payment is final. Its wallet paid `fee` in the network's native coin, at the operator's cost.

    Of `charge` reserved units of the withdrawn coin the merchant owes the operator `debited` for it; the rest is available again.
    """
    tenant, realm, amount = payment.tenant, payment.realm, payment.amount
    gone = _both(in_flight(payment.order), OUTSIDE, merchant(tenant, "frozen"), OUTSIDE, amount)
    owed = _charged(tenant, realm, amount.asset, debited, charge - debited)
    return payment.ended("withdrawal_settled", at, gone + _fee(realm, payment.place, fee) + owed)


def withdrawal_bounced(payment: SignedPayment, at: int, fee: Amount, charge: int = 0, debited: int = 0) -> JournalEntry:
    """A payment failed on the chain, or can never be mined: coins and balance are back; a fee that was paid is gone.

    After a paid fee, `debited` units of `charge` stay owed to the operator: else a merchant could burn the hot wallet's coins at
    no cost.
    """
    tenant, realm, amount = payment.tenant, payment.realm, payment.amount
    back = (
        Posting(Book.WHERE, in_flight(payment.order), payment.place, amount),
        *_charged(tenant, realm, amount.asset, debited, amount.units + charge - debited),
    )
    return payment.ended("withdrawal_bounced", at, back + _fee(realm, payment.place, fee))


def _charged(tenant: TenantId, realm: Realm, asset: AssetId, owed: int, free: int) -> tuple[Posting, ...]:
    """Of what is reserved `owed` units are the operator's now, and `free` ones available to the merchant again."""
    frozen = merchant(tenant, "frozen")
    parts = ((merchant(tenant, "available"), free), (operator(realm), owed))
    return tuple(Posting(Book.WHOSE, frozen, whose, Amount(asset, units)) for whose, units in parts if units)


def settlement_reversed(entry: JournalEntry, order: str, round_: int, at: int) -> JournalEntry:
    """The block of a settled payment fell out of the chain: the exact opposite of `entry`, which settled it in that round."""
    return JournalEntry(f"unsettle:{order}:{round_}", "settlement_reversed", at, _back(entry), entry.ref)


def _back(entry: JournalEntry) -> tuple[Posting, ...]:
    return tuple(Posting(p.book, p.destination, p.source, p.amount) for p in entry.postings)


def move_signed(move: str, at: int, place: str, amount: Amount) -> JournalEntry:
    """A move is signed: coins can leave `place` for another place of ours at any time. The owner does not change."""
    moved = Posting(Book.WHERE, place, in_flight(move), amount)
    return JournalEntry(signature_id(move), "move_signed", at, (moved,), {"move": move})


@dataclass(frozen=True, slots=True)
class SignedMove:
    """A signed move between places of ours: `amount` left `place` and is in flight. `round` counts as that of `SignedPayment`."""

    move: str
    round: int
    realm: Realm
    place: str
    amount: Amount


def move_settled(signed: SignedMove, at: int, destination: str, arrived: int, fee: Amount) -> JournalEntry:
    """A move is final: `arrived` units are at `destination`, and `fee` of the native coin was burnt at the move's place.

    A token has kept the missing part of the amount: it is outside, at the operator's cost.
    Raises ValueError when more arrived than was sent.
    """
    amount, realm = signed.amount, signed.realm
    if not 0 <= arrived <= amount.units:
        raise ValueError(f"{arrived} arrived of {amount.units}")
    flight = in_flight(signed.move)
    gone = Amount(amount.asset, amount.units - arrived)
    postings = (
        *((Posting(Book.WHERE, flight, destination, Amount(amount.asset, arrived)),) if arrived else ()),
        *(_both(flight, OUTSIDE, operator(realm), OUTSIDE, gone) if gone.units else ()),
        *_fee(realm, signed.place, fee),
    )
    return JournalEntry(f"settle:{signed.move}:{signed.round}", "move_settled", at, postings, {"move": signed.move})


def move_failed(signed: SignedMove, at: int, fee: Amount) -> JournalEntry:
    """A move failed on the chain, or can never be mined: the coins are where they were; a fee that was paid is gone."""
    back = Posting(Book.WHERE, in_flight(signed.move), signed.place, signed.amount)
    postings = (back, *_fee(signed.realm, signed.place, fee))
    return JournalEntry(f"settle:{signed.move}:{signed.round}", "move_failed", at, postings, {"move": signed.move})


def move_reversed(entry: JournalEntry, move: str, round_: int, at: int) -> JournalEntry:
    """The block of a settled move fell out of the chain: the exact opposite of `entry`, which settled it in that round."""
    return JournalEntry(f"unsettle:{move}:{round_}", "move_reversed", at, _back(entry), entry.ref)


def cold_spent(at: int, realm: Realm, network: NetworkId, address: str, amount: Amount, txid: str, reason: str) -> JournalEntry:
    """The owner of a cold wallet has paid out of it: the coins are outside, and were the operator's, whose account may be negative
    then. Once for each transaction, address and coin; what came of it to another place of ours is a deposit there.
    """
    id_ = f"cold:{network}:{txid.removeprefix('0x')}:{address}:{amount.asset}"
    moved = _both(wallet(network, address), OUTSIDE, operator(realm), OUTSIDE, amount)
    return JournalEntry(id_, "cold_spent", at, moved, {"txid": txid, "reason": reason})


def coins_signed_id(move: str, part: int) -> str:
    """The id of the entry that puts the places behind the first `part` inputs in flight."""
    return f"sign:{move}:{part}"


def coins_moved_id(move: str, round_: int) -> str:
    """The id of the entry that settles a coin move."""
    return f"settle:{move}:{round_}"


def coins_signed(move: str, part: int, at: int, amounts: Mapping[str, Amount]) -> JournalEntry:
    """A transaction is signed that spends UTXOs of many places. `amounts` by place; `part` numbers the entries of one move,
    since a transaction of the store has room for few places."""
    moved = tuple(Posting(Book.WHERE, place, in_flight(move), amount) for place, amount in amounts.items())
    return JournalEntry(coins_signed_id(move, part), "coins_signed", at, moved, {"move": move})


def coins_moved(move: str, round_: int, at: int, realm: Realm, arrived: Mapping[str, Amount], fee: Amount) -> JournalEntry:
    """A move of UTXOs is final: `arrived` is at its places, and the rest of the amount in flight is the fee, at the operator's
    cost."""
    flight = in_flight(move)
    postings = tuple(Posting(Book.WHERE, flight, place, amount) for place, amount in arrived.items())
    return JournalEntry(coins_moved_id(move, round_), "coins_moved", at, postings + _fee(realm, flight, fee), {"move": move})


def coins_released(move: str, part: int, at: int, amounts: Mapping[str, Amount]) -> JournalEntry:
    """A move of UTXOs can never be mined: the coins of one part are back where they were."""
    back = tuple(Posting(Book.WHERE, in_flight(move), place, amount) for place, amount in amounts.items())
    return JournalEntry(f"release:{move}:{part}", "coins_released", at, back, {"move": move})


def totals(entries: Iterable[JournalEntry]) -> dict[tuple[Book, str, AssetId], int]:
    """The balance of every account after `entries`, in units, zero ones left out."""
    sums: dict[tuple[Book, str, AssetId], int] = {}
    for entry in entries:
        for book in Book:
            for (account, asset), change in entry.deltas(book).items():
                sums[book, account, asset] = sums.get((book, account, asset), 0) + change
    return {key: value for key, value in sums.items() if value}


@dataclass(frozen=True, slots=True)
class WalletBalance:
    """The journal's balance of one of our addresses, in units. Moved by the store together with the journal, never saved.

    Beside the money: `pending` has been seen there and is not credited yet. `held` is the part of `units` that came from the grey
    list and is not released. `small` is the part that came in deposits below the coin's minDepositAmount, which are not collected.
    `aside` counts the deposits there that are set aside: their units are in none of these. No posting stands behind these four
    (`usecases.ports.changes.Beside`).
    """

    network: NetworkId
    address: str
    asset: AssetId
    units: int = 0
    pending: int = 0
    held: int = 0
    small: int = 0
    aside: int = 0

    @property
    def emptied(self) -> bool:
        """Whether the ledger has nothing there, and nothing waits there."""
        return not (self.units or self.pending or self.held or self.small or self.aside)
