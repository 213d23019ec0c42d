"""An index of the blocks that hold deposits, by height: read from the highest block down, without a scan.

A block's row is written with its list (`usecases/scanning/block_lists.py`). Blocks that were recorded before there were rows get
theirs from the deposits themselves: once for each network, by `migrate` or by the first `resume`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import DepositBlock, Migrated
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

ROWS = "deposit_blocks"
"""`Migrated.name` once every block of a network has its row."""
_PAGE = 100
_SWEPT = 1_000
"""Rows of the table in one step."""


def highest_first(store: Store, network: Network) -> Iterator[DepositBlock]:
    """Every block of `network` that holds deposits, or held some before it fell out, highest first. Raises Unavailable."""
    after: str | None = None
    while True:
        page = store.page(DepositBlock, limit=_PAGE, newest_first=True, after=after, network=network.id)
        yield from page.items
        after = page.next
        if after is None:
            return


def ensure_rows(store: Store, network: Network, clock: Clock) -> None:
    """Give every block of `network` with deposits its row by height, but for those whose deposits are archived: versions that
    archive write rows, and these left with the deposits or are there. Scans all deposits the first time.

    Raises Unavailable.
    """
    if store.get(Migrated, network=network.id, name=ROWS) is not None:
        return
    seen: set[tuple[int, str]] = set()
    for deposit in _unarchived(store):
        if deposit.network == network.id and deposit.block_number is not None and deposit.block not in seen:
            seen.add(deposit.block)
            add_row(store, network, *deposit.block)
    note_rows(store, network, clock)


def _unarchived(store: Store) -> Iterator[Deposit]:
    after: str | None = None
    while True:
        page = store.sweep(Deposit, limit=_SWEPT, after=after, consistent=True, unarchived=True)
        yield from page.items
        after = page.next
        if after is None:
            return


def add_row(store: Store, network: Network, number: int, hash_: str) -> bool:
    """Give this block its row by height; returns whether it had none. Raises Unavailable."""
    if store.get(DepositBlock, network=network.id, number=str(number), hash=hash_) is not None:
        return False
    return _saved(store, DepositBlock(network.id, number, hash_))


def note_rows(store: Store, network: Network, clock: Clock) -> None:
    """Note that every block of `network` has its row. Raises Unavailable."""
    if store.get(Migrated, network=network.id, name=ROWS) is None:
        _saved(store, Migrated(network.id, ROWS, clock.now_ms()))


def _saved(store: Store, record: DepositBlock | Migrated) -> bool:
    """Whether it was not there."""
    try:
        store.commit([Save(record)])
    except Conflict:
        log.info("somebody else has written %s first", record)
        return False
    return True
