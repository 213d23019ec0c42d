"""The changes of one transaction. Use cases describe it; the store commits all of it or nothing (money rule 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chalicelib.domain.ids import AssetId, NetworkId
    from chalicelib.domain.ledger import JournalEntry, WalletBalance
    from chalicelib.domain.merchants.merchants import ApiKey
    from chalicelib.domain.work import OutboxRow, Work

MOST_ITEMS = 80
"""Items of one transaction, the activity record of its request apart, which comes on top. DynamoDB takes 100, of 4 MB in all:
docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""
FEW_ITEMS = 10
"""What DynamoDB Local of 2020 takes: transactions that others run into are kept to so many, so that they are tested there. It is no
law of DynamoDB: groups of payments have more."""

OUTBOX_ITEMS = 2
"""Items of an outbox row at most: the row and its obligation, which ONE_ITEM_OUTBOX makes one."""


@dataclass(frozen=True, slots=True)
class Save:
    """Store `record`. Its `version` is the new one: 1 demands that no record is there yet, n that version n - 1 is stored.

    What a newer version of the service put there stays, unless it is `anew`: the record of something else at the same place.
    """

    record: Any
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Post:
    """Append a journal entry, which must not be there yet, and move the wallets' materialised balances with it.

    The merchant's balance is a record with a version: `Save(balance.after(entry))` goes beside it.
    """

    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class Beside:
    """Move what is known beside the money at one of our addresses (`WalletBalance`), in units of `asset`, up or down.

    `address` in storage form. Together with a `Post` that moves the same balance it is one item of the transaction.
    `aside` counts deposits. `only_if`: commit only while the balance has these `units` and `pending`; `unused`: only where nothing
    has come to the address in this coin yet, or the archive has emptied it since.
    """

    network: NetworkId
    address: str
    asset: AssetId
    pending: int = 0
    held: int = 0
    small: int = 0
    aside: int = 0
    only_if: tuple[int, int] | None = None
    unused: bool = False


@dataclass(frozen=True, slots=True)
class Emit:
    """Put a row in the outbox; the relay tells its events and sends its commands."""

    row: OutboxRow


@dataclass(frozen=True, slots=True)
class Open:
    """An obligation begins. It must not be open yet. `by_time`: it is found by its time as well, where its kind is
    (`domain.work.time_lane`)."""

    work: Work
    by_time: bool = True


@dataclass(frozen=True, slots=True)
class Close:
    """An obligation is fulfilled. It must be open: two workers can not both fulfil it."""

    work: Work


@dataclass(frozen=True, slots=True)
class Add:
    """Add `deltas` to the numbers of the record of `kind` with these key fields; it begins at nothing. Has no condition.

    For sums that many transactions move at once: the record has no version, and nobody saves it.
    """

    kind: type[Any]
    key: Mapping[str, str]
    deltas: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Take:
    """Take `count` from the number `name` of the record of `kind` with these key fields; commits only while so many are there.

    As with `Add`, the record has no version, and many transactions move it at once: the number never goes below zero.
    """

    kind: type[Any]
    key: Mapping[str, str]
    name: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the record of `kind` with these key fields, whether it is there or not."""

    kind: type[Any]
    key: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove `record`; commits only while it is stored as it was read: with its version."""

    record: Any


@dataclass(frozen=True, slots=True)
class AtEpoch:
    """Commit only while no reorganisation has been followed on `network` since `epoch` was read. All that ask meet at one item:
    payments ask for their block (`AtPart`)."""

    network: NetworkId
    epoch: int


@dataclass(frozen=True, slots=True)
class AtPart:
    """Commit only while part `part` of a block's list of deposits stands: no reorganisation has dropped the block with this `hash`,
    and none has brought it back since `epoch` was read."""

    network: NetworkId
    hash: str
    part: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """Commit only while the block with this `hash` is marked as dropped by a reorganisation."""

    network: NetworkId
    hash: str


@dataclass(frozen=True, slots=True)
class Still:
    """Commit only while `record` is stored as it was read: with its version. For what a decision rests on and does not change."""

    record: Any


@dataclass(frozen=True, slots=True)
class Absent:
    """Commit only while there is no record of `kind` with these key fields: a decision rests on that."""

    kind: type[Any]
    key: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stub:
    """Put a stub in the place of `record`, which is kept in the archive's object of that name; commits only while the record is
    stored as it was read, and no stub yet. Reads by key read the archive from then on. Saving the next version restores the row."""

    record: Any
    kept_in: str


@dataclass(frozen=True, slots=True)
class Name:
    """Let the record `id`, which is in no list any more, be found by `name` (`Store.named`), whether it is already or not."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class DeleteEmpty:
    """Remove the balance of one of our addresses; commits only while all of its numbers are zero, or it is gone."""

    balance: WalletBalance


@dataclass(frozen=True, slots=True)
class Enforce:
    """What lets requests in follows `key`: goes beside `Save(key)`, whose version guards both. Counted requests stay counted."""

    key: ApiKey


Change = (
    Save | Add | Take | Delete | Post | Beside | Emit | Open | Close | AtEpoch | AtPart | Dropped | Still | Absent | Enforce
    | Stub | Name | DeleteEmpty | Remove
)  # fmt: skip


class Conflict(Exception):
    """Another worker was first: nothing was committed. `change` is the first one whose condition failed.

    `change` is None where the store only said that another transaction was at work on the same items.
    """

    def __init__(self, change: Change | None) -> None:
        super().__init__(f"conflict on {change!r:.200}")
        self.change = change
