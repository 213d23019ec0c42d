"""UTXO moves: one transaction that brings UTXOs from several of our addresses to another one, on UTXO networks.

The UTXO counterpart of `Move`. A *consolidation* spends the deposits of many addresses and pays them to the hot wallet; a *cold*
move pays the hot wallet's surplus to the cold one; a *drain* pays all UTXOs of a retired hot wallet to its replacement. Its
attempts (BIP-125) all spend the same inputs, so that one of them at most is ever mined.

In the book *where* all of its inputs are in flight from the signature on; when it is mined they become the recipient's, the change
and the fee, which the operator pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId, network_parts
from chalicelib.domain.transactions.utxo_attempts import Attempts, Contents, SpentCoin
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.treasury.moves import operators
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Command, Work, time_order

MOST_PLACES = 7
"""Addresses that are booked in one transaction: with the move, its journal entry and its obligation ten items. It is kept to those,
which DynamoDB Local of 2020 takes, so that it is tested there."""

CoinMoveKind = Literal["consolidation", "cold", "drain"]
CoinMoveState = Literal["waiting", "built", "signed", "settled", "dead", "dropped"]
"""`waiting`: an operator has to approve it; `built`: its coins are reserved and its bytes exact; `signed`: it can reach the chain
at any time; `settled`: the chain has it; `dead`: it can never be mined; `dropped`: ended before anything was signed."""
UNSIGNED: frozenset[str] = frozenset({"waiting", "built"})


@dataclass(frozen=True, slots=True)
class MovedCoin:
    """A UTXO of ours that is spent. `outpoint` is "<txid>:<n>", `amount` in units, `height` its block's number, `address` its
    owner's address (public spelling). `deposit` and `path` (BIP-32) are those of a deposit address, None for a hot wallet's
    UTXO."""

    outpoint: str
    amount: int
    height: int
    address: str
    deposit: str | None = None
    path: str | None = None

    @property
    def held(self) -> HeldCoin:
        return HeldCoin(self.outpoint, self.amount, self.height)


@dataclass(frozen=True, slots=True)
class CoinAttempt:
    """One transaction of a move. `unsigned` is what its digests are computed from, as hex; empty once what replaces it is signed.

    It pays `amount` units to the recipient as output 0, and `change` back as output 1 (0: there is none). `fee` in units, exact;
    `signed_at` in milliseconds since 1970.
    """

    unsigned: str
    amount: int
    change: int
    fee: int
    vsize: int
    raw: str | None = None
    txid: str | None = None
    signed_at: int = 0

    @property
    def positions(self) -> tuple[str, ...]:
        """Its outputs, which are all our own."""
        return ("out:0", "out:1") if self.change else ("out:0",)


@dataclass(frozen=True, slots=True)
class CoinMove(Attempts[CoinAttempt]):
    """`wallet` is the hot wallet whose coins it spends, None for a consolidation. `recipient` is in its public spelling. `amount`
    is what was asked to be moved at the most, in units, before the fee. `owner` is the id of the collection by which an operator
    approves it, its own where nobody has to; else what planned it.

    `inputs` are in the order of their addresses; the money of the first `booked` of them is in flight. `newest` is the attempt that
    should be mined, `earlier` those that it replaced, oldest first: whichever is in the chain has moved the coins. `renew` asks for
    a replacement, which only the function that signs can make. `mined` is the transaction that settled it, in the block
    `block_number`, `block_hash`. `doubtful_since` is the height at which it was first seen that it can not be mined any more.
    `round` counts how often a reorganisation undid its settlement. Times in milliseconds since 1970.
    """

    id: str
    network: NetworkId
    kind: CoinMoveKind
    asset: AssetId
    wallet: str | None
    recipient: str
    inputs: tuple[MovedCoin, ...]
    amount: int
    owner: str
    created_at: int
    updated_at: int
    state: CoinMoveState = "built"
    newest: CoinAttempt | None = None
    earlier: tuple[CoinAttempt, ...] = ()
    booked: int = 0
    renew: bool = False
    mined: str | None = None
    block_number: int | None = None
    block_hash: str | None = None
    confirmed_at: int | None = None
    doubtful_since: int | None = None
    reason: str | None = None
    round: int = 0
    version: int = 1

    @property
    def tenant(self) -> TenantId:
        """The tenant whose lists show it: the operator's."""
        return operators(network_parts(self.network)[0])

    @property
    def total(self) -> int:
        return sum(coin.amount for coin in self.inputs)

    @property
    def txid(self) -> str | None:
        """The transaction to show: the mined one, else the newest."""
        return self.mined or next(iter(self.txids), None)

    @property
    def unmade(self) -> bool:
        """Whether it was dropped before it had bytes."""
        return self.state == "dropped" and self.newest is None

    @property
    def hash(self) -> str | None:
        """The transaction hash, as in a `Move`."""
        return self.txid

    @property
    def source(self) -> str | None:
        """The wallet that it spends from; None for many deposit addresses."""
        return self.wallet

    @property
    def fee(self) -> int:
        """The fee in units: of the mined attempt, else of the newest."""
        attempt = self.settled_attempt() or self.newest
        return 0 if attempt is None else attempt.fee

    @property
    def transaction_status(self) -> Literal["pending", "confirmed", "failed"]:
        """The status of its transaction in lists of transactions."""
        return "confirmed" if self.state == "settled" else "failed" if self.state == "dead" else "pending"

    @property
    def outpoints(self) -> tuple[str, ...]:
        return tuple(coin.outpoint for coin in self.inputs)

    @property
    def in_flight(self) -> int:
        """Units in flight for it in the ledger."""
        return sum(coin.amount for coin in self.inputs[: self.booked]) if self.state in ("signed", "dead") else 0

    def spends(self, attempt: CoinAttempt) -> tuple[SpentCoin, ...]:
        return tuple(SpentCoin(coin.outpoint, coin.address, coin.amount, coin.height) for coin in self.inputs)

    def pays(self, attempt: CoinAttempt) -> tuple[tuple[str, int], ...]:
        change = () if not attempt.change or self.wallet is None else ((self.wallet, attempt.change),)
        return ((self.recipient, attempt.amount), *change)

    def attempt_of(self, contents: Contents) -> CoinAttempt:
        if sorted(coin.outpoint for coin in contents.inputs) != sorted(self.outpoints):
            raise ValueError("it would spend other coins than its own")
        allowed = [self.recipient, *([] if self.kind != "cold" or self.wallet is None else [self.wallet])]
        if [address for address, _ in contents.outputs] not in (allowed, allowed[:1]):
            raise ValueError("it would pay somebody who is not to be paid")
        amount, change = contents.outputs[0][1], contents.outputs[1][1] if len(contents.outputs) > 1 else 0
        return CoinAttempt(contents.unsigned, amount, change, contents.fee, contents.vsize)

    def settled_attempt(self) -> CoinAttempt | None:
        """The attempt that settled it. None as well where its record names a transaction that is none of them."""
        return self.mined_as(self.mined) if self.state == "settled" else None

    def received(self, attempt: CoinAttempt, address: str, height: int = 0) -> list[HeldCoin]:
        """The outputs of `attempt` that pay `address`."""
        found = []
        if address == self.recipient:
            found.append(HeldCoin(f"{attempt.txid}:0", attempt.amount, height))
        if attempt.change and address == self.wallet:
            found.append(HeldCoin(f"{attempt.txid}:1", attempt.change, height))
        return found

    def next_part(self, back: bool = False) -> tuple[MovedCoin, ...]:
        """The inputs that are posted next, or released next with `back`: of a bounded number of addresses, an address' all
        together."""
        row = tuple(reversed(self.inputs[: self.booked])) if back else self.inputs[self.booked :]
        part: list[MovedCoin] = []
        for coin in row:
            places = {other.address for other in part}
            if coin.address not in places and len(places) == MOST_PLACES:
                break
            part.append(coin)
        return tuple(part)

    def next(self, now: int) -> CoinMove:
        """The next version, to be saved."""
        return replace(next_version(self), updated_at=now)


