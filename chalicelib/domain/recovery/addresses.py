"""The search for used deposit addresses on a chain, after the store was lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import NetworkId

Usage = Literal["unused", "emptied", "holding", "used"]
"""The use of an address, as the chain tells it. `unused`: none; `emptied`: used, with nothing left that we know of; `holding`: has
something now; `used`: blocks paid it, and its balance is unknown."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Progress of the search on one network. Indexes below `next_index` were asked about, in the end all below `below` and all up
    to `highest + gap`; on a network whose nodes know no addresses, blocks below `next_block` were read instead, up to `to_block`.

    `found`: how many used ones there are; where blocks are searched, how many the search itself has stored, all of them counted as
    `holding` nothing: a block tells what came, not whether it is there still.
    `highest`: the highest index that was ever used, -1 for none; `first_block`: the first block looked at that paid one of ours.
    `known`: the same of the networks that share its indexes (EVM), as far as it was found by then: an index may be far behind this
    network's own highest one only because those between went to the others.
    `below`: addresses below this index may have been given out, whatever the chain says of them (`domain.addresses.index_pools`);
    0 in records from before that was known.
    `watched`: addresses below this index are watched again, used or not. All below `below` are, and where one further up is used,
    `margin` more behind it: they may have been given out and never been paid yet.
    """

    network: NetworkId
    gap: int
    margin: int
    started_at: int
    next_index: int = 0
    highest: int = -1
    known: int = -1
    found: int = 0
    holding: int = 0
    from_block: int | None = None
    next_block: int | None = None
    to_block: int | None = None
    first_block: int | None = None
    watched: int = 0
    never_used: bool = False
    below: int = 0
    version: int = 1

    def knowing(self, known: int) -> Restore:
        """The same search, once the index `known` was found used on another network of the pool."""
        return replace(self, known=max(self.known, known))

    @property
    def last_used(self) -> int:
        return max(self.highest, self.known)

    @property
    def searched(self) -> bool:
        """Whether the search of the chain is complete."""
        if self.never_used:
            return True
        if self.next_block is not None and self.to_block is not None:
            return self.next_block > self.to_block
        return self.next_index >= self.end

    @property
    def end(self) -> int:
        """The first index that needs no search."""
        return max(self.below, self.last_used + self.gap + 1)

    @property
    def first_free(self) -> int:
        """The first index that may be given out again, as far as this network goes."""
        if self.never_used:
            return 0
        behind = self.last_used + 1 + self.margin
        return behind if self.last_used >= self.below or not self.below else self.below

    @property
    def done(self) -> bool:
        return self.searched and self.watched >= self.first_free
