"""Gaps of sightings: blocks passed before sightings were noted, or skipped when the cursor was set.

That a transaction is lost can be told only where the blocks that decide it are noted (`Cursor.noted_from`). Where they are not,
they are scanned again, by an ordinary rescan, which notes them. Nothing is ordered while nothing is in doubt.
"""

from __future__ import annotations

import math

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import derived_id
from chalicelib.domain.scanning.rescans import MOST_BLOCKS, Rescan, rescan_work
from chalicelib.usecases.ports.changes import Conflict, Open, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.finality import Scanned

_FURTHER = 2
"""How many times further back than seems needed is looked: blocks may come faster than the network's stored block time."""


class NoteGaps:
    """Of one network. Raises Unavailable."""

    def __init__(self, network: Network, store: Store) -> None:
        self._network, self._store = network, store

    def close(self, first: int | None, scanned: Scanned, now: int) -> None:
        """Have the blocks from `first` on looked at that no sightings are of, the latest ones first where they are many. Once,
        however often it is asked for. `now` in milliseconds since 1970."""
        end = scanned.noted_from
        if first is None or end is None or first >= end or scanned.unsure:
            return
        first = max(0, first, end - MOST_BLOCKS)
        name = derived_id("rsc", self._network.id, "notes", str(end))
        made = Rescan(name, self._network.id, first, end - 1, first, now, noted=True)
        if self._store.get(Rescan, network=self._network.id, id=name) is not None:
            return
        try:
            self._store.commit([Save(made), Open(rescan_work(made))])
        except Conflict:
            return  # another poll was first

    def close_since(self, at: int, scanned: Scanned, now: int) -> None:
        """The same from a block on that is older than `at`, as far as that can be told. Both in milliseconds since 1970."""
        back = self._network.reorg_depth + math.ceil(max(0, now - at) / 1000 / self._network.block_time)
        if scanned.noted_from is not None and scanned.noted_from > scanned.height - back:
            self.close(max(0, scanned.height - _FURTHER * back), scanned, now)
