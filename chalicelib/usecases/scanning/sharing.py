"""A crowded block is shared out: functions of their own record and credit payments beside the poll.

A message names payments and nothing that is believed: who gets it reads the block from the node, proves each payment, and asks for
the same conditions as the poll. It is a hint. The poll begins with the first share and comes to each of the others in its turn;
then it reads which of them the store has, and does those that are missing itself. So a message that is lost, late, doubled or of
a block that fell out changes nothing, and the cursor passes the block by what the store has.

What is credited to one merchant in one coin meets at its balance: a lane, which one function has whole. Two workers in a lane would
only refuse each other: who meets another one leaves it the lane. What is recorded for one invoice meets there, or at its address
where there is none: that lane, too, is not cut, and one that is longer than a share is recorded by the poll alone, or a rescan.

A message is far below the 256 KB that SQS took at any time: at most `SHARE` names of payments, or the ids of one page of deposits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import RecordQueue

log = logging.getLogger(__name__)

T = TypeVar("T")

VERSION = "1"
FROM = 120
"""Payments of a block, or due behind the first hundred, from which on they are shared out: fewer take a poll, with its third of a
processor, about as long as a cold function needs to begin (5 ms of processor each in groups, tests/bench/bench_groups.py)."""
SHARE = 120
"""Payments of one message, and of lanes that are credited as many or one lane: a third of a second of a function's processor, about
as long as it waits for the node before it begins; and a message of 10 KB."""
LATE_MS = 20_000
"""Deposits that were asked for so long ago the poll has come to: where messages pile up, new ones do not wait behind old ones."""
Name = tuple[str, str]
"""Of a payment in a block: its transaction and its position."""


def name_of(transfer: Transfer) -> Name:
    return transfer.txid, transfer.position


@dataclass(frozen=True, slots=True)
class Share:
    """Payments to record (those at `positions` in `txids` of the block with this `number` and `hash`, read at `epoch`), or
    `deposits` to credit, which were asked for `at`, milliseconds of the realm's clock.

    A version without positions names whole transactions, and reads them so: it records what other shares name as well. One
    without a time is never late.
    """

    network: NetworkId
    number: int = 0
    hash: str = ""
    epoch: int = 0
    txids: tuple[str, ...] = ()
    deposits: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()
    at: int = 0

    def names(self, transfer: Transfer) -> bool:
        """Whether a transfer of the block is one of its payments."""
        if not self.positions:
            return transfer.txid in self.txids
        return name_of(transfer) in zip(self.txids, self.positions, strict=True)

    def late(self, now: int) -> bool:
        return bool(self.at) and now - self.at > LATE_MS

    def body(self) -> dict[str, str]:
        """The message."""
        about = {"version": VERSION, "network": str(self.network)}
        if self.deposits:
            return {**about, "deposits": ",".join(self.deposits), "at": str(self.at)}
        block = {"number": str(self.number), "hash": self.hash, "epoch": str(self.epoch)}
        return {**about, **block, "txids": ",".join(self.txids), "positions": ",".join(self.positions)}

    @classmethod
    def read(cls, network: NetworkId, message: dict[str, str]) -> Share:
        """The share of a message. Raises ValueError, KeyError."""
        if "deposits" in message:
            return cls(network, deposits=tuple(message["deposits"].split(",")), at=int(message.get("at", "0")))
        number, epoch = int(message["number"]), int(message["epoch"])
        txids = tuple(message["txids"].split(","))
        positions = tuple(message["positions"].split(",")) if message.get("positions") else ()
        if positions and len(positions) != len(txids):
            raise ValueError("each transaction needs a position")
        return cls(network, number, message["hash"], epoch, txids, positions=positions)


class Sharing:
    """Asks other functions for a network's payments. Without a queue nothing is shared out."""

    def __init__(self, network: NetworkId, queue: RecordQueue | None) -> None:
        self._network, self._queue = network, queue

    def wanted(self, payments: int) -> bool:
        """Whether so many are shared out."""
        return self._queue is not None and payments >= FROM

    def ask_recorded(self, block: Block, epoch: int, payments: Sequence[Transfer]) -> None:
        """Ask for payments of `block` to be recorded, unless they are a lane that is longer than a share. Never raises: the poll,
        or a rescan, records them anyway."""
        if len(payments) > SHARE:
            return
        txids, positions = tuple(t.txid for t in payments), tuple(t.position for t in payments)
        self._ask(Share(self._network, block.number, block.hash, epoch, txids, positions=positions))

    def ask_credited(self, deposits: Sequence[str], now: int) -> None:
        """Ask for deposits to be credited. Never raises: the poll credits them anyway."""
        self._ask(Share(self._network, deposits=tuple(deposits), at=now))

    def _ask(self, share: Share) -> None:
        if self._queue is None:
            return
        try:
            self._queue.record(share.body())
        except Unavailable as error:
            log.warning("%s: a share of payments is left to the poll: %s", self._network, error)


def shares(items: Sequence[T], lane: Callable[[T], Hashable]) -> list[list[T]]:
    """`items` in shares, none of which cuts a lane: one that is longer than a share is one, and comes last. The smallest lanes
    first; lanes of one item keep their order."""
    lanes: dict[Hashable, list[T]] = {}
    for item in items:
        lanes.setdefault(lane(item), []).append(item)
    made: list[list[T]] = []
    for some in sorted(lanes.values(), key=len):
        if not made or len(made[-1]) + len(some) > SHARE:
            made.append([])
        made[-1] += some
    return made


def lanes_of(deposits: Iterable[Deposit]) -> list[list[Deposit]]:
    """Deposits by their lanes, the smallest first: who has few waits for nobody who has many. In a lane those that are credited
    together follow each other. The operator's meet nowhere: each is a lane."""
    lanes: dict[tuple[str, str], list[Deposit]] = {}
    for deposit in deposits:
        key = ("", deposit.id) if deposit.tenant is None else (deposit.tenant, deposit.asset)
        lanes.setdefault(key, []).append(deposit)
    for lane in lanes.values():
        lane.sort(key=lambda deposit: (deposit.block, deposit.part or 0))
    return sorted(lanes.values(), key=len)


def whole_lanes(lanes: Iterable[Sequence[Deposit]]) -> Iterator[list[str]]:
    """The ids of deposits in shares, none of which cuts a lane."""
    share = list[str]()
    for lane in lanes:
        if share and len(share) + len(lane) > SHARE:
            yield share
            share = []
        share = [*share, *(deposit.id for deposit in lane)]
    if share:
        yield share
