"""Blocks, transfers, receipts and cursors, in the same shape for every network family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.versions import next_version


class Transfer(NamedTuple):
    """One movement in a block that may be for us. Not yet proven: a native one may belong to a failed transaction.

    `position` is "native" for a value transfer, "log:<n>" for the n-th log of the block (`domain.deposits.claims`), "out:<n>" for
    an output, "trace:<recipient>:<n>" for the n-th time that a contract sent native coins to it in this transaction,
    "balance:<block>:<address>" for a surplus that a comparison of balances found: its `txid` is the block's hash.
    On Tron "log:<n>" is the n-th log of the transaction, and "int:<n>" its n-th internal transaction: TRX that a contract sent.
    `contract` is None for the native coin. Addresses are in storage form (EVM: lower case). `amount` is in units.
    """

    txid: str
    position: str
    contract: str | None
    sender: str
    recipient: str
    amount: int


class Unmined(NamedTuple):
    """A transaction that waits to be in a block, of a chain that spends outputs. `spends` names some of those, "txid:n".

    `replaceable`: it says itself that another one may take its place (BIP-125).
    """

    txid: str
    transfers: list[Transfer]
    spends: tuple[str, ...] = ()
    replaceable: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """Number and hash of a block, and its link to the block before. `time` in milliseconds since 1970."""

    number: int
    hash: str
    parent_hash: str
    time: int


EVERYBODY = "*"
"""The sender of a transaction whose sender a node does not tell: it may be anybody's, so it may be ours."""


class Sent(NamedTuple):
    """Senders of a block's transactions, failed ones included, as three columns in block order. `senders` are in storage form,
    empty for a transaction without sender, or EVERYBODY. A nonce is None where the chain has none (Tron) or the node does not
    return it.

    Columns, because one object for each foreign transaction would cost more than all the work on them.
    """

    txids: Sequence[str] = ()
    senders: Sequence[str] = ()
    nonces: Sequence[int | None] = ()

    def by(self, ours: AbstractSet[str]) -> Iterator[tuple[str, str, int | None]]:
        """Id, sender and nonce of the transactions whose sender is one of `ours`, or may be."""
        wanted = {*ours, EVERYBODY}
        if not wanted.isdisjoint(self.senders):
            for txid, sender, nonce in zip(self.txids, self.senders, self.nonces, strict=True):
                if sender in wanted:
                    yield txid, sender, nonce


NOBODY = Sent()


class Reward(NamedTuple):
    """A protocol reward to an address in a block: no transaction pays it, and it credits nothing.

    `source` names it: "coinbase <txid>", "withdrawal <index>" (EIP-4895), "the fees of block <number>". `recipient` in storage
    form. `amount` in units of the native coin, None where the block does not tell it.
    """

    source: str
    recipient: str
    amount: int | None


@dataclass(frozen=True, slots=True)
class Block:
    """`time` in milliseconds since 1970. `transfers`: every native one above zero, every catalogued token's.

    `sent` has every transaction of a chain of accounts, `spent` the id of the transaction that spends each outpoint ("txid:n") of a
    chain of coins. `rewards` are what nobody sent.
    """

    number: int
    hash: str
    parent_hash: str
    time: int
    transfers: list[Transfer] = field(default_factory=list)
    sent: Sent = NOBODY
    spent: Mapping[str, str] = field(default_factory=dict)
    rewards: Sequence[Reward] = ()


