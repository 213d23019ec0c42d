"""Migration of old deposits to claims and rows of blocks, by the operator's `migrate`.

A claim tells which number the first log of a transaction has in the block of its deposit: by the receipt, which a node has while
the block is in its chain. It can be run again at any time: what is there stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block
from chalicelib.domain.deposits.claims import LogClaim, log_number
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.deposits.blocks import add_row, note_rows
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader, LogOrder
from chalicelib.usecases.ports.store import Store

_AT_ONCE = 100

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

    def run(self) -> Migration:
        """Scans all deposits. Raises Unavailable of the store, Conflict."""
        done = Migration()
        seen: set[tuple[NetworkId, int, str]] = set()
        waiting: dict[NetworkId, list[Deposit]] = defaultdict(list)
        for deposit in self._store.every(Deposit):
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
        for network_id, deposits in waiting.items():
            self._claim(self._networks[network_id], deposits, done)
        for network in self._networks.values():
            note_rows(self._store, network, self._clock)
        return done

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