@dataclass(frozen=True, slots=True)
class ConsolidationQueue:
    """Waiting deposits of a network, and the consolidations that have reserved them. Its version is what allots deposits' UTXOs,
    so that two consolidations can not spend the same one (money rule 6).

    `move` is one that is under way. `asked` are the others: under way too, or an operator had to be asked about them, until they
    are at their end, or a day after they were refused. An older version plans nothing beside `move`, keeps `asked` as it is, and
    takes no coins of either.
    `waiting` units in `coins` coins were there when it was last looked at, `looked_at`; `why` says what they wait for, and so does
    the collection `shown`.
    """

    network: NetworkId
    move: str | None = None
    looked_at: int = 0
    waiting: int = 0
    coins: int = 0
    why: str | None = None
    asked: tuple[str, ...] = ()
    shown: str | None = None
    version: int = 0

    @property
    def holders(self) -> tuple[str, ...]:
        """The consolidations that have reserved UTXOs."""
        return (*self.asked, *(() if self.move is None else (self.move,)))

    def holding(self, move: str) -> ConsolidationQueue:
        """The queue once a consolidation is under way."""
        return replace(self, move=move) if self.move is None else replace(self, asked=(*self.asked, move))

    def without(self, move: str) -> ConsolidationQueue:
        """The queue once a consolidation is settled."""
        rest = tuple(id for id in self.asked if id != move)
        return replace(self, move=None if self.move == move else self.move, asked=rest)

    def next(self) -> ConsolidationQueue:
        """The next version, to be saved."""
        return next_version(self)


def arranged(coins: Iterable[MovedCoin]) -> tuple[MovedCoin, ...]:
    """The inputs in the order that moves keep them in."""
    return tuple(sorted(coins, key=lambda coin: (coin.address, coin.outpoint)))


def by_place(coins: Sequence[MovedCoin]) -> Mapping[str, int]:
    """Units by address."""
    sums: dict[str, int] = {}
    for coin in coins:
        sums[coin.address] = sums.get(coin.address, 0) + coin.amount
    return sums


def coin_move_work(move: CoinMove) -> Work:
    """Open work: settle a UTXO move. In the lane of its network."""
    return Work("coinmove", move.network, time_order(move.created_at), move.id)


def coin_moved_work(move: CoinMove) -> Work:
    """Open work: watch a settled UTXO move until no reorganisation reaches it. The same for every block it is in."""
    return Work("coinmoved", move.network, time_order(move.created_at), move.id)


def coin_move_command(move: CoinMove) -> Command:
    """A command for the signer's next step: a hot wallet's UTXOs in the group of its payments."""
    queue: Literal["collections", "payouts"] = "collections" if move.wallet is None else "payouts"
    return Command(queue, f"{move.network}", {"coin_move": move.id, "network": move.network})