def linked(blocks: Sequence[Header | Block]) -> bool:
    """Whether each header names the one before it as its parent."""
    return all(after.parent_hash == before.hash for before, after in pairwise(blocks))


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a network is scanned: everything up to and with block `number` is stored (money rule 4).

    `recent` has the hashes of the last scanned blocks by number, as deep as a reorganisation is followed. `epoch` counts
    the reorganisations followed, each of which drops the lists of its blocks (`BlockDeposits`). Without `drops` a version saved it
    last that drops none. `rewind_to` is set while one is being followed: the next poll that finds it finishes the work. `halted`
    says why a network no longer credits. `tip` is the chain's height when last seen. `ranges_to` is the last block of a backlog
    that was cut into ranges, None while there is none. From block `noted_from` on sightings of our transactions are complete
    (`domain.transactions.sightings`), None where they are not even of the block that it stands at; no block before it is younger
    than `noted_at`. `fallen` has the blocks that fell out while a deposit of theirs was left to a newer version: each poll tries
    again to orphan it. Times in milliseconds since 1970.
    """

    network: NetworkId
    number: int
    hash: str
    block_time: int
    tip: int
    updated_at: int
    recent: dict[str, str] = field(default_factory=dict)
    epoch: int = 0
    rewind_to: int | None = None
    halted: str | None = None
    ranges_to: int | None = None
    noted_from: int | None = None
    noted_at: int | None = None
    drops: bool = False
    fallen: tuple[str, ...] | None = None
    version: int = 1

    def behind(self, hashes: Mapping[str, str], time: int, tip: int, keep: int, now_ms: int) -> Cursor:
        """This cursor after the blocks with these `hashes`, by number; the last of them has the time `time`.

        It remembers those of the last `keep` blocks.
        """
        number = max(int(each) for each in hashes)
        recent = {each: hash_ for each, hash_ in {**self.recent, **hashes}.items() if int(each) >= number - keep}
        return replace(
            next_version(self),
            number=number,
            hash=hashes[str(number)],
            block_time=time,
            tip=max(tip, number),
            updated_at=now_ms,
            recent=recent,
        )

    def noted(self, first: int) -> Cursor:
        """This cursor with complete sightings from block `first` on, or from further back where they were complete before."""
        if self.noted_from is None or self.noted_at is None:
            # Whatever is before the block that it stands at now was there when it got there.
            least = first if self.noted_from is None else min(first, self.noted_from)
            return replace(self, noted_from=least, noted_at=self.updated_at)
        return replace(self, noted_from=min(first, self.noted_from))


@dataclass(frozen=True, slots=True)
class ScanEpoch:
    """The cursor's epoch, beside it: a condition costs what its item costs, and a cursor has hundreds of hashes."""

    network: NetworkId
    epoch: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class BlockDeposits:
    """Deposits of a block, found by its hash: they fall out with the block in a reorganisation. One part of the list, from 0
    on.

    `epoch` is that of the scan that wrote the part, or of the reorganisation that `dropped` it: a block that comes back is listed
    anew, at an epoch that the scans from before do not have. `parts` is on the first part: how many there are; None where a version
    without that count wrote it last.
    """

    network: NetworkId
    hash: str
    deposits: tuple[str, ...]
    part: int = 0
    epoch: int = 0
    dropped: bool = False
    parts: int | None = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class DepositBlock:
    """A block that holds deposits, found by its height. It is written with the first part of its list and kept after a
    reorganisation. Both leave with the block's last deposit that goes to the archive."""

    network: NetworkId
    number: int
    hash: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class ArchivedBlock:
    """The highest block of a network whose row by height may have left for the archive with its last deposit. It is as old as what
    is archived, so the chain has it; with it, all that are lower."""

    network: NetworkId
    number: int
    hash: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class Migrated:
    """The record of a finished migration, `name`, of a network's records. `at` in milliseconds since 1970."""

    network: NetworkId
    name: str
    at: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class SandboxClock:
    """How far the test realm's time is ahead of the machines', in milliseconds. One record, `id` "test"."""

    id: str
    ahead_ms: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class MinedBlocks:
    """Blocks that a merchant had mined on simulated networks in an hour: `hour` counts the hours from 1970 on."""

    tenant: TenantId
    hour: int
    blocks: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class FeeQuote:
    """The current fee of a plain payment of each coin, in units of the native coin. `at` in milliseconds since 1970.

    `collecting` is what collecting one deposit of each costs, whether it is collected or not: the top-up and the sweep of a token,
    the sweep of a native coin, a consolidation of that output alone on networks of coins.
    """

    network: NetworkId
    fees: dict[str, int]
    at: int
    collecting: dict[str, int] = field(default_factory=dict)
    version: int = 1


@dataclass(frozen=True, slots=True)
class Receipt:
    """The chain's result of one of our transactions (money rule 8). `fee` in units of the native coin, None where the chain does
    not tell it (UTXO): the stored transaction does.

    `moved` lists the token transfers that it logged: contract, sender, recipient, in storage form; `amounts` has their units, in
    the same order.
    """

    txid: str
    success: bool
    block_number: int
    block_hash: str
    fee: int | None
    moved: tuple[tuple[str, str, str], ...] = ()
    amounts: tuple[int, ...] = ()

    def arrived(self, contract: str, sender: str, recipient: str) -> int:
        """Units that the token `contract` logged from `sender` to `recipient`, all in storage form."""
        wanted = (contract, sender, recipient)
        return sum(units for moved, units in zip(self.moved, self.amounts, strict=True) if moved == wanted)
