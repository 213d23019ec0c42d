"""Migration of old deposits to claims and rows of blocks, by the operator's `migrate`.

Archived deposits need neither: their blocks are final, and the rows of these left with the last of them (`archive/block_rows.py`).

A claim tells which number the first log of a transaction has in the block of its deposit: by the receipt, which a node has while
the block is in its chain. It can be run again at any time: what is there stays. How far a run came is stored page by page, and that
it came to the end: then it is not run again, unless functions of an older version have run since (`reopen`). What is left then, of
networks whose node was away, needs no migration to be safe: `resume` credits a deposit without a claim once, under a new id.
"""

from __future__ import annotations

import json
import time
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
OLD_CALLS = 300.0
"""Seconds for which calls of replaced code may go on: the longest timeout of a function that records deposits
(`.chalice/config.json`). https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html"""
_BEGINNING = ("", "0", "{}", "")
_OLDER = ("", "0", "{}", "older")
"""Functions of an older version ran until the deploy that is under way. A row of an older checkout has three places."""
_DONE = "done"

ReaderOf = Callable[[Network], ChainReader | None]
"""The reader of a network, None where it has no node now."""
Tell = Callable[[str], None]


@dataclass
class Migration:
    """The number of blocks and transactions that were migrated, and of transactions by network that could not be. `ran`: whether
    anything was looked at."""

    ran: bool = True
    blocks: int = 0
    claimed: int = 0
    left: dict[NetworkId, int] = field(default_factory=lambda: defaultdict(int))


class DepositMigration:
    def __init__(self, networks: Iterable[Network], reader_of: ReaderOf, store: Store, clock: Clock) -> None:
        self._networks = {network.id: network for network in networks}
        self._reader_of, self._store, self._clock = reader_of, store, clock

    def run(self, tell: Tell = lambda line: None, *, again: bool = False, wait: Callable[[float], None] = time.sleep) -> Migration:
        """Scans all deposits, while the service runs, unless that was done; `again`: all the same, from the beginning. After a cut
        it goes on behind the last page that was done; `tell` gets a line for each page. Raises Unavailable of the store, Conflict.
        """
        before = self._store.get(SweepCursor, id=PROGRESS) or SweepCursor(PROGRESS, _BEGINNING, version=0)
        if again:
            before = _remembered(self._store, before, _BEGINNING)
        after, pages, state = before.places[0] or None, int(before.places[1]), _state(before)
        left = {NetworkId(name): count for name, count in json.loads(before.places[2]).items()}
        done = Migration(state != _DONE, left=defaultdict(int, left))
        if state == _DONE:
            return done
        if before.places == _OLDER:
            tell(f"deposits: waits {OLD_CALLS / 60:.0f} minutes for the last calls of the version before")
            wait(OLD_CALLS)
        if after is not None:
            tell(f"deposits: goes on behind the {pages * PAGE} rows of the run before")
        while True:
            page = self._store.sweep(Deposit, limit=PAGE, after=after, consistent=True, unarchived=True)
            self._page(page.items, done)
            after, pages = page.next, pages + 1
            if after is None:
                break
            before = _remembered(self._store, before, (after, str(pages), json.dumps(done.left), ""))
            tell(f"deposits: {pages * PAGE} rows looked at, {done.blocks} blocks listed, {done.claimed} transactions claimed")
        for network in self._networks.values():
            note_rows(self._store, network, self._clock)
        _remembered(self._store, before, ("", "0", json.dumps(done.left), _DONE))
        return done

    def _page(self, deposits: Iterable[Deposit], done: Migration) -> None:
        seen: set[tuple[NetworkId, int, str]] = set()
        waiting: dict[NetworkId, list[Deposit]] = defaultdict(list)
        for deposit in deposits:
            network = self._networks.get(deposit.network)
            if network is None or deposit.block_number is None:
                continue
            if (deposit.network, *deposit.block) not in seen:
                seen.add((deposit.network, *deposit.block))
                done.blocks += add_row(self._store, network, deposit)
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


def reopen(store: Store) -> None:
    """Have the next run begin anew, before newer functions take the place of those that leave records to it. A run that is under
    way ends with Conflict. Safe to repeat. Raises Unavailable, Conflict."""
    before = store.get(SweepCursor, id=PROGRESS) or SweepCursor(PROGRESS, _BEGINNING, version=0)
    if before.places != _OLDER:
        _remembered(store, before, _OLDER)


def _remembered(store: Store, before: SweepCursor, places: tuple[str, ...]) -> SweepCursor:
    after = replace(next_version(before), places=places)
    store.commit([Save(after)])
    return after


def _state(cursor: SweepCursor) -> str:
    return cursor.places[3] if len(cursor.places) > 3 else ""


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
