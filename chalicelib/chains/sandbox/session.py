"""Read, decide, write: the one way in which a simulated network changes.

Every change carries the head's next version, so all changes of a network happen one after the other. The second of two writers
reads and decides again; its later reads are as old as the head itself, or the write fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chalicelib.chains.sandbox.branch import Head, Stretch, View
from chalicelib.chains.sandbox.ledger import Account, Place, TxState
from chalicelib.chains.sandbox.reads import Mined, Reads
from chalicelib.chains.sandbox.table import Contended, Delete, Put, pause
from chalicelib.usecases.ports.failures import Unavailable

TRIES = 24


@dataclass(slots=True)
class Write:
    """The head as it shall be, and what is written with it. Where nothing is mined the head is the same, with the next version:
    another writer that was deciding meanwhile decides again."""

    head: Head
    changes: list[Put | Delete] = field(default_factory=list)


def change(reads: Reads, decide: Callable[[View], Write | None]) -> None:
    """Do what `decide` says of the chain as it is, None for nothing. Raises Unavailable, and whatever `decide` does."""
    for attempt in range(TRIES):
        view = reads.view()
        try:
            write = decide(view)
            if write is not None:
                reads.table.write(reads.head_key, view.head.version, write.head.to_doc(), write.changes)
        except Contended:
            pause(attempt)
            continue
        return
    raise Unavailable(f"{reads.network.id} is being written to by too many at once")


def closing(reads: Reads, view: View, stretch: Stretch) -> Put:
    """The end of a stretch, whose block is empty."""
    salt = view.salt_at(stretch.height)
    return Put(reads.block_key(stretch.height, salt), Mined(stretch.height, salt, stretch, None, False).to_doc())


def tidied(reads: Reads, view: View, account: Account) -> Account:
    return account.tidied(reads.reaching(view, account.lowest()))


def mining(reads: Reads, view: View, state: TxState, step: int, on_top: int = 0) -> Write:
    """Mine `state` in a new block, and `on_top` empty ones after it."""
    tx, success = state.tx, not state.fails
    after, stretch = view.extended(1, step)
    number = stretch.height
    salt = after.salt_at(number)
    changes: list[Put | Delete] = [
        Put(reads.block_key(number, salt), Mined(number, salt, stretch, tx, success).to_doc()),
        Put(reads.tx_key(tx.txid), state.placed(Place(number, salt, success), view).to_doc()),
    ]
    for address, deltas in tx.deltas(success).items():
        account = tidied(reads, after, reads.account(address).with_change(number, salt, deltas))
        changes.append(Put(reads.account_key(address), account.to_doc()))
    if tx.nonce is not None:
        changes.append(Delete(reads.pool_key(tx.sender, tx.nonce)))
    if on_top:
        higher, stretch = after.extended(on_top, step)
        changes.append(closing(reads, higher, stretch))
        return Write(higher.head, changes)
    return Write(after.head, changes)
