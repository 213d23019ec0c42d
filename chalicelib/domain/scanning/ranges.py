"""A range of a backlog: blocks far below the tip that a worker scans ahead of the cursor."""

from __future__ import annotations

from dataclasses import dataclass, field

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Work


@dataclass(frozen=True, slots=True)
class ScanRange:
    """Blocks `first` to `last`, both included, under the epoch that the cursor had when they were shared out.

    `next_block` is the first that is not stored yet. `parent` is the hash of the block before `first`, as the first block itself
    says; `hashes` those of the blocks that are stored, by number; `block_time` is the time of the last of them. `touched_at` is
    when a worker last got on with it. `noted`: sightings are stored of its blocks. Times in milliseconds since 1970.
    """

    network: NetworkId
    first: int
    last: int
    epoch: int
    next_block: int
    touched_at: int
    parent: str | None = None
    hashes: dict[str, str] = field(default_factory=dict)
    block_time: int = 0
    noted: bool = False
    version: int = 1

    @property
    def name(self) -> str:
        """Its part of the key: sorts by block number."""
        return f"{self.first:015d}"

    @property
    def done(self) -> bool:
        return self.next_block > self.last

    def follows(self, number: int, hash_: str, epoch: int) -> bool:
        """Whether it is complete, and continues the chain from that block under `epoch`."""
        return self.done and self.epoch == epoch and self.first == number + 1 and self.parent == hash_


def range_work(found: ScanRange) -> Work:
    """Open work: scan a range and let the cursor pass it, or drop it."""
    return Work("range", found.network, found.name, found.name)
