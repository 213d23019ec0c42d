"""An index of the blocks that hold deposits, by height: read from the highest block down, without a scan.

A block's row is written with its list (`usecases/scanning/block_lists.py`). Blocks that were recorded before there were rows get
theirs from the deposits themselves: once for each network, by `migrate` or by the first `resume`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import BlockDeposits, DepositBlock, Migrated
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Conflict, Save, Still
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

    Raises Unavailable, Conflict.
    """
    if store.get(Migrated, network=network.id, name=ROWS) is not None:
        return
    seen: set[tuple[int, str]] = set()
    for deposit in _unarchived(store):
        if deposit.network == network.id and deposit.block_number is not None and deposit.block not in seen:
            seen.add(deposit.block)
            add_row(store, network, deposit)
    note_rows(store, network, clock)


def _unarchived(store: Store) -> Iterator[Deposit]:
    after: str | None = None
    while True:
        page = store.sweep(Deposit, limit=_SWEPT, after=after, consistent=True, unarchived=True)
        yield from page.items
        after = page.next
        if after is None:
            return


def add_row(store: Store, network: Network, deposit: Deposit) -> bool:
    """Give the block of `deposit`, as it was read a while ago, its row by height; returns whether it got one: it has none to get
    where its list has left for the archive since, with the row. Raises Unavailable, Conflict."""
    number, hash_ = deposit.block
    key = {"network": str(network.id), "hash": hash_}

    def decide() -> bool:
        row, first = store.get_many([(DepositBlock, {**key, "number": str(number)}), (BlockDeposits, key)])
        if row is not None or (first is None and deposit.part is not None):
            return False
        store.commit([Save(DepositBlock(network.id, number, hash_)), *([] if first is None else [Still(first)])])
        return True

    return until_settled(decide)


def note_rows(store: Store, network: Network, clock: Clock) -> None:
    """Note that every block of `network` has its row. Raises Unavailable."""
    if store.get(Migrated, network=network.id, name=ROWS) is None:
        try:
            store.commit([Save(Migrated(network.id, ROWS, clock.now_ms()))])
        except Conflict:
            log.info("%s: somebody else has noted first that every block has its row", network.id)
