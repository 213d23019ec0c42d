"""Leftovers of a block that the cursor passes: a rescan of that block, ordered before the cursor moves.

A block may hold more for one merchant than is recorded at once: other functions are asked for the rest, and messages may be lost.
Others may change an invoice all the time, so that a payment of it can not be recorded now. And a node may contradict itself about a
transaction of the block: then it is not passed for half an hour, while an operator mends the node; after that no other payment
waits for it. The rescan stays open, tries with each poll and fails loudly, until the node, or another in its place, says one thing
only.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.chain import Block
from chalicelib.domain.ids import derived_id
from chalicelib.domain.scanning.rescans import Rescan, rescan_work
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Open, Save

PATIENCE_MS = 30 * 60 * 1000
"""For how long after its time a block that a node contradicts itself about is not passed."""


class Leftovers:
    def __init__(self, context: NetworkContext) -> None:
        self._network, self._store, self._clock = context.network, context.store, context.clock

    def waited_for(self, block: Block) -> bool:
        """Whether the network has waited long enough for a node that contradicts itself about `block`."""
        return self._clock.now_ms() - block.time > PATIENCE_MS

    def order(self, block: Block) -> None:
        """Order a rescan of `block`. Raises Conflict, Unavailable."""
        now = self._clock.now_ms()
        key = derived_id("rsc", self._network.id, block.hash)
        ordered = Rescan(key, self._network.id, block.number, block.number, block.number, now)

        def decide() -> None:
            known = self._store.get(Rescan, network=self._network.id, id=key)
            if known is None:
                self._store.commit([Save(ordered), Open(rescan_work(ordered))])
            elif known.done:
                # The block was dropped, and is back: what was orphaned is looked for again.
                again = replace(ordered, version=version_after(known))
                self._store.commit([Save(again, anew=True), Open(rescan_work(again))])

        until_settled(decide)
