"""Records of the index pools' ceilings outside the tables. `store/ceilings.py` fits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CeilingRecords(Protocol):
    """One number for each pool (`domain.addresses.index_pools.pool_name`). It outlives the tables, and knows no conditional
    write."""

    def read(self, names: Sequence[str]) -> dict[str, int]:
        """The ceilings of up to ten pools, without those that have none. What was written a moment ago may not be seen yet.
        Raises Unavailable."""
        ...

    def highest(self, name: str) -> int | None:
        """The highest ceiling that was ever written of a pool, as far as that is remembered (100 writes at least); None for none.
        Raises Unavailable."""
        ...

    def write(self, name: str, ceiling: int) -> None:
        """Raises Unavailable."""
        ...
