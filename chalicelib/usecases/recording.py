"""Storing what is ours in blocks. Whoever dies half-way, or comes twice, leaves nothing that the next one does not find.

The list of a block's deposits is stored under its hash first: whoever drops the block finds everything that may have been
stored of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.addresses import Watched
from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.chain import Block, BlockDeposits, Transfer
from chalicelib.domain.deposits import deposit_id
from chalicelib.usecases.changes import Save
from chalicelib.usecases.deposits import Deposits
from chalicelib.usecases.matching import Matcher
from chalicelib.usecases.own_transactions import from_others
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.trying import until_settled


class Recorder:
    def __init__(self, network: Network, reader: ChainReader, store: Store, deposits: Deposits, rules: AddressRules) -> None:
        self._network, self._reader, self._store, self._deposits = network, reader, store, deposits
        self._matcher = Matcher(network, store, rules)

    def contracts(self) -> dict[str, Coin]:
        """The tokens of the network by the storage form of their contracts."""
        return self._matcher.contracts()

    def record(self, blocks: Sequence[Block], epoch: int) -> None:
        """Store what is ours in `blocks`, which the chain holds at `epoch`; what is stored already stays as it is.

        Raises Conflict (`AtEpoch`: a reorganisation was followed meanwhile), Unavailable.
        """
        watched = self._matcher.ours(t for block in blocks for t in block.transfers)
        contracts, native = self._matcher.contracts(), self._matcher.native()
        for block in blocks:
            mine = [t for t in block.transfers if t.recipient in watched and self._matcher.bookable(t, contracts)]
            mine = from_others(self._store, self._network, mine, watched)
            if mine:
                self._store_block(block, mine, watched, contracts, native, epoch)

    def _store_block(
        self,
        block: Block,
        mine: list[Transfer],
        watched: dict[str, Watched],
        contracts: dict[str, Coin],
        native: Coin,
        epoch: int,
    ) -> None:
        proven = self._reader.proven(block, mine)
        if not proven:
            return
        ids = [deposit_id(self._network.id, t.txid, t.position) for t in proven]
        # The list first: whoever drops the block finds everything that may have been stored of it, also where we die half-way
        # and somebody else credits what we did store.
        self._list(block, ids)
        for t in proven:
            coin = native if t.contract is None else contracts[t.contract]
            self._deposits.detect(self._network, coin, block, t, watched[t.recipient], epoch)

    def _list(self, block: Block, ids: list[str]) -> None:
        def decide() -> None:
            known = self._store.get(BlockDeposits, network=self._network.id, hash=block.hash)
            if known is None:
                self._store.commit([Save(BlockDeposits(self._network.id, block.hash, tuple(ids)))])
            elif not set(ids) <= set(known.deposits):
                both = tuple(dict.fromkeys((*known.deposits, *ids)))
                self._store.commit([Save(replace(known, deposits=both, version=known.version + 1))])

        until_settled(decide)
