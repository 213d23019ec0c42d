"""A rescan: a range of blocks that is scanned again, and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Work, time_order

MOST_BLOCKS = 100_000


@dataclass(frozen=True, slots=True)
class Rescan:
    """Blocks `from_block` to `to_block`, both included; `next_block` is the first that was not scanned again yet.

    `noted`: sightings of our transactions are stored of what was looked at. `tried_at` is when it was put behind the others that
    wait, None where it never was. Both times in milliseconds since 1970.
    """

    id: str
    network: NetworkId
    from_block: int
    to_block: int
    next_block: int
    created_at: int
    noted: bool = False
    tried_at: int | None = None
    version: int = 1

    @property
    def done(self) -> bool:
        return self.next_block > self.to_block

    @property
    def status(self) -> Literal["pending", "running", "completed"]:
        if self.done:
            return "completed"
        return "pending" if self.next_block == self.from_block else "running"

    @property
    def scanned_to(self) -> int | None:
        """The last block that was scanned again, None before the first."""
        return None if self.next_block == self.from_block else self.next_block - 1


def rescan_work(rescan: Rescan) -> Work:
    """Open work: finish a rescan. In the lane of its network, the one with the oldest attempt first."""
    return Work("rescan", rescan.network, time_order(rescan.tried_at or rescan.created_at), rescan.id)
