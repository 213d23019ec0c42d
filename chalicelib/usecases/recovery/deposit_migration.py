"""Migration of old deposits to claims and rows of blocks, by the operator's `migrate`.

A claim tells which number the first log of a transaction has in the block of its deposit: by the receipt, which a node has while
the block is in its chain. It can be run again at any time: what is there stays. How far a run came is stored page by page.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block
from chalicelib.domain.deposits.claims import LogClaim, log_number
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.usecases.deposits.blocks import add_row, note_rows
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader, LogOrder
from chalicelib.usecases.ports.store import Store

_AT_ONCE = 100
PAGE = 1_000
"""Rows of the table that are looked at between two notes of the progress, a second or so."""
PROGRESS = "migrate|deposits"
"""The id of the progress. What another migration did is no progress of this one: each has an id of its own."""

ReaderOf = Callable[[Network], ChainReader | None]
"""The reader of a network, None where it has no node now."""


@dataclass
class Migration:
    """The number of blocks and transactions that were migrated, and of transactions by network that could not be."""

    blocks: int = 0
    claimed: int = 0
    left: dict[NetworkId, int] = field(default_factory=lambda: defaultdict(int))


class DepositMigration:
    def __init__(self, networks: Iterable[Network], reader_of: ReaderOf, store: Store, clock: Clock) -> None:
        self._networks = {network.id: network for network in networks}
        self._reader_of, self._store, self._clock = reader_of, store, clock

    def run(self, tell: Callable[[str], None] = lambda line: None) -> Migration:
        """Scans all deposits, while the service runs. After a cut it goes on behind the last page that was done; `tell` gets a line
        for each page. Raises Unavailable of the store, Conflict.
        """
        before = self._store.get(SweepCursor, id=PROGRESS) or SweepCursor(PROGRESS, ("", "0", "{}"), version=0)
        after, pages = before.places[0] or None, int(before.places[1])
        done = Migration(left=defaultdict(int, {NetworkId(name): count for name, count in json.loads(before.places[2]).items()}))
        if after is not None:
            tell(f"deposits: goes on behind the {pages * PAGE} rows of the run before")
        while True:
            page = self._store.sweep(Deposit, limit=PAGE, after=after, consistent=True)
            self._page(page.items, done)
            after, pages = page.next, pages + 1
            if after is None:
                break
            before = self._remembered(before, (after, str(pages), json.dumps(done.left)))
            tell(f"deposits: {pages * PAGE} rows looked at, {done.blocks} blocks listed, {done.claimed} transactions claimed")
        for network in self._networks.values():
            note_rows(self._store, network, self._clock)
        if before.version:
            self._remembered(before, ("", "0", "{}"))
        return done

    def _remembered(self, before: SweepCursor, places: tuple[str, ...]) -> SweepCursor:
        after = replace(next_version(before), places=places)
        self._store.commit([Save(after)])
        return after

    def _page(self, deposits: Iterable[Deposit], done: Migration) -> None:
        seen: set[tuple[NetworkId, int, str]] = set()
        waiting: dict[NetworkId, list[Deposit]] = defaultdict(list)
        for deposit in deposits:
            network = self._networks.get(deposit.network)
            if network is None or deposit.block_number is None:
                continue
            if (deposit.network, *deposit.block) not in seen:
                seen.add((deposit.network, *deposit.block))
                done.blocks += add_row(self._store, network, *deposit.block)
            if deposit.status != "orphaned" and _numbered(network, deposit):
                waiting[network.id].append(deposit)
                if len(waiting[network.id]) == _AT_ONCE:
                    self._claim(network, waiting.pop(network.id), done)
        for network_id, held in waiting.items():
            self._claim(self._networks[network_id], held, done)

    def _claim(self, network: Network, deposits: Sequence[Deposit], done: Migration) -> None:
        txids = list(dict.fromkeys(deposit.txid for deposit in deposits))
        wanted: list[tuple[type[Any], dict[str, str]]] = [(LogClaim, {"network": network.id, "txid": txid}) for txid in txids]
        missing = {txid for txid, claim in zip(txids, self._store.get_many(wanted), strict=True) if claim is None}
        if not missing:
            return
        reader = self._reader_of(network)
        firsts: dict[str, int] = {}
        blocks: dict[tuple[int, str], list[str]] = defaultdict(list)
        for deposit in deposits:
            if deposit.txid in missing and deposit.txid not in blocks[deposit.block]:
                blocks[deposit.block].append(deposit.txid)
        if reader is not None and isinstance(reader, LogOrder):
            for (number, hash_), held in blocks.items():
                firsts |= _firsts(reader, Block(number, hash_, "", 0), held)
            Claims(network, reader, self._store).claimed(firsts)
        done.claimed += len(firsts)
        if left := len(missing) - len(firsts):
            done.left[network.id] += left


def _numbered(network: Network, deposit: Deposit) -> bool:
    """Whether it is named by a log's number in its block."""
    return network.family == "evm" and not network.simulated and log_number(deposit.position) is not None


def _firsts(reader: LogOrder, block: Block, txids: list[str]) -> dict[str, int]:
    """The node's answer, without transactions that it does not have in this block."""
    try:
        return reader.first_logs(block, txids) if txids else {}
    except Unavailable:
        if len(txids) == 1:
            return {}
        return {txid: first for each in txids for txid, first in _firsts(reader, block, [each]).items()}
